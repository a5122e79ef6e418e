"""What a job takes in each layout, and which of those that can be had takes the least.

::

    threads    gather + passes (steps one after the other / threads)
    rotate     begin + send + passes (a member's share of the steps + parts handed on)
    rounds     send + passes (waves of steps + model there, sums back)
    servers    begin + send + passes (compute, pull and push by the mode: `server.model`)

Seconds are those of the algebra of `mlopt.costs`. What is not known to come to the same
model is priced, and not chosen unless it is asked for. All here is pure: of prices, sizes
and members alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.plan import Alternative, Choice, format_bytes
from mlopt.prices import price
from mlopt.server.autoconfig import Configuration, best, predicted
from mlopt.server.layouts.pool import Pool
from mlopt.server.model import Kind, Work
from mlopt.server.workers import Mode

_BEGIN = Cost(python=price("layout.begin"))
STEP = Cost(python=price("layout.step"))
"""Of a step on a member, beside the step."""
NOTHING = Cost()
_HANDED = price("layout.handed")
_PULL, _PULLED = price("layout.pull"), price("layout.pulled")
_CALL, _TASK, _ROUND = price("layout.call"), price("layout.task"), price("layout.round")
_BYTE = price("layout.byte")
_HANDOVER = price("pass.handed")
_SHARE = 0.3
"""Of the members: servers, where nobody knows what steps take. The paper's optima have 16%
to 44% of 32 machines for servers (Cruise, table III)."""
_GROUPS = 16
"""Partial sums that a round brings back at once: more are added up in groups, which is one
more wait (`mlopt.cluster.workers`)."""


@dataclass(frozen=True)
class Load:
    """What a job has to do, wherever it runs.

    Parameters
    ----------
    passes : int
        That are left.
    strata, parts : int
        A pass has a step for each pair of them.
    step : float or None
        Seconds of a step, on one thread; None where nobody knows.
    rows, part, states : float, default=0
        Bytes: of all rows, of a part of the model on average, of all that strata keep.
    blocks : int, default=1
        Of a part: what is sent at a time.
    held : bool, default=False
        Whether the members have the rows already; else this process has.
    looks : int, default=0
        How often the model is asked for before the end.
    mode : {"lockstep", "bounded", "async"}, optional
        How late the model may know of steps of others. None: it may not.
    staleness : int, default=1
    servers : int, optional
        How many members are to be servers. Default: as many as take the least; where
        nobody knows what steps take, as `usual` has it.
    beside : Cost, optional
        Of a step on threads, beside the step.
    """

    passes: int
    strata: int
    parts: int
    step: float | None
    rows: float = 0.0
    part: float = 0.0
    states: float = 0.0
    blocks: int = 1
    held: bool = False
    looks: int = 0
    mode: Mode | None = None
    staleness: int = 1
    servers: int | None = None
    beside: Cost = NOTHING

    @property
    def one(self) -> Cost:
        """A step."""
        return Cost(fixed=self.step or 0.0)

    @property
    def model(self) -> float:
        """Bytes of what changes."""
        return self.parts * self.part + self.states

    @property
    def steps(self) -> int:
        """Of a pass."""
        return self.strata * self.parts

    @property
    def at_once(self) -> int:
        """Steps that do not have to wait for each other."""
        return min(self.strata, self.parts)


class Priced(NamedTuple):
    """A layout.

    Attributes
    ----------
    layout : str
    place : str
        Who does what in it.
    seconds : float or None
        None: nobody knows, or it cannot be had.
    why : str
        Why it cannot be had, or is not chosen by itself.
    servers : int
        How many of the members, in "servers".
    apart : bool
        Whether it needs members that are other processes.
    """

    layout: str
    place: str
    seconds: float | None
    why: str = ""
    servers: int = 0
    apart: bool = False


def layouts(load: Load, pool: Pool) -> list[Priced]:
    """All of a user's job."""
    return [
        threads(load, pool),
        rotate(load, pool),
        rounds(load, pool),
        servers(load, pool),
    ]


