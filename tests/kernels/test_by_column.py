"""A step along columns, and its inner products, are those of NumPy, whatever the shape."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mlopt.kernels.by_column import step_along

SHAPES = st.tuples(st.integers(1, 200), st.integers(1, 150))


@given(shape=SHAPES, dtype=st.sampled_from(["f4", "f8"]), seed=st.integers(0, 99))
def test_a_step_and_its_inner_products(shape: Any, dtype: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    x, along, other = (random.normal(size=shape).astype(dtype) for _ in range(3))
    factor = random.normal(size=shape[1])
    wanted = x.astype("f8") + along.astype("f8") * factor
    sums = step_along(x, along, factor, other)
    near = 1e-4 if dtype == "f4" else 1e-11
    np.testing.assert_allclose(x, wanted, rtol=near, atol=near)
    np.testing.assert_allclose(sums, (wanted * other).sum(axis=0), rtol=near, atol=near)


def test_arrays_by_columns_will_do() -> None:
    random = np.random.default_rng(0)
    a, b = (np.asfortranarray(random.normal(size=(30, 4))) for _ in range(2))
    x = np.zeros((30, 4))
    sums = step_along(x, a, np.ones(4), b)
    np.testing.assert_array_equal(x, a)
    np.testing.assert_allclose(sums, (a * b).sum(axis=0))
