"""Strata stay, parts of the model go round: each has one owner at a time.

A member that is lost takes parts with it. What all of them were a while ago is kept here;
the others begin anew from there, under a new epoch, and come to the same result.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from mlopt.cluster import Mesh, MeshHere, Resident
from mlopt.cluster.wire import Header
from mlopt.errors import ClusterError, InputError, MemberLostError
from mlopt.server.host import EVERY, Host
from mlopt.server.layouts.layout import Layout
from mlopt.server.layouts.members import (
    LOOK,
    PROMPT,
    ended,
    finished,
    give_cells,
    halted,
    suspect,
    was_lost,
)
from mlopt.server.program import CLOCK, Part, Program, part_name, state_name
from mlopt.server.resident import Done, JobService, rotate

SHARE = 0.01
"""Of the time that copies may take: less than what passes differ by."""
LEAST = 0.001
"""Seconds of a copy at least, with tasks that end before and begin after it: threads that
begin take less."""


class Rotate(Layout):
    """Parts go from member to member.

    Parameters
    ----------
    program : Program
    mesh : Mesh
        All of it: it is given a service.
    passes : int
    members : int, optional
        How many at most. Default: all, or as many as there are strata.
    threads : int, optional
        Of each member. Default: its cores.

    Attributes
    ----------
    done : list of Done
        What each member did in the last `advance`.
    """

    def __init__(
        self,
        program: Program,
        mesh: Mesh,
        *,
        passes: int = 0,
        members: int | None = None,
        threads: int | None = None,
    ) -> None:
        super().__init__(program, passes)
        if 1 < len(program.parts) < len(program.cells):
            raise InputError(
                "rotate: needs as many parts of the model as strata, "
                f"{len(program.cells)}, or a single one; has {len(program.parts)}."
            )
        self.mesh, self.threads = mesh, threads
        self._most = min(members or len(program.cells), len(program.cells))
        self.done: list[Done] = []
        self._plan = program.plan
        self._cells = len(program.cells) * len(program.parts)  # of a pass
        self._kept: tuple[int, Sequence[Part], Sequence[Part]]
        self._kept = passes, program.parts, program.states
        self._when, self._a_pass = time.monotonic(), EVERY
        self._copying = EVERY  # seconds of a copy, about
        # In this process others may have had the core meanwhile; elsewhere it is a wait.
        here = isinstance(mesh, MeshHere)
        self._clock = time.thread_time if here else time.monotonic
        self._host: Host | None = None
        self.homes: list[str] = []
        self._tasks: list[Resident] = []
        self._deaths: dict[int, tuple[int, int]] = {}
        self._wary = 0  # passes; in one before, a member was lost

    def advance(self, passes: int) -> None:
        wanted = self.passes + passes
        while self.passes < wanted:
            try:
                if self._host is not None and self._have_come():
                    self._keep()
                    self._host.close()
                    self._host = None
                if self._host is None:
                    self._begin()
                self._stretch(wanted)
            except MemberLostError:
                self._give_up()
                time.sleep(LOOK)  # maybe it is not known yet who is gone

    def model(self) -> tuple[Sequence[Part], Sequence[Part]]:
        while True:
            passes, parts, states = self._kept
            if passes == self.passes:
                return parts, states
            try:
                self._keep()
            except MemberLostError:
                wanted = self.passes
                self._give_up()
                self.advance(wanted - self.passes)

    def close(self) -> None:
        if self._host is not None:
            self._host.close()

    def _stretch(self, wanted: int) -> None:
        """As many passes as are done before the next copy, at a guess."""
        assert self._host is not None
        began, left = time.monotonic(), wanted - self.passes
        every = min(EVERY, self._copying / SHARE)
        count = max(1, min(left, int(every / self._a_pass)))
        if self.passes < self._wary:
            count = 1  # so that it is known which pass members are lost in
        try:
            self._tasks = self._started(count)
            self.done = finished(self._tasks)
            if sum(one.cells for one in self.done) < count * self._cells:
                raise MemberLostError("A member told its tasks to stop: it goes.")
        except MemberLostError:
            self._suspect(count)
            raise
        except BaseException as error:
            self._halt(isinstance(error, Exception))
            raise
        self.passes += count
        self._a_pass = (time.monotonic() - began) / count
        self.loss = sum(one.losses[self.passes - 1] for one in self.done)
        if time.monotonic() - self._when > every:
            self._keep()

    def _suspect(self, passes: int) -> None:
        """Strata that were under way on members that are lost."""
        gone = {task.member for task in self._tasks if was_lost(task)}
        if gone:
            self._wary = max(self._wary, self.passes + passes)
        steps = self.passes * len(self.program.parts)
        suspect(self._deaths, {a: steps for a, m in enumerate(self.homes) if m in gone})

    def _started(self, passes: int, steps: Sequence[int] | None = None) -> list[Resident]:
        given = self.homes, self.passes, passes, self.threads, steps
        members = dict.fromkeys(self.homes)
        return [self.mesh.start(member, rotate, *given) for member in members]

    def _halt(self, failed: bool) -> None:
        """Count what was done; a pass that is not done ends, or else has never been.

        What failed would fail again, and nobody who interrupts waits for long.
        """
        parts, even = len(self.program.parts), None
        with suppress(ClusterError):
            if halted(self.mesh.residents):
                even = _same(steps := self._counted(), parts)
                if even is None and not failed and self._a_pass <= PROMPT:
                    tasks = self._started(-(-max(steps) // parts) - self.passes, steps)
                    even = _same(self._counted(), parts) if ended(tasks) else None
        if even is None:
            halted(self.mesh.residents)
            self._go_back()
        else:
            self.passes = even

    def _counted(self) -> list[int]:
        """Steps that each stratum has had, by their members, which do none now."""
        found = []
        for stratum, home in enumerate(self.homes):
            said, _ = self.mesh.ask(home, "release", Header(stratum))
            before = self.passes * len(self.program.parts)
            found.append(said.sequence if said.version else before)
        return found

    def _keep(self) -> None:
        assert self._host is not None
        if not set(self.homes) <= set(self.mesh.members):
            raise MemberLostError("A member was lost, and what it had.")
        began = self._clock()
        self._kept = self.passes, *self.program.cut(self._host.store.pull())
        self._copying = max(self._clock() - began, LEAST)
        self._when = time.monotonic()

    def _have_come(self) -> bool:
        """Whether there are members now for more of the strata."""
        return min(len(self.mesh.staying), self._most) > len({*self.homes})

    def _give_up(self) -> None:
        """Go back to what was kept."""
        self.lost += 1
        self._go_back()

    def _go_back(self) -> None:
        self.close()
        self._host, self.passes = None, self._kept[0]

    def _begin(self) -> None:
        """Give members strata, runs of neighbours; and parts to who has them first."""
        members = self.mesh.staying
        if not members:
            raise ClusterError(
                "The pool has shrunk to nothing: there is no member to work. The model is "
                f"as it was after {self._kept[0]} passes."
            )
        plan, strata = self._plan, len(self.program.cells)
        used = members[: self._most]
        self.homes = [used[a * len(used) // strata] for a in range(strata)]
        first = {
            part_name(b): self.homes[next(plan.holders(b, self.passes))[1]]
            for b in range(plan.parts)
        }
        first |= {state_name(a): home for a, home in enumerate(self.homes)}
        _, parts, states = self._kept
        model: dict[str, Any] = {CLOCK: self.program.model()[CLOCK]}  # which nobody needs
        for b, part in enumerate(parts):
            model |= plan.split(part_name(b), part)
        for a, state in enumerate(states):
            model |= plan.split(state_name(a), state)
        owners = {
            block: home
            for name, home in first.items()
            for table in plan.of(name).values()
            for block in table.blocks
        }
        began = self._clock()
        host = Host(
            self.mesh, model, plan, servers=used, owners=owners, tables=plan.tables,
            every=None, mends=False, make=JobService,
        )  # fmt: skip
        self._copying = max(self._clock() - began, LEAST)  # all of it came here
        try:
            for stratum, home in enumerate(self.homes):
                give_cells(self.mesh, home, stratum, self.program)
        except BaseException:
            host.close()
            raise
        self._host, self._tasks = host, []  # of which members have all now


def _same(steps: Sequence[int], parts: int) -> int | None:
    """The passes that all strata have done, if none has begun another."""
    (count, *others) = set(steps)
    return count // parts if not others and count % parts == 0 else None
