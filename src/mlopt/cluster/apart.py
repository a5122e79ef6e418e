"""A process beside this one, with an interpreter's lock of its own, that answers calls.

::

    apart = Apart(make, *args)      there: thing = make(*args)
    apart.call("method", *args)     there: thing.method(*args); here: what it returns

It needs no scheduler and no port: a pair of sockets that nobody else has. It ends with the
process that started it, however that ends, and hears no signals of a terminal.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Self

from mlopt.cluster.parcel import pack, unpack
from mlopt.errors import MemberLostError, TaskError
from mlopt.locking import in_forks

LOOK = 0.1
"""Seconds between two looks whether a call is still wanted."""
_MAIN = """\
import signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)  # who started it says when it is over
sys.path[:] = {path!r}
from mlopt.cluster.apart import main
main()
"""


def _no() -> bool:
    return False


class Apart:
    """An object in a process of its own.

    Parameters
    ----------
    make : callable
        Makes the object there; what it is and takes must be picklable.
    *args : any
    calls : int, default=1
        Calls that it answers at once, in a thread each.
    given_up : callable
        Looked at while the object is made; true ends the process.

    Raises
    ------
    MemberLostError
        The process ended before the object was made.
    Exception
        What ``make`` raised.

    Examples
    --------
    >>> from mlopt.cluster.apart import Apart
    >>> with Apart(dict, [("a", 1)]) as there:
    ...     there.call("get", "a"), there.number != os.getpid()
    (1, True)
    """

    def __init__(
        self,
        make: Callable[..., Any],
        *args: Any,
        calls: int = 1,
        given_up: Callable[[], bool] = _no,
    ) -> None:
        said = _packed((make, *args))
        pairs = [socket.socketpair() for _ in range(calls)]
        self._lines = [Connection(here.detach()) for here, _ in pairs]
        self._free: queue.SimpleQueue[Connection] = queue.SimpleQueue()
        self._ended = False
        theirs = [there.fileno() for _, there in pairs]
        main = _MAIN.format(path=[*map(str, sys.path)])
        # Its standard input is what tells it that this process is gone.
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", main, *map(str, theirs)],
                stdin=subprocess.PIPE,
                pass_fds=theirs,
            )
        finally:
            for _, there in pairs:
                there.close()
        _started.add(self)
        try:
            self._answered(self._lines[0], said, given_up)
        except BaseException:
            self.close()
            raise
        for line in self._lines:
            self._free.put(line)

    @property
    def number(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process has not ended."""
        return not self._ended and self._process.poll() is None

    def call(self, method: str, *args: Any, given_up: Callable[[], bool] = _no) -> Any:
        """Call a method of the object there; waits while all its threads are at work.

        Parameters
        ----------
        method : str
        *args : any
        given_up : callable
            Looked at while the call runs; true ends the process.

        Raises
        ------
        MemberLostError
            The process has ended, or ends before it has answered.
        TaskError
            What the method raised, where that cannot travel.
        Exception
            What the method raised.
        """
        said = _packed((method, *args))
        line = self._free.get()
        try:
            return self._answered(line, said, given_up)
        finally:
            self._free.put(line)

    def close(self) -> None:
        """End the process, whatever it is at; calls of other threads are lost."""
        self._ended = True
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _answered(self, line: Connection, said: bytes, given_up: Callable[[], bool]) -> Any:
        try:
            line.send_bytes(said)
            while not line.poll(LOOK):
                if given_up():
                    self._process.kill()
            reply = line.recv_bytes()
        except (OSError, EOFError) as error:
            raise self._lost() from error
        except BaseException:
            self._process.kill()  # what it still answers is not for who calls next
            raise
        good, value = _unpacked(reply)
        if good:
            return value
        raise value

    def _lost(self) -> MemberLostError:
        if not self._ended:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1)
        return MemberLostError(
            f"The process {self.number} has ended (status {self._process.returncode}) "
            "before it answered: it was killed, or there was no memory left."
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_started: weakref.WeakSet[Apart] = weakref.WeakSet()


@in_forks
def _disown() -> None:
    """In a fork: what this process has started is the parent's, and ends with that."""
    for one in [*_started]:
        one._ended = True
        one._process.returncode = 0  # nobody here waits for it, or ends it
        for line in one._lines:
            line.close()
        assert one._process.stdin is not None
        one._process.stdin.close()


def main() -> None:
    """There: answer until nobody asks any more."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    first, *others = [Connection(int(number)) for number in sys.argv[1:]]
    thing: Any = None

    def make(function: Callable[..., Any], *args: Any) -> None:
        nonlocal thing
        thing = function(*args)

    def call(method: str, *args: Any) -> Any:
        return getattr(thing, method)(*args)

    def serve(line: Connection) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                line.send_bytes(_reply(call, line.recv_bytes()))

    with contextlib.suppress(OSError, EOFError):  # who started it may be gone
        first.send_bytes(_reply(make, first.recv_bytes()))
    for line in others:
        threading.Thread(target=serve, args=(line,), daemon=True).start()
    serve(first)


_last: list[Callable[[], object]] = []


def at_end(last: Callable[[], object]) -> None:
    """There: call ``last`` when who started this process ends without a word."""
    _last.append(last)


def _end_with_parent() -> None:
    while os.read(0, 1):  # not of `sys.stdin`, whose lock the end of Python waits for
        pass
    for last in _last:
        last()
    os._exit(1)


def _reply(function: Callable[..., Any], said: bytes) -> bytes:
    """What is answered: whether it went well, and what came of it."""
    try:
        return _packed((True, function(*_unpacked(said))))
    except BaseException as error:
        with contextlib.suppress(Exception):
            reply = _packed((False, error))
            _unpacked(reply)  # some errors can be pickled, and not made again
            return reply
        return _packed((False, TaskError(f"{type(error).__name__}: {error}")))


def _packed(value: Any) -> bytes:
    return pickle.dumps(pack(value))


def _unpacked(said: bytes) -> Any:
    return unpack(pickle.loads(said))
