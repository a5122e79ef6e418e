"""Matrix factorization is what its objective says, whoever looks at it."""

from __future__ import annotations

import doctest
import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numba import config
from numba.core.registry import CPUDispatcher
from numpy.typing import NDArray
from scipy.optimize import nnls
from sklearn.base import clone
from sklearn.utils import estimator_checks

from mlopt import MatrixFactorization
from mlopt.cluster import MeshHere, Threads
from mlopt.errors import InputError
from mlopt.factors.als import ALSTraining
from mlopt.factors.model import Factors
from mlopt.factors.ratings import ratings_of
from mlopt.factors.sgd import Rule, SGDTraining
from mlopt.factors.shelves import Grid
from mlopt.kernels import factors_als, factors_sgd
from mlopt.training import Training

Array = NDArray[Any]


def drawn(users: int = 60, items: int = 40, share: float = 0.3) -> sp.csr_array:
    """Ratings around 3.5 of biases and two factors, and noise of a tenth."""
    random = np.random.default_rng(0)
    P, Q = random.normal(size=(users, 2)), random.normal(size=(items, 2))
    full = 3.5 + random.normal(size=(users, 1)) + random.normal(size=items) + P @ Q.T
    full += random.normal(0, 0.1, (users, items))
    known = random.random((users, items)) < share
    u, i = np.nonzero(known)
    return sp.csr_array((full[known], (u, i)), shape=(users, items))


def rows_of(X: Any) -> tuple[Array, Array]:
    coo = X.tocoo()
    return np.column_stack(coo.coords), coo.data


def objective(X: Any, model: MatrixFactorization) -> float:
    """Of the docstring, in float64."""
    (pairs, r), alpha = rows_of(X), model.alpha
    u, i = pairs.T
    P, Q = model.user_factors_.astype(float), model.item_factors_.astype(float)
    b, c = model.user_biases_.astype(float), model.item_biases_.astype(float)
    e = r - (P[u] * Q[i]).sum(axis=1) - (model.mean_ + b[u] + c[i]) * model._biased()
    sizes = (P[u] ** 2).sum(axis=1) + (Q[i] ** 2).sum(axis=1) + b[u] ** 2 + c[i] ** 2
    return float((e**2).sum() + alpha * sizes.sum())


@pytest.mark.parametrize("how", [{}, {"nonnegative": True}, {"biases": False}])
def test_every_pass_of_als_lowers_the_objective_and_sgd_comes_near(how: Any) -> None:
    X = drawn()
    if how.get("nonnegative"):
        X.data = np.abs(X.data)
    als = MatrixFactorization(3, solver="als", random_state=0, **how)
    passes = (1, 2, 4, 8, 40)
    values = [objective(X, clone(als).set_params(max_iter=n).fit(X)) for n in passes]
    assert all(later < earlier for earlier, later in pairwise(values))
    sgd = MatrixFactorization(3, max_iter=300, decay=0.99, random_state=0, **how).fit(X)
    assert objective(X, sgd) < 1.15 * values[-1]
    assert (
        not how.get("nonnegative")
        or min(sgd.user_factors_.min(), sgd.item_factors_.min()) >= 0
    )


def test_what_is_held_out_is_predicted() -> None:
    X = drawn(300, 200)
    pairs, r = rows_of(X)
    held = np.random.default_rng(1).random(len(r)) < 0.1
    for solver in ("sgd", "als"):
        model = MatrixFactorization(
            2, alpha=0.01, solver=solver, max_iter=60, random_state=0
        )
        model.fit(pairs[~held], r[~held])
        assert model.score(pairs[held], r[held]) > 0.97


@pytest.mark.parametrize("solver", ["sgd", "als"])
def test_a_matrix_rows_and_frames_are_the_same_ratings(solver: str) -> None:
    X = drawn()
    X.data[:5] = 0  # stored, and so a rating
    pairs, r = rows_of(X)
    frame = pd.DataFrame({"user": pairs[:, 0], "item": pairs[:, 1], "stars": r})
    model = MatrixFactorization(3, solver=solver, random_state=0)
    whole = clone(model).fit(X)
    for given in (
        (pairs, r),
        (np.column_stack([pairs, r]),),
        (frame,),
        (frame.iloc[:, :2], r),
    ):
        other = clone(model).fit(*given)
        np.testing.assert_array_equal(other.user_factors_, whole.user_factors_)
        np.testing.assert_array_equal(other.predict(given[0]), whole.predict(X))
    assert whole.mean_ == pytest.approx(r.mean(), rel=1e-6)
    assert clone(model).fit(frame).feature_names_in_.tolist() == ["user", "item", "stars"]


