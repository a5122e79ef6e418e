"""Locks that a fork of this process does not find held.

A fork has one thread: what others held there is never given back.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

_T = TypeVar("_T")
_Change = TypeVar("_Change", bound=Callable[[], object])


def in_forks(change: _Change) -> _Change:
    """Call ``change`` in every fork of this process, before anything else runs there."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=change)
    return change


def open_in_forks(lock: _T) -> _T:
    """The ``lock``, which lives as long as the process; its forks have it open."""
    in_forks(lock._at_fork_reinit)  # type: ignore[attr-defined]
    return lock


if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property(functools.cached_property):
        """That of Python 3.12: before, one lock is held for the objects of all threads."""

        def __init__(self, func):
            super().__init__(func)
            self.lock = contextlib.nullcontext()
