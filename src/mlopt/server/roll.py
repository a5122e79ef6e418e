"""Which strata a member works on, and what it has to tell of that to who asks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from mlopt.cluster.wire import Answer, Header

_LOOK = 0.2
"""Seconds after which who waits for a stratum looks whether the member has ended."""


class Roll:
    """Strata under way, those that are to be released, and what steps took."""

    def __init__(self) -> None:
        self._news = threading.Condition()
        self._here: set[int] = set()
        self._leads: threading.Event | None = None
        self._coming: dict[int, tuple[int, int]] = {}
        self._asked: set[int] = set()
        self._counts: dict[int, int] = {}
        self._steps: list[tuple[float, float, float, float]] = []
        self._applying = 0.0

    # --- of who works

    def begin(self, strata: Mapping[int, tuple[int, int]], stop: threading.Event) -> bool:
        """These are under way here from now on; gives whether the task that asks has the
        steps of all. Else the one does that is here, so that there is one step at a time;
        what it has already stays as it is.

        Parameters
        ----------
        strata : mapping of int to (int, int)
            Steps that each has had, and is to have.
        stop : threading.Event
            By which the task is told to end.
        """
        with self._news:
            leads = self._leads is not None and not self._leads.is_set()
            has = self._here if leads else set()
            self._coming.update({a: strata[a] for a in strata.keys() - has})
            self._here.update(strata)
            if not leads:
                self._leads = stop
            return not leads

    def came(self) -> dict[int, tuple[int, int]]:
        """Those that began since this was asked last."""
        with self._news:
            coming, self._coming = self._coming, {}
            return coming

    @property
    def grows(self) -> bool:
        """Whether some came since."""
        with self._news:
            return bool(self._coming)

    def leave(self, stop: threading.Event) -> bool:
        """The task of ``stop`` has none left, and ends unless others came meanwhile."""
        with self._news:
            if self._coming:
                return False
            if self._leads is stop:
                self._leads = None
            return True

    def gone(self, stop: threading.Event) -> dict[int, tuple[int, int]]:
        """The task of ``stop`` ends before its time; gives those that came last."""
        with self._news:
            if self._leads is not stop:
                return {}
            self._leads = None
            coming, self._coming = self._coming, {}
            return coming

    def asked(self, strata: Iterable[int]) -> list[int]:
        """Those of them that are to be released."""
        with self._news:
            return [number for number in strata if number in self._asked]

    def end(self, stratum: int, count: int) -> None:
        """One is not under way here any more, after so many steps."""
        with self._news:
            self._here.discard(stratum)
            self._asked.discard(stratum)
            self._counts[stratum] = count
            self._news.notify_all()

    def report(self, stratum: int, compute: float, pull: float, nbytes: float) -> None:
        """A step took so many seconds, and the pull of so many bytes before it."""
        with self._news:
            self._steps.append((stratum, compute, pull, nbytes))

    def applied(self, seconds: float) -> None:
        """A block was updated."""
        with self._news:
            self._applying += seconds

    # --- of who asks

    def release(self, stratum: int, ended: Callable[[], bool]) -> Answer:
        """Have a stratum released after its step, if it is under way; and say its count."""
        with self._news:
            if stratum in self._here:
                self._asked.add(stratum)
            while stratum in self._here and not ended():
                self._news.wait(_LOOK)
            known = stratum in self._counts
            return Header(sequence=self._counts.get(stratum, 0), version=known), []

    def reported(self) -> Answer:
        """What was not told before: steps, and seconds of updates of blocks."""
        with self._news:
            steps, self._steps = self._steps, []
            applying, self._applying = self._applying, 0.0
        more = {"applying": applying}
        return Header(more=more), [np.array(steps, np.float64).reshape(-1, 4)]

    def tell(self) -> None:
        """Those who wait look again."""
        with self._news:
            self._news.notify_all()
