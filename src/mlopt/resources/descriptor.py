"""The resource descriptor: how many workers, how much memory, and measured rates.

Rates are in units per second of ONE thread unless they say otherwise, so that a decision
made from them does not change with the number of threads that happen to be idle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from mlopt.errors import InputError
from mlopt.resources.calibration import Calibration

if TYPE_CHECKING:
    from mlopt.resources.experience import Experience

GIB = 2**30
RATES = (
    "gemm_f64", "gemm_f32", "bandwidth", "bandwidth_all", "disk", "network", "python",
)  # fmt: skip


@dataclass(frozen=True)
class Resources:
    """What the machine or cluster can do.

    The defaults describe a modest machine of one core; `Resources.probe` measures this one.

    Parameters
    ----------
    workers : int, default=1
        Processes that share the work; 1 means this process.
    threads : int, default=1
        Threads of one worker, the least one.
    memory : int, default=8 GiB
        Bytes of all workers together, each taken to have what the least one has.
    gemm_f64, gemm_f32 : float
        Flop/s of a matrix product on one thread.
    bandwidth, bandwidth_all : float
        Bytes/s read from memory by one thread, and by all threads of one worker.
    disk, network : float
        Bytes/s read from disk; bytes/s between two workers.
    python : float
        Speed of interpreted code and of small calls, relative to the machine on which
        their seconds were measured.
    task : float
        Seconds that one more task costs its scheduler.
    round_trip : float
        Seconds from asking for a task of no work to having its answer.
    cluster : bool, default=False
        Whether a single worker is one of a Dask cluster, and not this process.
    calibration : Calibration
        Factors of the costs of single implementations, as `mlopt resources --calibrate`
        found them here; none by default.
    experience : Experience, optional
        What fits took here beside what was predicted, which corrects later predictions;
        None where nothing is remembered: of a cluster, or of rates given by hand.

    References
    ----------
    KeystoneML, section III: a descriptor from configuration and microbenchmarks.
    """

    workers: int = 1
    threads: int = 1
    memory: int = 8 * GIB
    gemm_f64: float = 3e10
    gemm_f32: float = 6e10
    bandwidth: float = 1e10
    bandwidth_all: float = 2e10
    disk: float = 5e8
    network: float = 1e9
    python: float = 1.0
    task: float = 1e-4
    round_trip: float = 1e-3
    cluster: bool = field(default=False, repr=False)
    calibration: Calibration = field(default=Calibration(), repr=False)
    experience: Experience | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name in ("workers", "threads", "memory"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InputError(
                    f"`{name}` must be an integer of at least 1, got {value!r}."
                )
        for name in RATES:
            if not _finite(value := getattr(self, name)) or value <= 0:
                raise InputError(f"`{name}` must be finite and positive, got {value!r}.")
        for name in ("task", "round_trip"):
            if not _finite(value := getattr(self, name)) or value < 0:
                raise InputError(f"`{name}` must be finite and at least 0, got {value!r}.")

    @property
    def slots(self) -> int:
        """Tasks that can run at the same time."""
        return self.workers * self.threads

    @property
    def remote(self) -> bool:
        """Whether work is handed to workers, who answer, and not done in this process."""
        return self.cluster or self.workers > 1

    @property
    def one_process(self) -> Resources:
        """What a process has that is like a worker, and has its work at hand."""
        share = max(1, self.memory // self.workers)
        return replace(self, workers=1, cluster=False, memory=share)

    def memory_rate(self, threads: int = 1) -> float:
        """Bytes/s that ``threads`` threads of one worker read together.

        Threads add up until the memory bus is full.
        """
        return min(
            max(1, threads) * self.bandwidth, max(self.bandwidth, self.bandwidth_all)
        )

    def to_dict(self) -> dict[str, float]:
        """Every count and rate by name, ready for JSON."""
        return {name: getattr(self, name) for name in self.names()}

    def with_rates(self, rates: Mapping[str, Any]) -> Resources:
        """These resources with the fields named in ``rates`` replaced."""
        return replace(self, **rates)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """The names of the counts and rates, in order."""
        known = ("cluster", "calibration", "experience")
        return tuple(one.name for one in fields(cls) if one.name not in known)

    @classmethod
    def probe(cls, client: Any = None, *, refresh: bool = False) -> Resources:
        """Measure this process, or a cluster, in about a second; later calls remember.

        Parameters
        ----------
        client : distributed.Client, optional
            Probe its workers. Without one, this process is probed even if a client is
            active somewhere.
        refresh : bool, default=False
            Measure again instead of remembering.

        Returns
        -------
        Resources
            Fields set in ``dask.config`` under ``mlopt.resources`` replace measured ones.

        Notes
        -----
        Rates of this process are kept in memory and for a week in the user's cache
        directory, by host, processor, threads and NumPy version, but for ten minutes only
        where others were at work meanwhile; those of a cluster in memory, by the id of its
        scheduler. Workers, threads and memory are always looked
        up anew. A calibration of this machine is found where rates are kept.
        """
        from mlopt.resources.probe import probe

        return probe(client, refresh=refresh)

    @classmethod
    def remembered(cls) -> Resources:
        """What an earlier `probe` of this machine has found; the defaults where none has.

        For choices within a task, which must not stop to measure.
        """
        from mlopt.resources.probe import remembered

        return remembered()


def _finite(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
