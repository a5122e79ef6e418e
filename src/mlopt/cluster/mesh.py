"""Members that hold state and ask each other; an `Executor` runs pure functions.

::

    driver   mesh.serve(Shard)            one service on each member, under a new epoch
             mesh.start(member, train)    a resident task, on that member alone
             mesh.ask(member, "pull")     one operation of one member's service

    member   site.ask(other, "push")      services and resident tasks ask, too
             site.service, site.stop

A member that is lost takes its service and its tasks with it: whoever asks it is told so at
once, and nothing is started anew behind anybody's back. A message says under which epoch it
was sent, and a service of another epoch refuses it: what was begun before `serve` cannot
change what came after.
"""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, Self

import numpy as np

from mlopt.cluster.executor import contained
from mlopt.cluster.memory import Spare
from mlopt.cluster.resident import Resident
from mlopt.cluster.wire import (
    ANSWER,
    ASK,
    Answer,
    Header,
    Message,
    Packed,
    fitting,
    json_of,
    kinds_of,
    pack,
)
from mlopt.errors import (
    ClusterError,
    MemberLostError,
    MloptError,
    StaleEpochError,
    TaskError,
)

log = logging.getLogger("mlopt")

Notice = Callable[[str, bool], None]
"""Called with a member and whether it came (or else went)."""

Farewell = Callable[[str], None]
"""Called with a member that is about to go in an orderly way."""


class Service(ABC):
    """What lives on a member and answers; it is asked by many threads at once."""

    @abstractmethod
    def answer(
        self, operation: str, header: Header, arrays: Sequence[np.ndarray]
    ) -> Answer:
        """Answer one ask.

        Parameters
        ----------
        operation : str
        header : Header
        arrays : sequence of ndarray
            The service's own from now on.

        Returns
        -------
        Header, sequence of ndarray
            The arrays are sent after the call: give copies of what may change meanwhile.
        """

    def close(self) -> None:  # noqa: B027  (most have nothing to let go of)
        """Let go of those who wait: the member leaves, or is given another service."""


class Peers(ABC):
    """Members that can be asked.

    Attributes
    ----------
    epoch : int
        Under which they are.
    """

    epoch: int

    @property
    @abstractmethod
    def members(self) -> tuple[str, ...]:
        """The names of the members that are there."""

    def ask(
        self,
        member: str,
        operation: str,
        header: Header = Header(),  # noqa: B008  (immutable)
        arrays: Sequence[np.ndarray] = (),
        into: Sequence[np.ndarray] | None = None,
    ) -> Answer:
        """Ask a member's service, and wait for its answer.

        Parameters
        ----------
        member : str
        operation : str
            At most 16 letters.
        header : Header
        arrays : sequence of ndarray
            Numbers, dates, strings of a fixed size; whatever order, sent in C order.
        into : sequence of ndarray, optional
            Where the answer's arrays are put; else they are new.

        Returns
        -------
        Header, sequence of ndarray
            The asker's own.

        Raises
        ------
        MemberLostError
            The member is gone. It may have done what it was asked last.
        StaleEpochError
            Who asks began before the members were given the service that they have now.
        TaskError
            The service raised; the text says what.
        InputError
            What cannot be sent, or ``into`` that is not like the answer.
        """
        return self.reach(member, Message(ASK, operation, self.epoch, header, arrays), into)

    @abstractmethod
    def reach(
        self, member: str, asked: Message, into: Sequence[np.ndarray] | None
    ) -> Answer:
        """What `ask` does."""