@pytest.mark.parametrize("columns", [40, 25])
def test_sparse_blocks_of_dask_are_the_matrix_that_they_make(columns: int) -> None:
    X = drawn()
    blocks = da.from_array(X.toarray(), chunks=(25, columns)).map_blocks(sp.csr_array)
    model = MatrixFactorization(2, random_state=0).fit(X)
    found = clone(model).fit(blocks)
    assert found.n_features_in_ == 40
    np.testing.assert_array_equal(found.user_factors_, model.user_factors_)
    np.testing.assert_array_equal(found.predict(blocks), model.predict(X))
    np.testing.assert_array_equal(found.transform(blocks), model.transform(X))
    np.testing.assert_array_equal(found.recommend(blocks, 3), model.recommend(X, 3))
    assert found.score(blocks) == model.score(X)


@pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")
def test_no_kind_of_number_has_kernels_compiled_anew() -> None:
    """Nor does it change an answer: 1 is 1.0."""
    ratings, kernels = drawn(), [factors_als, factors_sgd]
    plain = MatrixFactorization(2, alpha=1.0, decay=1.0, max_iter=2, random_state=0)
    typed = clone(plain).set_params(alpha=np.float32(1), decay=1, n_components=np.int8(2))
    expected = [plain.fit(ratings).user_factors_, plain.transform(ratings)]
    before = [_signatures(one) for one in kernels]
    found = [typed.fit(ratings).user_factors_, typed.transform(ratings)]
    assert [_signatures(one) for one in kernels] == before
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


def _signatures(module: Any) -> int:
    compiled = [one for one in vars(module).values() if isinstance(one, CPUDispatcher)]
    return sum(len(one.signatures) for one in compiled)


def test_labels_may_be_texts() -> None:
    pairs, r = rows_of(drawn())
    named = np.array([[f"u{u:03}", f"i{i:03}"] for u, i in pairs], object)
    model = MatrixFactorization(3, random_state=0)
    texts, numbers = clone(model).fit(named, r), clone(model).fit(pairs, r)
    np.testing.assert_array_equal(texts.predict(named), numbers.predict(pairs))
    top = texts.recommend(["u007"], 3)[0][0]
    assert top.tolist() == [f"i{i:03}" for i in numbers.recommend([7], 3)[0][0]]


@pytest.mark.parametrize("implicit", [False, True])
def test_recommendations_are_the_best_unseen_by_brute_force(implicit: bool) -> None:
    X = drawn()
    X.data = np.abs(X.data)
    model = MatrixFactorization(3, implicit=implicit, random_state=0).fit(X)
    items, scores = model.recommend([4, 0], 5)
    for user, own, told in zip((4, 0), items, scores, strict=True):
        every = [[user, item] for item in range(40) if X[user, item] == 0]
        values = model.predict(every)
        best = np.argsort(-values, kind="stable")[:5]
        assert own.tolist() == [every[k][1] for k in best]
        np.testing.assert_allclose(told, values[best], rtol=1e-5)
    assert model.recommend([4], 40)[1][0, -1] == -np.inf
    assert np.isfinite(model.recommend([4], 40, exclude_seen=False)[1]).all()


@pytest.mark.parametrize("implicit", [False, True])
def test_new_users_with_the_ratings_of_old_ones_get_their_factors(implicit: bool) -> None:
    X = drawn()
    X.data = np.abs(X.data)
    model = MatrixFactorization(
        3, solver="als", max_iter=300, alpha=0.1, implicit=implicit, random_state=0
    ).fit(X)
    np.testing.assert_allclose(model.transform(X), model.user_factors_, atol=0.02)
    known, new = model.recommend([2], 5), model.recommend(X[[2]], 5)
    np.testing.assert_allclose(known[1], new[1], atol=0.02)
    assert not model.transform(sp.csr_array((2, 40))).any()


