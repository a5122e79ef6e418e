"""Calling an operator that may be the user's: errors name it, and its result is checked."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from mlopt.errors import InputError, MloptError, TaskError
from mlopt.gd.operators.interfaces import Batch, Context, Indices


def bound(function: Callable[..., Any]) -> Callable[[Any, Context], Any]:
    """The operator as a function of its input and the context.

    A plain function with one parameter is called without the context.
    """
    if not callable(function):
        raise InputError(f"An operator must be callable, got {function!r}.")
    return function if _takes_two(function) else _Alone(function)


class _Alone:
    """A function of the input only; a class, because workers must unpickle it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, value: Any, context: Context) -> Any:
        return self.function(value)


def _takes_two(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some built-in functions have no signature
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    required = [p for p in parameters if p.kind in kinds and p.default is p.empty]
    return len(required) >= 2 or any(p.kind is p.VAR_POSITIONAL for p in parameters)


def call(name: str, function: Callable[..., Any], value: Any, context: Context) -> Any:
    """``function(value, context)``; what it raises says which operator raised it.

    Raises
    ------
    TaskError
        When the operator raises anything but an error of mlopt's own.
    """
    try:
        return function(value, context)
    except MloptError:
        raise
    except Exception as error:
        where = f" in iteration {context['iteration']}" if context.get("iteration") else ""
        raise TaskError(
            f"The operator `{name}` raised {type(error).__name__}{where}: {error}."
        ) from error


def wrong(name: str, wanted: str, got: Any) -> InputError:
    """The error for a result that cannot be used."""
    if isinstance(got, np.ndarray):
        what = f"an array of shape {got.shape} and dtype {got.dtype}"
    else:
        what = f"{type(got).__name__} {got!r}"
    return InputError(f"The operator `{name}` must return {wanted}, got {what[:200]}.")


def as_batch(value: Any, rows: int) -> Batch:
    """What Transform returned."""
    if isinstance(value, tuple) and len(value) == 2:
        value = Batch(value[0], np.asarray(value[1]))
    if not isinstance(value, Batch):
        raise wrong("transform", "a Batch, or a pair (X, y)", value)
    shapes = (np.ndim(value.y) == 1 and value.X.ndim == 2) and (len(value), len(value.y))
    if shapes != (rows, rows):
        raise InputError(
            f"The operator `transform` must return X of shape ({rows}, d) and y of shape "
            f"({rows},) for {rows} units, got {value.X.shape} and {np.shape(value.y)}."
        )
    return value


def as_indices(value: Any, n: int) -> Indices:
    """What a Sample returned: numbers of rows, or a mask."""
    chosen = np.asarray(value)
    if chosen.dtype == bool and chosen.shape == (n,):
        chosen = np.flatnonzero(chosen)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu" or not chosen.size:
        raise wrong("sample", "at least one row number, or None for all rows", value)
    if chosen.min() < 0 or chosen.max() >= n:
        raise InputError(
            f"The operator `sample` must return row numbers from 0 to {n - 1}, got "
            f"{chosen.min()} to {chosen.max()}."
        )
    return chosen.astype(np.int64)


def as_weights(value: Any, context: Context) -> Any:
    """What Update returned: an array like the weights before."""
    before = np.shape(context["weights"])
    if np.shape(value) != before or np.asarray(value).dtype.kind not in "iuf":
        raise wrong("update", f"None or weights of shape {before}", value)
    return np.asarray(value)


def as_delta(value: Any) -> float:
    """What Converge returned."""
    number = isinstance(value, Real) or (isinstance(value, np.ndarray) and value.ndim == 0)
    if not number or math.isnan(value):
        raise wrong("converge", "one number that is not NaN", value)
    return float(value)


def as_flag(value: Any) -> bool:
    """What Loop returned."""
    if not isinstance(value, bool | np.bool_):
        raise wrong("loop", "True to go on or False to stop", value)
    return bool(value)
