"""Rows in memory that are better left where they are, though a cluster is there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from mlopt.options import plans_always
from mlopt.resources.descriptor import Resources
from mlopt.resources.sizes import memory_of

_HERE = Resources()
NEAR = _HERE.bandwidth * _HERE.round_trip
"""Bytes that one thread reads until a worker would have answered: a fit asks many times."""


def are_near(data: Iterable[Any]) -> bool:
    """Whether these are in memory, and a pass over them takes less than to ask a worker.

    ``mlopt.plan`` set to "always" says no: then what is there is used, whatever it takes.
    """
    sizes = [_bytes(one) for one in data if one is not None]
    if not sizes or None in sizes:
        return False
    return is_near(sum(size for size in sizes if size is not None))


def is_near(nbytes: float) -> bool:
    """Whether a pass over so many bytes in memory takes less than to ask a worker."""
    return nbytes <= NEAR and not plans_always()


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
    """About; None of what is not here, or not known."""
    if hasattr(data, "__dask_graph__"):
        return None
    if isinstance(data, list | tuple):
        flat = all(isinstance(one, str) or not hasattr(one, "__len__") for one in data)
        return float(memory_of(data)) if flat else None
    known = isinstance(data, np.ndarray) or hasattr(data, "memory_usage")
    return float(memory_of(data)) if known or hasattr(data, "tocsr") else None
