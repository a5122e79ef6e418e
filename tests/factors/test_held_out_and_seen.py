"""What was trained on, what was seen and what was held out are told apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from mlopt import MatrixFactorization
from mlopt.errors import InputError

RANDOM = np.random.default_rng(0)
PAIRS = np.column_stack([np.arange(60), np.arange(60) % 5])  # one rating a user
STARS = RANDOM.normal(3, 1, 60)


@pytest.mark.parametrize(
    "how",
    [
        {"biases": False, "solver": "als"},
        {"biases": False, "solver": "sgd"},
        {"nonnegative": True, "solver": "als"},
    ],
)
def test_without_biases_who_is_held_out_whole_gets_the_mean(how: dict[str, Any]) -> None:
    model = MatrixFactorization(
        2, n_iter_no_change=3, validation_fraction=0.5, random_state=0, **how
    ).fit(PAIRS, np.abs(STARS))
    at_mean = model.predict(PAIRS) == np.float32(model.mean_)
    assert at_mean.sum() == 30


def test_a_count_of_zero_has_not_been_seen() -> None:
    rows = [["a", "x"], ["a", "y"], ["b", "x"], ["b", "y"], ["b", "z"]]
    counts = [3, 0, 2, 4, 1]
    there = [row for row, n in zip(rows, counts, strict=True) if n]
    with_zero = MatrixFactorization(1, implicit=True, random_state=0).fit(rows, counts)
    without = MatrixFactorization(1, implicit=True, random_state=0).fit(
        there, [n for n in counts if n]
    )
    for model in (with_zero, without):
        items, scores = model.recommend(["a"], 2)
        assert sorted(items[0]) == ["y", "z"]
        assert np.isfinite(scores).all()
    assert with_zero.score([["a", "y"]], [5]) == without.score([["a", "y"]], [5])


def test_factors_below_zero_are_not_gone_on_with_where_none_may_be() -> None:
    model = MatrixFactorization(2, biases=False, warm_start=True, random_state=0)
    model.fit(PAIRS, np.abs(STARS))
    model.user_factors_[0, 0] = -0.1
    with pytest.raises(InputError, match="`nonnegative` must stay False"):
        model.set_params(nonnegative=True).fit(PAIRS, np.abs(STARS))


def test_another_share_to_hold_out_is_judged_anew() -> None:
    users, items = np.meshgrid(np.arange(40), np.arange(20))
    pairs = np.column_stack([users.ravel(), items.ravel()])
    stars = RANDOM.normal(size=(40, 3)) @ RANDOM.normal(size=(3, 20))
    model = MatrixFactorization(
        3, max_iter=60, n_iter_no_change=2, warm_start=True, random_state=0
    )
    model.fit(pairs, stars[pairs[:, 0], pairs[:, 1]])
    before = model.n_iter_
    model.set_params(validation_fraction=0.3).fit(pairs, stars[pairs[:, 0], pairs[:, 1]])
    assert model.n_iter_ > before


def test_who_was_learnt_by_an_earlier_fit_is_known_though_held_out_now() -> None:
    model = MatrixFactorization(
        2, biases=False, warm_start=True, n_iter_no_change=3, max_iter=10,
        validation_fraction=0.5, random_state=0,
    ).fit(PAIRS, STARS)  # fmt: skip
    before = model._rated[0]
    more = np.vstack([PAIRS, [[60, 0], [61, 1]]])
    model.set_params(max_iter=20).fit(more, np.r_[STARS, 3.0, 2.0])
    assert (model._rated[0][:60] >= before).all()
    learnt = PAIRS[before]
    users, items = model.user_factors_[learnt[:, 0]], model.item_factors_[learnt[:, 1]]
    np.testing.assert_allclose(model.predict(learnt), (users * items).sum(1), rtol=1e-5)


def test_nobody_is_predicted_by_a_model_of_texts() -> None:
    rows = [["ann", "tea"], ["ann", "milk"], ["bob", "tea"], ["bob", "rum"]]
    model = MatrixFactorization(2, random_state=0).fit(rows, [5, 1, 5, 3])
    frame = pd.DataFrame(rows, columns=["user", "item"])
    assert model.predict(frame[frame["user"] == "zoe"]).shape == (0,)
    items, scores = model.recommend([], 2)
    assert items.shape == scores.shape == (0, 2)


def test_a_matrix_of_more_users_than_numbers_is_refused() -> None:
    coords = np.array([0, 2**31 + 5]), np.array([0, 1])
    X = sp.coo_array((np.ones(2), coords), shape=(2**32, 3))
    with pytest.raises(InputError, match=r"less than 2\*\*31 users"):
        MatrixFactorization(1).fit(X)


@pytest.mark.parametrize("solver", ["als", "sgd"])
def test_who_has_no_ratings_any_more_gets_the_mean_of_least_squares(solver: str) -> None:
    A = sp.random_array((30, 12), density=0.5, rng=np.random.default_rng(1), format="csr")
    B = A.tolil(copy=True)
    B[5] = 0
    B = sp.csr_array(B)
    B.eliminate_zeros()
    model = MatrixFactorization(
        2, solver=solver, biases=False, warm_start=True, max_iter=5, random_state=0
    ).fit(A)
    model.set_params(max_iter=10).fit(B)
    found = model.predict(sp.csr_array((np.ones(12), ([5] * 12, range(12))), (30, 12)))
    if solver == "als":
        np.testing.assert_array_equal(found, np.float32(model.mean_))
    else:  # what an earlier fit has learnt stays
        np.testing.assert_allclose(found, model.item_factors_ @ model.user_factors_[5])