def threads(load: Load, pool: Pool) -> Priced:
    """In this process, whose threads have a stratum each."""
    gather = Cost()
    if load.held and pool.apart:
        gather = _sent(load.strata, load.rows, pool)
    each = load.steps * (load.one + load.beside) * (1 / min(pool.here, load.at_once))
    cost = gather + load.passes * each
    need = load.rows + 2 * load.model
    lacks = _lacks("threads", "this process", need, pool.memory_here)
    place = f"{pool.here} thread{'s' * (pool.here > 1)}"
    return _priced("threads", place, load, cost.seconds(pool.resources), lacks)


def rotate(load: Load, pool: Pool) -> Priced:
    """Strata on members, parts of the model go round."""
    count = min(pool.members, load.strata)
    place = _members(count, pool)
    if not count:
        return Priced("rotate", place, None, "rotate: needs a member, has none")
    if 1 < load.parts < load.strata:
        lacks = f"rotate: needs as many parts of the model as strata, {load.strata}, or one"
        return Priced("rotate", place, None, f"{lacks}; has {load.parts}")
    share = math.ceil(load.strata / count)
    step = load.one * pool.crowded + STEP
    handed = Cost(python=load.blocks * _HANDED) + _sent(0, load.part, pool)
    if load.parts == 1:  # one after the other, wherever they are
        one, handed = load.strata * step, count * handed
    else:
        one = load.parts * max(1.0, share / pool.threads) * step
        handed = load.parts * handed
    one = one + (handed if count > 1 else Cost())
    cost = _around(load, pool) + load.passes * one
    need = (load.rows + 2 * load.model) / count
    lacks = _lacks("rotate", "a member", need, pool.memory)
    found = _priced("rotate", place, load, cost.seconds(pool.resources), lacks)
    return found._replace(apart=pool.apart)


def rounds(load: Load, pool: Pool) -> Priced:
    """All steps of a pass on one model, then their sum."""
    members = pool.members if pool.apart else 1  # threads of this process need no others
    slots = members * pool.threads if pool.apart else pool.here
    place = _members(members, pool) if pool.apart else f"{slots} threads"
    if not slots:
        return Priced("rounds", place, None, "rounds: needs a worker, has none")
    if load.states:
        return Priced("rounds", place, None, "what strata keep would go with each step")
    talk = Cost(python=load.strata * _HANDOVER, memory=3 * load.strata * load.part)
    step = load.one
    if pool.apart:
        waits = 1 + (load.strata > _GROUPS)
        sent = (pool.members + load.strata) * load.part
        called = Cost(python=_ROUND + load.strata * _CALL, round_trips=waits)
        talk = called + Cost(tasks=load.strata) + _sent(0, sent, pool)
        step = step + Cost(python=_TASK)
    one = math.ceil(load.strata / slots) * step + talk
    cost = _first(load, pool) + load.passes * load.parts * one
    has = pool.memory if pool.apart else pool.memory_here
    need = (load.rows + 3 * load.part * slots) / members
    why = _lacks("rounds", "a member", need, has)
    if not why and load.mode != "lockstep":
        why = 'steps that do not see each other: choose it, or `mode` "lockstep"'
    return _priced("rounds", place, load, cost.seconds(pool.resources), why)


def servers(load: Load, pool: Pool) -> Priced:
    """Some members hold the model, the others pull and push."""
    n = pool.members
    if n < 2 or not 1 <= (load.servers or 1) < n:
        said = f"servers: needs {1 + (load.servers or 1)} members, has {n}"
        return Priced("servers", _members(n, pool), None, said)
    names = [str(member) for member in range(n)]
    kind, work = _served(load, pool)
    kinds = dict.fromkeys(names, kind)
    count = load.servers or usual(n)
    if load.servers is None and load.step is not None:
        count = len(best(kinds, work).configuration.servers)
    configuration = Configuration.even(names[:-count], names[-count:])
    around = _around(load, pool).seconds(pool.resources)
    seconds = around + load.passes * predicted(kinds, configuration, work)
    need = max(load.rows / (n - count) + 3 * load.part, 2 * load.model / count)
    why = _lacks("servers", "a member", need, pool.memory)
    if not why and load.mode is None:
        why = "updates may be late: choose it, or give the `mode` that the step bears"
    found = _priced("servers", str(configuration), load, seconds, why)
    return found._replace(servers=count, apart=pool.apart)


