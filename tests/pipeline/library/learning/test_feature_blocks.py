"""Only one block of features exists at a time, and it is that of the whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

import mlopt
from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd.pricing import Shape
from mlopt.pipeline.library.learning import BlockLeastSquares
from mlopt.pipeline.library.learning.block_cost import (
    WAYS,
    Work,
    choose_keeping,
    cost,
    kept_bytes,
)
from mlopt.resources import Resources

Array = NDArray[Any]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(700, 5))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("span", [(0, 1300), (0, 512), (512, 1300), (7, 8), (500, 1030)])
def test_columns_are_those_of_transform_to_the_last_bit(
    dtype: Any, layout: Any, span: tuple[int, int]
) -> None:
    rows = layout(X.astype(dtype))
    model = mlopt.RandomFeatures(1300, gamma=0.1, random_state=0).fit(rows)
    found = model.columns(*span)(rows)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, model.transform(rows)[:, slice(*span)])


def test_weights_do_not_depend_on_how_many_are_drawn_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = mlopt.RandomFeatures(30, gamma=0.1, random_state=0).fit(X)
    monkeypatch.setattr("mlopt.pipeline.library.random_features._DRAWN", 1)
    pieces = mlopt.RandomFeatures(30, gamma=0.1, random_state=0).fit(X)
    np.testing.assert_array_equal(whole.random_weights_, pieces.random_weights_)
    expected = np.sqrt(0.2) * np.random.RandomState(0).standard_normal((5, 30))
    np.testing.assert_array_equal(whole.random_weights_, expected)


@pytest.mark.parametrize("span", [(-1, 3), (3, 3), (5, 31), (4, 2)])
def test_columns_that_are_not_there_say_so(span: tuple[int, int]) -> None:
    model = mlopt.RandomFeatures(30, gamma=0.1, random_state=0).fit(X)
    with pytest.raises(InputError, match=r"some of the features 0 \.\.\. 29"):
        model.columns(*span)


class Counted(BaseEstimator):
    """Makes powers of the first column, and notes how much it was asked for."""

    n_features_out_ = 64
    sizes: ClassVar[list[int]] = []

    def fit(self, X: Any) -> Counted:
        """Nothing is learnt."""
        return self

    def columns(self, start: int, stop: int) -> Callable[[Any], Array]:
        """Cosines of growing frequency."""

        def make(rows: Any) -> Array:
            values: Array = np.cos(rows[:, :1] * np.arange(start, stop))
            Counted.sizes.append(values.size)
            return values

        return make

    def flops_per_value(self, stored: float) -> float:
        """Some price."""
        return 100.0


@pytest.mark.parametrize(("budget", "times"), [(0, 2), ("auto", 1)])
def test_features_are_made_block_by_block(budget: Any, times: int) -> None:
    Counted.sizes.clear()
    rows, passes, size, y = len(X), 2, 8, np.cos(20 * X[:, 0])
    model = BlockLeastSquares(
        features=Counted(), block_size=size, n_iter=passes, memory_budget=budget
    ).fit(X, y)
    assert max(Counted.sizes) <= rows * size
    # twice a visit but the last, or once where a block is kept; a few rows for their mean
    visits = passes * Counted.n_features_out_ // size
    means = 256 * Counted.n_features_out_
    assert sum(Counted.sizes) == (times * visits - (times - 1)) * rows * size + means
    assert model.score(X, y) > 0.9


def work(**changes: Any) -> Work:
    given = {"passes": 3, "features": 8192, "size": 1024, "per_value": 2000.0} | changes
    shape = Shape(60_000, 784, 10, 60_000 * 784, 4, False, 8)
    return Work(shape, **given)


def test_more_memory_never_makes_the_plan_slower() -> None:
    resources = Resources(threads=2)
    budgets = [0, 10**7, 10**8, 3 * 10**8, 10**10]
    plans = [choose_keeping("fit", work(), resources, one)[1] for one in budgets]
    seconds = [one.predicted or 0.0 for one in plans]
    assert seconds == sorted(seconds, reverse=True)
    assert plans[0].chosen == "keep nothing"
    assert plans[-1].chosen == "keep features and factors"


@pytest.mark.parametrize("name", WAYS)
def test_what_is_chosen_fits_the_budget(name: str) -> None:
    budget = kept_bytes(work(), WAYS[name])
    keeping, _ = choose_keeping("fit", work(), Resources(), budget)
    assert kept_bytes(work(), keeping) <= budget


def test_costs_have_the_terms_of_table_one() -> None:
    """Operations are ``i n d (b + k)`` up to constants, and linear in rows and sweeps."""
    nothing, resources = WAYS["keep nothing"], Resources()

    def flops(**changes: Any) -> float:
        total: Cost = cost(work(**changes), nothing, resources)
        return total.flops32

    assert flops(passes=6) == pytest.approx(2 * flops(passes=3))
    assert flops(features=16384) == pytest.approx(2 * flops(features=8192))
    least = 3 * 60_000 * 8192 * (1024 + 10)
    assert least < flops(per_value=0.0) < 2 * least
    with_factors = cost(work(), WAYS["keep factors"], resources)
    assert with_factors.flops32 < flops()
