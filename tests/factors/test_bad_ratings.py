"""What is wrong with ratings is said: what must hold, what was given, what to do."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GridSearchCV

from mlopt import MatrixFactorization
from mlopt.errors import InputError, InputWarning

PAIRS = [["ann", "tea"], ["ann", "rum"], ["bob", "tea"], ["bob", "milk"]]
STARS = [5.0, 1.0, 4.0, 2.0]
MATRIX = sp.csr_array(np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 1.0]]))


def twice() -> Any:
    return sp.coo_array((np.array([1.0, 4.0, 2.0]), ([0, 0, 1], [1, 1, 0])), shape=(2, 2))


@pytest.mark.parametrize(
    ("X", "y", "params", "said"),
    [
        (PAIRS, [5, np.nan, 4, 2], {}, "finite: number 1 is nan"),
        (PAIRS, [5, 1, 4], {}, "one rating for each of the 4 rows"),
        (PAIRS, ["a", "b", "c", "d"], {}, "must be numbers"),
        (PAIRS, np.array(STARS) + 1j, {}, "real numbers, got complex128"),
        (MATRIX.astype(complex), None, {}, "real numbers, got complex128"),
        (PAIRS, np.arange(4).astype("M8[D]"), {}, "real numbers, got datetime64"),
        (PAIRS, np.ma.masked_greater(STARS, 4), {}, "y must not be a masked array"),
        (np.ma.masked_greater(np.eye(2, dtype=int), 0), [1, 2], {}, "X must not be a mask"),
        (PAIRS, None, {}, "y, or the third column"),
        ([*PAIRS, ["ann", "tea"]], [*STARS, 3], {}, "user ann has item tea twice"),
        (twice(), None, {}, "user 0 has item 1 twice"),
        (np.ones((4, 9)), None, {}, r"csr_array\(X\)"),
        (MATRIX, [1, 2], {}, "y must be None"),
        (sp.csr_array((3, 3)), None, {}, "at least one rating"),
        ([[1.5, 2, 3]], None, {}, "whole number or a text, got 1.5 in row 0"),
        ([["ann", None]], [1], {}, "item must be a whole number or a text"),
        ([["ann", 1], [np.nan, 2]], [1, 2], {}, "user must be a text .* got nan in row 1"),
        (np.array([["ann", 1], [None, 2]], object), [1, 2], {}, "got None in row 1"),
        (np.array([[1.0, 2.0], [2.0**53, 1.0]]), [1, 2], {}, r"below 2\^53 as a float"),
        (
            np.array([[1, 2], [2**63, 1]], np.uint64),
            [1, 2],
            {},
            r"user must be below 2\^63",
        ),
        (
            PAIRS,
            STARS,
            {"n_components": 3},
            "at most the number of users and of items, 2 and 3",
        ),
        (PAIRS, [5, -1, 4, 2], {"implicit": True}, "at least 0, got -1 of user ann"),
        (PAIRS, [5, -1, 4, 2], {"nonnegative": True}, "at least 0, got -1 of user ann"),
        (PAIRS, STARS, {"implicit": True, "solver": "sgd"}, "over all pairs"),
        (PAIRS, STARS, {"implicit": True, "biases": True}, "factors of either sign"),
        (PAIRS, STARS, {"alpha": 0.0}, "alpha"),
        (PAIRS, STARS, {"layout": "servers"}, "layout"),
        (PAIRS, STARS, {"layout": "rotate", "solver": "als"}, "rotate: is for `solver`"),
        (PAIRS, 1e4 * np.array(STARS), {"learning_rate": 1.0}, "lower `learning_rate`"),
        (PAIRS, 1e25 * np.array(STARS), {"implicit": True}, "raise `alpha`"),
        (PAIRS, STARS, {"n_iter_no_change": 2, "validation_fraction": 0.01}, "hold out"),
    ],
)
def test_what_cannot_be_fitted_is_refused(X: Any, y: Any, params: Any, said: str) -> None:
    model = MatrixFactorization(1, random_state=0).set_params(**params)
    with pytest.raises(InputError, match=said):
        model.fit(X, y)


@pytest.mark.parametrize(("policy", "value"), [("mean", 2.5), ("sum", 5.0), ("last", 4.0)])
def test_one_rating_is_made_of_several(policy: str, value: float) -> None:
    once = sp.csr_array(np.array([[0.0, value], [2.0, 0.0]]))
    model = MatrixFactorization(1, duplicates=policy, random_state=0)
    told = model.fit(twice()).predict(once)
    np.testing.assert_array_equal(told, model.fit(once).predict(once))


def test_numbers_of_a_list_stay_whole_beside_other_kinds() -> None:
    model = MatrixFactorization(1, random_state=0)
    model.fit([[2**53 + 1, "tea", 4.5], [2**53, "rum", 3]])
    assert model.users_.tolist() == [2**53, 2**53 + 1]


def test_who_is_not_known_is_named() -> None:
    model = MatrixFactorization(1, handle_unknown="error", random_state=0).fit(PAIRS, STARS)
    with pytest.raises(InputError, match="user must be one that `fit` has seen, got eve"):
        model.predict([["ann", "tea"], ["eve", "tea"]])
    with pytest.raises(InputError, match="got eve"):
        model.recommend(["eve"], 1)
    with pytest.raises(InputError, match="of the kind that `fit` has seen"):
        model.predict([[1, 2]])
    with pytest.raises(InputError, match=r"one of 1 \.\.\. 3"):
        model.recommend(["ann"], 4)
    with pytest.raises(InputError, match="a column for each of the 3 items"):
        model.transform(sp.csr_array((2, 5)))
    with pytest.raises(InputError, match="sparse matrix"):
        model.transform(np.ones((2, 3)))


def test_a_warm_start_takes_what_it_can_go_on_from() -> None:
    model = MatrixFactorization(1, warm_start=True, random_state=0).fit(PAIRS, STARS)
    with pytest.raises(InputError, match="at least 20 with `warm_start`"):
        model.set_params(max_iter=3).fit(PAIRS, STARS)
    with pytest.raises(InputError, match="must stay 1"):
        model.set_params(max_iter=30, n_components=2).fit(PAIRS, STARS)


@pytest.mark.parametrize("n_iter_no_change", [None, 3])
@pytest.mark.parametrize("layout", ["threads", "rotate"])
def test_other_ratings_need_a_pass_to_be_learnt(layout: str, n_iter_no_change: Any) -> None:
    pairs = [[user, item] for user in range(6) for item in range(6)]
    stars = [float((2 * user + item) % 5) for user, item in pairs]
    model = MatrixFactorization(
        1, max_iter=5, warm_start=True, random_state=0, layout=layout
    ).fit(pairs, stars)
    model.set_params(n_iter_no_change=n_iter_no_change)
    before, mean = model.user_factors_.copy(), model.mean_
    for X, y in (
        ([*pairs, [9, 0]], [*stars, 3.0]),  # somebody new
        (pairs[1:], stars[1:]),
        (pairs, [2 * star for star in stars]),
        (pairs, [*stars[3:], *stars[:3]]),
    ):
        with pytest.raises(InputError, match=r"must be above 5 .* other ratings"):
            model.fit(X, y)
    assert model.mean_ == mean
    np.testing.assert_array_equal(model.fit(pairs, stars).user_factors_, before)
    told = model.set_params(max_iter=30).fit([*pairs, [9, 0]], [*stars, 3.0])
    assert told.predict([[9, 0]]).shape == (1,)


def test_a_score_is_of_real_ratings() -> None:
    model = MatrixFactorization(1, random_state=0).fit(PAIRS, STARS)
    with pytest.raises(InputError, match="real numbers"):
        model.score(PAIRS, np.array(STARS) + 1j)


def test_a_matrix_of_other_rows_or_columns_is_refused() -> None:
    model = MatrixFactorization(1, random_state=0).fit(MATRIX)
    for other in (MATRIX[[1]], MATRIX[:, [0, 1]]):
        for ask in (model.predict, model.score):
            with pytest.raises(InputError, match=r"shape \(2, 3\); got"):
                ask(other)
    named = MatrixFactorization(1, random_state=0).fit(PAIRS, STARS)  # milk, rum, tea
    told = named.predict(sp.csr_array(np.array([[0, 1, 1], [1, 0, 0]])))
    same = named.predict([["ann", "rum"], ["ann", "tea"], ["bob", "milk"]])
    np.testing.assert_array_equal(told, same)


def test_a_pair_that_comes_twice_is_scored_twice() -> None:
    model = MatrixFactorization(1, duplicates="mean", random_state=0).fit(twice())
    assert len(model.predict(twice())) == 3
    pairs = np.column_stack(twice().coords)
    assert model.score(twice()) == pytest.approx(model.score(pairs, twice().data))


def low_rank() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    pairs = np.unique(random.integers(0, (40, 30), (700, 2)), axis=0)
    P, Q = random.normal(size=(40, 2)), random.normal(size=(30, 2))
    return pairs, (P[pairs[:, 0]] * Q[pairs[:, 1]]).sum(axis=1)


@pytest.mark.parametrize("solver", ["sgd", "als"])
def test_ratings_so_small_that_nothing_is_learnt_of_them_are_warned_of(solver: str) -> None:
    pairs, values = low_rank()
    model = MatrixFactorization(2, solver=solver, random_state=0)
    model.fit(pairs, values)
    for penalty, scale in ((0.05, 0.01), (5.0, 1.0)):
        model.set_params(alpha=penalty)
        with pytest.warns(InputWarning, match=r"deviate by .* scale the ratings up"):
            model.fit(pairs, scale * values)
        assert model.score(pairs, scale * values) < 0.3
    model.set_params(alpha=0.05).fit(pairs, np.full(len(pairs), 3.0))  # nothing to learn


@pytest.mark.parametrize("implicit", [False, True])
def test_scores_of_other_users_rows_are_warned_of(implicit: bool) -> None:
    pairs, values = low_rank()
    X = sp.csr_array((np.abs(values) + 0.1, pairs.T), shape=(40, 30))
    model = MatrixFactorization(2, implicit=implicit, random_state=0)
    with pytest.warns(InputWarning, match="rows of a sparse matrix must be `users_`"):
        GridSearchCV(model, {"alpha": [0.05, 0.1]}, cv=2).fit(X)
    held = np.random.default_rng(1).random(X.nnz) < 0.3
    train, test = (
        sp.csr_array((X.tocoo().data[part], pairs[part].T), shape=X.shape)
        for part in (~held, held)
    )
    model.fit(train).score(test)
    model.score(train) if not implicit else None


def test_ratings_that_single_precision_does_not_tell_apart_are_named() -> None:
    rows = np.argwhere(np.ones((6, 5)))
    y = np.arange(30) / 10
    model = MatrixFactorization(2, max_iter=2, random_state=0)
    with pytest.warns(InputWarning, match="less than three digits are left"):
        model.fit(rows, y + 1e6)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(rows, y + 1e3)


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame])
def test_a_column_of_ratings_is_taken_and_warned_of(kind: Any) -> None:
    """As scikit-learn's regressors do, of a frame's ``frame[["rating"]]`` for one."""
    model = MatrixFactorization(1, random_state=0)
    flat = model.fit(PAIRS, STARS).predict(PAIRS)
    column = np.array(STARS)[:, None]
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        found = model.fit(PAIRS, kind(column))
    np.testing.assert_array_equal(found.predict(PAIRS), flat)


@pytest.mark.parametrize("number", [0, 4, 2.5, True, None])
def test_a_number_of_items_is_one(number: Any) -> None:
    model = MatrixFactorization(1, random_state=0).fit(PAIRS, STARS)
    with pytest.raises(InputError, match=r"`n_items` must be one of 1 \.\.\. 3"):
        model.recommend(["ann"], number)


def test_ratings_are_given_once() -> None:
    rows = np.argwhere(np.ones((3, 3)))
    with pytest.raises(InputError, match=r"both are there\. Leave one out"):
        MatrixFactorization(1).fit(np.c_[rows, np.ones(9)], np.ones(9))


@pytest.mark.parametrize("name", ["nonnegative", "biases"])
def test_counts_have_no_booleans_of_numpy_either(name: str) -> None:
    given: Any = {name: np.True_}  # as of a grid
    model = MatrixFactorization(1, implicit=True, **given)
    with pytest.raises(InputError, match=f"`{name}` must be False"):
        model.fit(PAIRS, STARS)


def test_pairs_of_large_matrices_are_known_again() -> None:
    places = [0, 1, 60_000, 69_999], [0, 1, 39_999, 5]  # more than 2^31 cells
    X = sp.csr_matrix(([1.0, 5, 2, 4], places), shape=(70_000, 40_000))
    model = MatrixFactorization(1, max_iter=1, random_state=0).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.score(X)