class Mesh(Peers):
    """The driver's side of some members.

    Attributes
    ----------
    epoch : int
        How often `serve` was called.
    """

    _residents: Mapping[str, Iterable[Resident]]
    """Those of each member, as each kind of mesh keeps them."""
    _changing: contextlib.AbstractContextManager[Any]
    """Held while these change."""

    def __init__(self) -> None:
        self.epoch = 0
        self._watchers: list[Notice] = []
        self._farewells: list[Farewell] = []
        self._leaving = frozenset[str]()
        self._closed = False

    @abstractmethod
    def serve(self, make: Callable[..., Service], *args: Any) -> None:
        """Begin a new epoch: each member makes ``make(site, *args)`` its service.

        So do members that come later. The services before are closed.

        Parameters
        ----------
        make : callable
            Given the member's `Site`. Nobody can be asked under the new epoch before
            ``serve`` has returned.
        *args : any
            Small: they are sent to every member.

        Raises
        ------
        TaskError
            ``make`` raised on a member.
        """

    @abstractmethod
    def start(self, member: str, function: Callable[..., Any], *args: Any) -> Resident:
        """Run ``function(site, *args)`` on a member, beside its other work, to its end.

        It has one BLAS thread and keeps no slot of an executor. It should look at
        ``site.stop`` now and then. Handles of an executor stand for their values.

        Raises
        ------
        MemberLostError
        """

    @property
    def residents(self) -> tuple[Resident, ...]:
        """Tasks that run, or are about to, whoever started them: in one process also one
        whose `start` was interrupted, on Dask once it is submitted."""
        with self._changing:
            every = [[*some] for some in self._residents.values()]
        return tuple(one for some in every for one in some if one.alive)

    @abstractmethod
    def close(self) -> None:
        """Close the services, and tell resident tasks to stop; nobody is waited for.

        Those that have not begun are lost; `Resident.result` gives what others return.
        """

    @property
    def staying(self) -> tuple[str, ...]:
        """The members but those that are about to go, which should be given nothing."""
        return tuple(one for one in self.members if one not in self._leaving)

    def watch(self, told: Notice, farewell: Farewell | None = None) -> Callable[[], None]:
        """Call ``told(member, came)`` for each that comes or goes from now on.

        From another thread, one call after the other, when `members` is up to date and a
        new member serves.

        Parameters
        ----------
        told : callable
        farewell : callable, optional
            Called with a member that is to go in an orderly way, before it does: it can be
            asked for what it holds until this returns, for a few seconds.

        Returns
        -------
        callable
            To be called when nobody wants to know any more.
        """
        self._watchers.append(told)
        if farewell is not None:
            self._farewells.append(farewell)

        def end() -> None:
            with contextlib.suppress(ValueError):
                self._watchers.remove(told)
            if farewell in self._farewells:
                self._farewells.remove(farewell)

        return end

    def _check_open(self) -> None:
        if self._closed:
            raise ClusterError("The mesh is closed: make another one.")

    def _say_farewell(self, member: str) -> None:
        for farewell in list(self._farewells):
            try:
                farewell(member)
            except Exception:
                log.exception("`watch` of a mesh: %r raised", farewell)

    def _tell(self, member: str, came: bool) -> None:
        for told in list(self._watchers):
            try:
                told(member, came)
            except Exception:
                log.exception("`watch` of a mesh: %r raised", told)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Site(Peers):
    """The mesh as one member sees it: what services and resident tasks are given.

    Attributes
    ----------
    member : str
        The member's own name.
    epoch : int
        Under which it asks: that of the `serve` or `start` it comes from.
    stop : threading.Event
        Set when the task, or the service, should end.
    """

    def __init__(self, local: Local, epoch: int, stop: threading.Event) -> None:
        self.member, self.epoch, self.stop = local.member, epoch, stop
        self._local = local

    @property
    def members(self) -> tuple[str, ...]:
        return self._local.members

    @property
    def cores(self) -> int:
        """Cores that this member may use."""
        return self._local.cores

    @property
    def spare(self) -> Spare | None:
        """Memory that this member may take yet; None where nobody set a limit."""
        return self._local.spare

    @property
    def service(self) -> Service:
        """The service of this member, to be called without a message."""
        return self._local.service(self.epoch)

    def reach(
        self, member: str, asked: Message, into: Sequence[np.ndarray] | None
    ) -> Answer:
        return self._local.reach(member, asked, into)


class _Served(NamedTuple):
    epoch: int
    service: Service
    stop: threading.Event


