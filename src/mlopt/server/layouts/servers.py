"""Servers hold the model, workers pull and push; any member may be lost, and others go on.

Blocks of a lost server go back to their copies. Strata of a lost worker go to another one,
which goes on with the step that the first was at.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from mlopt.cluster import Mesh, Resident
from mlopt.cluster.wire import Header
from mlopt.errors import ClusterError, InputError, MemberLostError
from mlopt.events import Observer, ignore
from mlopt.plan import Choice
from mlopt.server.elastic import Policy
from mlopt.server.host import EVERY, Host
from mlopt.server.layouts.adapting import Adapting
from mlopt.server.layouts.layout import Layout
from mlopt.server.layouts.members import LOOK, PROMPT, give_cells, halted, suspect
from mlopt.server.layouts.pricing import usual
from mlopt.server.ownership import dealt
from mlopt.server.program import CLOCK, Part, Program
from mlopt.server.resident import Done, JobService
from mlopt.server.workers import MODES, Mode, works

log = logging.getLogger("mlopt")


class Servers(Layout):
    """Workers and servers, each member one or the other as long as there are two.

    Parameters
    ----------
    program : Program
    mesh : Mesh
        All of it: it is given a service.
    passes : int
    steps : sequence of int, optional
        That the model has of each stratum, where some have had more than ``passes``.
    mode : {"lockstep", "bounded", "async"}
    staleness : int
        Steps that a stratum may be behind another, in "bounded".
    servers : int, optional
        How many members.
    every : float or None
        Seconds from one copy of the blocks to the next.
    policy : Policy, optional
        Configure workers and servers anew while they run, from what is measured, until a
        worker has done all its steps. Then, or without, who is done takes strata of others,
        and so do members that come.
    observer : callable
        Told of each change.

    Attributes
    ----------
    homes : dict of int to str
        The member of each stratum.
    adapting : Adapting or None
    done : list of Done
        What workers did in the last `advance`.
    """

    exact = False

    def __init__(
        self,
        program: Program,
        mesh: Mesh,
        *,
        passes: int = 0,
        steps: Sequence[int] | None = None,
        mode: Mode = "async",
        staleness: int = 1,
        servers: int | None = None,
        every: float | None = EVERY,
        policy: Policy | None = None,
        observer: Observer = ignore,
    ) -> None:
        super().__init__(program, passes)
        members = mesh.members
        if mode not in MODES:
            raise InputError(f"`mode` must be one of {MODES}, got {mode!r}.")
        if len(members) < 2:
            raise InputError(f"servers: needs 2 members, has {len(members)}.")
        count = servers or usual(len(members))
        if not 1 <= count < len(members):
            raise InputError(
                f"servers: of {len(members)} members 1 to {len(members) - 1} can be "
                f"servers, got {count}."
            )
        self.mesh, self.done = mesh, list[Done]()
        self.behind = {"lockstep": 0, "bounded": staleness}.get(mode)
        workers = members[:-count]
        strata = range(len(program.cells))
        self.homes = {a: workers[a * len(workers) // len(strata)] for a in strata}
        model = program.model()
        self._steps = tuple(steps or super().steps)
        model[CLOCK] = np.array(self._steps)
        serving, clock = members[-count:], program.plan.of(CLOCK)[CLOCK].blocks
        first = dealt([b for b in program.tables.blocks if b not in clock], serving)
        owners = {block: owner.member for block, owner in first.items()}
        # The clock goes beside: the last has the least of the model.
        owners |= dict.fromkeys(clock, serving[-1])
        self.host = Host(
            mesh, model, program.plan, servers=serving, owners=owners,
            tables=program.tables, every=every, make=JobService,
        )  # fmt: skip
        self._gone: set[str] = set()
        self._tasks: list[Resident] = []
        self._deaths: dict[int, tuple[int, int]] = {}
        self.adapting: Adapting | None = None
        try:
            for member in workers:
                self._give(member)
            if policy is not None:
                self.adapting = Adapting(self, mode, staleness, policy, observer)
        except BaseException:
            self.close()  # nobody else can
            raise

    def advance(self, passes: int) -> None:
        self.done, restored = [], len(self.host.restored)
        self._tasks, self._deaths = [], {}
        try:
            self._tasks = self._started(list(self.homes), passes)
            if self.adapting is not None:
                self.adapting.begin()
            while self._tasks:
                ended = [task for task in self._tasks if not task.alive]
                for task in ended or self._tasks[:1]:
                    self._settle(task, passes)
                if ended or self._idle():
                    self._share_out(passes)
                if self.adapting is not None:
                    self.adapting.look(passes)
                if not self._tasks or restored < len(self.host.restored):
                    restored = len(self.host.restored)
                    self._tasks += self._started(self._unfinished(passes), passes)
            self._steps = tuple(self.clock().tolist())  # some may have been further
        except BaseException as error:
            self._halt(isinstance(error, Exception))
            raise
        self.passes += passes
        if self.adapting is not None:
            self.adapting.end()
        self.loss = sum(one.losses[self.passes - 1] for one in self.done)

    def model(self) -> tuple[Sequence[Part], Sequence[Part]]:
        return self.program.cut(self.host.model())

    @property
    def steps(self) -> tuple[int, ...]:
        return self._steps

    def changes(self) -> tuple[Choice, ...]:
        return () if self.adapting is None else self.adapting.controller.plan().choices

    def close(self) -> None:
        self.host.close()

    def clock(self) -> Any:
        """Steps that each stratum has had."""
        return self.host.store.pull(tables=[CLOCK])[CLOCK]

    def _known(self) -> Any:
        """The same; of the copies, if nobody is there."""
        return self.clock() if self.mesh.members else self.host.model()[CLOCK]

    def servers(self) -> set[str]:
        """Members that have blocks."""
        return {owner.member for owner in self.host.owners.all().values()}

    def move_strata(self, strata: Sequence[int], target: str, passes: int) -> None:
        """Have strata done by another member, each after the step that it is at.

        Raises
        ------
        MemberLostError
            The target is gone; those that are not there yet are where they were.
        """
        for stratum in strata:
            give_cells(self.mesh, target, stratum, self.program)
            try:
                self.mesh.ask(self.homes[stratum], "release", Header(stratum))
            except MemberLostError:  # the clock says where it was
                self._suspect([stratum], passes)
            self.homes[stratum] = target
            self._tasks += self._started([stratum], passes)

    def _unfinished(self, passes: int) -> list[int]:
        """Strata whose task was told to end by a member that goes, and was not lost yet;
        and those that had ended and whose clock went back with a server's blocks."""
        wanted = (self.passes + passes) * len(self.program.parts)
        return [a for a, count in enumerate(self.clock()) if count < wanted]

    def _halt(self, failed: bool) -> None:
        """Count what was done, once strata that are behind are as far as the furthest.

        What failed would fail again, and nobody who interrupts waits for long: then they
        are as far as they are.
        """
        try:
            if halted(self.mesh.residents) and not failed:
                self._catch_up()
        finally:
            with suppress(ClusterError):
                self._steps = tuple(self._known().tolist())
                self.passes = min(self._steps) // len(self.program.parts)

    def _catch_up(self) -> None:
        wanted = -(-int(self.clock().max()) // len(self.program.parts))
        self._tasks, end = [], time.monotonic() + PROMPT
        try:
            more = wanted - self.passes
            self._tasks = self._started(list(self.homes), more)
            while self._tasks and time.monotonic() < end:
                self._settle(self._tasks[0], more)
        except Exception:
            log.debug("strata that are behind cannot go on", exc_info=True)
        finally:
            halted(self.mesh.residents)

    def _settle(self, task: Resident, passes: int) -> None:
        """Take what a task came to, if it has ended."""
        try:
            self.done.append(task.result(LOOK))
        except TimeoutError:
            return
        except MemberLostError:
            self._tasks += self._started(self._rehome(task.member, passes), passes)
        self._tasks.remove(task)

    def _suspect(self, strata: Sequence[int], passes: int) -> None:
        """Those that were under way on a member that is lost, if they have steps left."""
        clock, wanted = self._known(), (self.passes + passes) * len(self.program.parts)
        suspect(self._deaths, {a: int(clock[a]) for a in strata if clock[a] < wanted})

    def _started(self, strata: Sequence[int], passes: int) -> list[Resident]:
        clock = self.clock()
        shares: dict[str, dict[int, int]] = {}
        for stratum in strata:
            counts = shares.setdefault(self.homes[stratum], {})
            counts[stratum] = int(clock[stratum])
        tasks = []
        for member, counts in shares.items():
            try:
                args = counts, self.passes, passes, self.behind
                tasks.append(self.mesh.start(member, works, *args))
            except MemberLostError:
                tasks += self._started(self._rehome(member, passes), passes)
        return tasks

    def _idle(self) -> list[str]:
        """Members that could work and do not."""
        busy = {task.member for task in self._tasks if task.alive}
        return [one for one in self.mesh.staying if one not in busy | self.servers()]

    def _share_out(self, passes: int) -> None:
        """Who has nothing left to do takes a stratum of who has the most (C29)."""
        idle = self._idle()
        if not idle:
            return
        wanted = (self.passes + passes) * len(self.program.parts)
        left = wanted - self.clock()
        if self.adapting is not None and not self.adapting.finishing(left):
            return
        for member in idle:
            shares: dict[str, list[int]] = {}
            for stratum, home in self.homes.items():
                if left[stratum] > 1:
                    shares.setdefault(home, []).append(stratum)
            shares.pop(member, None)
            if not shares:
                return
            most = max(shares.values(), key=lambda share: sum(left[a] for a in share))
            if len(most) < 2:
                return
            with suppress(MemberLostError):
                self.move_strata([max(most, key=lambda a: left[a])], member, passes)

    def _give(self, member: str) -> None:
        """Give a member its strata, or others if it is lost."""
        try:
            for stratum in self._strata_of(member):
                give_cells(self.mesh, member, stratum, self.program)
        except MemberLostError:
            self._rehome(member)

    def _strata_of(self, member: str) -> list[int]:
        return [stratum for stratum, home in self.homes.items() if home == member]

    def _rehome(self, lost: str, passes: int = 0) -> list[int]:
        """Give the strata of a member that is lost to others; gives which these are."""
        self._gone.add(lost)
        self.lost = len(self._gone)
        moved = self._strata_of(lost)
        if any(task.member == lost for task in self._tasks):
            self._suspect(moved, passes)
        for stratum in moved:
            while True:
                home = self._least_loaded()
                with suppress(MemberLostError):
                    give_cells(self.mesh, home, stratum, self.program)
                    self.homes[stratum] = home
                    break
        return moved

    def _least_loaded(self) -> str:
        here = self.mesh.staying
        if not here:
            raise ClusterError(
                "The pool has shrunk to nothing: there is no member to work. The model is "
                "as it was when its blocks were copied last."
            )
        servers = self.servers()
        free = [member for member in here if member not in servers] or here
        return min(free, key=lambda member: len(self._strata_of(member)))
