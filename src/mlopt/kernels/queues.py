"""Workers and servers in simulated time, one event after the other.

``w`` workers and ``s`` servers; times are in seconds from the beginning. Each worker waits
for two things at most: that it has computed, and that the model, or the next part of it, is
there. So what comes next is the earliest of ``2 w`` times, and no queue of events is kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import inlined, kernel, read_only

Array = NDArray[Any]
Costs = tuple[Array, Array, Array, Array]
"""Seconds: to ``compute`` (w,); ``taking`` in (w, s), ``sending`` and ``applying`` (s,)."""
Rule = tuple[float, float, bool, bool]
"""``message, ahead, prefetch, in_turn``, as `run` takes them."""
Events = tuple[Array, Array, Array]
"""``when`` and ``number`` (2, w): the next events of workers, and which was set first;
how many were set (1,)."""
Servers = tuple[Array, Array, Array, Array]
"""When they are ``free`` and seconds that they were ``busy``; of all that are asked at
once, when they ``begin``, and in which order; (s,) each."""
Workers = tuple[Array, Array, Array, Array, Array]
"""Mini-batches ``computed``, servers ``asked``, what must end before the next mini-batch
begins, ``since`` when they wait or pull, and who is ``waiting``; (w,) each."""

_COMPUTED, _THERE = 0, 1


class Seen(NamedTuple):
    """``begin`` and ``end`` of what counts, the mini-batches ``done`` within it by their
    sizes; seconds of ``pull`` and ``wait`` of all workers, and of the most ``busy`` server.
    """

    begin: float
    end: float
    done: float
    pull: float
    wait: float
    busy: float


@inlined
def _at(time: float, what: int, i: int, events: Events) -> None:
    when, number, count = events
    when[what, i], number[what, i] = time, count[0]
    count[0] += 1


@inlined
def _next(events: Events) -> tuple[int, int]:
    """What comes next, and whose it is; of what comes at once, what was set first."""
    when, number = events[0], events[1]
    what, i, first = 0, 0, np.inf
    for one in range(2):
        for other in range(when.shape[1]):
            time = when[one, other]
            if time < first or (time == first and number[one, other] < number[what, i]):
                what, i, first = one, other, time
    return what, i


@inlined
def _serve(now: float, j: int, seconds: float, servers: Servers) -> Any:
    """A server works for those who came before, and then on this; when it begins."""
    free, busy = servers[0], servers[1]
    begin = max(now, free[j])
    free[j] = begin + seconds
    busy[j] += seconds
    return begin


@inlined
def _ask(
    now: float,
    i: int,
    costs: Costs,
    rule: Rule,
    events: Events,
    servers: Servers,
    workers: Workers,
) -> None:
    """Ask the next server, or all of them."""
    _, taking, sending, _ = costs
    message, _, _, in_turn = rule
    free, _, begins, order = servers
    s = len(free)
    if in_turn:
        asked = workers[1]
        j = (i + asked[i]) % s
        asked[i] = (asked[i] + 1) % s
        begin = _serve(now, j, sending[j], servers)
        _at(max(free[j], begin + message + taking[i, j]), _THERE, i, events)
        return
    now += s * message
    for j in range(s):
        begin = _serve(now, j, sending[j], servers)
        at = j
        while at > 0 and begins[at - 1] > begin:
            begins[at], order[at] = begins[at - 1], order[at - 1]
            at -= 1
        begins[at], order[at] = begin, j
    there = link = now
    for at in range(s):
        j = order[at]
        link = max(link, begins[at] + message) + taking[i, j]
        there = max(there, link, begins[at] + sending[j])
    _at(there, _THERE, i, events)


@inlined
def _begin(
    now: float,
    i: int,
    noise: float,
    costs: Costs,
    rule: Rule,
    events: Events,
    servers: Servers,
    workers: Workers,
) -> None:
    """The model is there: compute."""
    left, since = workers[2], workers[3]
    _at(now + costs[0][i] * noise, _COMPUTED, i, events)
    left[i] = 1
    if rule[2]:
        left[i], since[i] = 2, now
        _ask(now, i, costs, rule, events, servers, workers)


@inlined
def _release(
    now: float,
    waits: int,
    costs: Costs,
    rule: Rule,
    events: Events,
    servers: Servers,
    workers: Workers,
) -> tuple[int, float]:
    """Those that wait pull as soon as the others are near enough; how many still wait,
    and the seconds that the others have waited.
    """
    computed, _, _, since, waiting = workers
    least = computed[0]
    for count in computed:
        least = min(least, count)
    most, kept, waited = least + rule[1], 0, 0.0
    for at in range(waits):
        one = waiting[at]
        if computed[one] <= most:
            waited += now - since[one]
            since[one] = now
            _ask(now, one, costs, rule, events, servers, workers)
        else:
            waiting[kept] = one
            kept += 1
    return kept, waited


@kernel
def _run(
    costs: Costs, rule: Rule, sizes: Array, noise: Array, warm: int, total: int
) -> Any:
    w, s = costs[1].shape
    events = np.full((2, w), np.inf), np.zeros((2, w), np.int64), np.zeros(1, np.int64)
    servers = np.zeros(s), np.zeros(s), np.zeros(s), np.zeros(s, np.int64)
    counts = np.zeros((4, w), np.int64)
    workers = counts[0], counts[1], counts[2], np.zeros(w), counts[3]
    computed, asked, left, since, waiting = workers
    pull = wait = start = done = 0.0
    ended = waits = 0
    for i in range(w):
        _begin(0.0, i, noise[i], costs, rule, events, servers, workers)
    while True:
        what, i = _next(events)
        now = events[0][what, i]
        events[0][what, i] = np.inf
        if what == _THERE:
            if rule[3] and asked[i] > 0:
                _ask(now, i, costs, rule, events, servers, workers)
                continue
            pull += now - since[i]
        else:
            for j in range(s):
                _serve(now, j, costs[3][j], servers)
            computed[i] += 1
            if not rule[2]:
                since[i], waiting[waits] = now, i
                waits, waited = _release(
                    now, waits + 1, costs, rule, events, servers, workers
                )
                wait += waited
                continue
        left[i] -= 1
        if left[i] == 0:
            ended += 1
            if ended > warm:
                done += sizes[i]
            if ended == warm:
                start = now
            _begin(now, i, noise[w + ended - 1], costs, rule, events, servers, workers)
            if ended == total:
                return start, now, done, pull, wait, servers[1].max()


def run(
    compute: Array,
    sizes: Array,
    taking: Array,
    sending: Array,
    applying: Array,
    noise: Array,
    *,
    message: float,
    ahead: float,
    prefetch: bool,
    in_turn: bool,
    warm: int,
    total: int,
) -> Seen:
    """Run until so many mini-batches have ended.

    Parameters
    ----------
    compute, sizes : ndarray of shape (w,), float64
        Of each worker, seconds of a mini-batch and its size.
    taking : ndarray of shape (w, s), float64
        Seconds in which the link of a worker takes in what a server sends.
    sending, applying : ndarray of shape (s,), float64
        Seconds of a server for one pull, and for one push.
    noise : ndarray of shape (w + total,), float64
        By which each mini-batch takes longer, in the order in which they begin.
    message : float
        Seconds of one ask beside its bytes.
    ahead : float
        Mini-batches that a worker may be ahead of the slowest.
    prefetch : bool
        Workers pull while they compute.
    in_turn : bool
        They ask one server after the other, not all at once.
    warm, total : int
        Mini-batches of all workers that end before any counts, and in all.
    """
    costs = [
        read_only(np.asarray(array, np.float64))
        for array in (compute, taking, sending, applying)
    ]
    rule = float(message), float(ahead), bool(prefetch), bool(in_turn)
    numbers = [read_only(np.asarray(array, np.float64)) for array in (sizes, noise)]
    return Seen(*map(float, _run(tuple(costs), rule, *numbers, warm, total)))
