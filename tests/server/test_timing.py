"""Steps are timed by a clock that stands still while others have the core."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mlopt.server.layouts import timing


@pytest.mark.parametrize(
    ("ticks", "seconds"), [([0.0, 2.0, 2.0, 1.0], 2.0), ([0.0, -1.0], 0.0)]
)
def test_a_clock_that_counts_coarsely_gives_no_negative_step(
    ticks: list[float], seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    def clock() -> Iterator[float]:
        while True:
            yield from ticks

    times = clock()
    monkeypatch.setattr(timing, "_clock", lambda: next(times))
    step: Any = SimpleNamespace(visit=lambda *_: None)
    part = {"W": np.zeros(3)}
    assert timing._timed(step, [(None, part)], {}, 0) == seconds
