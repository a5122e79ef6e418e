"""Trainings whose blocks of items go from member to member are those of one member."""

from __future__ import annotations

import threading
from contextlib import closing

import distributed
import numpy as np
import pytest
from tests.clusters import eventually

from mlopt.cluster import MeshHere
from mlopt.errors import InputError
from mlopt.factors.estimator import MatrixFactorization
from mlopt.factors.model import Factors, drawn
from mlopt.factors.pricing import Passes
from mlopt.factors.ratings import Ratings, ratings_of
from mlopt.factors.sgd import Rule, SGDTraining
from mlopt.factors.shelves import LEAST, Grid
from mlopt.server.layouts.pool import Pool
from mlopt.server.layouts.pricing import choose

RULE = Rule(penalty=0.05, rate=0.03, decay=0.95, biased=True, nonnegative=False)


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    """Enough for three strata."""
    rng, n = np.random.default_rng(0), 9 * LEAST
    X = np.c_[rng.integers(2000, size=n), rng.integers(900, size=n)]
    return ratings_of(X, rng.normal(3.5, 1, n).astype(np.float32), "mean")


def start_of(ratings: Ratings) -> Factors:
    P, Q = drawn(ratings.shape, 5, 0.0, 0, False)
    b, c = (np.zeros(count, np.float32) for count in ratings.shape)
    return Factors(P, Q, b, c, float(ratings.values.mean()))


def assert_same(one: Factors, other: Factors) -> None:
    for name in ("P", "Q", "b", "c"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.slow
def test_factors_are_those_of_one_member_though_another_is_lost(ratings: Ratings) -> None:
    start = start_of(ratings)
    with (
        MeshHere(1) as mesh,
        closing(
            SGDTraining(ratings, start, RULE, seed=1, passes=0, mesh=mesh, threads=1)
        ) as alone,
    ):
        for _ in range(6):
            alone.advance(1)
        expected, quality = alone.factors(), alone.quality()
    with MeshHere(3) as mesh:
        training = SGDTraining(ratings, start, RULE, seed=1, passes=0, mesh=mesh)
        training.advance(2)
        state = training.state()
        threading.Timer(0.005, mesh.lose, [mesh.members[1]]).start()
        training.advance(4)
        assert_same(training.factors(), expected)
        assert training.quality() == pytest.approx(quality)
        assert eventually(lambda: len(mesh.members) == 2)
        training.restore(state)
        training.advance(4)
        assert_same(training.factors(), expected)
        training.close()


def test_an_estimator_that_rotates_learns_what_threads_do(ratings: Ratings) -> None:
    X, y = np.c_[ratings.users, ratings.items], ratings.values
    found = [
        MatrixFactorization(
            4, max_iter=2, layout=layout, random_state=3, n_iter_no_change=1
        ).fit(X, y)
        for layout in ("rotate", "threads")
    ]
    np.testing.assert_array_equal(found[0].user_factors_, found[1].user_factors_)
    np.testing.assert_array_equal(found[0].item_factors_, found[1].item_factors_)
    assert found[0].validation_errors_ == found[1].validation_errors_


def test_factors_that_grow_without_bounds_are_an_error(ratings: Ratings) -> None:
    model = MatrixFactorization(4, max_iter=3, layout="rotate", learning_rate=9.0)
    with pytest.raises(InputError, match="without bounds by pass 3: lower `learning_rate`"):
        model.fit(np.c_[ratings.users, ratings.items], ratings.values)


def test_blocks_go_round_where_passes_are_worth_it(ratings: Ratings) -> None:
    """Shelves are sent to workers once; what is gained is gained in each pass."""
    pool = Pool(members=2, here=1, apart=True)
    found = []
    for passes in (1, 10_000):
        todo = Passes(Grid.of(ratings, 0), start_of(ratings), RULE, 0, passes, 0)
        choice, _ = choose("auto", str(todo), todo.prices(pool, False))
        said = f"{passes} passes over {len(ratings.values)} ratings on 2 x 2 shelves"
        assert choice.operator == said
        found.append((choice.chosen, choice.predicted or 0.0))
    assert [name for name, _ in found] == ["threads", "rotate"]
    assert 0 < found[0][1] < found[1][1]


def test_a_factorization_says_where_it_ran_and_why(ratings: Ratings) -> None:
    X, y = np.c_[ratings.users, ratings.items], ratings.values
    plan = MatrixFactorization(4, max_iter=2, n_jobs=1).fit(X, y).plan_
    (choice,) = plan.choices
    assert (choice.step, choice.chosen) == ("layout", "threads")
    assert choice.predicted is not None
    assert choice.measured == pytest.approx(plan.measured)
    (rejected,) = choice.rejected
    assert (rejected.name, rejected.reason) == (
        "rotate", "the same threads, and messages between them"
    )  # fmt: skip
    few = MatrixFactorization(1, max_iter=1).fit([[1, 2, 3], [2, 1, 4]]).plan_
    assert "so few are on one shelf" in few.explain(verbose=True)
    counts = MatrixFactorization(1, implicit=True).fit([[1, 2, 3], [2, 1, 4]]).plan_
    assert "least squares of one side need all of the other" in counts.explain(verbose=True)


@pytest.mark.cluster
@pytest.mark.slow
def test_workers_of_the_active_client_learn_what_threads_do(
    ratings: Ratings, shared_workers: str
) -> None:
    X, y = np.c_[ratings.users, ratings.items], ratings.values
    model = MatrixFactorization(4, max_iter=3, layout="threads", random_state=3).fit(X, y)
    with distributed.Client(shared_workers):
        other = MatrixFactorization(4, max_iter=3, layout="rotate", random_state=3)
        other.fit(X, y)
    np.testing.assert_array_equal(model.user_factors_, other.user_factors_)
    np.testing.assert_array_equal(model.predict(X[:99]), other.predict(X[:99]))
