"""Pairs of runs, the second with one thing changed; each in a process of its own.

``python -m tests.judges.stale [KIND ...]`` prints a line of JSON a pair. The process only
imports; each run is a fork of it, so that nothing is remembered from one to the next. One
fork makes the changed run alone, another the unchanged and then the changed one.
"""

from __future__ import annotations

import importlib
import json
import os
import pickle
import pkgutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from tests.judges.runs import ALONE, MAY_REFUSE, RUNS, Result
from tests.judges.worlds import CHANGES, World

import mlopt
from mlopt.errors import StudyError

ALIKE = 1e-9
"""Of the largest value: a fresh process may add up in another order."""


def in_a_fork(work: Callable[[], Any]) -> Any:
    """What ``work`` gives, or an exception's text, in a process that ends with it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            warnings.simplefilter("ignore")
            found: Any = work()
        except BaseException as error:
            found = f"{type(error).__name__}: {error}"
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(found, pipe)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        data = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(data) if data else "the process died"


def fresh(kind: str, change: str) -> Any:
    """The changed run alone."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        CHANGES[change](world)
        return RUNS[kind][0](world)


def second(kind: str, change: str) -> Any:
    """The changed run after the unchanged one, on one storage; or that it was refused."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder))
        RUNS[kind][0](world)
        CHANGES[change](world)
        try:
            return RUNS[kind][0](world)
        except StudyError as error:
            if kind in MAY_REFUSE and change != "nothing":
                return f"refused: {error}"
            raise


def difference(a: Any, b: Any) -> str | None:
    """Where two results differ; None if they do not."""
    if isinstance(a, str) or isinstance(b, str):
        return None if a == b else f"{_text(a)} != {_text(b)}"
    for name in b:
        left, right = a[name], b[name]
        if isinstance(right, str):
            if left != right:
                return f"{name}: {left} != {right}"
            continue
        left, right = np.asarray(left, float), np.asarray(right, float)
        if left.shape != right.shape:
            return f"{name}: shape {left.shape} != {right.shape}"
        scale = float(np.nanmax(np.abs(right), initial=1e-300))
        if not np.allclose(left, right, rtol=ALIKE, atol=ALIKE * scale, equal_nan=True):
            off = float(np.nanmax(np.abs(left - right)))
            return f"{name}: off by {off:.3g} of {scale:.3g}"
    return None


def _text(result: Any) -> str:
    return result[:200] if isinstance(result, str) else "a result"


def verdict(kind: str, change: str, alone: Result | str, before: Result | str) -> str:
    """What is wrong with a pair, or "same" or "refused"."""
    if isinstance(alone, str):
        return f"fails alone: {alone}"
    after = in_a_fork(lambda: second(kind, change))
    if isinstance(after, str) and after.startswith("refused"):
        return "refused"
    found = difference(after, alone)
    if found is not None:
        return f"stale: {found}"
    if change != "nothing" and difference(alone, before) is None:
        return "without effect: the change does not show in the result"
    return "same"


def load_everything() -> None:
    """Import what forks would import one by one."""
    for module in pkgutil.walk_packages(mlopt.__path__, "mlopt."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    with tempfile.TemporaryDirectory() as folder:  # a first database loads most of Alembic
        optuna.storages.RDBStorage(f"sqlite:///{folder}/study.db")


def main(kinds: list[str]) -> None:
    """A line a pair of these kinds of runs."""
    warnings.simplefilter("ignore")
    load_everything()
    alone: dict[tuple[str, str], Any] = {}
    for kind in kinds or list(RUNS):
        bare = ALONE.get(kind, kind)
        for change in ["nothing", *(c for c in CHANGES if c in RUNS[kind][1])]:
            if (bare, change) not in alone:
                alone[bare, change] = in_a_fork(lambda: fresh(bare, change))  # noqa: B023
            said = verdict(kind, change, alone[bare, change], alone[bare, "nothing"])
            line = json.dumps({"kind": kind, "change": change, "verdict": said})
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
