"""One member of a mesh on a Dask worker: its door, its service, its resident tasks."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

import distributed
import numpy as np
from distributed.comm import get_address_host

from mlopt.cluster.lines import Address, Door, Lines
from mlopt.cluster.memory import spare
from mlopt.cluster.mesh import Local
from mlopt.cluster.parcel import Parcel, unpack
from mlopt.cluster.wire import Answer, Header, Message
from mlopt.errors import MemberLostError

# Seconds in which the driver must have said something: it may have died before it could.
_ORPHAN = 60.0
LEAVES = "leaves"
"""What a member that closes says on the topic of its mesh."""
# Seconds that it waits for the driver to say that it is to wait: it has
# heard of that from the scheduler in a tenth of one.
_ANYBODY = 0.8
FAREWELL = 3.0
"""Seconds that it waits then, until others have what it holds; Dask's nanny gives a worker
four in all."""
# Seconds that the driver's word of a new member may take, after somebody else's.
_RUMOUR = 2.0


class MemberPlugin(Local, distributed.WorkerPlugin):
    """What `open_member` gives a worker.

    All of it ends with the driver's line, so that a driver that dies leaves nothing behind.
    """

    def __init__(self, worker: Any, name: str, secret: bytes, largest: int) -> None:
        super().__init__(worker.contact_address, largest)
        self.name = name
        self._worker, self._secret = worker, secret
        self._table: dict[str, Address] = {}
        self._known: set[str] = set()
        self._news = threading.Condition()
        self._driven = False
        self._wait, self._released = threading.Event(), threading.Event()

    def setup(self, worker: Any) -> None:
        self.spare = spare(worker)
        secure = is_secure(worker.address)
        here = worker.security.get_listen_args("worker") if secure else {}
        there = worker.security.get_connection_args("worker") if secure else {}
        self._lines = Lines(self._secret, self.largest, there.get("ssl_context"))
        self._door = Door(
            _host(worker.address),
            self.member,
            self._secret,
            self.largest,
            answer=self.answer,
            told=self._told,
            left=self._leave,
            context=here.get("ssl_context"),
        )
        worker.loop.call_later(_ORPHAN, self._leave_orphaned)

    async def teardown(self, worker: Any) -> None:
        if not self._released.is_set():
            # The scheduler hears that a worker has gone when all of this is done, unless it
            # has removed it itself.
            with contextlib.suppress(Exception):
                worker.log_event(self.name, (LEAVES, [self.member]))
        # A service may take its time to close; the worker's event loop has none, and where
        # it ends first the thread goes on.
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.to_thread(self._depart)

    def _depart(self) -> None:
        if self._driven and self._wait.wait(_ANYBODY):
            self._released.wait(FAREWELL)
        self.end()

    @property
    def address(self) -> Address:
        """Of the door."""
        return self._door.address

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(self._table)

    @property
    def cores(self) -> int:
        return int(self._worker.state.nthreads)

    def reach(
        self, member: str, asked: Message, into: Sequence[np.ndarray] | None
    ) -> Answer:
        if member == self.member:
            return self.answer_here(asked, into)
        place = self._table.get(member) or self._place(member)
        return self._lines.ask(member, place, asked, into)

    def end(self) -> None:
        super().end()
        self._door.close()
        self._lines.close()

    def _place(self, member: str) -> Address:
        with self._news:
            if member not in self._known:
                self._news.wait_for(lambda: member in self._known, _RUMOUR)
            if (place := self._table.get(member)) is not None:
                return place
        raise MemberLostError(f"{member} is no member (any more): see `members`.")

    def _told(self, header: Header) -> None:
        self._driven = True
        if "wait" in header.more:
            self._wait.set()
        if (task := header.more.get("stop")) is not None:
            self.stop(task)
        if (members := header.more.get("members")) is not None:
            self._update({name: (host, port) for name, (host, port) in members.items()})

    def _update(self, table: dict[str, Address]) -> None:
        with self._news:
            before, self._table = self._table, table
            self._known.update(table)
            self._news.notify_all()
        for member, place in before.items():
            if table.get(member) != place:
                self._lines.drop(member)

    def _leave_orphaned(self) -> None:
        if not self._driven:
            self._leave()

    def _leave(self) -> None:
        self._released.set()
        self._wait.set()  # nobody will say any more

        async def leave() -> None:
            closes = self._worker.status is distributed.Status.closing
            if self._worker.plugins.get(self.name) is self and not closes:
                await self._worker.plugin_remove(name=self.name)

        self._worker.loop.add_callback(leave)


async def open_member(
    name: str, secret: bytes, largest: int, dask_worker: Any = None
) -> Address:
    """On a worker: become a member of the mesh ``name``; the address of its door."""
    plugin = MemberPlugin(dask_worker, name, secret, largest)
    await dask_worker.plugin_add(plugin=plugin, name=name, catch_errors=False)
    return plugin.address


async def serve_member(
    name: str, epoch: int, made: Parcel, dask_worker: Any = None
) -> None:
    """On a worker: begin an epoch, beside the worker's event loop."""

    def serve() -> None:
        make, args = unpack(made)
        _plugin(dask_worker, name).serve(epoch, make, args)

    await asyncio.to_thread(serve)


def run_resident(
    function: Callable[..., Any], name: str, task: str, epoch: int, *args: Any
) -> Any:
    """In a task: run a resident task of the mesh ``name``, and free the task's slot."""
    plugin = _plugin(distributed.get_worker(), name)
    distributed.secede()
    return plugin.run(task, epoch, function, args)


def is_secure(address: str) -> bool:
    """Whether this address of Dask is one of TLS."""
    return address.startswith("tls://")


def _plugin(worker: Any, name: str) -> MemberPlugin:
    try:
        return cast("MemberPlugin", worker.plugins[name])
    except KeyError:
        raise MemberLostError(f"{worker.address} is no member (any more).") from None


def _host(address: str) -> str:
    # Workers that are threads of one process have no host of their own.
    return "127.0.0.1" if address.startswith("inproc://") else get_address_host(address)
