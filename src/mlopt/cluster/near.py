"""Rows in memory that are better left where they are, though a cluster is there."""

from __future__ import annotations

from collections.abc import Iterable
from sys import getsizeof
from typing import Any

import numpy as np

from mlopt.options import plans_always
from mlopt.resources.descriptor import Resources

_HERE = Resources()
NEAR = _HERE.bandwidth * _HERE.round_trip
"""Bytes that one thread reads until a worker would have answered: a fit asks many times."""
_VALUE = 8
"""Bytes of a label, of a sparse value, and of where that stands."""
_SOME = 256
"""Rows, at even distances, that tell how long texts are: a fraction of a millisecond."""


def are_near(data: Iterable[Any]) -> bool:
    """Whether these are in memory, and a pass over them takes less than to ask a worker.

    ``mlopt.plan`` set to "always" says no: then what is there is used, whatever it takes.
    """
    sizes = [_bytes(one) for one in data if one is not None]
    if plans_always() or not sizes or None in sizes:
        return False
    return sum(size for size in sizes if size is not None) <= NEAR


def would_be_near(X: Any, y: Any) -> bool:
    """Whether Dask data tell, unread, that they and their targets would be near here."""
    if plans_always() or len(getattr(X, "shape", ())) != 2:
        return False
    sizes = [_lazy_bytes(X), 0.0 if y is None else _lazy_bytes(y) or _bytes(y)]
    return None not in sizes and sum(filter(None, sizes)) <= NEAR


def _lazy_bytes(data: Any) -> float | None:
    """Of a dense Dask array of numbers, or of a frame whose rows are in memory somewhere;
    None of others, or where lengths are not known."""
    if hasattr(data, "expr"):
        sizes = [_held_bytes(one) for one in data.expr.simplify().walk()]
        return None if None in sizes else sum(filter(None, sizes))
    known = isinstance(getattr(data, "_meta", None), np.ndarray) and data.dtype != object
    return float(data.nbytes) if known and data.nbytes == data.nbytes else None


def _held_bytes(expression: Any) -> float | None:
    """That a part of a Dask frame holds itself: none where it chooses columns of others."""
    kind = type(expression).__name__
    if kind == "FromPandas":
        return _bytes(expression.frame.iloc[:])
    if kind == "FromGraph":  # as `persist` leaves it
        from distributed import Future

        parts = [*expression.operand("layer").values()]
        # Those still computed, failed or lost have no size: the scheduler would say 1 kB.
        if not all(isinstance(one, Future) and one.status == "finished" for one in parts):
            return None
        sizes = parts[0].client.nbytes([part.key for part in parts], summary=False)
        return float(sum(sizes.values())) if len(sizes) == len(parts) else None
    return 0.0 if kind == "Projection" else None


def _bytes(data: Any) -> float | None:
    """About; None of what is not here, or not known.

    Dask's own `sizeof` draws from the generators of the process, which are the user's.
    """
    if hasattr(data, "__dask_graph__"):
        return None
    if hasattr(data, "memory_usage"):
        some = data.iloc[:: max(1, len(data) // _SOME)]
        return _scaled(np.sum(some.memory_usage(deep=True)), some, data)
    if isinstance(data, np.ndarray):
        if data.dtype != object:
            return float(data.nbytes)
        some = data[:: max(1, len(data) // _SOME)] if data.ndim else data
        return _scaled(sum(map(getsizeof, some.flat)), some, data)
    if hasattr(data, "tocsr"):
        return 2.0 * _VALUE * float(data.nnz)
    if isinstance(data, list | tuple):
        texts = all(isinstance(one, str) for one in data)
        flat = texts or not any(hasattr(one, "__len__") for one in data)
        return float(sum(map(len, data)) if texts else _VALUE * len(data)) if flat else None
    return None


def _scaled(nbytes: float, some: Any, data: Any) -> float:
    """Of all, where some rows take so many."""
    return float(nbytes) * np.size(data) / max(1, np.size(some))
