"""Kept outputs in memory, within a budget of bytes as measured.

::

    keep(token, value, size)   evicts the least recently used if it does not fit beside them
    take(token)                the value, which is then the most recently used
    drop(token)                forgets it
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mlopt.errors import InputError


@dataclass(frozen=True)
class Statistics:
    """What happened so far.

    Parameters
    ----------
    evictions : int
        Values forgotten for want of room.
    refused : int
        Values that did not fit.
    bytes, peak : int
        Held now, and at most.
    """

    evictions: int = 0
    refused: int = 0
    bytes: int = 0
    peak: int = 0


class Keeper:
    """Values by token within a budget of bytes; safe for threads.

    Parameters
    ----------
    budget : float
        Bytes of all values together. Never exceeded.
    """

    def __init__(self, budget: float) -> None:
        if not budget >= 0:
            raise InputError(f"`budget` must be at least 0 bytes, got {budget!r}.")
        self.budget = budget
        self._lock = threading.RLock()
        self._values: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._statistics = Statistics()

    def reopen(self) -> None:
        """In a fork, where nobody is left who would open what was locked."""
        self._lock = threading.RLock()

    def keep(
        self,
        token: str,
        value: Any,
        size: int,
        spare: Callable[[str], bool] = lambda _: False,
    ) -> bool:
        """Hold ``value``, evicting the least recently used.

        Parameters
        ----------
        token : str
        value : any
        size : int
            Its bytes.
        spare : callable, optional
            Of a token: whether it is not to be evicted for this one.

        Returns
        -------
        bool
            Whether it is held. One too large for the room that can be made is not, and
            nothing is evicted for it.
        """
        with self._lock:
            self.drop(token)
            fits = self._make_room(size, spare)
            if fits:
                self._values[token] = value, size
                self._count(bytes=size)
            else:
                self._count(refused=1)
        return fits

    def take(self, token: str) -> Any:
        """The value.

        Raises
        ------
        KeyError
            When it is not held.
        """
        with self._lock:
            value, _ = self._values[token]
            self._values.move_to_end(token)
        return value

    def drop(self, token: str) -> None:
        """Forget the value; nothing happens when it is not held."""
        with self._lock:
            if token in self._values:
                _, size = self._values.pop(token)
                self._count(bytes=-size)

    def __contains__(self, token: str) -> bool:
        """Whether it is held."""
        with self._lock:
            return token in self._values

    def __len__(self) -> int:
        """How many are held."""
        return len(self._values)

    @property
    def statistics(self) -> Statistics:
        """What happened so far."""
        with self._lock:
            return self._statistics

    def _count(self, *, evictions: int = 0, refused: int = 0, bytes: int = 0) -> None:
        now = self._statistics
        held = now.bytes + bytes
        self._statistics = Statistics(
            now.evictions + evictions, now.refused + refused, held, max(now.peak, held)
        )

    def _make_room(self, size: int, spare: Callable[[str], bool]) -> bool:
        """Evict so that ``size`` bytes fit; nothing, and False, if they cannot."""
        left = self.budget - self._statistics.bytes
        evicted = list[str]()
        for token, (_, held) in self._values.items():
            if size <= left:
                break
            if not spare(token):
                evicted.append(token)
                left += held
        if size > left:
            return False
        for token in evicted:
            self.drop(token)
        self._count(evictions=len(evicted))
        return True
