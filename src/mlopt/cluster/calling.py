"""Calls in this process, of futures that stand for their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent import futures
from typing import Any

from mlopt.cluster.executor import contained
from mlopt.cluster.limits import single_threaded


def called(function: Callable[..., Any], args: Sequence[Any]) -> Any:
    """``function`` of the values of ``args``, on one thread of BLAS."""
    values = resolve(args)
    with single_threaded(), contained():
        return function(*values)


def resolve(value: Any) -> Any:
    """Handles replaced by their values, in lists, tuples and dicts too."""
    if isinstance(value, futures.Future):
        return value.result()
    if type(value) in (list, tuple):
        return type(value)(resolve(item) for item in value)
    if type(value) is dict:
        return {key: resolve(item) for key, item in value.items()}
    return value
