"""An experiment: one problem that several implementations of an operator can solve.

Implementations run on one thread and are timed by the processor time of the process: rates
of `Resources` are those of one thread too, and what others do on the machine counts less.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from mlopt.cluster import single_threaded
from mlopt.costs import Cost
from mlopt.pipeline.calibration.fitting import Measurement
from mlopt.resources import Resources


@dataclass(frozen=True)
class Case:
    """A problem, its data at hand.

    Parameters
    ----------
    operator : str
        As in the calibration.
    label : str
        Sizes, for people.
    options : mapping of str to Cost or str
        Cost of each implementation as counted, or why it cannot be used here.
    solve : callable
        Runs one implementation, by name. Returns its cost by what it turned out to need,
        such as the steps that it took; or None for the cost among ``options``.
    choose : callable
        From resources to the implementation that the operator takes by itself.
    """

    operator: str
    label: str
    options: Mapping[str, Cost | str]
    solve: Callable[[str], Cost | None]
    choose: Callable[[Resources], str]

    def seconds(self, name: str, resources: Resources) -> float | None:
        """What an implementation would take as counted; None where it cannot be used."""
        cost = self.options[name]
        return cost.seconds(resources) if isinstance(cost, Cost) else None

    def measure(
        self, resources: Resources, limit: float, repeat: int = 3
    ) -> Iterator[Measurement]:
        """Every implementation that is predicted to take no longer than ``limit`` seconds.

        They run in turn, ``repeat`` times, and the shortest run of each counts: noise only
        ever adds. One that took longer than ``limit`` is run twice only.
        """
        names = [
            name
            for name in self.options
            if (self.seconds(name, resources) or 2 * limit) <= limit
        ]
        runs: dict[str, list[tuple[float, Cost | None]]] = {name: [] for name in names}
        for _ in range(repeat):
            for name in names:
                if len(runs[name]) < 2 or runs[name][-1][0] < limit:
                    runs[name].append(self.run(name))
        for name, found in runs.items():
            seconds, cost = min(found, key=lambda run: run[0])
            counted = cost or self.options[name]
            assert isinstance(counted, Cost)
            yield Measurement(self.operator, name, counted, seconds, self.label)

    def run(self, name: str) -> tuple[float, Cost | None]:
        """Seconds of one run, and its cost by what it turned out to need."""
        with single_threaded():
            start = time.process_time()
            cost = self.solve(name)
            return max(time.process_time() - start, 1e-9), cost
