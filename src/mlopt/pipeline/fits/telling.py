"""What fits have to say of their runs, for plans: models are the user's own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_told: ContextVar[list[str] | None] = ContextVar("told", default=None)


@contextmanager
def listening() -> Iterator[list[str]]:
    """What is told within the block."""
    found: list[str] = []
    before = _told.set(found)
    try:
        yield found
    finally:
        _told.reset(before)


def tell(*notes: str) -> None:
    """Whoever listens where this was asked for."""
    if (found := _told.get()) is not None:
        found.extend(notes)
