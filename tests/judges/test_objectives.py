"""Models whose objectives the judge compares are solved as far as it tells them apart."""

from __future__ import annotations

import pytest
from tests.judges.objectives import EQUAL, OBJECTIVES
from tests.judges.pipelines import LAST


@pytest.mark.parametrize("last", OBJECTIVES)
def test_solvers_stop_nearer_to_the_minimum_than_objectives_are_told_apart(
    last: str,
) -> None:
    # What a gradient of `tol` leaves of a quadratic objective goes by its square.
    assert LAST[last]().tol ** 2 <= EQUAL
