"""Who is there to run a job: this process, and members, with what each can do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mlopt.cluster import Executor, Mesh, MeshHere, count_threads, executor, inside_task
from mlopt.resources import Resources, identity
from mlopt.resources.probe import memory_limit
from mlopt.rows.room import PAUSES


@dataclass(frozen=True)
class Pool:
    """This process and members.

    Parameters
    ----------
    members : int, default=1
    threads : int, default=1
        Of each member.
    memory : float, default=inf
        Bytes that the least of them has left.
    here : int, default=1
        Threads of this process.
    memory_here : float, default=inf
        Bytes of this process.
    apart : bool, default=False
        Whether members are other processes, to which all must be sent.
    busy : bool, default=False
        Whether members have work of others, behind which a measurement would wait.
    resources : Resources
        For rates: of the network, of messages, of tasks.
    """

    members: int = 1
    threads: int = 1
    memory: float = math.inf
    here: int = 1
    memory_here: float = math.inf
    apart: bool = False
    busy: bool = False
    resources: Resources = field(default_factory=Resources)

    @staticmethod
    def of(where: Any = None, *, members: int = 1, n_jobs: int | None = None) -> Pool:
        """Those of a client, an executor or a mesh; else of the active client, or none.

        Nothing is measured, and nobody is made a member yet.

        Parameters
        ----------
        where : Client, Executor or Mesh, optional
        members : int, default=1
            In this process, where no workers are found.
        n_jobs : int, optional
            Threads of this process. Default: all cores.
        """
        here = 1 if inside_task() else count_threads(n_jobs)
        alone = Pool(here=here, memory_here=memory_limit())
        client = client_of(where)
        if client is not None:
            return of_workers(identity(client)["workers"], alone)
        count = len(where.members) if isinstance(where, MeshHere) else members
        each = max(1, count_threads(n_jobs) // max(1, count))
        return replace(alone, members=count, threads=each)

    @property
    def alone(self) -> Pool:
        """This process as the only member."""
        return Pool(
            1, self.here, self.memory_here, self.here, self.memory_here,
            resources=self.resources,
        )  # fmt: skip

    @property
    def crowded(self) -> float:
        """How much longer a step takes when all members work at a time."""
        return 1.0 if self.apart else max(1.0, self.members / self.here)

    def probed(self, where: Any) -> Pool:
        """With rates that are measured, once for each cluster: it takes a second."""
        if self.busy:
            return self
        try:
            return replace(self, resources=Resources.probe(client_of(where)))
        except TimeoutError:  # others have given them work since
            return self


def client_of(where: Any) -> Any:
    """The client behind a client, an executor, a mesh, or the active one; or None."""
    if isinstance(where, Mesh):
        return getattr(where, "client", None)
    found = where if isinstance(where, Executor) else executor(where)
    return getattr(found, "client", None)


def of_workers(found: Mapping[str, Mapping[str, Any]], alone: Pool) -> Pool:
    """Workers as their scheduler describes them, beside this process."""
    left = [
        PAUSES * one["memory_limit"] - one.get("metrics", {}).get("memory", 0)
        for one in found.values()
        if one["memory_limit"]
    ]
    return replace(
        alone,
        members=len(found),
        threads=min((int(one["nthreads"]) for one in found.values()), default=1),
        memory=max(0.0, min(left, default=math.inf)),
        apart=True,
        busy=any(_has_work(one.get("metrics", {})) for one in found.values()),
    )


def _has_work(metrics: Mapping[str, Any]) -> bool:
    counts = metrics.get("task_counts", {})
    return any(counts.get(state, 0) for state in ("ready", "executing"))
