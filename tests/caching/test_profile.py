"""Lines through two samples: exact on lines, never negative."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlopt.caching import Measured, Profile
from mlopt.errors import InputError

amounts = st.floats(0, 1e6)


def test_two_sizes_give_the_line_through_them() -> None:
    profile = Profile.of([Measured(512, 1.5, 4096.0), Measured(1024, 2.5, 8192.0)])
    full = profile.at(1_000_000)
    assert full.seconds == pytest.approx(0.5 + 1_000_000 / 512)
    assert full.bytes == pytest.approx(8e6)


def test_seconds_and_bytes_have_lines_of_their_own() -> None:
    profile = Profile.of([Measured(512, 3.0, 512.0), Measured(1024, 3.0, 1024.0)])
    assert (profile.seconds.a, profile.seconds.b) == (0, 3)
    assert (profile.bytes.a, profile.bytes.b) == (1, 0)


@given(amounts, amounts, amounts, amounts)
def test_what_is_predicted_is_never_negative_nor_shrinks(
    t1: float, t2: float, m1: float, m2: float
) -> None:
    profile = Profile.of([Measured(512, t1, m1), Measured(1024, t2, m2)])
    small, large = profile.at(1), profile.at(10**6)
    assert 0 <= small.seconds <= large.seconds
    assert 0 <= small.bytes <= large.bytes


def test_a_measurement_that_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="sizes"):
        Profile.of([Measured(0, 1, 1)])
