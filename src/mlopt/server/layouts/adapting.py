"""A job on servers that configures itself: reports come in, proposals are carried out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from mlopt.errors import ClusterError, InputError, MemberLostError
from mlopt.events import Observer
from mlopt.server.autoconfig import Configuration
from mlopt.server.blocks import Array
from mlopt.server.elastic import Controller, Policy
from mlopt.server.model import Mode, Work
from mlopt.server.moves import Step, Table
from mlopt.server.ownership import Move
from mlopt.server.program import CLOCK, part_name

if TYPE_CHECKING:
    from mlopt.server.layouts.servers import Servers

EVERY = 0.5
"""Seconds from one look at what members report to the next: far less than the settling time
after a change, and thousands of times what a look takes."""


class Adapting:
    """Keeps a layout near its best configuration.

    Parameters
    ----------
    layout : Servers
    mode : {"lockstep", "bounded", "async"}
    staleness : int
    policy : Policy
    observer : callable

    Attributes
    ----------
    controller : Controller
    """

    def __init__(
        self,
        layout: Servers,
        mode: Mode,
        staleness: int,
        policy: Policy,
        observer: Observer,
    ) -> None:
        self.layout, program = layout, layout.program
        part, state = (
            sum(array.nbytes for one in ones for array in one.values()) / max(1, len(ones))
            for ones in (program.parts, program.states)
        )
        self.pulled = part + state  # of a step, on average
        work = Work(
            pulled=self.pulled,
            batches=len(program.cells) * len(program.parts),
            mode=mode,
            pulls="at once",  # as a store asks servers
            staleness=staleness,
            row_blocks=len(program.cells),
            model_blocks=sum(
                len(table.blocks)
                for part in range(len(program.parts))
                for table in program.plan.of(part_name(part)).values()
            ),
        )
        self._clock = program.plan.of(CLOCK)[CLOCK].blocks
        cores = dict.fromkeys(layout.mesh.members, 1)
        self.controller = Controller(work, self._now(), cores, policy, observer)
        self._next, self._began = 0.0, time.monotonic()
        self._steps, self._since = 0, self._began  # told of, since the last measure
        self._cold: tuple[int, float] | None = None  # steps before all were warm, till when

    def begin(self) -> None:
        """Members work from now on, and all strata have steps left."""
        with suppress(InputError):  # whoever was done may have taken strata of others
            self.controller.configuration = self._now()
        self.controller.start()
        self._begin()

    def finishing(self, left: Array) -> bool:
        """Whether a worker has done all its steps: what is left would not pay for a change.

        Parameters
        ----------
        left : int64 ndarray (strata,)
            Steps.
        """
        homes = self.layout.homes
        busy = {home for stratum, home in homes.items() if left[stratum] > 0}
        if busy < {*homes.values()}:
            self.controller.finish()
        return self.controller.state == "FINISHING"

    def _begin(self) -> None:
        self._hear()
        self._steps, self._since, self._cold = 0, time.monotonic(), None

    def end(self) -> None:
        """The configuration changes, or all is done. Of one that had no whole epoch, a part
        of one is better than nothing."""
        self._hear()
        if self.controller.seen:
            self._measure()
        else:
            self._measured(0, self._since, least=0.0)

    def _measure(self) -> None:
        """Note what an epoch took, once one was made by members that were warm."""
        if self._cold is not None:
            self._measured(*self._cold)
        elif self.controller.metrics.warm(self.controller.configuration):
            self._cold = self._steps, time.monotonic()

    def _measured(self, before: int, since: float, least: float = 1.0) -> None:
        """Note what an epoch took, if at least ``least`` were made since: by steps, for no
        pass has a moment at which it ends, and by those of which members tell as soon as
        they are done: clocks are told with the next."""
        epochs, now = (
            (self._steps - before) / self.controller.work.batches,
            time.monotonic(),
        )
        if epochs >= least and epochs > 0:
            self.controller.epoch((now - since) / epochs)
            self._steps, self._since, self._cold = 0, now, (0, now)

    def look(self, passes: int) -> None:
        """Hear what members report; change what is better changed."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY
        controller, here = self.controller, set(self.layout.mesh.members)
        for member in here - controller.cores.keys():
            controller.joined(member)
        for member in controller.cores.keys() - here:
            controller.left(member)
        self._hear()
        self._measure()
        if not self._restored():
            return
        with suppress(InputError):  # too few members for both: go on as it is
            proposal = controller.propose(now - self._began, self._owners())
            if proposal is not None:
                self.end()
                self._carry_out(proposal.steps, passes)
                self._move_clock(proposal.after)
                controller.done(now - self._began, time.monotonic() - now)
                self._begin()

    def _hear(self) -> None:
        metrics, applying = self.controller.metrics, dict[str, float]()
        made = 0
        for member in self.layout.mesh.members:
            try:
                said, (steps,) = self.layout.mesh.ask(member, "report")
            except ClusterError:  # it has just come, or gone
                continue
            made += len(steps)
            for _, compute, pull, nbytes in steps.tolist():
                metrics.batch(member, compute, pull)
                if pull > 0:
                    metrics.link(member, nbytes / pull)
            applying[member] = said.more["applying"]
        for member in self.layout.servers() & applying.keys():
            # Its seconds of these steps' pushes: none, where its blocks do not change.
            metrics.served(member, made, applying[member])
        self._steps += made

    def _restored(self) -> bool:
        """What becomes of the parts of lost members is not the controller's doing; gives
        whether members that are there have them all."""
        if self.controller.forced:
            with suppress(InputError):
                self.controller.configuration = self._now()
        have = {*self.layout.homes.values()} | self.layout.servers()
        return have <= self.controller.cores.keys()

    def _now(self) -> Configuration:
        homes, owners = [*self.layout.homes.values()], [*self._owners()["model"].values()]
        servers = {m: owners.count(m) / len(owners) for m in set(owners)}
        workers = [home for home in homes if home not in servers]
        if not workers:
            raise InputError("All members that work are servers, too.")
        return Configuration(
            {m: workers.count(m) / len(workers) for m in set(workers)}, servers
        )

    def _owners(self) -> dict[Table, dict[int, str]]:
        owners = self.layout.host.owners.all()
        model = {b: owner.member for b, owner in owners.items() if b not in self._clock}
        return {"rows": dict(self.layout.homes), "model": model}

    def _move_clock(self, now: Configuration) -> None:
        """It is no part of the model that is shared out, and on one of the servers."""
        host, target = self.layout.host, min(now.servers, key=lambda m: now.servers[m])
        for block in self._clock:
            owner = host.owners.get(block)
            if owner is not None and owner.member not in now.servers:
                with suppress(MemberLostError):
                    host.store.move([Move((block,), owner.member, target)])

    def _carry_out(self, steps: Sequence[Step], passes: int) -> None:
        """Each step after those that it needs; the model moves all at a time."""
        layout, done = self.layout, set[int]()
        while len(done) < len(steps):
            ready = [
                at for at, step in enumerate(steps)
                if at not in done and done.issuperset(step.after)
            ]  # fmt: skip
            moves = [steps[at].move for at in ready if steps[at].table == "model"]
            with suppress(MemberLostError):  # the next look sees who is gone
                layout.host.store.move([move for move in moves if move is not None])
            for at in ready:
                move = steps[at].move
                if move is not None and steps[at].table == "rows":
                    with suppress(MemberLostError):
                        layout.move_strata(move.blocks, move.target, passes)
            done.update(ready)
