"""The best set to keep where only a run as a whole tells what it takes.

The recurrences count an operator once for each path that leads to it, so that what two
sets save adds up. An engine that computes each operator once a job saves by keeping both
readers of an operator what keeping either does not. So sets are priced, not members.

Where outputs are kept in blocks, one of them may be kept in part: what that saves and
takes lies on the line between both sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

from mlopt.caching.strategies.family import Kept

Price = Callable[[frozenset[int]], Kept]
"""From a set to what it takes; the bytes of a set never fall when it grows."""

ALL = 9
"""Candidates up to which every set is tried."""
_PAIRS = 16
"""Candidates up to which sets also change by two at a time, of which there are squares."""
_ROUNDS = 30
"""Moves at most from one beginning."""


@dataclass(frozen=True)
class Found:
    """A set to keep, and maybe one more in part.

    Parameters
    ----------
    kept : Kept
        The set, with seconds and bytes of that which is kept in part included.
    partly : int or None
        Not among the set.
    share : float
        How much of it is kept, of 1.
    """

    kept: Kept
    partly: int | None = None
    share: float = 0.0


def search(
    price: Price,
    able: Sequence[int],
    budget: float,
    starts: Iterable[frozenset[int]] = (),
    parts: int = 1,
) -> Found:
    """The set of ``able`` with the shortest run within the budget; of equal ones the
    smallest.

    Up to 9 candidates every set is tried. Beyond, sets improve by one member more or less,
    and up to 16 by two more, or one for another, from ``starts`` and from nothing.

    Parameters
    ----------
    price : callable
    able : sequence of int
    budget : float
        Bytes.
    starts : iterable of frozenset of int
        Where to begin. Those that do not fit are passed over.
    parts : int, default=1
        Blocks of each output, of which some may be kept without the others.
    """
    price = cache(price)
    everything = price(frozenset(able))
    if everything.bytes <= budget:
        return Found(_lean(price, everything))
    nothing = price(frozenset())
    if len(able) <= ALL:
        sets = _fitting(price, _subsets(able), budget)
    else:
        begin = _fitting(price, (start & frozenset(able) for start in starts), budget)
        sets = [_climbed(price, able, budget, one) for one in (nothing, *begin)]
    found = (_filled(price, able, budget, kept, parts) for kept in sets)
    return min(found, key=lambda one: _worth(one.kept), default=Found(nothing))


def _lean(price: Price, kept: Kept) -> Kept:
    """Without members that save nothing: keeping more never makes a run slower."""
    for v in sorted(kept.nodes):
        less = price(kept.nodes - {v})
        kept = less if less.seconds <= kept.seconds else kept
    return kept


def _worth(kept: Kept) -> tuple[float, float]:
    return kept.seconds, kept.bytes


def _filled(
    price: Price, able: Sequence[int], budget: float, kept: Kept, parts: int
) -> Found:
    """With that in what is left of which a part saves most."""
    more = (_part(kept, price(kept.nodes | {v}), v, budget, parts) for v in able)
    return min((Found(kept), *more), key=lambda one: _worth(one.kept))


def _part(kept: Kept, whole: Kept, v: int, budget: float, parts: int) -> Found:
    if whole.bytes <= budget or whole.bytes <= kept.bytes:
        return Found(kept)
    share = int(parts * (budget - kept.bytes) / (whole.bytes - kept.bytes)) / parts
    seconds = kept.seconds + share * (whole.seconds - kept.seconds)
    size = kept.bytes + share * (whole.bytes - kept.bytes)
    return Found(Kept(kept.nodes, size, seconds), v, share) if share else Found(kept)


def _subsets(able: Sequence[int]) -> Iterator[frozenset[int]]:
    for size in range(len(able) + 1):
        yield from map(frozenset, combinations(able, size))


def _fitting(price: Price, sets: Iterable[frozenset[int]], budget: float) -> list[Kept]:
    return [kept for kept in map(price, sets) if kept.bytes <= budget]


def _climbed(price: Price, able: Sequence[int], budget: float, kept: Kept) -> Kept:
    for _ in range(_ROUNDS):
        near = _fitting(price, _neighbours(kept.nodes, able), budget)
        best = min(near, key=_worth, default=kept)
        if not _worth(best) < _worth(kept):
            return kept
        kept = best
    return kept


def _neighbours(nodes: frozenset[int], able: Sequence[int]) -> Iterator[frozenset[int]]:
    outside = [v for v in able if v not in nodes]
    inside = [v for v in able if v in nodes]
    yield from (nodes - {v} for v in inside)
    yield from (nodes | {v} for v in outside)
    if len(able) <= _PAIRS:
        yield from ((nodes - {v}) | {other} for v in inside for other in outside)
        yield from (nodes | set(pair) for pair in combinations(outside, 2))
