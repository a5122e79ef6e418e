"""Servers hold the model, workers pull and push; any member may be lost, and others go on.

Blocks of a lost server go back to their copies. Strata of a lost worker go to another one,
which goes on with the step that the first was at.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mlopt.cluster import Mesh, Resident
from mlopt.errors import ClusterError, InputError, MemberLostError
from mlopt.server.host import EVERY, Host
from mlopt.server.layouts.layout import Layout
from mlopt.server.layouts.members import LOOK, give_cells
from mlopt.server.program import CLOCK, Part, Program
from mlopt.server.resident import Done, JobService
from mlopt.server.workers import MODES, Mode, works

_SHARE = 0.3
"""Of the members: servers, unless their number is given. The paper's optima have 16% to 44%
of 32 machines for servers (Cruise, table III)."""


class Servers(Layout):
    """Workers and servers, each member one or the other as long as there are two.

    Parameters
    ----------
    program : Program
    mesh : Mesh
        All of it: it is given a service.
    passes : int
    mode : {"lockstep", "bounded", "async"}
    staleness : int
        Steps that a stratum may be behind another, in "bounded".
    servers : int, optional
        How many members.
    every : float or None
        Seconds from one copy of the blocks to the next.

    Attributes
    ----------
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
        mode: Mode = "async",
        staleness: int = 1,
        servers: int | None = None,
        every: float | None = EVERY,
    ) -> None:
        super().__init__(program, passes)
        members = mesh.members
        if mode not in MODES:
            raise InputError(f"`mode` must be one of {MODES}, got {mode!r}.")
        if len(members) < 2:
            raise InputError(f"servers: needs 2 members, has {len(members)}.")
        count = servers or max(1, math.floor(_SHARE * len(members)))
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
        model[CLOCK] = model[CLOCK] + passes * len(program.parts)
        self.host = Host(
            mesh, model, program.plan, servers=members[-count:], tables=program.tables,
            every=every, make=JobService,
        )  # fmt: skip
        for stratum, home in self.homes.items():
            give_cells(mesh, home, stratum, program)

    def advance(self, passes: int) -> None:
        tasks = self._started(list(self.homes), passes)
        done: list[Done] = []
        try:
            while tasks:
                task = next((t for t in tasks if not t.alive), tasks[0])
                try:
                    done.append(task.result(LOOK))
                except TimeoutError:
                    continue
                except MemberLostError:
                    tasks += self._elsewhere(task.member, passes)
                tasks.remove(task)
        finally:
            for task in tasks:
                task.stop()
        self.passes += passes
        self.done = done
        self.loss = sum(one.losses[self.passes - 1] for one in done)

    def model(self) -> tuple[Sequence[Part], Sequence[Part]]:
        return self.program.cut(self.host.model())

    def close(self) -> None:
        self.host.close()

    def _started(self, strata: Sequence[int], passes: int) -> list[Resident]:
        clock = self._clock()
        shares: dict[str, dict[int, int]] = {}
        for stratum in strata:
            counts = shares.setdefault(self.homes[stratum], {})
            counts[stratum] = int(clock[stratum])
        return [
            self.mesh.start(member, works, counts, self.passes, passes, self.behind)
            for member, counts in shares.items()
        ]

    def _clock(self) -> Any:
        return self.host.store.pull(tables=[CLOCK])[CLOCK]

    def _elsewhere(self, lost: str, passes: int) -> list[Resident]:
        """Have the strata of a member that is lost done by others."""
        self.lost += 1
        moved = [stratum for stratum, home in self.homes.items() if home == lost]
        while True:
            here = self.mesh.members
            if not here:
                raise ClusterError(
                    "The pool has shrunk to nothing: there is no member to work. The "
                    "model is as it was when its blocks were copied last."
                )
            servers = {owner.member for owner in self.host.owners.all().values()}
            free = [member for member in here if member not in servers] or list(here)
            loads = dict.fromkeys(free, 0)
            for home in self.homes.values():
                if home in loads:
                    loads[home] += 1
            try:
                for stratum in moved:
                    home = min(loads, key=lambda member: loads[member])
                    give_cells(self.mesh, home, stratum, self.program)
                    self.homes[stratum] = home
                    loads[home] += 1
                return self._started(moved, passes)
            except MemberLostError:
                continue
