"""What this process has made already, by the token of how it came about.

KeystoneML's state reuse: an equal prefix of operators, parameters and data is not fitted a
second time, in whichever pipeline it occurs. This is off unless it is asked for: models are
remembered where `mlopt.reuse-models` says how many bytes, rows where `mlopt.reuse-rows`
does; both outlive the process where `mlopt.disk` names a folder, one that only trusted
programs write to.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mlopt import options
from mlopt.caching import Disk, Keeper
from mlopt.identity import join
from mlopt.locking import in_forks, open_in_forks
from mlopt.pipeline.blocks.tables import count_bytes
from mlopt.pipeline.graph.operators import Apply, Learn, Operator
from mlopt.pipeline.graph.walking import walk
from mlopt.resources.sizes import memory_of


class Environment:
    """Models and rows within budgets of bytes, and on disk where that is asked for.

    Attributes
    ----------
    hits : int
        Models that were found.
    """

    def __init__(self) -> None:
        self.hits = 0
        self._lock = threading.Lock()
        self.clear()

    def get(self, token: str) -> Any:
        """The model, or None."""
        with self._lock:
            model = _held(self._models, token, self.budget)
        if model is None:
            model = _read("model", token)
        with self._lock:
            self.hits += model is not None
        return model

    def put(self, token: str, model: Any) -> None:
        """Remember a model, unless it alone is larger than the budget."""
        with self._lock:
            if self.budget or self._models.budget:
                self._models.budget = self.budget
                self._models.keep(token, model, model_bytes(model))
        _write("model", token, model)

    def get_rows(self, token: str) -> Any:
        """The blocks of an operator's rows, or None."""
        with self._lock:
            found = _held(self._rows, token, options.size("mlopt.reuse-rows"))
        return _read("rows", token) if found is None else found

    def put_rows(self, token: str, blocks: list[Any]) -> None:
        """Remember rows, if there is room for all of them."""
        with self._lock:
            self._rows.budget = options.size("mlopt.reuse-rows")
            self._rows.keep(token, blocks, sum(map(count_bytes, blocks)))
        _write("rows", token, blocks)

    def reopen(self) -> None:
        """In a fork, where nobody is left who would open what was locked."""
        self._models.reopen()
        self._rows.reopen()

    @property
    def budget(self) -> int:
        """Bytes of models."""
        return options.size("mlopt.reuse-models")

    @property
    def takes_rows(self) -> bool:
        """Whether anything is done with rows."""
        return options.size("mlopt.reuse-rows") > 0 or _disk() is not None

    @property
    def remembers(self) -> bool:
        """Whether anything is left to later runs, or taken from earlier ones."""
        return self.budget > 0 or self.takes_rows

    def has_rows(self, token: str) -> bool:
        """Whether `get_rows` would find something."""
        with self._lock:
            here = token in self._rows and options.size("mlopt.reuse-rows") > 0
        return here or _on_disk("rows", token)

    def clear(self) -> None:
        """Forget everything in memory."""
        with self._lock:
            self._models, self._rows = Keeper(0), Keeper(0)

    def __contains__(self, token: str) -> bool:
        with self._lock:
            here = token in self._models and self.budget > 0
        return here or _on_disk("model", token)

    def __len__(self) -> int:
        return len(self._models)


def repeatable(sinks: Iterable[Operator]) -> set[str]:
    """Operators that give the same whenever they are computed, by token.

    Not what depends on chance without a seed, nor on what nobody declared.
    """
    found: set[str] = set()
    for op in walk(sinks):
        chance = isinstance(op, Learn) and not op.repeats
        chance |= isinstance(op, Apply) and op.random
        if not chance and all(i.token in found for i in op.inputs):
            found.add(op.token)
    return found


def model_bytes(model: Any) -> int:
    """Bytes of what a model has learnt."""
    if isinstance(model, type) or not hasattr(model, "__dict__"):
        return memory_of(model)
    return sum(
        model_bytes(value) if hasattr(value, "get_params") else memory_of(value)
        for value in vars(model).values()
    )


def _held(keeper: Keeper, token: str, budget: int) -> Any:
    return keeper.take(token) if budget and token in keeper else None


def _disk() -> Disk | None:
    if (folder := options.folder("mlopt.disk")) is None:
        return None
    try:
        return Disk(Path(folder).expanduser(), options.size("mlopt.disk-limit", "100GB"))
    except OSError as error:
        wanted = f"a folder that can be written to ({error.strerror})"
        raise options.refusal("mlopt.disk", wanted, folder) from None


def _on_disk(kind: str, token: str) -> bool:
    disk = _disk()
    return disk is not None and _file(kind, token) in disk


def _read(kind: str, token: str) -> Any:
    disk = _disk()
    with suppress(KeyError):
        return None if disk is None else disk.read(_file(kind, token))
    return None


def _write(kind: str, token: str, value: Any) -> None:
    disk = _disk()
    # What cannot be written is made again by those who need it.
    with suppress(OSError, pickle.PicklingError, TypeError, AttributeError):
        if disk is not None and _file(kind, token) not in disk:
            disk.write(_file(kind, token), value)


def _file(kind: str, token: str) -> str:
    """Another version may fit otherwise."""
    return f"{kind}-{join(_version(), token)}"


@cache
def _version() -> str:
    return version("mlopt")


environment = Environment()
"""That of this process."""
open_in_forks(environment._lock)
in_forks(environment.reopen)
