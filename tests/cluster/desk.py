"""A service to try a mesh with: a sum, an echo and some bad manners."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

import cloudpickle
import numpy as np

from mlopt.cluster import Header, Service, Site

# Workers cannot import this file: what is in it travels whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


LARGEST = 1 << 20
"""Bytes of a message at most, here."""


class Desk(Service):
    """A sum that everybody may add to, and some bad manners."""

    def __init__(self, site: Site, start: float = 0.0) -> None:
        if start < 0:
            raise ValueError("starts below zero")
        self.site = site
        self.total = np.full(2, start)
        self.changing = threading.Lock()
        self.waiting, self.go = threading.Event(), threading.Event()

    def answer(self, operation: str, header: Header, arrays: Any) -> Any:
        return getattr(self, operation)(header, arrays)

    def close(self) -> None:
        self.go.set()

    def add(self, header: Header, arrays: Any) -> Any:
        with self.changing:
            total = self.total + arrays[0]
            time.sleep(0)  # another thread may come between
            self.total = total
        return header, [self.total]

    def get(self, header: Header, arrays: Any) -> Any:
        return header, [self.total]

    def put(self, header: Header, arrays: Any) -> Any:
        self.total = arrays[0]
        return header, []

    def echo(self, header: Header, arrays: Any) -> Any:
        return header, arrays

    def where(self, header: Header, arrays: Any) -> Any:
        more = {"member": self.site.member, "members": self.site.members}
        return Header(block=os.getpid(), more=more), []

    def fail(self, header: Header, arrays: Any) -> Any:
        raise ValueError("no such block")

    def leave(self, header: Header, arrays: Any) -> Any:
        raise SystemExit(3)

    def odd(self, header: Header, arrays: Any) -> Any:
        return header, [np.array([None])]

    def much(self, header: Header, arrays: Any) -> Any:
        return header, [np.zeros(LARGEST)]

    def wait(self, header: Header, arrays: Any) -> Any:
        self.waiting.set()
        self.go.wait(60)
        return header, []

    def waits(self, header: Header, arrays: Any) -> Any:
        return Header(block=int(self.waiting.is_set())), []


def total(mesh: Any, member: str) -> float:
    """The sum of a member's desk."""
    return float(mesh.ask(member, "get")[1][0][0])


def work(site: Site, other: str, times: int) -> tuple[str, float]:
    for _ in range(times):
        site.ask(other, "add", arrays=[np.ones(2)])
    mine = site.service
    assert isinstance(mine, Desk)
    return site.member, float(mine.total[0])
