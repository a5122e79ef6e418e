"""What a user gives to a job: a model as parts, rows as cells; what must hold of them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from mlopt.cluster import Executor, Mesh, Threads, executor
from mlopt.errors import InputError
from mlopt.parameters import check_count
from mlopt.rows import Rows
from mlopt.rows.block import check_unmasked
from mlopt.server.blocks import Array
from mlopt.server.program import Program

Parts = list[dict[str, Array]]
ALONE = ""
"""The name of an array that is a model by itself."""


def is_in_parts(model: Any) -> bool:
    """Whether a model is a sequence of parts; a text is none."""
    return isinstance(model, Sequence) and not isinstance(model, str | bytes)


def parts_of(model: Any) -> Parts:
    """A model as arrays by name, part by part; not copied.

    Raises
    ------
    InputError
        It holds no numbers, or its parts are no arrays by name.
    """
    if not is_in_parts(model):
        return [_part_of(model if isinstance(model, Mapping) else {ALONE: model})]
    if not len(model):
        raise InputError("A model that is a list must have a part, got none.")
    for part in model:
        if not isinstance(part, Mapping):
            raise InputError(
                "A model that is a list has parts that are arrays by name, "
                f"{{'w': array}}; got {part!r:.60}: of a list of numbers make an array."
            )
    return [_part_of(part) for part in model]


def _part_of(part: Mapping[Any, Any]) -> dict[str, Array]:
    if not part:
        raise InputError("A model must have an array, got none.")
    found = {}
    for name, value in part.items():
        if not isinstance(name, str):
            raise InputError(f"The names of a model's arrays must be texts, got {name!r}.")
        what = f"`{name}`" if name else "it"
        check_unmasked(value, "A model")
        if sp.issparse(value):
            raise InputError(
                f"Arrays of a model must be dense: {what} is sparse. Give its `toarray`."
            )
        array = np.asarray(value)
        if array.dtype.kind not in "biufc" or not array.size:
            raise InputError(
                f"Arrays of a model must hold numbers, and some; {what} has the shape "
                f"{array.shape} and the type {array.dtype}."
            )
        found[name] = array
    return found


class Kept(NamedTuple):
    """What a job has come to.

    Attributes
    ----------
    passes : int
    parts : sequence of mapping of str to ndarray
    steps : tuple of int
        Of each stratum; empty: those of the passes.
    """

    passes: int
    parts: Sequence[Mapping[str, Array]]
    steps: tuple[int, ...] = ()


def check_state(state: Mapping[str, Any], program: Program) -> Kept:
    """A checkpoint of a job like this one.

    Raises
    ------
    InputError
        It is none of a job like this one.
    """
    found = parts_of(state["model"]) if {"model", "passes"} <= state.keys() else []
    theirs, ours = _shapes(found), _shapes(program.parts)
    steps = tuple(state.get("steps", ()))
    if theirs != ours or len(steps) not in (0, len(program.cells)):
        raise InputError(
            "`restore` needs the `state` of a job like this one, with its passes and a "
            f"model of the shapes {ours}; got {sorted(state)} with {theirs}, and steps of "
            f"{len(steps)} blocks, not {len(program.cells)}."
        )
    return Kept(check_count("passes", state["passes"], least=0), found, steps)


def _shapes(parts: Sequence[Mapping[str, Array]]) -> list[dict[str, tuple[int, ...]]]:
    return [{name: array.shape for name, array in part.items()} for part in parts]


def is_finite(parts: Sequence[Mapping[str, Array]]) -> bool:
    """Whether a model has neither NaN nor infinity."""
    return all(bool(np.isfinite(one).all()) for part in parts for one in part.values())


def check_where(where: Any) -> None:
    """Refuse a place that is none.

    Raises
    ------
    InputError
    """
    # Whoever has a client has imported distributed; nobody else should pay for it.
    distributed: Any = sys.modules.get("distributed")
    client = distributed is not None and isinstance(where, distributed.Client)
    if not (where is None or client or isinstance(where, Executor | Mesh)):
        raise InputError(
            f"`where` must be a client, an executor or a mesh, got {where!r:.60}: of an "
            "address make a `distributed.Client`."
        )


def cells_of(
    rows: Any, y: Any, in_parts: bool, where: Any
) -> tuple[Sequence[Sequence[Any]], Executor | None]:
    """Rows as cells, ``cells[stratum][part]``; and the executor that has them, if any.

    Raises
    ------
    InputError
        They are none, or not as the model needs them.
    """
    if is_in_parts(rows) and (in_parts or not _is_matrix(rows)):
        if y is not None:
            raise InputError("`y` is for rows that are cut here: put it into your blocks.")
        if not rows:
            raise InputError("`rows` must hold a block, got none.")
        return [list(one) if in_parts else [one] for one in rows], None
    if in_parts:
        raise InputError(
            "`rows` for a model in parts must be a sequence of strata, each a sequence "
            f"with a block for each part; got {type(rows).__name__}."
        )
    if not hasattr(rows, "shape") and not isinstance(rows, Rows | list | tuple):
        raise InputError(
            "`rows` must be a matrix, a frame, `Rows`, or a sequence of blocks; got "
            f"{type(rows).__name__}."
        )
    held = where if isinstance(where, Executor) else None
    if held is None and not isinstance(where, Mesh):
        held = executor(where)
    cut = Rows.of(rows, executor=held or Threads(1))
    if y is not None:
        check_unmasked(y, "y")
        cut = cut.attach(y=np.asarray(y))
    if isinstance(cut.executor, Threads):
        return [[block] for block in cut.map(_itself)], None
    cells = [
        [cut.executor.derive(_block, shelf, at)]
        for shelf, size in zip(cut.shelves, cut.sizes, strict=True)
        for at in range(size)
    ]
    return cells, cut.executor


def _is_matrix(rows: Sequence[Any]) -> bool:
    return bool(rows) and all(
        isinstance(row, list | tuple) and row and all(np.isscalar(x) for x in row)
        for row in rows
    )


def _itself(block: Any) -> Any:
    return block


def _block(shelf: Sequence[Any], at: int) -> Any:
    return shelf[at]
