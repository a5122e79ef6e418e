"""Each model is learnt in the way with the least predicted time, and is the same model."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.linear_model import Ridge
from tests.pipeline.graphs import DATA

from mlopt.errors import InputError
from mlopt.pipeline.fits.registry import ways_of
from mlopt.pipeline.graph.operators import Learn
from mlopt.pipeline.planning.optimizer import is_same
from mlopt.pipeline.profiling.profile import Option, Profile
from mlopt.pipeline.rules.base import Context, Draft
from mlopt.pipeline.rules.choose_ways import choose_ways
from mlopt.resources import Resources

OP = Learn("last", Ridge(), DATA)
WAY = ways_of(Ridge())[0]


def chosen(own: float | None, ours: float | None) -> Any:
    costs = Profile(100, 1, 1, Resources(workers=1, threads=1))
    ways = Option(WAY, WAY.name, ours, reason="no"), Option(None, "own", own, reason="no")
    costs.options[OP.token] = ways
    draft = choose_ways(Draft((OP,)), Context(costs, 0))
    assert is_same(Draft((OP,)), draft)
    (last,) = draft.sinks
    assert isinstance(last, Learn)
    return last.way


@pytest.mark.parametrize(
    ("own", "ours", "expected"),
    [
        (1.0, 0.1, WAY),
        (0.1, 1.0, None),
        (0.1, None, None),
        (None, 1.0, WAY),
        (1.0, 1.1, WAY),  # as good as equal: the earlier in the table
    ],
)
def test_the_cheapest_way_is_taken(own: Any, ours: Any, expected: Any) -> None:
    assert chosen(own, ours) is expected


def test_where_no_way_is_left_the_step_and_the_reasons_are_named() -> None:
    with pytest.raises(InputError, match="Step `last` cannot be fitted"):
        chosen(None, None)


def test_without_a_profile_nothing_changes() -> None:
    draft = Draft((OP,))
    assert choose_ways(draft, Context(None, 0)) is draft
