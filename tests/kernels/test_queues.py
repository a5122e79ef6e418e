"""Events of workers and servers are those of a queue of all of them."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlopt.kernels.queues import Seen, run


class Twin:
    """The same in Python: what happens next is at the head of a queue of events."""

    def __init__(self, arrays: list[Any], rule: dict[str, Any]) -> None:
        self.compute, self.sizes, self.taking, self.sending, self.applying, noise = arrays
        self.rule, self.noise = rule, iter(noise)
        w, s = self.taking.shape
        self.free, self.busy = [0.0] * s, [0.0] * s
        self.computed, self.asked, self.open = [0] * w, [0] * w, [0] * w
        self.since = [0.0] * w
        self.waiting: list[int] = []
        self.pull = self.wait = 0.0
        self.ended: list[tuple[float, float]] = []  # when a mini-batch did, and its size
        self.events: list[tuple[float, int, Callable[[float, int], None], int]] = []
        self.numbers = itertools.count()

    def go(self) -> Seen:
        for i in range(len(self.compute)):
            self.begin(0.0, i)
        while len(self.ended) < self.rule["total"]:
            now, _, what, i = heapq.heappop(self.events)
            what(now, i)
        warm = self.rule["warm"]
        done = float(sum(size for _, size in self.ended[warm:]))
        (begin, _), (end, _) = self.ended[warm - 1], self.ended[-1]
        return Seen(begin, end, done, self.pull, self.wait, max(self.busy))

    def at(self, time: float, what: Callable[[float, int], None], i: int) -> None:
        heapq.heappush(self.events, (time, next(self.numbers), what, i))

    def begin(self, now: float, i: int) -> None:
        self.at(now + self.compute[i] * next(self.noise), self.done, i)
        self.open[i] = 1
        if self.rule["prefetch"]:
            self.open[i], self.since[i] = 2, now
            self.ask(now, i)

    def done(self, now: float, i: int) -> None:
        for j, seconds in enumerate(self.applying):
            self.serve(now, j, seconds)
        self.computed[i] += 1
        if self.rule["prefetch"]:
            self.end(now, i)
            return
        self.since[i] = now
        self.waiting.append(i)
        most = min(self.computed) + self.rule["ahead"]
        free = [one for one in self.waiting if self.computed[one] <= most]
        self.waiting = [one for one in self.waiting if self.computed[one] > most]
        for one in free:
            self.wait += now - self.since[one]
            self.since[one] = now
            self.ask(now, one)

    def serve(self, now: float, j: int, seconds: float) -> float:
        begin = max(now, self.free[j])
        self.free[j] = begin + seconds
        self.busy[j] += seconds
        return begin

    def ask(self, now: float, i: int) -> None:
        message, taking, s = self.rule["message"], self.taking[i], len(self.free)
        if self.rule["in_turn"]:
            j = (i + self.asked[i]) % s
            self.asked[i] = (self.asked[i] + 1) % s
            begin = self.serve(now, j, self.sending[j])
            there = max(self.free[j], begin + message + taking[j])
            self.at(there, self.ask if self.asked[i] else self.pulled, i)
            return
        now += s * message
        there = link = now
        for begin, j in sorted((self.serve(now, j, self.sending[j]), j) for j in range(s)):
            link = max(link, begin + message) + taking[j]
            there = max(there, link, begin + self.sending[j])
        self.at(there, self.pulled, i)

    def pulled(self, now: float, i: int) -> None:
        self.pull += now - self.since[i]
        self.end(now, i)

    def end(self, now: float, i: int) -> None:
        self.open[i] -= 1
        if not self.open[i]:
            self.ended.append((now, self.sizes[i]))
            self.begin(now, i)


@given(
    w=st.integers(1, 7),
    s=st.integers(1, 5),
    ahead=st.sampled_from([0.0, 1.0, 2.0, math.inf]),
    prefetch=st.booleans(),
    in_turn=st.booleans(),
    equal=st.booleans(),
    message=st.sampled_from([0.0, 0.01]),
    applying=st.sampled_from([0.0, 0.05]),
    seed=st.integers(0, 1000),
)
@settings(max_examples=150)
def test_what_is_seen_is_what_a_queue_of_events_gives(
    w: int,
    s: int,
    ahead: float,
    prefetch: bool,
    in_turn: bool,
    equal: bool,
    message: float,
    applying: float,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    total = 12 * w

    def drawn(*shape: int) -> Any:  # equal ones have many things happen at once
        return np.ones(shape) if equal else rng.uniform(0.2, 1.0, shape)

    arrays = [
        drawn(w), drawn(w), drawn(w, s) / s, drawn(s) / s, applying * drawn(s),
        drawn(w + total),
    ]  # fmt: skip
    rule: dict[str, Any] = {
        "message": message, "ahead": ahead, "prefetch": prefetch, "in_turn": in_turn,
        "warm": 3 * w, "total": total,
    }  # fmt: skip
    seen, expected = run(*arrays, **rule), Twin(arrays, rule).go()
    assert seen._replace(wait=0.0) == expected._replace(wait=0.0)
    # added up in another order
    assert seen.wait == pytest.approx(expected.wait)