class Local(ABC):
    """What lives on one member: a service under an epoch, and resident tasks.

    Parameters
    ----------
    member : str
    largest : int
        Bytes of the arrays of a message.
    """

    spare: Spare | None = None

    def __init__(self, member: str, largest: int) -> None:
        self.member, self.largest = member, largest
        self._served: _Served | None = None
        self._stops: dict[str, threading.Event] = {}
        self._ended = False
        self._changing = threading.Lock()

    @property
    @abstractmethod
    def members(self) -> tuple[str, ...]:
        """The members that this one knows of."""

    @property
    @abstractmethod
    def cores(self) -> int:
        """Cores that this one may use."""

    @abstractmethod
    def reach(
        self, member: str, asked: Message, into: Sequence[np.ndarray] | None
    ) -> Answer:
        """Ask another member, or this one."""

    def serve(self, epoch: int, make: Callable[..., Service], args: Sequence[Any]) -> None:
        """Make the service of a new epoch; see `Mesh.serve`."""
        stop = threading.Event()
        try:
            with contained():
                service = make(Site(self, epoch, stop), *args)
        except Exception as error:
            raise TaskError(
                f"{self.member} could not make its service: {error!r}"
            ) from error
        with self._changing:
            before, self._served = self._served, _Served(epoch, service, stop)
            late = self._ended
        _close(before)
        if late:
            self.end()

    def service(self, epoch: int) -> Service:
        """The service of this epoch.

        Raises
        ------
        StaleEpochError, ClusterError
            It has another one; it has none.
        """
        served = self._served  # replaced as one
        if served is not None and served.epoch == epoch:
            return served.service
        if served is None:
            raise ClusterError(f"{self.member} has no service: call `serve` first.")
        raise StaleEpochError(
            f"{self.member} serves epoch {served.epoch}, and was asked by somebody of "
            f"epoch {epoch}: what began before `serve` must be started again."
        )

    def answer(self, asked: Message) -> Packed:
        """What the service says, ready to be sent.

        Raises
        ------
        StaleEpochError, TaskError, ClusterError
        MemberLostError
            The member has ended meanwhile, which is why the service failed, if it did.
        """
        try:
            answer = self._answer(asked)
        except MloptError:
            if self._ended:
                self.raise_lost()
            raise
        if self._ended:
            self.raise_lost()
        return answer

    def _answer(self, asked: Message) -> Packed:
        _, operation, epoch, header, arrays = asked
        service = self.service(epoch)
        try:
            header, arrays = service.answer(operation, header, arrays)
            return pack(Message(ANSWER, operation, epoch, header, arrays), self.largest)
        except (Exception, SystemExit) as error:
            raise TaskError(
                f"{self.member} failed at `{operation}`: {type(error).__name__}: {error}"
            ) from error

    def raise_lost(self) -> NoReturn:
        """Say that the member has ended, to who asked it."""
        raise MemberLostError(
            f"{self.member} was lost before it answered; what it was asked may or may not "
            "be done."
        )

    def answer_here(self, asked: Message, into: Sequence[np.ndarray] | None) -> Answer:
        """`answer` for somebody in this process: both get copies, as from a line."""
        given = [array.copy() for array in pack(asked, self.largest).arrays]
        header, _, arrays, _ = self.answer(
            asked._replace(header=_copied(asked.header), arrays=given)
        )
        if into is None:
            return _copied(header), [array.copy() for array in arrays]
        places = fitting(into, kinds_of(arrays))
        for place, array in zip(places, arrays, strict=True):
            np.copyto(place, array)
        return _copied(header), places

    def run(
        self, task: str, epoch: int, function: Callable[..., Any], args: Sequence[Any]
    ) -> Any:
        """Run a resident task in the calling thread."""
        stop = self._stop_of(task)
        try:
            if self._ended:
                raise MemberLostError(f"{self.member} left before the task began.")
            return function(Site(self, epoch, stop), *args)
        finally:
            with self._changing:
                self._stops.pop(task, None)

    def stop(self, task: str) -> None:
        """Tell a resident task to stop, maybe before it has begun."""
        self._stop_of(task).set()

    def end(self) -> None:
        """The member leaves: its service is closed, its tasks are told to stop."""
        with self._changing:
            self._ended = True
            served, self._served = self._served, None
            stops = list(self._stops.values())
        for stop in stops:
            stop.set()
        _close(served)

    def _stop_of(self, task: str) -> threading.Event:
        with self._changing:
            stop = self._stops.setdefault(task, threading.Event())
            if self._ended:
                stop.set()
            return stop


def _close(served: _Served | None) -> None:
    if served is None:
        return
    served.stop.set()
    try:
        served.service.close()
    except Exception:
        log.exception("the service of epoch %d could not be closed", served.epoch)


def _copied(header: Header) -> Header:
    """As it comes out of a message."""
    if not header.more:
        return header
    return header._replace(more=json.loads(json_of(header)))
