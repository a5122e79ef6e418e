"""Blocks of rows that are kept while a plan runs, and put into graphs in place of tasks.

::

    (scale, 3)                    not held yet: its task keeps what it gives
    (scale, 3)  <-  made-(scale, 3)

    (scale, 3)                    held: fetched, without the tasks before it
                                  forgotten meanwhile: made again by those, and kept
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import dask
from dask.optimization import cull
from dask.task_spec import Alias, GraphNode, Task, TaskRef

from mlopt.caching import Keeper, Statistics
from mlopt.cluster import Executor, Threads
from mlopt.cluster.graphs import settled
from mlopt.pipeline.blocks import tables


class Shelf:
    """Kept blocks by the token of their operator and their number.

    A block never drives out another of the same operator: reading a little more than fits
    in turn would else find nothing (Spark's memory store does the same).

    In this process blocks are kept by the very tasks that make them, so that the budget
    holds while a graph runs. On a cluster the shelf holds handles, from when the graph ran.

    Parameters
    ----------
    budget : float
        Bytes, as measured.
    executor : Executor
    modest : str, optional
        Token of an operator whose blocks are kept where there is room only.
    """

    def __init__(self, budget: float, executor: Executor, modest: str = "") -> None:
        self.executor, self.modest = executor, modest
        self.here = isinstance(executor, Threads)
        self._keeper = Keeper(budget)
        self._blocks: dict[str, set[int]] = {}

    @property
    def statistics(self) -> Statistics:
        """What happened so far, in blocks and bytes."""
        return self._keeper.statistics

    def reserve(self, nbytes: float) -> bool:
        """Less room, for what is held elsewhere; whether there was as much."""
        left = self._keeper.budget - nbytes
        self._keeper.budget = max(0.0, left)
        return left >= 0

    def keep(self, token: str, number: int, value: Any, size: int) -> None:
        """Hold one block, or its handle, if there is room."""
        self._blocks.setdefault(token, set()).add(number)
        beside = f"{token}."
        self._keeper.keep(
            _slot(token, number),
            value,
            size,
            spare=lambda slot: token == self.modest or slot.startswith(beside),
        )

    def held(self, token: str) -> set[int]:
        """Numbers of the operator's blocks that are held now."""
        numbers = tuple(self._blocks.get(token, ()))
        return {number for number in numbers if _slot(token, number) in self._keeper}

    def blocks(self, token: str) -> list[Any]:
        """Those of an operator that are held in this process, in order."""
        held = sorted(self.held(token)) if self.here else []
        return [self._keeper.take(_slot(token, number)) for number in held]

    def tokens(self) -> tuple[str, ...]:
        """Operators of which blocks were held."""
        return tuple(self._blocks)

    def fetch(self, token: str, number: int, make: Callable[[], Any]) -> Any:
        """The block, made and kept if it is not held."""
        try:
            return self._keeper.take(_slot(token, number))
        except KeyError:
            value = make()
        self.keep(token, number, value, tables.count_bytes(value))
        return value

    def drop(self, token: str) -> None:
        """Let go of all blocks of an operator."""
        for number in self._blocks.pop(token, set()):
            self._keeper.drop(_slot(token, number))

    def weave(
        self, graph: dict[Any, Any], token: str, keys: Iterable[Any], *, again: bool
    ) -> None:
        """Put what is held in place of tasks; the other tasks keep what they give.

        Parameters
        ----------
        graph : dict
            Changed.
        token : str
            Of an operator whose rows are to be kept.
        keys : iterable of key
            Its blocks.
        again : bool
            Whether the graph is run several times.
        """
        held = self.held(token)
        for number, key in enumerate(keys):
            if not self.here:
                if number in held:
                    graph[key] = self._keeper.take(_slot(token, number))
                continue
            made = ("made", key)
            graph[made] = _moved(graph[key], made)
            if again or number in held:
                graph[key] = Task(key, _Fetch(self, token, number, graph, made))
            else:
                graph[key] = Task(key, _Keep(self, token, number), TaskRef(made))


def _slot(token: str, number: int) -> str:
    return f"{token}.{number}"


@dataclass(frozen=True, eq=False)
class _Keep:
    """Keeps what it is given, and passes it on."""

    shelf: Shelf
    token: str
    number: int

    def __call__(self, value: Any) -> Any:
        self.shelf.keep(self.token, self.number, value, tables.count_bytes(value))
        return value


@dataclass(frozen=True, eq=False)
class _Fetch:
    """Gives what is held, or makes it again."""

    shelf: Shelf
    token: str
    number: int
    graph: Mapping[Any, Any]
    key: Any

    def __call__(self) -> Any:
        return self.shelf.fetch(self.token, self.number, self._make)

    def _make(self) -> Any:
        tasks, _ = cull(self.graph, [self.key])
        return dask.get({key: settled(key, task) for key, task in tasks.items()}, self.key)


def _moved(task: Any, key: Any) -> Any:
    """The same task under another key."""
    if isinstance(task, Alias):  # which `substitute` leaves under its own
        return Alias(key, task.target)
    return task.substitute({}, key=key) if isinstance(task, GraphNode) else task
