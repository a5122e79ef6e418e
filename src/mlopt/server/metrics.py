"""What members report while they run, smoothed: seconds of mini-batches, rates of links.

Cruise (Lee et al., ICDCS 2019), section IV-A: workers report each mini-batch, servers now
and then; the first ones after a change are left out, and all must have reported enough.
"""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from mlopt.server.autoconfig import ALIKE, Configuration
from mlopt.server.model import Kind, Work, slowest

SKIPPED = 3
"""Mini-batches of a worker after each change that are not counted, as in Cruise: caches are
cold, and all begin at once."""
ENOUGH = 3
"""Mini-batches of each worker that must be counted, as in Cruise."""
WINDOW = 50
"""Mini-batches that are remembered: of 5% noise, their mean is off by .7%."""
HISTORY = 0.9
"""Weight of what was known of a member before, as in Cruise."""


class Metrics:
    """Seconds and rates of members.

    Parameters
    ----------
    weight : float, default=0
        Of the newest report against those before: each counts ``1 - weight`` times the one
        after it. 0: all of the window count the same.

    Examples
    --------
    >>> from mlopt.server.autoconfig import Configuration
    >>> from mlopt.server.metrics import Metrics
    >>> metrics = Metrics()
    >>> metrics.link("a", 1e8); metrics.link("b", 1e8)
    >>> for seconds in (9.0, 3.0, 2.0, 1.0, 1.0, 1.0):
    ...     metrics.batch("a", compute=seconds)
    >>> metrics.served("b", pushes=6, applying=0.3)
    >>> metrics.ready(Configuration.even(["a"], ["b"]))
    True
    >>> metrics.kinds({"a": 4, "b": 2})["b"]  # half the cores
    Kind(compute=2.0, bandwidth=100000000.0)
    """

    def __init__(self, weight: float = 0.0) -> None:
        self.weight = weight
        self._batches: dict[str, deque[tuple[float, float]]] = {}
        self._counts: dict[str, int] = {}
        self._served: dict[str, tuple[float, float]] = {}
        self._known: dict[str, float] = {}
        self._links: dict[str, float] = {}

    def batch(self, worker: str, compute: float, pull: float = 0.0) -> None:
        """A worker did a mini-batch.

        Parameters
        ----------
        worker : str
        compute, pull : float
            Seconds.
        """
        self._counts[worker] = self._counts.get(worker, 0) + 1
        if self._counts[worker] > SKIPPED:
            kept = self._batches.setdefault(worker, deque(maxlen=WINDOW))
            kept.append((compute, pull))

    def served(self, server: str, pushes: int, applying: float) -> None:
        """Mini-batches were pushed since a server reported last: what of them came to it
        took ``applying`` seconds."""
        before = self._served.get(server, (0, 0.0))
        self._served[server] = before[0] + pushes, before[1] + applying

    def link(self, member: str, bandwidth: float) -> None:
        """Bytes a second that came over a member's link; the most that did is its rate."""
        self._links[member] = max(bandwidth, self._links.get(member, 0.0))

    def clear(self) -> None:
        """The configuration changes: what was reported says little of what comes."""
        for worker, seconds in self._means().items():
            known = self._known.get(worker, seconds)
            self._known[worker] = HISTORY * known + (1 - HISTORY) * seconds
        self._batches, self._counts, self._served = {}, {}, {}

    def warm(self, now: Configuration) -> bool:
        """Whether all workers have done more than those mini-batches that do not count."""
        return all(self._batches.get(m) for m in now.workers)

    def ready(self, now: Configuration) -> bool:
        """Whether all workers have reported enough, and all servers."""
        return all(len(self._batches.get(m, ())) >= ENOUGH for m in now.workers) and all(
            m in self._served for m in now.servers
        )

    def chance(self, workers: Collection[str]) -> float:
        """The share by which workers that are alike may seem to differ.

        Means of reports in succession (`ENOUGH` each) say how far a worker's mean may be
        from what it gives; the slowest of several seems slower than it is by more than one
        does (`slowest`), and two deviations more is one case in forty. Before two means
        are there, what like machines differ by counts, `ALIKE`.
        """
        errors = [_error([c for c, _ in self._batches.get(m, ())]) for m in workers]
        if not errors or not all(map(math.isfinite, errors)):
            return ALIKE * max(1.0, float(slowest(len(errors))))
        return (2 + float(slowest(len(errors)))) * statistics.fmean(errors)

    def kinds(self, cores: Mapping[str, int]) -> dict[str, Kind]:
        """What each member would give; of all members, or of none if nothing is known.

        Who has never worked is taken to be as fast as the others for each of its cores, and
        a link that nobody has measured to be like that in the middle.

        Parameters
        ----------
        cores : mapping of str to int
            Of the members that are there.
        """
        means = {**self._known, **self._means()}
        means = {m: seconds for m, seconds in means.items() if m in cores}
        if not means or not self._links:
            return {}
        middle = statistics.median(self._links.values())
        # T / cores with T = sum of seconds / sum of 1 / cores (Cruise).
        whole = sum(means.values()) / sum(1 / cores[m] for m in means)
        return {
            m: Kind(means.get(m, whole / n), self._links.get(m, middle))
            for m, n in cores.items()
        }

    def measured(self, work: Work) -> Work:
        """The same work with noise and seconds of applying as they were seen."""
        noises = []
        for kept in self._batches.values():
            seconds = [compute for compute, _ in kept]
            if len(seconds) >= ENOUGH and (mean := statistics.fmean(seconds)) > 0:
                noises.append(statistics.variance(seconds) / mean**2)
        if noises:
            work = replace(work, noise=float(np.sqrt(statistics.fmean(noises))))
        # Each push comes to all servers, in parts.
        each = [applying / pushes for pushes, applying in self._served.values() if pushes]
        return replace(work, applying=sum(each)) if each else work

    def _means(self) -> dict[str, float]:
        return {
            worker: _mean((compute for compute, _ in kept), self.weight)
            for worker, kept in self._batches.items()
            if len(kept) >= ENOUGH
        }


def _error(seconds: Sequence[float]) -> float:
    """Deviation of their mean, as a share of it: of means of reports in succession, for
    what else a machine does lasts longer than one of them."""
    count = len(seconds) // ENOUGH
    if count < 2:
        return math.inf
    means = np.reshape(seconds[-count * ENOUGH :], (count, ENOUGH)).mean(axis=1)
    return float(means.std(ddof=1) / math.sqrt(count) / means.mean())


def _mean(values: Iterable[float], weight: float) -> float:
    newest_last = np.array([*values])
    weights = (1 - weight) ** np.arange(len(newest_last))[::-1]
    return float(weights @ newest_last / weights.sum())
