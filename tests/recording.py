"""Writes down every fit, application and score, in this process and on workers.

Independent of what plans are made of: the methods of classes are wrapped, and the one door
through which fitted models are applied to blocks.
"""

from __future__ import annotations

import functools
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mlopt.pipeline.blocks.tables import count_rows
from mlopt.pipeline.fits.base import ManyPasses, OnePass
from mlopt.pipeline.fits.registry import ways_of
from mlopt.pipeline.tasks import functions

_inside = threading.local()
_undo: list[tuple[Any, str, Any]] = []


class Recording:
    """What was written into a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.clear()

    def clear(self) -> None:
        """Forget what was done so far."""
        self.path.write_text("")

    def rows(self) -> Counter[tuple[str, str]]:
        """Rows by kind of work and class."""
        found: Counter[tuple[str, str]] = Counter()
        for kind, name, rows in self._lines():
            found[kind, name] += rows
        return found

    def calls(self) -> Counter[tuple[str, str]]:
        """Calls by kind of work and class."""
        return Counter((kind, name) for kind, name, _ in self._lines())

    def _lines(self) -> Iterator[tuple[str, str, int]]:
        for line in self.path.read_text().splitlines():
            kind, name, rows = line.split()
            yield kind, name, int(rows)


@contextmanager
def recording(
    path: Path, estimators: Sequence[Any], client: Any = None
) -> Iterator[Recording]:
    """What these estimators do within the block, in whichever way."""
    found = Recording(path)
    install(str(path), estimators)
    if client is not None:
        client.run(install, str(path), estimators)
    try:
        yield found
    finally:
        remove()
        if client is not None:
            client.run(remove)


def install(path: str, estimators: Sequence[Any]) -> None:
    """Wrap what these estimators do in this process."""
    remove()
    _wrap(path, functions, "apply_fitted", "apply", lambda model, x, _: (model, x))
    ways = {type(way) for one in estimators for way in ways_of(one)}
    # What is inherited is wrapped before it is wrapped where it stands: written once.
    for way in sorted(ways, key=lambda kind: -len(kind.__mro__)):
        if issubclass(way, OnePass):
            _wrap(path, way, "finish", "fit", lambda _, one, __: (one, ()))
            _wrap(path, way, "part", "", None)
        elif issubclass(way, ManyPasses):
            _wrap(path, way, "fit", "fit", lambda _, one, *__: (one, ()), leaf=False)
    for kind in {type(one) for one in estimators}:
        for name in ("fit", "fit_transform"):
            if hasattr(kind, name):
                _wrap(path, kind, name, "fit", lambda self, X, *_, **__: (self, X))


def remove() -> None:
    """As it was before."""
    while _undo:
        owner, name, own = _undo.pop()
        if own is None:
            delattr(owner, name)
        else:
            setattr(owner, name, own)


def _wrap(
    path: str,
    owner: Any,
    name: str,
    kind: str,
    told: Callable[..., Any] | None,
    *,
    leaf: bool = True,
) -> None:
    """Write what ``told`` says of a call: the model and its rows.

    What a ``leaf`` does itself, such as `fit` within `fit_transform`, is a part of it.
    """
    before, own = getattr(owner, name), vars(owner).get(name)

    @functools.wraps(before)
    def wrapped(*args: Any, **others: Any) -> Any:
        if getattr(_inside, "busy", False):
            return before(*args, **others)
        _inside.busy = leaf
        try:
            result = before(*args, **others)
        finally:
            _inside.busy = False
        if told is not None:
            model, x = told(*args, **others)
            write(path, kind, type(model).__name__, count_rows(x))
        return result

    _undo.append((owner, name, own))
    setattr(owner, name, wrapped)


@contextmanager
def unseen() -> Iterator[None]:
    """What this thread does in the block is not written down."""
    _inside.busy = True
    try:
        yield
    finally:
        _inside.busy = False


def write(path: str, kind: str, name: str, rows: int) -> None:
    """One line; whole, whoever else writes."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, f"{kind} {name} {rows}\n".encode())
    finally:
        os.close(file)