@pytest.mark.parametrize("later", [{"biases": False}, {"implicit": True}, {"alpha": 9.0}])
def test_parameters_that_are_set_after_a_fit_change_no_answer(later: Any) -> None:
    X = drawn()
    model = MatrixFactorization(2, random_state=0).fit(X)
    other = pickle.loads(pickle.dumps(model)).set_params(**later)
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    np.testing.assert_array_equal(other.transform(X[:5]), model.transform(X[:5]))
    np.testing.assert_array_equal(other.recommend([3])[1], model.recommend([3])[1])
    assert other.score(X) == model.score(X)


HARD: list[dict[str, Any]] = [
    {"solver": "als", "alpha": 1e-6},
    {"implicit": True, "alpha": 1e-3, "confidence": 40.0},
    {"nonnegative": True},
]


@pytest.mark.parametrize("how", HARD)
def test_new_users_get_the_solution_where_problems_are_ill_conditioned(how: Any) -> None:
    X = drawn(200, 150, 0.1)
    X.data = np.round(np.abs(X.data) * 20) if "implicit" in how else np.abs(X.data)
    model = MatrixFactorization(16, random_state=0, **how).fit(X)
    Q = model.item_factors_.astype(float)
    sides = np.column_stack([Q, np.ones(len(Q))]) if model._biased() else Q
    told = model.transform(X[:20]) @ model.item_factors_.T
    for user in range(20):
        j, r = X[[user]].indices, X[[user]].data
        c, t, share = np.zeros(len(Q)), np.zeros(len(Q)), float(len(j))
        c[j], t[j] = 1, r - (model.mean_ + model.item_biases_[j]) * model._biased()
        if model.implicit:
            c, share = np.ones(len(Q)), 1.0
            c[j], t[j] = 1 + model.confidence * r, 1
        F, penalty = np.sqrt(c)[:, None] * sides, np.sqrt(model.alpha * share)
        stacked = np.vstack([F, penalty * np.eye(sides.shape[1])])
        aims = np.concatenate([np.sqrt(c) * t, np.zeros(sides.shape[1])])
        solve = nnls if model.nonnegative else np.linalg.lstsq
        expected = Q @ solve(stacked, aims)[0][:16]
        np.testing.assert_allclose(told[user], expected, atol=1e-2)


def test_counts_are_ranked_and_zeros_are_no_counts() -> None:
    random = np.random.default_rng(0)
    groups = np.add.outer(np.arange(80), np.arange(50)) % 5 == 0
    full = sp.csr_array(np.where(groups, random.integers(1, 9, (80, 50)), 0))
    pairs, counts = rows_of(full)
    held = random.random(len(counts)) < 0.2
    model = MatrixFactorization(5, implicit=True, alpha=1.0, random_state=0)
    model.fit(pairs[~held], counts[~held])
    assert model.score(pairs[held], counts[held]) > 0.95
    some = ~held | (np.arange(len(held)) % 2 > 0)
    # What was learnt is not held out.
    assert model.score(pairs[held & some], counts[held & some]) == pytest.approx(
        model.score(pairs[some], counts[some])
    )
    with_zeros = sp.csr_array(full).astype(float)
    with_zeros.data[::3] = 0
    without = with_zeros.copy()
    without.eliminate_zeros()
    a, b = clone(model).fit(with_zeros), clone(model).fit(without)
    np.testing.assert_allclose(a.item_factors_, b.item_factors_, atol=1e-5)


def test_threads_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlopt.factors.shelves.LEAST", 64)  # many shelves of few ratings
    X = drawn(200, 100)
    for solver in ("sgd", "als"):
        one, two = (
            MatrixFactorization(8, solver=solver, random_state=0, n_jobs=n).fit(X)
            for n in (1, 2)
        )
        np.testing.assert_array_equal(one.user_factors_, two.user_factors_)
    held = MatrixFactorization(2, alpha=0.01, max_iter=60, random_state=0).fit(X)
    assert held.score(X) > 0.98


def test_shelves_hold_each_rating_once_and_rounds_share_nothing() -> None:
    ratings = ratings_of(drawn(), None, "error")
    grid = Grid.of(ratings, 0, side=4)
    found: list[Any] = []
    for a, row in enumerate(grid.shelves):
        for b, (u, i, r) in enumerate(row):
            user = np.argsort(grid.users.place)[u + grid.users.edges[a]]
            item = np.argsort(grid.items.place)[i + grid.items.edges[b]]
            found += zip(user.tolist(), item.tolist(), r.tolist(), strict=True)
    given = zip(
        ratings.users.tolist(), ratings.items.tolist(), ratings.values.tolist(), strict=True
    )
    assert sorted(found) == sorted(given)
    assert len(grid.users.edges) == len(grid.items.edges) == 5


