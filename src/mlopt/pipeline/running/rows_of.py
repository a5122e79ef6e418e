"""Blocks of a graph as `Rows`, for algorithms that read them again and again."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask
import numpy as np
import scipy.sparse as sp
from dask.core import toposort
from dask.optimization import cull
from dask.task_spec import DataNode, GraphNode

from mlopt.cluster import Executor, Threads, bringing, once
from mlopt.pipeline.blocks import tables
from mlopt.rows import Block, Rows
from mlopt.rows.block import Found, as_matrix, convert, float_dtype, inspect
from mlopt.rows.frames import frame_dtype, frame_matrix, is_frame, part_matrix
from mlopt.rows.lazy import LazyShelf
from mlopt.rows.room import at_once, memories
from mlopt.rows.rows import OfBlocks
from mlopt.rows.source import Source, shelf_sizes

_EACH = 8
"""Times as many tasks a pass as over blocks that are held: about 16 for each slot, so that
none waits for the last longer than a 16th of the pass."""


def rows_of(
    graph: dict[Any, Any],
    keys: list[Any],
    executor: Executor,
    *,
    kept: bool,
    flat: bool = False,
) -> Rows:
    """The rows under ``keys``; computed anew in every pass unless they are ``kept``.

    With ``flat``, each descriptor of an image is a row.

    Raises
    ------
    InputError
        When they are not finite numbers.
    """
    if kept:
        blocks = executor.run_graph(graph, keys)
        look = executor.result(executor.submit(_kind, blocks[0]))
        matrices = [executor.submit(_numbers, b, look, flat) for b in blocks]
        found = executor.map(inspect, matrices)
        return _rows(matrices, found, look, executor)
    return _lazy_rows(graph, keys, executor, flat)


def _lazy_rows(
    graph: dict[Any, Any], keys: list[Any], executor: Executor, flat: bool
) -> Rows:
    if isinstance(executor, Threads):
        graph = bringing(graph)
    recipes = [_recipe(graph, key) for key in keys]
    # In one task, so that nobody holds the block.
    look = executor.result(executor.submit(_kind_of_computed, *recipes[0]))
    most = at_once(memories(executor), look.nbytes)
    settings = look, flat, most
    shelves, sizes = _lazy_shelves(recipes, executor, *settings)
    found = executor.reduce(OfBlocks(_look, operator.add), operator.add, shelves)
    if not all(one.rows for one in found) and any(one.rows for one in found):
        # A split may have no row of a block; an empty one has no say in anything.
        recipes = [r for r, one in zip(recipes, found, strict=True) if one.rows]
        found = [one for one in found if one.rows]
        shelves, sizes = _lazy_shelves(recipes, executor, *settings)
    source = Source(tuple(shelves), sizes, tuple(found), look.names)
    return Rows.on_shelves(source, executor)


def _lazy_shelves(
    recipes: Sequence[tuple[_Recipe, dict[Any, Any]]],
    executor: Executor,
    look: _Kind,
    flat: bool,
    most: int | None,
) -> tuple[list[Any], tuple[int, ...]]:
    """Handles of shelves, each of several blocks where the executor would have it so."""
    # What a task holds is one block, however many it is for: the last must not take long.
    sizes = shelf_sizes(len(recipes), executor.group(-(-len(recipes) // _EACH), 0))
    shelves = []
    for end, size in zip(np.cumsum(sizes).tolist(), sizes, strict=True):
        own, values = zip(*recipes[end - size : end], strict=True)
        job = partial(_lazy_shelf, index=end - size, look=look, flat=flat, at_once=most)
        shelves.append(executor.submit(job, list(own), list(values)))
    return shelves, sizes


def _lazy_shelf(
    recipes: Sequence[_Recipe],
    values: Sequence[Any],
    *,
    index: int,
    look: _Kind,
    flat: bool,
    at_once: int | None,
) -> LazyShelf:
    pairs = zip(recipes, values, strict=True)
    makes = tuple(_Maker(recipe, given, look, flat) for recipe, given in pairs)
    return LazyShelf(makes, index, at_once=at_once)


@dataclass(frozen=True)
class _Recipe:
    """What makes one block.

    Attributes
    ----------
    reading : mapping of key to task
        Those that need no handle: the same for all splits.
    read : tuple of key
        What others need of these.
    tasks : mapping of key to task
        The others, behind models of a split.
    key : key
        The block.
    """

    reading: Mapping[Any, Any]
    read: tuple[Any, ...]
    tasks: Mapping[Any, Any]
    key: Any

    def make(self, values: Mapping[Any, Any]) -> Any:
        """The block, with the values of handles by their keys."""
        found = once(self.read, self._read)
        before = zip(self.read, found, strict=True)
        given = {key: DataNode(key, value) for key, value in before}
        return dask.get({**self.tasks, **given, **values}, self.key)

    def _read(self) -> Any:
        return dask.get(dict(self.reading), list(self.read))


def _recipe(graph: dict[Any, Any], key: Any) -> tuple[_Recipe, dict[Any, Any]]:
    """What makes a block, and the handles that it needs."""
    tasks, _ = cull(graph, [key])
    handles = {k: v for k, v in tasks.items() if _is_handle(v)}
    needs = {k: _needs(v) & tasks.keys() for k, v in tasks.items()}
    own = set(handles)
    for one in toposort(needs, dependencies=needs):
        if needs[one] & own or not isinstance(tasks[one], GraphNode):
            own.add(one)
    read = {one for k in own for one in needs[k]} | {key}
    return _Recipe(
        {k: v for k, v in tasks.items() if k not in own},
        tuple(sorted(read - own, key=str)),
        {k: tasks[k] for k in own - handles.keys()},
        key,
    ), handles


def _needs(task: Any) -> set[Any]:
    return set(task.dependencies) if isinstance(task, GraphNode) else set()


def _is_handle(value: Any) -> bool:
    return hasattr(value, "result") and hasattr(value, "cancel")


class _Maker:
    """Computes one block, as numbers of one type."""

    def __init__(self, recipe: _Recipe, values: Any, look: _Kind, flat: bool) -> None:
        self.recipe, self.values = recipe, values
        self.look, self.flat = look, flat

    def __call__(self) -> Any:
        return _numbers(self.recipe.make(self.values), self.look, self.flat)


def _look(block: Block) -> list[Found]:
    return [inspect(block.X)]


def _shelf(matrix: Any, index: int) -> tuple[Block, ...]:
    return (Block(matrix, index=index),)


@dataclass(frozen=True)
class _Kind:
    """What the first block says of all: the type of the numbers, names of the columns.

    ``names`` is None where scikit-learn would learn none; ``nbytes`` are its own.
    """

    dtype: np.dtype
    nbytes: int
    names: tuple[str, ...] | None = None


def _kind(block: Any) -> _Kind:
    nbytes = tables.count_bytes(block)
    if is_frame(block):
        columns = list(block.columns)
        named = all(isinstance(name, str) for name in columns)
        names = tuple(columns) if named else None
        return _Kind(frame_dtype(block), nbytes, names)
    block = tables.as_numbers(block)
    dtype = (block if sp.issparse(block) else np.asarray(block)).dtype
    return _Kind(float_dtype(dtype), nbytes)


def _kind_of_computed(recipe: _Recipe, values: Any) -> _Kind:
    return _kind(recipe.make(values))


def _numbers(block: Any, look: _Kind, flat: bool) -> Any:
    block = tables.as_numbers(block, flattens=flat)
    if is_frame(block):
        if look.names is None:
            return frame_matrix(block, look.dtype)
        return part_matrix(block, look.dtype, look.names)
    if tables.count_rows(block) == 0:
        return convert(block, look.dtype)
    return as_matrix(block, look.dtype)


def _rows(values: list[Any], found: list[Found], look: _Kind, executor: Executor) -> Rows:
    """On shelves of one block."""
    # A split may have no row of a block; an empty one has no say in anything.
    pairs = [(v, one) for v, one in zip(values, found, strict=True) if one.rows]
    values, found = [v for v, _ in pairs], [one for _, one in pairs]
    shelves = [executor.submit(_shelf, v, index) for index, v in enumerate(values)]
    source = Source(tuple(shelves), (1,) * len(shelves), tuple(found), look.names)
    return Rows.on_shelves(source, executor)
