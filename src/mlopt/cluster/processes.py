"""Calls of Python in processes beside this one, on values that all of them map.

Threads that run Python wait for one interpreter's lock; these have one each. A value that
several calls read is written to a file once, in shared memory where there is room, and its
arrays are mapped, not copied::

    handle -> file -> process 1: arrays on the same pages; those it writes to are its own
                   -> process 2
"""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
import tempfile
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mlopt.cluster.apart import at_end
from mlopt.cluster.executor import called, contained
from mlopt.cluster.hands import Hands
from mlopt.cluster.parcel import Parcel, pack, unpack
from mlopt.errors import InputError, MemberLostError, TaskKilledError
from mlopt.limits import single_threaded
from mlopt.locking import in_forks, open_in_forks
from mlopt.prices import price

_SHARED = Path("/dev/shm")
"""Files in memory, where the system has them."""
_FOLDERS = "mlopt-values-"
"""How names of folders begin."""


class Processes:
    """So many processes for calls that may as well run anywhere.

    They start with the first call, or are those that an earlier one has left. A call whose
    function or arguments cannot travel, or any where no process can be started, runs here.

    Parameters
    ----------
    count : int
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._hands: Hands | None = None
        self._files = _Files()
        self._closed, self._busy = False, 0
        self._changing = threading.Lock()

    def call(self, function: Callable[..., Any], args: Sequence[Any]) -> Any:
        """``function(*args)``; what it warns of is said here.

        Parameters
        ----------
        function : callable
        args : sequence
            A future stands for its value, which must be there.

        Raises
        ------
        TaskKilledError
            The process ended, killed or out of memory.
        Exception
            What the function raised.
        """
        try:
            said = [self._files.of(one) if isinstance(one, Future) else one for one in args]
            parcel = pack((function, said, warnings.filters, _heeded()))
        except InputError:
            return called(function, args)
        hands = self._begun()
        try:
            value, warned = hands.call("call", parcel, self._files.paths())
        except MemberLostError as error:
            if hands.failed is not None:
                return called(function, args)
            raise TaskKilledError(str(error)) from error
        finally:
            with self._changing:
                self._busy -= 1
        for message, category, filename, line, module in warned:
            warnings.warn_explicit(message, category, filename, line, module)
        return value

    def _begun(self) -> Hands:
        """The processes, with one more call on its way."""
        with self._changing:
            if self._closed:
                raise TaskKilledError("The call was given up before it began.")
            if self._hands is None:
                self._hands = _left.take(self._count)
                self._hands.given_up = lambda: self._closed
            self._busy += 1
            return self._hands

    def close(self) -> None:
        """Drop the files, and end those that are at work; the others are left for later."""
        with self._changing:
            self._closed, hands, busy = True, self._hands, self._busy
        self._files.close()
        if hands is not None:
            _left.give(hands, idle=not busy)


def _heeded() -> dict[str, Any]:
    """What NumPy does about errors here; it warns there, where it would call something."""
    here = np.geterr()
    return {kind: "warn" if how in ("call", "log") else how for kind, how in here.items()}


class _Left:
    """Processes that nobody uses now: the next who wants some need not start them."""

    def __init__(self) -> None:
        self._idle: dict[Hands, threading.Timer] = {}
        self._changing = threading.Lock()

    def take(self, count: int) -> Hands:
        """So many processes: left ones, or new ones that are about to come."""
        with self._changing:
            for hands in self._fit(count):
                self._idle.pop(hands).cancel()
                if hands.there:
                    return hands
                hands.close()
        hands = Hands(_Caller, processes=count)
        hands.start()
        return hands

    def there(self, count: int) -> bool:
        """Whether so many are left."""
        with self._changing:
            return bool(self._fit(count))

    def _fit(self, count: int) -> list[Hands]:
        """So many each, in which calls find what they would find in new ones."""
        return [one for one in self._idle if one.processes == count and one.up_to_date]

    def give(self, hands: Hands, *, idle: bool) -> None:
        """Leave processes for a while; those that still come or work are ended."""
        if idle and hands.there:
            try:
                hands.given_up = lambda: False
                hands.tell("forget")
            except MemberLostError:
                pass
            else:
                timer = threading.Timer(price("processes.left"), self._end, [hands])
                timer.daemon = True
                with self._changing:
                    self._idle[hands] = timer
                timer.start()
                return
        hands.close()

    def _end(self, hands: Hands) -> None:
        with self._changing:
            mine = self._idle.pop(hands, None) is not None
        if mine:
            hands.close()


_left = _Left()
open_in_forks(_left._changing)
in_forks(_left._idle.clear)  # they are the parent's


def are_left(count: int) -> bool:
    """Whether so many processes are there from an earlier use."""
    return _left.there(count)


@dataclass(frozen=True)
class _File:
    """A value that is in a file."""

    path: str
    folder: str


class _Files:
    """Values of futures in files, each as long as its future."""

    def __init__(self) -> None:
        self._known: weakref.WeakKeyDictionary[Future[Any], _File] = (
            weakref.WeakKeyDictionary()
        )
        self._folders: dict[Path, str] = {}
        self._ends: list[Callable[[], object]] = []
        self._writing = threading.Lock()
        self._count = 0

    def of(self, future: Future[Any]) -> Any:
        """The file of a value that calls read alone; a model, which they train, itself."""
        value = future.result()
        if value is None or hasattr(value, "fit"):
            return value
        with self._writing:
            found = self._known.get(future)
            if found is None:
                found = self._known[future] = self._written(value)
                _finally(future, _unlink, found.path)
        return found

    def paths(self) -> frozenset[str]:
        """The files that there are."""
        with self._writing:
            return frozenset(one.path for one in self._known.values())

    def close(self) -> None:
        """Drop all of them."""
        for end in self._ends:
            end()

    def _written(self, value: Any) -> _File:
        import joblib

        self._count += 1
        for root in _roots():
            if not root.is_dir():
                continue
            try:
                if root not in self._folders:
                    self._folders[root], held = _folder(root)
                    folder = self._folders[root]
                    self._ends.append(_finally(self, _drop, folder, held))
            except OSError:  # not ours to write to
                continue
            path = str(Path(self._folders[root]) / str(self._count))
            try:
                joblib.dump(value, path)
            except OSError:  # no room there
                _unlink(path)
                continue
            except Exception as error:
                _unlink(path)
                kind = type(value).__name__
                raise InputError(f"{kind} cannot travel: {error}") from error
            return _File(path, self._folders[root])
        raise InputError("there is no room for a file of values")


def _finally(owner: Any, end: Callable[..., None], *args: Any) -> Callable[[], object]:
    """As `weakref.finalize`; forks, whose files these are not, leave them."""
    here = os.getpid()

    def last() -> None:
        if os.getpid() == here:
            end(*args)

    return weakref.finalize(owner, last)


def _roots() -> Iterator[Path]:
    """Of folders for files; one on disk is looked for where memory has no room."""
    yield _SHARED
    yield Path(tempfile.gettempdir())


def _folder(root: Path) -> tuple[str, int]:
    """A new folder there, and what says that somebody uses it.

    Those that nobody uses any more, left by who was killed, are dropped.
    """
    for left in root.glob(f"{_FOLDERS}*"):
        with suppress(OSError):  # of somebody else
            _drop(str(left), _held(str(left)))
    made = tempfile.mkdtemp(prefix=_FOLDERS, dir=root)
    return made, _held(made)


def _held(folder: str) -> int:
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(held)
        raise
    return held


def _drop(folder: str, held: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.close(held)


def _unlink(path: str) -> None:
    with suppress(OSError):
        Path(path).unlink()


class _Caller:
    """There: calls functions, and holds the values of files that are still there."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._folders: set[str] = set()

    def call(self, parcel: Parcel, paths: frozenset[str]) -> tuple[Any, list[Any]]:
        """What a function gives, and what it warned of, each once."""
        for path in self._values.keys() - paths:
            del self._values[path]
        function, said, filters, errors = unpack(parcel)
        args = [self._value(one) if isinstance(one, _File) else one for one in said]
        with warnings.catch_warnings(record=True) as heard:
            warnings.filters = filters
            with single_threaded(), contained(), np.errstate(**errors):
                value = function(*args)
        told = {
            (w.category, str(w.message), w.lineno): (
                w.message,
                w.category,
                w.filename,
                w.lineno,
                _module_of(w.filename),
            )
            for w in heard
        }
        return value, list(told.values())

    def forget(self) -> None:
        """Hold nothing any more."""
        self._values.clear()

    def _value(self, file: _File) -> Any:
        import joblib

        if file.folder not in self._folders:
            self._folders.add(file.folder)
            at_end(lambda: shutil.rmtree(file.folder, ignore_errors=True))
        if file.path not in self._values:
            # Writeable, as compiled code may want it; nobody else sees what is written.
            self._values[file.path] = joblib.load(file.path, mmap_mode="c")
        return self._values[file.path]


def _module_of(filename: str) -> str | None:
    """The module that is in a file: filters of warnings know it by its name."""
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) == filename:
            return name
    return None
