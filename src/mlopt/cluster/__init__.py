"""Where work runs: in process or on Dask, behind one interface, with the same results.

`Cluster`, `MeshDask` and `local_cluster` are loaded only when asked for, because
`distributed` takes most of a second to import.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mlopt.cluster.executor import (
    Executor,
    Handle,
    Tree,
    added,
    calls_of,
    tell,
    tree_reduce,
)
from mlopt.cluster.memory import Memory
from mlopt.cluster.mesh import Mesh, Service, Site
from mlopt.cluster.mesh_here import MeshHere, mesh
from mlopt.cluster.parcel import Parcel, pack, unpack, usable
from mlopt.cluster.remote import bringing, futures_in
from mlopt.cluster.resident import Resident
from mlopt.cluster.threads import (
    Threads,
    computed,
    count_threads,
    executor,
    persisted,
    threads_beside,
)
from mlopt.cluster.together import Member, Together, once
from mlopt.cluster.wire import Header
from mlopt.limits import alone, between_passes, inside_task, single_threaded

if TYPE_CHECKING:
    from mlopt.cluster.mesh_dask import MeshDask
    from mlopt.cluster.preset import local_cluster
    from mlopt.cluster.workers import Cluster

__all__ = [
    "Cluster",
    "Executor",
    "Handle",
    "Header",
    "Member",
    "Memory",
    "Mesh",
    "MeshDask",
    "MeshHere",
    "Parcel",
    "Resident",
    "Service",
    "Site",
    "Threads",
    "Together",
    "Tree",
    "added",
    "alone",
    "between_passes",
    "bringing",
    "calls_of",
    "computed",
    "count_threads",
    "executor",
    "futures_in",
    "inside_task",
    "local_cluster",
    "mesh",
    "once",
    "pack",
    "persisted",
    "single_threaded",
    "tell",
    "threads_beside",
    "tree_reduce",
    "unpack",
    "usable",
]


def __getattr__(name: str) -> Any:
    if name == "Cluster":
        from mlopt.cluster.workers import Cluster

        return Cluster
    if name == "MeshDask":
        from mlopt.cluster.mesh_dask import MeshDask

        return MeshDask
    if name == "local_cluster":
        from mlopt.cluster.preset import local_cluster

        return local_cluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
