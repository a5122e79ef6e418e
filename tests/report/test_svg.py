"""Scales keep order and stay inside; what users wrote is escaped."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlopt.report.svg import Scale, element, label, scale_over, title, x_axis

FINITE = st.floats(-1e6, 1e6)
POSITIVE = st.floats(1e-6, 1e6)


@given(st.lists(FINITE, min_size=2, max_size=20))
def test_a_linear_scale_keeps_the_order(values: list[float]) -> None:
    scale = scale_over(values, 0.0, 100.0)
    places = [scale(v) for v in sorted(values)]
    assert places == sorted(places)
    assert all(0.0 <= place <= 100.0 for place in places)


@given(st.lists(POSITIVE, min_size=2, max_size=20))
def test_a_logarithmic_scale_keeps_the_order(values: list[float]) -> None:
    scale = scale_over(values, 100.0, 0.0, log=True)
    places = [scale(v) for v in sorted(values)]
    assert places == sorted(places, reverse=True)


@given(low=FINITE, width=st.floats(1e-3, 1e6), log=st.booleans())
def test_ticks_lie_inside(low: float, width: float, log: bool) -> None:
    low = abs(low) + 1e-3 if log else low
    scale = Scale(low, low + width, 0.0, 1.0, log=log)
    slack = 1e-6 * max(abs(low), width)
    assert all(low - slack <= tick <= low + width + slack for tick in scale.ticks())
    assert len(scale.ticks()) <= 20


def test_values_that_are_not_finite_do_not_matter() -> None:
    assert scale_over([1.0, math.nan, math.inf, 3.0], 0, 1, pad=0.0).high < 4


def test_what_users_wrote_is_escaped() -> None:
    picture = element("g", title("a<b"), label(0, 0, "x & y"), class_='"quoted"')
    tree = ElementTree.fromstring(picture)
    assert tree.attrib["class"] == '"quoted"'
    assert [part.text for part in tree] == ["a<b", "x & y"]


def test_an_axis_is_well_formed() -> None:
    ElementTree.fromstring(f"<g>{x_axis(Scale(1, 100, 0, 1, log=True), 1, 0, 'C')}</g>")


@given(low=FINITE, width=st.sampled_from([1e-15, 1e-9, 1e-3, 1.0, 1e9, 1e300]))
def test_no_two_ticks_are_alike(low: float, width: float) -> None:
    low *= width  # where a float holds the difference
    ticks = Scale(low, low + width, 0.0, 1.0).ticks()
    assert len(set(ticks)) == len(ticks) >= 3
    assert all(abs(t) < 1e-9 * width or abs(t - low) < 1.1 * width for t in ticks)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("values", [[1e-200, 1e200], [1e-306, 1e306], [-1.7e308, 1.7e308]])
def test_values_as_large_as_floats_have_places(values: list[float], log: bool) -> None:
    scale = scale_over(values, 0.0, 1.0, log=log)
    assert all(0.0 <= scale(value) <= 1.0 for value in values)
    assert 1 <= len(scale.ticks()) <= 20