@pytest.mark.parametrize("solver", ["sgd", "als"])
def test_trainings_keep_the_laws(solver: str) -> None:
    ratings, random = ratings_of(drawn(), None, "error"), np.random.default_rng(0)
    P, Q = (random.normal(0, 0.1, (n, 3)).astype(np.float32) for n in (60, 40))
    zeros = np.zeros(60, np.float32), np.zeros(40, np.float32)
    rule = Rule(0.05, 0.03, 0.95, biased=True, nonnegative=False)

    def made() -> Any:
        start = Factors(P, Q, *zeros, 3.5)
        if solver == "sgd":
            return SGDTraining(ratings, start, rule, seed=0, passes=0, mesh=MeshHere(1))
        return ALSTraining(ratings, start, rule, passes=0, executor=Threads(1))

    whole, parts, resumed = made(), made(), made()
    assert isinstance(parts, Training)
    whole.advance(5)
    parts.advance(2)
    resumed.restore(pickle.loads(pickle.dumps(parts.state())))
    other: Any
    for other in (parts, resumed):
        other.advance(3)
        assert other.quality() == whole.quality() < 0
        np.testing.assert_array_equal(other.factors().P, whole.factors().P)


@pytest.mark.parametrize("solver", ["sgd", "als"])
def test_a_warm_start_goes_on_as_if_never_interrupted(solver: str) -> None:
    X = drawn()
    whole = MatrixFactorization(3, solver=solver, max_iter=9, random_state=0).fit(X)
    parts = clone(whole).set_params(max_iter=4, warm_start=True, random_state=None)
    parts.set_params(random_state=0).fit(X)
    parts = pickle.loads(pickle.dumps(parts)).set_params(max_iter=9).fit(X)
    assert parts.n_iter_ == whole.n_iter_ == 9
    np.testing.assert_array_equal(parts.item_factors_, whole.item_factors_)


def test_new_users_join_at_a_warm_start() -> None:
    pairs, r = rows_of(drawn())
    early = pairs[:, 0] < 50
    model = MatrixFactorization(3, warm_start=True, random_state=0).fit(
        pairs[early], r[early]
    )
    before = model.user_factors_.copy()
    with pytest.raises(InputError, match="must be above 20"):
        model.fit(pairs, r)  # no pass more: `max_iter` counts all
    np.testing.assert_array_equal(model.user_factors_, before)
    model.set_params(max_iter=60).fit(pairs, r)
    assert model.score(pairs, r) > 0.9


def test_early_stopping_keeps_the_best_pass() -> None:
    X = drawn()
    X.data = np.random.default_rng(0).normal(size=X.nnz)  # nothing to learn but noise
    model = MatrixFactorization(8, max_iter=500, n_iter_no_change=5, random_state=0).fit(X)
    errors = model.validation_errors_
    assert int(np.argmin(errors)) == model.n_iter_ - 1
    assert model.n_iter_ < len(errors) < 500


def test_the_error_on_counts_held_out_is_that_of_the_objective() -> None:
    X = sp.csr_array(drawn())
    X.data = np.random.default_rng(0).integers(1, 6, X.nnz).astype(float)
    found = [
        MatrixFactorization(
            4, implicit=True, confidence=1 / scale, max_iter=60, n_iter_no_change=3,
            random_state=0,
        ).fit(X * scale)
        for scale in (1, 128)
    ]  # fmt: skip
    assert found[0].n_iter_ == found[1].n_iter_
    assert found[0].validation_errors_ == pytest.approx(found[1].validation_errors_)
    assert max(found[0].validation_errors_) <= 1


def test_the_quality_of_counts_is_that_of_the_objective() -> None:
    ratings = ratings_of(100 * abs(drawn()), None, "error")
    P, Q = (np.zeros((n, 3), np.float32) for n in (60, 40))
    start = Factors(P, Q, P[:, 0], Q[:, 0], 0.0)
    rule = Rule(0.05, 0.03, 0.95, biased=False, nonnegative=False)
    training = ALSTraining(
        ratings, start, rule, passes=0, executor=Threads(1), confidence=1.0
    )
    assert training.quality() == -1  # of zeros, where all counts are above