def usual(members: int) -> int:
    """Servers among members, before anything is measured: three tenths."""
    return max(1, math.floor(_SHARE * members))


def _served(load: Load, pool: Pool) -> tuple[Kind, Work]:
    """A job on servers as `server.model` has it."""
    rates, beside = pool.resources, _PULL * load.blocks
    if pool.apart:
        beside += _PULLED * load.part
    own = load.one + Cost(python=beside)
    link = min(rates.python / _BYTE, rates.network) if pool.apart else rates.bandwidth
    work = Work(
        pulled=load.part + load.states / load.strata,
        batches=load.steps,
        applying=load.part / link,
        mode=load.mode or "async",
        pulls="at once",  # as a store asks servers
        staleness=load.staleness,
        row_blocks=load.strata,
        model_blocks=load.blocks * load.parts,
    )
    return Kind(own.seconds(rates) * pool.crowded, link), work


def choose(wanted: str, operator: str, found: Sequence[Priced]) -> tuple[Choice, Priced]:
    """The layout that takes the fewest seconds, or ``wanted`` unless that is "auto".

    Parameters
    ----------
    wanted : str
    operator : str
        What is done.
    found : sequence of Priced
        Of those that take as long the first is taken.

    Raises
    ------
    InputError
        When no layout can be had. One that is wanted and cannot be had is for whoever lays
        it out to refuse.
    """
    if wanted == "auto":
        able = [one for one in found if not one.why]
        if not able:
            reasons = "; ".join(one.why for one in found)
            raise InputError(
                f"No layout can be had: {reasons}. Give more members or memory, or name "
                "the `layout` that you know to be right."
            )
    else:
        able = [one for one in found if one.layout == wanted]
    chosen = min(able, key=_seconds)
    rejected = tuple(
        Alternative(one.layout, one.seconds, one.why or one.place)
        for one in found
        if one is not chosen
    )
    choice = Choice(
        "layout", operator, chosen.layout, chosen.seconds, rejected=rejected,
        notes=(chosen.place,),
    )  # fmt: skip
    return choice, chosen


def _seconds(one: Priced) -> float:
    """To compare: of those that nobody knows the first is taken."""
    return math.inf if one.seconds is None else one.seconds


def _priced(layout: str, place: str, load: Load, seconds: float, why: str) -> Priced:
    known = load.step is not None and not why.startswith(f"{layout}:")
    return Priced(layout, place, seconds if known else None, why)


def _lacks(layout: str, who: str, need: float, has: float) -> str:
    if need <= has:
        return ""
    return f"{layout}: {who} would need {format_bytes(need)}, and has {format_bytes(has)}"


def _members(count: int, pool: Pool) -> str:
    if not pool.apart:
        return f"{count} member{'s' * (count > 1)} in this process"
    each = f" of {pool.threads} threads" if pool.threads > 1 else ""
    return f"{count} worker{'s' * (count > 1)}{each}"


def _first(load: Load, pool: Pool) -> Cost:
    """What brings the rows to where the steps are."""
    return Cost() if load.held else _sent(load.steps, load.rows, pool)


def _around(load: Load, pool: Pool) -> Cost:
    """What passes on members begin with, and end with."""
    begin = _BEGIN if pool.apart else Cost()
    there = _first(load, pool) + _sent(2 * load.strata, load.model, pool)
    return begin + there + (load.looks + 1) * _fetched(load, pool)


def _fetched(load: Load, pool: Pool) -> Cost:
    """The model comes to this process, and tasks are begun again."""
    begun = Cost(round_trips=1.0, tasks=pool.members) if pool.apart else Cost()
    return begun + _sent(load.strata + load.parts * load.blocks, load.model, pool)


def _sent(messages: float, nbytes: float, pool: Pool) -> Cost:
    """Over the mesh, one message after the other."""
    if not pool.apart:
        return Cost(python=messages * _HANDOVER, memory=2 * nbytes)
    return Cost(python=messages * _HANDED + nbytes * _BYTE) | Cost(network=nbytes)
