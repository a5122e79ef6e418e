"""A mesh of Dask workers: control over Dask, messages over lines of our own.

Dask says who comes and who goes, carries secret and code, runs resident tasks, and has the
certificates. What is asked goes from socket to socket (`lines`): an actor, or a handler of
a worker, takes milliseconds of event loops at both ends for each call. Dask's own shuffle
is built alike: a plugin on each worker, a number of the run in each message.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import queue
import secrets
import select
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import distributed
import numpy as np

from mlopt.cluster.lines import Address, Line, Lines
from mlopt.cluster.mesh import Mesh, Service
from mlopt.cluster.mesh_worker import (
    FAREWELL,
    is_secure,
    open_member,
    run_resident,
    serve_member,
)
from mlopt.cluster.parcel import Parcel
from mlopt.cluster.parcel import pack as parcel_of
from mlopt.cluster.resident import Resident
from mlopt.cluster.wire import LARGEST, TELL, Answer, Header, Message, Packed, pack, send
from mlopt.cluster.workers import Cluster
from mlopt.errors import (
    ClusterError,
    MemberLostError,
    MloptError,
    TaskError,
    TaskKilledError,
)

log = logging.getLogger("mlopt")

# Seconds until Dask must have said who is there, and a member have taken a few bytes.
_PATIENCE = 30.0

_CAME, _LEFT = "came", "left"  # and LEAVES, from members themselves


class MeshDask(Mesh):
    """The workers behind a client; members have the names that Dask gives them.

    Workers that come become members, those that go are lost. When the driver closes the
    mesh, or dies, members let go of all that is the mesh's.

    Parameters
    ----------
    client : distributed.Client
        Whose workers these are; an attribute, too.
    largest : int
        Bytes that the arrays of a message may have together.

    Raises
    ------
    ClusterError
        A worker cannot be made a member; the text says why.
    """

    def __init__(self, client: Any, *, largest: int = LARGEST) -> None:
        super().__init__()
        self._executor = Cluster(client)
        self.client, self._largest = client, largest
        self._name = f"mlopt-mesh-{uuid.uuid4().hex}"
        self._secret = secrets.token_bytes(32)
        secure = is_secure(client.scheduler.address)
        there = client.security.get_connection_args("client") if secure else {}
        self._context = there.get("ssl_context")
        self._lines = Lines(self._secret, largest, self._context)
        # Who is there: as Dask has it, and those of them that are members.
        self._present: set[str] = set()
        self._joined: dict[str, _Joined] = {}
        self._residents: dict[str, dict[Resident, Any]] = {}
        self._made: Parcel | None = None
        # The first is held while members are given services; the second may be taken
        # within, and is held for moments.
        self._serving, self._changing = threading.RLock(), threading.Lock()
        self._went = threading.Condition(self._changing)  # who was present
        self._news: queue.SimpleQueue[tuple[str, list[str]] | None] = queue.SimpleQueue()
        self._keeper = threading.Thread(target=self._keep, name=self._name, daemon=True)
        try:
            client.subscribe_topic(self._name, self._heard)
            client.register_plugin(_Announce(self._name, client.id), name=self._name)
            self._begin()
            self._keeper.start()
        except BaseException:
            self.close()
            raise

    @property
    def members(self) -> tuple[str, ...]:
        with self._changing:
            return tuple(self._joined)

    def serve(self, make: Callable[..., Service], *args: Any) -> None:
        with self._serving:
            self._check_open()
            made = parcel_of((make, args))
            self.epoch, self._made = self.epoch + 1, made
            _raise_any(self._serve_on(self.members))

    def start(self, member: str, function: Callable[..., Any], *args: Any) -> Resident:
        self._check_open()
        if member not in self.members:
            _raise_lost(member)
        task = uuid.uuid4().hex
        resident = Resident(member, lambda: self._say([member], {"stop": task}))
        run = functools.partial(run_resident, function, self._name, task, self.epoch)
        handle = self._executor.submit_to(member, run, *args)
        with self._changing:
            self._residents.setdefault(member, {})[resident] = handle
        handle.add_done_callback(lambda done: self._done(resident, done))
        if member not in self.members:  # since a moment ago
            self._lose_residents(member)
        return resident

    def reach(
        self, member: str, asked: Message, into: Sequence[np.ndarray] | None
    ) -> Answer:
        joined = self._joined.get(member)
        if joined is None:
            self._check_open()
            _raise_lost(member)
        return self._lines.ask(member, joined.address, asked, into)

    def close(self) -> None:
        with self._changing:
            if self._closed:
                return
            self._closed = True
            joined, self._joined = self._joined, {}
        self._news.put(None)
        self._lines.close()  # before a member's last answer may come
        for one in joined.values():
            one.guard.end()  # for the member, that is the end
        if self.client.status == "running":
            with contextlib.suppress(OSError, TimeoutError, ValueError):
                self.client.unsubscribe_topic(self._name)
                self.client.unregister_scheduler_plugin(self._name)
        if self._keeper.is_alive() and self._keeper is not threading.current_thread():
            self._keeper.join(_PATIENCE)

    def _begin(self) -> None:
        try:
            news = self._news.get(timeout=_PATIENCE)
        except queue.Empty:
            raise ClusterError(
                f"The scheduler at {self.client.scheduler.address} did not say within "
                f"{_PATIENCE:.0f} s which workers there are: look at its logs."
            ) from None
        assert news is not None
        _raise_any(self._join(news[1])[1])

    def _heard(self, event: tuple[float, tuple[str, Sequence[str]]]) -> None:
        """News of Dask's; on the client's event loop, where nobody may wait."""
        what, members = event[1]
        if what == _CAME:
            with self._changing:
                self._present.update(members)
            self._news.put((_CAME, list(members)))
        for member in members if what != _CAME else ():
            with self._changing:
                self._present.discard(member)
                self._went.notify_all()
                joined = self._joined.get(member)
                known = member in self._leaving
                leaves = self._farewells and joined is not None and joined.lives
                self._leaving |= {member} if leaves else frozenset()
            if leaves and not known:
                threading.Thread(target=self._part_with, args=[member], daemon=True).start()
            elif what == _LEFT and not leaves:
                self._lose(member)

    def _keep(self) -> None:
        """Do what the news ask for, one after the other."""
        while (news := self._news.get()) is not None:
            what, members = news
            try:
                if what == _CAME:
                    members, failed = self._join(members)
                    for error in failed.values():
                        log.warning("a worker that came is no member: %s", error)
                else:
                    self._relay()
            except Exception:
                if not self._closed:
                    log.exception("the mesh could not take in %s", members)
                continue
            for member in members:
                self._tell(member, what == _CAME)

    def _part_with(self, member: str) -> None:
        """Who was told to go may when those who watch have what they want, or time is up.

        Its door is open until then: see `MemberPlugin.teardown`. Who was killed is found so
        at the first ask.
        """
        late = threading.Timer(FAREWELL, self._lose, [member])
        late.start()
        try:
            self._say([member], {"wait": True})
            self._say_farewell(member)
        finally:
            late.cancel()
            self._lose(member)

    def _join(self, workers: Sequence[str]) -> tuple[list[str], dict[str, MloptError]]:
        """Make workers members: those that are now, and why others are not."""
        if not workers:
            return [], {}
        with self._serving:
            found = self._run_on(workers, open_member, self._secret, self._largest)
            joined: dict[str, _Joined] = {}
            failed: dict[str, MloptError] = {}
            broken = set[str]()
            for member, address in found.items():
                try:
                    joined[member] = self._guard(member, address)
                except (OSError, MloptError) as error:
                    broken |= {member} if isinstance(error, OSError) else set()
                    failed[member] = ClusterError(
                        f"{member} cannot be a member: {error!r}."
                    )
            self._wait_for_losses(broken)
            if self._made is not None:
                failed.update(self._serve_on(joined))
            with self._changing:
                come = [
                    member
                    for member in joined
                    if member in self._present and member not in failed and not self._closed
                ]
                self._joined.update((member, joined[member]) for member in come)
                failed = {
                    name: why for name, why in failed.items() if name in self._present
                }
            self._relay()
        return come, failed

    def _guard(self, member: str, address: Any) -> _Joined:
        if isinstance(address, BaseException):
            raise ClusterError(repr(address)) from address
        guard = Line(member, address, self._secret, driver=True, context=self._context)
        guard.socket.settimeout(_PATIENCE)
        return _Joined(address, guard)

    def _serve_on(self, members: Iterable[str]) -> dict[str, MloptError]:
        """Give members the service of this epoch; the errors of those that have none."""
        found = self._run_on(members, serve_member, self.epoch, self._made)
        with self._changing:
            return {
                member: error
                if isinstance(error, TaskError)
                else ClusterError(f"{member} could not be given its service: {error!r}.")
                for member, error in found.items()
                if isinstance(error, BaseException) and member in self._present
            }

    def _run_on(
        self, members: Iterable[str], function: Callable[..., Any], *args: Any
    ) -> Mapping[str, Any]:
        """By members: what the function returned, or raised."""
        workers = list(members)
        if not workers:
            return {}
        found: Mapping[str, Any] = self.client.run(
            function, self._name, *args, workers=workers, on_error="return"
        )
        self._wait_for_losses(
            {m for m, error in found.items() if isinstance(error, OSError)}
        )
        return found

    def _wait_for_losses(self, broken: set[str]) -> None:
        """Until Dask has said that those with whom the connection broke are gone.

        They are, as a rule: whether they are present may be asked then.
        """
        with self._changing:
            self._went.wait_for(lambda: not broken & self._present, _PATIENCE)

    def _relay(self) -> None:
        """Tell all members who the members are."""
        with self._changing:
            table = {member: joined.address for member, joined in self._joined.items()}
        self._say(table, {"members": table})

    def _say(self, members: Iterable[str], more: Mapping[str, Any]) -> None:
        """Tell members something; those that do not take it are lost."""
        said = pack(Message(TELL, "mesh", self.epoch, Header(more=more)), 0)
        with self._changing:
            heard = [(name, self._joined[name]) for name in members if name in self._joined]
        for member, joined in heard:
            try:
                joined.say(said)
            except OSError:
                self._lose(member)

    def _lose(self, member: str) -> None:
        """A member is gone: break lines, end waiting; does not wait itself."""
        with self._changing:
            joined = self._joined.pop(member, None)
            self._leaving -= {member}
        if joined is not None:
            self._lines.drop(member)
            joined.guard.end()
            self._news.put((_LEFT, [member]))
        self._lose_residents(member)

    def _lose_residents(self, member: str) -> None:
        with self._changing:
            residents = self._residents.pop(member, {})
        for resident, handle in residents.items():
            resident.settle(functools.partial(_raise_lost, member))
            handle.release()  # otherwise it waits for a worker of this address

    def _done(self, resident: Resident, handle: Any) -> None:
        resident.settle(lambda: self._value(resident.member, handle))
        with self._changing:
            self._residents.get(resident.member, {}).pop(resident, None)

    def _value(self, member: str, handle: Any) -> Any:
        try:
            return self._executor.result(handle)
        except TaskKilledError:  # it could run nowhere else
            return _raise_lost(member)


@dataclass(frozen=True)
class _Joined:
    """A member: its door, and the line whose end is the mesh's end there."""

    address: Address
    guard: Line
    _saying: threading.Lock = field(default_factory=threading.Lock)

    @property
    def lives(self) -> bool:
        """Whether its line has no end yet; nothing else comes from it."""
        line = select.poll()  # `select` knows only the first 1024 files
        line.register(self.guard.socket, select.POLLIN)
        return not line.poll(0)

    def say(self, said: Packed) -> None:
        with self._saying:
            send(self.guard.socket, said)


class _Announce(distributed.SchedulerPlugin):
    """On the scheduler: tells one client which workers there are, come and go, in order."""

    def __init__(self, topic: str, client: str) -> None:
        self.topic, self.client = topic, client

    async def start(self, scheduler: Any) -> None:
        # Here, because what the client sends on its stream may come later than this.
        scheduler.subscribe_topic(self.topic, self.client)
        scheduler.log_event(self.topic, (_CAME, list(scheduler.workers)))

    def add_worker(self, scheduler: Any, worker: str) -> None:
        scheduler.log_event(self.topic, (_CAME, [worker]))

    def remove_worker(self, scheduler: Any, worker: str, **_: Any) -> None:
        scheduler.log_event(self.topic, (_LEFT, [worker]))

    def remove_client(self, scheduler: Any, client: str) -> None:
        if client == self.client:
            scheduler.remove_plugin(name=self.topic)


def _raise_lost(member: str) -> NoReturn:
    raise MemberLostError(f"{member} is no member (any more): see `members`.")


def _raise_any(failed: Mapping[str, MloptError]) -> None:
    for error in failed.values():
        raise error
