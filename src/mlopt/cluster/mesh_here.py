"""A mesh in this process: members are names, resident tasks threads, asks direct calls."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlopt.cluster.context import as_here
from mlopt.cluster.executor import Executor, contained, resolve
from mlopt.cluster.mesh import Local, Mesh, Service
from mlopt.cluster.resident import Resident
from mlopt.cluster.threads import Threads, count_threads, executor
from mlopt.cluster.wire import LARGEST, Answer, Message
from mlopt.errors import InputError, MemberLostError
from mlopt.limits import single_threaded


class MeshHere(Mesh):
    """Members that share this process.

    Each has a service of its own, and arrays are copied as a line would; the arguments of
    `serve` and `start` are shared.

    Parameters
    ----------
    members : int, default=1
    largest : int
        Bytes that the arrays of a message may have together.

    Examples
    --------
    >>> import numpy as np
    >>> from mlopt.cluster import Header, MeshHere, Service
    >>> class Sum(Service):
    ...     def __init__(self, site):
    ...         self.total = np.zeros(2)
    ...     def answer(self, operation, header, arrays):
    ...         if operation == "add":
    ...             self.total += arrays[0]
    ...         return Header(), [self.total.copy()]
    >>> with MeshHere(2) as mesh:
    ...     mesh.serve(Sum)
    ...     first, second = mesh.members
    ...     _, (total,) = mesh.ask(first, "add", arrays=[np.ones(2)])
    ...     loop = mesh.start(second, lambda site: site.ask(first, "get")[1][0])
    ...     print(total, loop.result(), mesh.ask(second, "get")[1][0])
    [1. 1.] [1. 1.] [0. 0.]
    """

    def __init__(self, members: int = 1, *, largest: int = LARGEST) -> None:
        super().__init__()
        if members < 0:
            raise InputError(f"`members` must be at least 0, got {members}.")
        self._largest = largest
        self._here: dict[str, _LocalHere] = {}
        self._residents: dict[str, list[Resident]] = {}
        self._numbers = itertools.count(1)
        self._made: tuple[Callable[..., Service], tuple[Any, ...]] | None = None
        self._changing = threading.RLock()
        for _ in range(members):
            self.add()

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(self._here)

    def add(self) -> str:
        """A member comes."""
        with self._changing:
            self._check_open()
            local = _LocalHere(f"here-{next(self._numbers)}", self._largest, self)
            if self._made is not None:
                local.serve(self.epoch, *self._made)
            # Another dict, for those who look at the one before.
            self._here = {**self._here, local.member: local}
        self._tell(local.member, True)
        return local.member

    def lose(self, member: str) -> None:
        """A member goes, as if its process had been killed.

        A thread that is in its service goes on until the service lets it, and then is told
        that the member was lost.
        """
        with self._changing:
            local = self.local(member)
            self._here = {name: one for name, one in self._here.items() if one is not local}
            residents = self._residents.pop(member, [])
        for resident in residents:
            resident.settle(local.raise_lost)
        local.end()
        self._tell(member, False)

    def retire(self, member: str) -> None:
        """A member goes in an orderly way: whoever watches may take what it holds."""
        self.local(member)
        self._leaving |= {member}
        try:
            self._say_farewell(member)
            self.lose(member)
        finally:
            self._leaving -= {member}

    def serve(self, make: Callable[..., Service], *args: Any) -> None:
        with self._changing:
            self._check_open()
            self.epoch += 1
            self._made = make, args
            for local in self._here.values():
                local.serve(self.epoch, make, args)

    def start(self, member: str, function: Callable[..., Any], *args: Any) -> Resident:
        with self._changing:
            self._check_open()
            local, task = self.local(member), str(next(self._numbers))
            resident = Resident(member, lambda: local.stop(task))
            running = [one for one in self._residents.get(member, []) if one.alive]
            self._residents[member] = [*running, resident]
            epoch, called = self.epoch, as_here()

        def call() -> Any:
            with single_threaded(), contained():
                return called(local.run, task, epoch, function, resolve(args))

        threading.Thread(
            target=resident.settle, args=(call,), name=f"mlopt-{member}-{task}", daemon=True
        ).start()
        return resident

    def reach(
        self, member: str, asked: Message, into: Sequence[np.ndarray] | None
    ) -> Answer:
        self._check_open()
        return self.local(member).answer_here(asked, into)

    def close(self) -> None:
        with self._changing:
            self._closed = True
            locals_, self._here = list(self._here.values()), {}
        for local in locals_:
            local.end()

    def local(self, member: str) -> _LocalHere:
        """What lives on a member."""
        try:
            return self._here[member]
        except KeyError:
            raise MemberLostError(
                f"{member} is no member (any more); there are {list(self._here)}."
            ) from None


class _LocalHere(Local):
    def __init__(self, member: str, largest: int, mesh: MeshHere) -> None:
        super().__init__(member, largest)
        self._mesh = mesh

    @property
    def members(self) -> tuple[str, ...]:
        return self._mesh.members

    @property
    def cores(self) -> int:
        return max(1, count_threads(None) // max(1, len(self.members)))

    def reach(
        self, member: str, asked: Message, into: Sequence[np.ndarray] | None
    ) -> Answer:
        return self._mesh.local(member).answer_here(asked, into)


def mesh(where: Any = None, members: int = 1) -> Mesh:
    """Members where work is to run: on the workers of a client, else in this process.

    Parameters
    ----------
    where : distributed.Client, Executor or Mesh, optional
        A mesh is given back as it is; None is where `executor` would run.
    members : int, default=1
        How many there are in this process, if it is here.

    Returns
    -------
    Mesh
        To be closed by whoever is the first to hold it.
    """
    if isinstance(where, Mesh):
        return where
    found = where if isinstance(where, Executor) else executor(where)
    if isinstance(found, Threads):
        return MeshHere(members)
    from mlopt.cluster.mesh_dask import MeshDask
    from mlopt.cluster.workers import Cluster

    assert isinstance(found, Cluster)
    return MeshDask(found.client)
