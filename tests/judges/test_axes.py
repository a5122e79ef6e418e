"""Signs of the axes of discriminant analyses are nobody's; all else about them is told."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from tests.judges.differential import judge
from tests.judges.outcomes import Difference
from tests.judges.pipelines import Case
from tests.judges.tables import Table

import mlopt.pipeline.fits.models.discriminant as trainer

TURNED = Case(
    Table("array", ("normal", "constant"), 1100, "two", 1),
    ("scale without mean", "projection", "discriminant"),
    "density",
)
"""Columns of rank one, planned; along them scikit-learn's axis has the other sign."""


def test_what_lies_along_a_turned_axis_is_no_difference() -> None:
    judge(TURNED)


def test_an_axis_of_another_length_is_a_difference() -> None:
    solve = trainer._SOLVERS["svd"]

    def longer(model: Any, seen: Any) -> dict[str, Any]:
        found = solve(model, seen)
        return found | {"scalings_": 1.01 * found["scalings_"]}

    with (
        mock.patch.dict(trainer._SOLVERS, svd=longer),
        pytest.raises(Difference, match="scalings_"),
    ):
        judge(TURNED)
