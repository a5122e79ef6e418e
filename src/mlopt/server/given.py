"""What a user gives to a job: a model as parts, settings, and what must hold of them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np

from mlopt.cluster import Executor, Mesh
from mlopt.errors import InputError
from mlopt.rows.block import check_unmasked
from mlopt.server.blocks import Array

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
        array = np.asarray(value)
        if array.dtype.kind not in "biufc" or not array.size:
            raise InputError(
                f"Arrays of a model must hold numbers, and some; {what} has the shape "
                f"{array.shape} and the type {array.dtype}."
            )
        found[name] = array
    return found


def check_state(state: Mapping[str, Any], parts: Sequence[Mapping[str, Array]]) -> Parts:
    """The parts of a checkpoint of a job with such parts.

    Raises
    ------
    InputError
        It is none of a job like this one.
    """
    found = parts_of(state["model"]) if {"model", "passes"} <= state.keys() else []
    theirs, ours = _shapes(found), _shapes(parts)
    if theirs != ours:
        raise InputError(
            "`restore` needs the `state` of a job like this one, with its passes and a "
            f"model of the shapes {ours}; got {sorted(state)} with {theirs}."
        )
    return found


def _shapes(parts: Sequence[Mapping[str, Array]]) -> list[dict[str, tuple[int, ...]]]:
    return [{name: array.shape for name, array in part.items()} for part in parts]


def is_finite(parts: Sequence[Mapping[str, Array]]) -> bool:
    """Whether a model has neither NaN nor infinity."""
    return all(bool(np.isfinite(one).all()) for part in parts for one in part.values())


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least so much.

    Raises
    ------
    InputError
    """
    if not isinstance(value, Integral) or value < least:
        raise InputError(
            f"`{name}` must be a whole number of at least {least}, got {value!r}."
        )
    return int(value)


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
