"""Rows that travel with what was made from them: blocks of memory do, not of a cluster.

::

    fields of Rows  ->  packed:    blocks, or a key for each shelf of a cluster
                    ->  unpacked:  blocks on threads, or shelves that say why they are gone
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from mlopt.cluster import Threads
from mlopt.errors import InputError


class _Gone(Future[Any]):
    """A shelf of a cluster, of which the ``key`` came along."""

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key
        self.set_exception(
            InputError(
                "Rows that lie on a cluster do not travel with what was made from them, "
                "such as a plan that was pickled: they must be read again. Make it anew "
                "from the data."
            )
        )


def packed(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `Rows` to be pickled."""
    executor = fields["executor"]
    here = isinstance(executor, Threads)
    shelves = [
        executor.result(one) if here and not isinstance(one, _Gone) else str(one.key)
        for one in fields["shelves"]
    ]
    threads = executor.threads if here else None
    return {**fields, "shelves": shelves, "executor": threads}


def unpacked(state: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of `Rows` that `packed` gave."""
    executor = Threads(state["executor"])
    shelves = tuple(
        _Gone(one) if isinstance(one, str) else executor.put(one)
        for one in state["shelves"]
    )
    return {**state, "shelves": shelves, "executor": executor}
