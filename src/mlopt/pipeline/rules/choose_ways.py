"""For each model the way of learning it with which the whole run is predicted shortest.

KeystoneML (III) takes the least of each model's own costs, and then (IV-C) what to keep. A
way that reads its input ten times is cheap only where the input is kept, or quickly made:
so a way is priced with the rows that are kept for it, and both are searched together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from mlopt.caching import Found
from mlopt.caching.searching import ALL
from mlopt.errors import InputError
from mlopt.identity import is_known
from mlopt.pipeline.fits.base import ManyPasses, OnePass
from mlopt.pipeline.graph.operators import Learn, Operator
from mlopt.pipeline.graph.schedule import below, jobs_of
from mlopt.pipeline.graph.walking import walk
from mlopt.pipeline.profiling.profile import Option, Profile
from mlopt.pipeline.rules.base import Context, Draft, Prices
from mlopt.pipeline.rules.convert_layouts import suited
from mlopt.pipeline.rules.engine import MARGIN, Engine, Run
from mlopt.prices import price

TIE, TRIFLE = price("ways.tie"), price("ways.trifle")
RUNS = 1024
"""Runs that are followed at most for combinations of ways that bounds do not rule out."""
FEW = 64
"""Combinations up to which none is left out beforehand."""
ROUNDS = 4
"""Turns at most of ways for what is kept, and what to keep for these ways."""


def choose_ways(draft: Draft, context: Context) -> Draft:
    """Every `Learn` with its way, and what the others would have taken.

    Without a profile, and without this rule, the first way in the table is taken.
    """
    profile = context.profile
    if profile is None:
        return draft
    options = {
        op.token: possible(op, profile.options[op.token], profile, context.budget)
        for op in walk(draft.sinks)
        if isinstance(op, Learn) and op.token in profile.options.keys() - context.known
    }
    if not options:
        return draft
    search = WaySearch(Engine(draft.sinks, context, profile, options), options, context)
    chosen = search.chosen()

    def choose(op: Operator) -> Operator:
        if not isinstance(op, Learn) or op.token not in chosen:
            return op
        way = chosen[op.token].way
        return op if op.way is way else replace(op, way=way)

    return replace(draft.rebuilt(choose), prices=search.prices(chosen))


def possible(
    op: Learn, options: Sequence[Option], profile: Profile, budget: float
) -> list[Learn]:
    """The model in each way in which it can be learnt here, in the order of the table.

    Raises
    ------
    InputError
        When none can be had, with the reason of each.
    """
    found = [option for option in options if option.seconds is not None]
    if not found:
        reasons = "; ".join(f"{option.name}: {option.reason}" for option in options)
        kind = type(op.estimator)
        declare = f"declare ways to fit `{kind.__name__}` with `mlopt.register`, or "
        raise InputError(
            f"Step `{op.step}` cannot be fitted to these data. {reasons}. To go on, "
            f"{'' if is_known(kind) else declare}give more memory, or data in fewer or "
            "smaller blocks."
        )
    # Rows that are gathered though they need not be are rows that are kept.
    found = [option for option in found if option.memory <= budget] or found
    return [suited(replace(op, way=option.way), profile) for option in found]


At = tuple[int, ...]
"""For each model the number of its way."""


class WaySearch:
    """The ways that make the run shortest with the rows that are best kept for them.

    From the ways that are cheapest themselves, and from those that are when nothing is
    kept: ways for what is kept and what to keep for these ways, in turn. Then all others
    that a bound does not rule out, their fits alone with every row made once, as long as
    there are few.

    Parameters
    ----------
    engine : Engine
        Of all ``ways``.
    ways : mapping of token to sequence of Learn
    context : Context
    """

    def __init__(
        self, engine: Engine, ways: Mapping[str, Sequence[Learn]], context: Context
    ) -> None:
        assert context.profile is not None
        self._engine, self._context, self._ways = engine, context, ways
        self._tokens, self._each = tuple(ways), tuple(ways.values())
        self._own = [[context.profile.own(op) for op in each] for each in self._each]
        self._able = [
            undominated(each, own, context.profile)
            for each, own in zip(self._each, self._own, strict=True)
        ]
        if math.prod(map(len, self._able)) > FEW:
            self._able = [self._unsurpassed(n) for n in range(len(self._able))]
        plain = engine.run()
        self._rows = plain.least - plain.own
        self._runs: dict[At, Run] = {}
        self._found: dict[At, Found] = {}

    def best(self) -> tuple[At, Found]:
        """For each model the number of its way; and what is kept for these."""
        cheapest = tuple(
            min(able, key=own.__getitem__)
            for able, own in zip(self._able, self._own, strict=True)
        )
        if self._seconds(cheapest) <= self._bound(cheapest):
            return cheapest, self.found(cheapest)
        starts = dict.fromkeys([cheapest, self._descended(cheapest, frozenset())])
        at = min(map(self._alternated, starts), key=self._seconds)
        at = min((at, *self._others(at)), key=self._seconds)
        return at, self.found(at)

    def chosen(self) -> dict[str, Learn]:
        """Each model in its way; of ways as good as equal, the first in the table."""
        at, found = self.best()
        for place, own in enumerate(self._own):
            most = self._with(at, found, place) + (TIE - 1) * own[at[place]] + TRIFLE
            for number in range(at[place]):
                if self._with(_with(at, place, number), found, place) <= most:
                    at = _with(at, place, number)
                    break
        ways = zip(self._tokens, self._each, at, strict=True)
        return {token: each[number] for token, each, number in ways}

    def prices(self, chosen: Mapping[str, Learn]) -> Prices:
        """What learning each model in each of its ways adds to the run, its input's rows
        included; by the way's number in the profile's options."""
        at = tuple(self._ways[token].index(op) for token, op in chosen.items())
        found, prices = self.found(at), []
        for place, token in enumerate(self._tokens):
            without = self._engine.run(chosen, without=token).as_in(found)
            ways = [id(op.way) for op in self._each[place]]
            assert self._context.profile is not None
            options = self._context.profile.options[token]
            prices.append((token, tuple(
                self._with(_with(at, place, ways.index(id(o.way))), found, place) - without
                if id(o.way) in ways else None
                for o in options
            )))  # fmt: skip
        return tuple(prices)

    def _with(self, at: At, found: Found, place: int) -> float:
        """Seconds with the same kept, and what this model reads where that has room."""
        run, reads = self.run(at), self._engine.reads(self._each[place][at[place]])
        seconds = run.as_in(found)
        room = MARGIN * self._context.budget
        if self._context.keep == "nothing" or reads <= found.kept.nodes:
            return seconds
        if run.price(found.kept.nodes | reads).bytes > room:
            return seconds
        return min(seconds, run.as_in(found, reads))

    def run(self, at: At) -> Run:
        """With the models learnt in these ways."""
        if at not in self._runs:
            ways = zip(self._tokens, self._each, at, strict=True)
            self._runs[at] = self._engine.run({t: each[n] for t, each, n in ways})
        return self._runs[at]

    def found(self, at: At, near: frozenset[int] = frozenset()) -> Found:
        """What is best kept for these ways."""
        if at not in self._found:
            self._found[at] = self._best(self.run(at), near)
        return self._found[at]

    def _best(self, run: Run, near: frozenset[int]) -> Found:
        if self._context.keep == "nothing":
            return Found(run.price(frozenset()))
        return run.best(self._context.budget, [near])

    def _seconds(self, at: At) -> float:
        return self.found(at).kept.seconds

    def _alternated(self, at: At) -> At:
        for _ in range(ROUNDS):
            kept = self.found(at).kept.nodes
            better = self._descended(at, kept)
            self.found(better, kept)
            if not self._seconds(better) < self._seconds(at):
                return at
            at = better
        return at

    def _descended(self, at: At, kept: frozenset[int]) -> At:
        """One model's way after the other, while the run with these rows kept shortens."""
        for _ in range(ROUNDS):
            before = at
            for place, able in enumerate(self._able):
                near = [at, *(_with(at, place, number) for number in able)]
                at = min(near, key=lambda one: self.run(one).price(kept).seconds)
            if at == before:
                break
        return at

    def _others(self, at: At) -> Iterator[At]:
        """Those that may be better, cheapest fits first, as long as all can be tried."""
        if math.prod(map(len, self._able)) > RUNS:
            return  # more than are worth putting in order
        least, tried = self._seconds(at), 0
        for one in sorted(product(*self._able), key=self._bound):
            tried += 2 ** min(len(self.run(one).able), ALL)
            if self._bound(one) >= least or tried > RUNS:
                return
            least = min(least, self._seconds(one))
            yield one

    def _unsurpassed(self, place: int) -> list[int]:
        """Without ways whose fit alone takes longer than another with all that it reads
        made anew in every pass."""
        profile, able = self._context.profile, self._able[place]
        assert profile is not None

        def most(number: int) -> float:
            (job,) = jobs_of([[self._each[place][number]]], (), self._context.passes)
            rows = sum(map(profile.seconds, below(job.reads, self._context.there)))
            return self._own[place][number] + job.passes * rows

        least = min(map(most, able))
        return [n for n in able if self._own[place][n] <= least]

    def _bound(self, at: At) -> float:
        fits = sum(own[n] for own, n in zip(self._own, at, strict=True))
        return self._rows + fits


def undominated(ways: Sequence[Learn], own: Sequence[float], profile: Profile) -> list[int]:
    """Numbers of the ways that another of the same kind does not outdo: it reads the same
    as often at most, and takes no longer itself."""
    shape = [
        (_kind(op), type(op.x), own[n], profile.passes(op)) for n, op in enumerate(ways)
    ]

    def outdone(n: int) -> bool:
        kind, reads, seconds, passes = shape[n]
        return any(
            other[:2] == (kind, reads)
            and other[2] <= seconds
            and other[3] <= passes
            and (other[2:] != (seconds, passes) or m < n)
            for m, other in enumerate(shape)
            if m != n
        )

    return [n for n in range(len(ways)) if not outdone(n)]


def _kind(op: Learn) -> int:
    return isinstance(op.way, OnePass) + 2 * isinstance(op.way, ManyPasses)


def _with(at: At, place: int, number: int) -> At:
    return (*at[:place], number, *at[place + 1 :])