def test_a_fit_that_goes_on_keeps_the_best_pass_of_those_before() -> None:
    X = drawn()
    X.data = np.random.default_rng(0).normal(size=X.nnz)
    model = MatrixFactorization(
        8, max_iter=500, n_iter_no_change=5, warm_start=True, random_state=0
    ).fit(X)
    passes, factors = model.n_iter_, model.user_factors_
    model.fit(X)
    assert (model.n_iter_, len(model.validation_errors_)) == (passes, 5)
    np.testing.assert_array_equal(model.user_factors_, factors)
    X.data[0] += 1  # of other ratings, earlier passes may have seen those held out
    assert model.fit(X).n_iter_ > passes


def test_who_is_held_out_whole_gets_the_mean_and_biases() -> None:
    pairs = np.column_stack([np.arange(60), np.arange(60) % 5])  # one rating a user
    model = MatrixFactorization(
        2, n_iter_no_change=3, validation_fraction=0.5, random_state=0
    ).fit(pairs, np.random.default_rng(0).normal(3, 1, 60))
    alone = model.user_biases_ == 0
    assert alone.sum() == 30
    assert not model.user_factors_[alone].any()


def test_who_has_no_ratings_gets_the_mean_and_biases() -> None:
    X = drawn()
    X = sp.csr_array(sp.vstack([X, sp.csr_array((1, 40))]))
    for solver in ("sgd", "als"):
        model = MatrixFactorization(3, solver=solver, random_state=0).fit(X)
        assert not model.user_factors_[60].any()
        told = model.predict([[60, 5], [99, 5], [99, 99]])
        expected = model.mean_ + model.item_biases_[5]
        np.testing.assert_allclose(told, [expected, expected, model.mean_], rtol=1e-6)
    plain = MatrixFactorization(3, biases=False, random_state=0).fit(X)
    np.testing.assert_allclose(plain.predict([[60, 5], [1, 99]]), plain.mean_, rtol=1e-6)


@pytest.mark.parametrize(
    "check",
    [
        estimator_checks.check_estimator_cloneable,
        estimator_checks.check_estimator_repr,
        estimator_checks.check_estimator_tags_renamed,
        estimator_checks.check_valid_tag_types,
        estimator_checks.check_no_attributes_set_in_init,
        estimator_checks.check_parameters_default_constructible,
        estimator_checks.check_get_params_invariance,
        estimator_checks.check_set_params,
        estimator_checks.check_mixin_order,
    ],
)
def test_scikit_learns_checks_of_the_interface_hold(check: Any) -> None:
    """All others give a table of measurements as X: here rows are pairs of labels, which
    the tags say."""
    check("MatrixFactorization", MatrixFactorization(1))


def test_the_examples_run() -> None:
    page = Path(__file__).parents[2] / "docs/factors.md"
    told = doctest.testfile(str(page), module_relative=False)
    assert told.attempted
    assert not told.failed


@pytest.mark.parametrize(
    "how", [{"nonnegative": True}, {"implicit": True}, {"biases": False, "solver": "als"}]
)
def test_who_had_no_ratings_learns_from_those_that_come(how: dict[str, Any]) -> None:
    few = np.zeros((6, 6))
    few[:3, :3] = [[5, 1, 4], [4, 2, 5], [1, 5, 2]]
    more = few.copy()
    more[3:, 3:] = few[:3, :3]
    model = MatrixFactorization(2, warm_start=True, random_state=0, max_iter=20, **how)
    model.fit(sp.csr_array(few)).set_params(max_iter=200).fit(sp.csr_array(more))
    assert np.abs(model.predict(sp.csr_array(more))[9:]).min() > 0.1


def test_biases_of_an_earlier_fit_are_not_those_of_a_model_without() -> None:
    rng = np.random.default_rng(0)
    ratings = sp.csr_array(rng.integers(1, 6, (12, 9)).astype(float))
    model = MatrixFactorization(2, warm_start=True, random_state=0, max_iter=20).fit(
        ratings
    )
    model.set_params(biases=False, max_iter=60).fit(ratings)
    fresh = MatrixFactorization(2, biases=False, random_state=0, max_iter=60).fit(ratings)
    error = np.abs(model.predict(ratings) - ratings.data).mean()
    assert error < 1.2 * np.abs(fresh.predict(ratings) - ratings.data).mean()
    assert not model.user_biases_.any()
