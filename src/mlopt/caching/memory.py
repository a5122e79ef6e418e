"""Kept outputs in memory, until their last reader is done.

::

    announce(token, 3)      three readers will come
    keep(token, value)      evicts the least recently used if real bytes exceed the budget
    take(token)             one reader less; at none the value is released
    fetch(token, make)      the same, and makes the value when it is not there: once,
                            however many threads ask at the same time
"""

from __future__ import annotations

import pickle
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dask.sizeof import sizeof as dask_sizeof

from mlopt.caching.counts import Statistics
from mlopt.caching.disk import Disk
from mlopt.errors import InputError


@dataclass
class _Entry:
    value: Any
    size: int


class Keeper:
    """Values by token within a budget of bytes; safe for threads.

    Parameters
    ----------
    budget : float
        Bytes of all values together. Never exceeded.
    disk : Disk, optional
        Where values go that are evicted while readers are still to come, and those that
        are to outlive the process.
    sizeof : callable, default=dask.sizeof.sizeof
        Bytes of a value.
    """

    def __init__(
        self,
        budget: float,
        *,
        disk: Disk | None = None,
        sizeof: Callable[[Any], int] = dask_sizeof,
    ) -> None:
        if not budget >= 0:
            raise InputError(f"`budget` must be at least 0 bytes, got {budget!r}.")
        self.budget = budget
        self.disk = disk
        self._sizeof = sizeof
        self._lock = threading.RLock()
        self._values: OrderedDict[str, _Entry] = OrderedDict()
        self._readers: dict[str, int] = {}
        self._pins: dict[str, int] = {}
        self._spilled: set[str] = set()
        self._making: dict[str, threading.Lock] = {}
        self._statistics = Statistics()

    def announce(self, token: str, readers: int = 1) -> None:
        """That ``readers`` more will take the value of ``token``.

        One that is never announced stays until it is evicted or dropped.
        """
        if readers < 1:
            raise InputError(f"`readers` must be at least 1, got {readers!r}.")
        with self._lock:
            self._readers[token] = self._readers.get(token, 0) + readers

    def keep(
        self,
        token: str,
        value: Any,
        *,
        persist: bool = False,
        spare: Callable[[str], bool] = lambda _: False,
    ) -> bool:
        """Hold ``value``, evicting the least recently used that are not pinned.

        Parameters
        ----------
        token : str
        value : any
        persist : bool, default=False
            Whether to write it to disk as well, for a later process.
        spare : callable, optional
            Of a token: whether it is not to be evicted for this one.

        Returns
        -------
        bool
            Whether it is in memory. One too large for the room that pins leave is not,
            and nothing is evicted for it.
        """
        size = self._sizeof(value)
        with self._lock:
            self._forget(token)
            evicted = self._make_room(size, spare)
            if evicted is not None:
                self._values[token] = _Entry(value, size)
                self._count(bytes=size)
            else:
                self._count(refused=1)
        # Writing takes long: others go on meanwhile. One that looks for it now misses it.
        if persist:
            with self._lock:
                self._spilled.discard(token)
            self._write(token, value)
        elif evicted is None:
            self._spill(token, value)
        for other, entry in (evicted or {}).items():
            self._spill(other, entry.value)
        return evicted is not None

    def take(self, token: str) -> Any:
        """The value, for one reader; the last one lets it go.

        Raises
        ------
        KeyError
            When it is not there. The reader counts as done all the same: it makes its own.
        """
        with self._lock:
            entry = self._values.get(token)
            if entry is not None:
                self._values.move_to_end(token)
                self._count(hits=1)
                self._done(token)
                return entry.value
        try:
            value = self._from_disk(token)
        finally:
            with self._lock:
                self._done(token)
        return value

    def fetch(self, token: str, make: Callable[[], Any], *, persist: bool = False) -> Any:
        """The value, made and kept if it is not there. Threads that ask together wait.

        What ``make`` raises is raised here, and the next one to ask tries again.
        """
        with self._lock:
            making = self._making.setdefault(token, threading.Lock())
        with making:
            with self._lock:
                wanted = self._readers.get(token, 2) > 1
            try:
                return self.take(token)
            except KeyError:
                value = make()
            if wanted or persist:
                self.keep(token, value, persist=persist)
        return value

    @contextmanager
    def pinned(self, token: str) -> Iterator[None]:
        """Inside, ``token`` is neither evicted nor released, once it is held."""
        with self._lock:
            self._pins[token] = self._pins.get(token, 0) + 1
        try:
            yield
        finally:
            with self._lock:
                self._pins[token] -= 1
                if not self._pins[token]:
                    del self._pins[token]
                    self._release(token)

    def drop(self, token: str) -> None:
        """Forget the value and its readers; what was written to outlive us stays."""
        with self._lock:
            self._readers.pop(token, None)
            self._making.pop(token, None)
            self._forget(token)
            self._unspill(token)

    def clear(self) -> None:
        """`drop` all."""
        with self._lock:
            for token in {*self._values, *self._readers, *self._spilled}:
                self.drop(token)

    def __contains__(self, token: str) -> bool:
        """Whether it is in memory."""
        with self._lock:
            return token in self._values

    @property
    def statistics(self) -> Statistics:
        """What happened so far."""
        with self._lock:
            return self._statistics

    def _count(self, **more: int) -> None:
        self._statistics = self._statistics.plus(**more)

    def _make_room(
        self, size: int, spare: Callable[[str], bool]
    ) -> dict[str, _Entry] | None:
        """What was evicted so that ``size`` bytes fit; None, and nothing, if none can."""
        left = self.budget - self._statistics.bytes
        evicted: dict[str, _Entry] = {}
        for token, entry in self._values.items():
            if size <= left:
                break
            if token not in self._pins and not spare(token):
                evicted[token] = entry
                left += entry.size
        if size > left:
            return None
        for token in evicted:
            self._forget(token)
        self._count(evictions=len(evicted))
        return evicted

    def _forget(self, token: str) -> None:
        entry = self._values.pop(token, None)
        if entry is not None:
            self._count(bytes=-entry.size)

    def _done(self, token: str) -> None:
        """One announced reader less."""
        if token in self._readers:
            self._readers[token] -= 1
            self._release(token)

    def _release(self, token: str) -> None:
        """Let go what no announced reader waits for."""
        if token in self._pins or self._readers.get(token, 1) > 0:
            return
        del self._readers[token]
        self._making.pop(token, None)
        self._count(released=token in self._values)
        self._forget(token)
        self._unspill(token)

    def _from_disk(self, token: str) -> Any:
        try:
            if self.disk is None:
                raise KeyError(token)
            value = self.disk.read(token)
        except KeyError:
            with self._lock:
                self._count(misses=1)
            raise
        with self._lock:
            self._count(hits=1, disk_hits=1)
        return value

    def _spill(self, token: str, value: Any) -> None:
        """To disk, if readers are still to come."""
        with self._lock:
            waited = token in self._readers and self.disk is not None
        if waited and self.disk is not None and token not in self.disk:
            self._write(token, value)
            with self._lock:
                self._spilled.add(token)
                if token not in self._readers:  # its last reader came meanwhile
                    self._unspill(token)

    def _unspill(self, token: str) -> None:
        if token in self._spilled and self.disk is not None:
            self._spilled.discard(token)
            self.disk.remove(token)

    def _write(self, token: str, value: Any) -> None:
        """What cannot be written is made again by those who read it."""
        if self.disk is None:
            return
        try:
            self.disk.write(token, value)
        except (OSError, pickle.PicklingError, TypeError, AttributeError):
            self.disk.remove(token)
