"""A job in simulated time: its controller reconfigures it, and the simulator runs it.

What members report is drawn with the noise of `Work.noise`; the controller is told nothing
else of the machines. Changes take no time here.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import NamedTuple

from mlopt.server.autoconfig import Configuration
from mlopt.server.elastic import Controller, Policy
from mlopt.server.metrics import ENOUGH, SKIPPED
from mlopt.server.model import Kind, Work
from mlopt.server.simulate import simulate


class Epoch(NamedTuple):
    """When it ended, how long it took, and under which configuration, all in seconds."""

    end: float
    seconds: float
    configuration: Configuration


def epoch_seconds(
    machines: Mapping[str, Kind], now: Configuration, work: Work, seed: int = 0
) -> float:
    """Seconds of an epoch as the simulator sees it."""
    w = len(now.workers)
    sizes = [w * share for share in now.workers.values()] if work.ahead < math.inf else None
    seen = simulate(
        [machines[m] for m in now.workers],
        [machines[m] for m in now.servers],
        work,
        shares=[*now.servers.values()],
        sizes=sizes,
        seed=seed,
    )
    return work.batches * seen.seconds


class Rehearsal:
    """A job that is run without machines.

    Parameters
    ----------
    machines : mapping of str to Kind
        What members really give.
    work : Work
    configuration : Configuration
        At the beginning.
    policy : Policy, optional
    seed : int, default=0

    Attributes
    ----------
    controller : Controller
    epochs : list of Epoch
    """

    def __init__(
        self,
        machines: Mapping[str, Kind],
        work: Work,
        configuration: Configuration,
        policy: Policy | None = None,
        seed: int = 0,
    ) -> None:
        self.machines, self.work = dict(machines), work
        self.controller = Controller(
            work, configuration, dict.fromkeys(machines, 1), policy
        )
        self.controller.start()
        self.random = random.Random(seed)
        self.now = 0.0
        self.epochs: list[Epoch] = []

    def join(self, member: str, machine: Kind) -> None:
        """A member comes."""
        self.machines[member] = machine
        self.controller.joined(member)

    def lose(self, member: str) -> None:
        """A member goes."""
        del self.machines[member]
        self.controller.left(member)

    def epoch(self) -> Epoch:
        """Reconfigure if that is proposed, and do an epoch."""
        controller = self.controller
        if controller.propose(self.now) is not None:
            controller.done(self.now, 0.0)
        now = controller.configuration
        seconds = epoch_seconds(self.machines, now, self.work, self.random.getrandbits(32))
        self.now += seconds
        self._report(now)
        controller.epoch(seconds)
        self.epochs.append(Epoch(self.now, seconds, now))
        return self.epochs[-1]

    def _report(self, now: Configuration) -> None:
        metrics = self.controller.metrics
        for member in now.workers:
            for _ in range(SKIPPED + 2 * ENOUGH):
                noise = max(0.01, 1 + self.work.noise * self.random.gauss(0, 1))
                metrics.batch(member, self.machines[member].compute * noise)
        pushes = SKIPPED + 2 * ENOUGH
        for member, share in now.servers.items():
            metrics.served(member, pushes, pushes * share * self.work.applying)
        for member, machine in self.machines.items():
            metrics.link(member, machine.bandwidth)
