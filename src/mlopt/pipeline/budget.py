"""How many bytes of intermediate rows may be kept."""

from __future__ import annotations

from typing import Any

from mlopt import options
from mlopt.cluster import Executor
from mlopt.parameters import bytes_of
from mlopt.resources.probe import memory_free
from mlopt.rows.room import memories

_SHARE = 0.75
"""Of the free memory (KeystoneML's default)."""
_SPILLS, _WORKERS = 0.6, 0.5
"""Of a worker's limit, where Dask begins to spill; of what a worker's process leaves up to
there: the work itself needs room."""


def budget_bytes(given: Any, executor: Executor | None) -> int:
    """The budget that ``memory_budget`` means.

    Parameters
    ----------
    given : int, str or "auto"
    executor : Executor or None
        None for this process.

    Raises
    ------
    InputError
        When it is no number of bytes.
    """
    name = "`memory_budget`"
    if isinstance(given, str | None) and given in ("auto", None):
        name = "`mlopt.memory-budget` in dask.config"
        given = options.given("mlopt.memory-budget", "auto")
    if isinstance(given, str) and given == "auto":
        return _free(executor)
    return bytes_of(name, given, instead='"auto"')


def _free(executor: Executor | None) -> int:
    if executor is None or getattr(executor, "client", None) is None:
        return int(_SHARE * memory_free())
    return int(sum(_WORKERS * one.below(_SPILLS) for one in memories(executor)))
