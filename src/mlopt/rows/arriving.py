"""Data of a cluster that come to this process, since that takes less than to ask for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mlopt.cluster import Threads, executor
from mlopt.cluster.near import would_be_near
from mlopt.plan import format_bytes
from mlopt.rows.source import collected_together, is_dask


def brought(
    X: Any, y: Any, light: Callable[[Any, Any], bool] | None = None
) -> tuple[Any, Any, str]:
    """Few rows of Dask data on the active client's workers and their targets, here.

    Others as they are, and those for which what is done to such rows is not ``light``.
    And what a plan has to say of it.
    """
    lazy, _ = is_dask(X), is_dask(y)  # which refuses what has no rows
    if not (lazy and would_be_near(X, y)) or isinstance(executor(), Threads):
        return X, y, ""
    if hasattr(X, "columns"):  # somewhere in memory: to look at it computes nothing
        rows, targets = collected_together(X, y)
        if light is not None and not light(rows, targets):
            return X, y, ""
        return rows, targets, came(rows.memory_usage(deep=True).sum())
    if light is not None:
        like = np.broadcast_to(np.zeros((), X.dtype), X.shape)
        if not light(like, None if y is None else np.zeros(len(X), int)):
            return X, y, ""
    rows, targets = collected_together(X, y)
    return rows, targets, came(X.nbytes)


def came(nbytes: float) -> str:
    """That rows of so many bytes were brought."""
    return f"all rows come from the workers to this process: {format_bytes(nbytes)}"
