"""The formulas of a mini-batch are those of the simulator, and of the paper in lockstep."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlopt.server.model import (
    MODES,
    Kind,
    Mode,
    Pulls,
    Work,
    balance,
    parts,
    seconds,
)
from mlopt.server.simulate import simulate

LINK = 1e8
WAYS: list[tuple[Mode, Pulls]] = [
    ("lockstep", "in turn"), ("lockstep", "at once"), ("async", "at once"),
    ("bounded", "at once"), ("prefetch", "at once"),
]  # fmt: skip

sizes = st.integers(1, 12)
ratios = st.floats(0.01, 4.0)


def alike(w: int, s: int, work: Work) -> float:
    return float(seconds([Kind(1.0, LINK)], [w], [s], work))


@given(w=sizes, s=sizes, ratio=ratios)
def test_a_wave_of_pulls_takes_what_the_formulas_of_lockstep_say(
    w: int, s: int, ratio: float
) -> None:
    for pulls, wave in (("in turn", max(1, w / s)), ("at once", (w + s - 1) / s)):
        work = Work(pulled=ratio * LINK, mode="lockstep", pulls=pulls)  # type: ignore[arg-type]
        seen = simulate([Kind(1.0, LINK)] * w, [Kind(1.0, LINK)] * s, work, batches=8)
        assert seen.seconds * w == pytest.approx(1 + ratio * wave)
        assert alike(w, s, work) * w == pytest.approx(1 + ratio * wave)


@given(w=sizes, s=sizes, ratio=ratios, mode=st.sampled_from(["async", "prefetch"]))
def test_nobody_waits_beyond_the_formula_where_all_is_steady(
    w: int, s: int, ratio: float, mode: Mode
) -> None:
    work = Work(pulled=ratio * LINK, mode=mode)
    seen = simulate([Kind(1.0, LINK)] * w, [Kind(1.0, LINK)] * s, work, batches=25)
    assert seen.seconds >= alike(w, s, work) * 0.999
    assert seen.seconds == pytest.approx(alike(w, s, work), rel=0.03)


@given(
    n=st.integers(2, 80),
    compute=st.floats(1e-4, 10.0),
    pull=st.floats(1e-4, 10.0),
    applying=st.one_of(st.just(0.0), st.floats(1e-4, 10.0)),
    way=st.sampled_from(WAYS),
)
@settings(max_examples=150)
def test_the_closed_forms_are_the_optima(
    n: int, compute: float, pull: float, applying: float, way: tuple[Mode, Pulls]
) -> None:
    work = Work(pull * LINK, applying=applying, mode=way[0], pulls=way[1])
    w = np.arange(1, n)
    all_of_them = seconds([Kind(compute, LINK)], w[:, None], n - w[:, None], work)
    at = balance(n, compute, pull, work)
    near = np.clip([math.floor(at), math.ceil(at)], 1, n - 1)
    best = min(float(all_of_them[one - 1]) for one in near)
    assert best == pytest.approx(float(all_of_them.min()), rel=1e-9)


def test_the_papers_optima_follow_from_its_ratios() -> None:
    # Cruise, table I: 23 + 9 for NMF, 27 + 5 for MLR, 18 + 14 for LDA of 32 machines.
    for ratio, workers in ((0.153, 23), (0.034, 27), (0.605, 18)):
        assert round(balance(32, 1.0, ratio, Work(1.0, mode="lockstep"))) == workers


@pytest.mark.parametrize("mode", MODES)
def test_machines_that_differ_are_counted_by_what_each_gives(mode: Mode) -> None:
    work = Work(0.05 * LINK, mode=mode, staleness=3, noise=0.02)
    fast, slow = Kind(0.5, 2 * LINK), Kind(1.0, LINK)
    kinds, workers, servers = [fast, slow], [2, 5], [1, 2]
    found = parts(kinds, workers, servers, work)
    every = [fast] * 2 + [slow] * 5
    shares = np.array([2.0, 1.0, 1.0]) / 4
    speed = np.array([1 / one.compute for one in every])
    batch = len(every) * speed / speed.sum() if work.ahead < math.inf else np.ones(7)
    seen = simulate(
        every, [fast, slow, slow], work, shares=shares.tolist(), sizes=batch.tolist()
    )
    assert seen.seconds == pytest.approx(float(found.seconds), rel=0.05)


def test_no_workers_or_no_servers_take_for_ever() -> None:
    work = Work(LINK)
    kinds = [Kind(1.0, LINK)]
    assert seconds(kinds, [[0], [3]], [[3], [0]], work).tolist() == [math.inf] * 2
    assert seconds(kinds, [1], [1], replace(work, pulled=0.0)) == 1.0
