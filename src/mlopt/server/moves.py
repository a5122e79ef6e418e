"""From who owns what to who should: steps that run as soon as those before them are done.

::

    m1 worker   rows 0-7             m1 worker   rows 0-5
    m2 worker   rows 8-15     ->     m2 server                    model 2-3
    m3 server   model 0-3            m3 server                    model 0-1
                                     m4 worker   rows 6-15

    add m4  ─┬─> move rows 6-7,  m1 -> m4
             └─> move rows 8-15, m2 -> m4     (after switch m2, which ends its mini-batch)
    switch m2 ─> move model 2-3, m3 -> m2

Cruise (Lee et al., ICDCS 2019), section IV-A3: operations add, delete, switch, move in a
graph; moves from the largest surplus to the largest deficit. Members are there before they
are added, and after they are deleted, so that no add waits for a delete.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from mlopt.errors import InputError
from mlopt.server.autoconfig import Configuration, Role
from mlopt.server.ownership import Move

What = Literal["add", "delete", "switch", "move", "restore"]
Table = Literal["rows", "model"]


@dataclass(frozen=True)
class Step:
    """One operation of a reconfiguration.

    Parameters
    ----------
    what : {"add", "delete", "switch", "move", "restore"}
        Blocks of a member that is lost are restored: made anew, or from a snapshot.
    member : str
        Whom it concerns; the target of blocks.
    role : {"worker", "server"} or None
        What the member does afterwards.
    move : Move, optional
        The blocks.
    table : {"rows", "model"}, default="model"
        Of which these are.
    after : tuple of int
        Steps, by their places, that must be done before.
    """

    what: What
    member: str
    role: Role | None = None
    move: Move | None = None
    table: Table = "model"
    after: tuple[int, ...] = ()

    def __str__(self) -> str:
        if self.move is None:
            return f"{self.what} {self.member}" + (f" as {self.role}" if self.role else "")
        blocks, source, target = self.move
        return f"{self.what} {len(blocks)} blocks of {self.table}, {source} -> {target}"


def apportioned(
    shares: Mapping[str, float], blocks: int, have: Mapping[str, int] | None = None
) -> dict[str, int]:
    """Whole blocks in proportion to shares: rounded down, the rest by largest remainders.

    Where these are equal, who has more already gets one more.

    Examples
    --------
    >>> from mlopt.server.moves import apportioned
    >>> apportioned({"a": 0.5, "b": 0.25, "c": 0.25}, 7)
    {'a': 3, 'b': 2, 'c': 2}
    """
    have = have or {}
    found = {member: int(share * blocks + 1e-9) for member, share in shares.items()}
    rest = {member: round(shares[member] * blocks - n, 9) for member, n in found.items()}
    order = sorted(shares, key=lambda m: (-rest[m], -have.get(m, 0)))
    for member in order[: blocks - sum(found.values())]:
        found[member] += 1
    return found


def paired(owners: Mapping[int, str], wanted: Mapping[str, int]) -> list[Move]:
    """Moves after which each member has as many blocks as it should.

    The largest surplus goes to the largest deficit, again and again: as few blocks as can
    be, in fewer moves than there are members.

    Raises
    ------
    InputError
        There are not as many blocks as are wanted.
    """
    if len(owners) != sum(wanted.values()):
        raise InputError(
            f"`wanted` must deal {len(owners)} blocks, but deals {sum(wanted.values())}."
        )
    held: dict[str, list[int]] = defaultdict(list)
    for block, member in sorted(owners.items()):
        held[member].append(block)
    names = sorted(held.keys() | wanted.keys())
    surplus = {m: len(held[m]) - wanted.get(m, 0) for m in names}
    givers = [(-n, m) for m, n in surplus.items() if n > 0]
    takers = [(n, m) for m, n in surplus.items() if n < 0]
    heapq.heapify(givers)
    heapq.heapify(takers)
    moves = []
    while givers:
        (more, source), (less, target) = heapq.heappop(givers), heapq.heappop(takers)
        count = min(-more, -less)
        blocks = held[source][-count:]
        del held[source][-count:]
        moves.append(Move(tuple(blocks), source, target))
        if more + count:
            heapq.heappush(givers, (more + count, source))
        if less + count:
            heapq.heappush(takers, (less + count, target))
    return moves


def reconfiguration(
    now: Configuration,
    wanted: Configuration,
    owners: Mapping[Table, Mapping[int, str]],
    lost: Collection[str] = (),
) -> list[Step]:
    """What is to be done, each step after those that it needs.

    Parameters
    ----------
    now, wanted : Configuration
    owners : mapping of {"rows", "model"} to mapping of int to str
        Of each block its owner. A table that is left out has no blocks to move: rows that
        whoever is done takes next.
    lost : collection of str
        Members that are gone, with their blocks.

    Returns
    -------
    list of Step
        In an order in which they can be done one by one.
    """
    if gone := sorted(wanted.members & set(lost)):
        raise InputError(f"A configuration must be of members that are there, not {gone}.")
    steps: list[Step] = []
    given: dict[str, int] = {}  # the step that gives a member its new role
    for member in [*wanted.workers, *wanted.servers]:
        before, role = now.role(member), wanted.role(member)
        if before != role:
            what: What = "switch" if before else "add"
            given[member] = len(steps)
            steps.append(Step(what, member, role))
    last: dict[str, list[int]] = defaultdict(list)
    tables: dict[Table, Mapping[str, float]]
    tables = {"rows": wanted.workers, "model": wanted.servers}
    for table, shares in tables.items():
        held = owners.get(table, {})
        have: dict[str, int] = defaultdict(int)
        for member in held.values():
            have[member] += 1
        for move in paired(held, apportioned(shares, len(held), have)):
            # Who stops working ends its mini-batch before its rows go.
            needs = {given.get(move.target)}
            needs |= {given.get(move.source)} if table == "rows" else set()
            after = tuple(sorted(at for at in needs if at is not None))
            what = "restore" if move.source in lost else "move"
            last[move.source].append(len(steps))
            steps.append(Step(what, move.target, None, move, table, after))
    leaving = sorted(now.members - wanted.members - set(lost))
    return steps + [Step("delete", m, after=tuple(last[m])) for m in leaving]
