"""How many columns all rows give, as samples tell it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from mlopt.pipeline.profiling.shapes import grown, stats_of


def rows(n: int, d: int, stored: int) -> sparse.csr_array:
    """Of n rows with so many values each."""
    columns = np.arange(n * stored) % d
    return sparse.csr_array(
        (np.ones(n * stored), (np.repeat(np.arange(n), stored), columns)), (n, d)
    )


def test_words_go_on_coming_as_a_power_of_the_rows() -> None:
    # Twice the columns for four times the rows; as many values in a row.
    values = [rows(500, 4000, 10), rows(2000, 8000, 10)]
    found = grown(stats_of(values[-1], 32_000, 4), values)
    assert found.columns == pytest.approx(32_000, rel=1e-6)
    assert found.nonzeros == pytest.approx(320_000, rel=1e-3)
    assert found.bytes < 2 * stats_of(rows(2000, 8000, 10), 32_000, 4).bytes


def test_values_in_a_row_may_grow_too() -> None:
    values = [rows(500, 4000, 10), rows(1000, 8000, 20)]
    found = grown(stats_of(values[-1], 4000, 1), values)
    assert found.columns == 32_000
    assert found.nonzeros == pytest.approx(4000 * 80, rel=1e-3)


@pytest.mark.parametrize(
    "values",
    [
        [rows(500, 300, 10), rows(1000, 400, 10)],
        [rows(500, 9000, 10), rows(1000, 9000, 10)],
        [rows(1000, 9000, 10)],
        [np.ones((500, 3)), np.ones((1000, 2000))],
        [np.ones((500, 4000)), rows(1000, 9000, 10)],
    ],
    ids=["few", "constant", "one sample", "dense", "dense at first"],
)
def test_columns_that_do_not_outnumber_rows_stay(values: list[object]) -> None:
    stats = stats_of(values[-1], 50_000, 2)
    assert grown(stats, values) == stats
