"""Size and shape of rows at one place of a pipeline, as far as samples tell them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mlopt.pipeline.blocks import tables
from mlopt.pipeline.graph.operators import Learn
from mlopt.pipeline.profiling.trial import Trial
from mlopt.pipeline.steps.nested import classifies
from mlopt.stats import Stats, stored_share


def stats_of_fit(op: Learn, trial: Trial, rows: int, blocks: int) -> Stats:
    """What `op` learns from, as far as some rows tell it."""
    x = stats_of(trial.value(op.x), rows, blocks)
    return replace(x, outputs=outputs_of(op, trial))


def outputs_of(op: Learn, trial: Trial) -> int:
    """Columns of a linear model: targets, or classes where there are three or more."""
    if op.y is None:
        return 1
    y = np.asarray(trial.value(op.y))
    if y.ndim == 2:
        return int(y.shape[1])
    if classifies(op.estimator):
        classes = len(np.unique(y))
        return classes if classes > 2 else 1
    return 1


def stats_of(value: Any, rows: int, blocks: int) -> Stats:
    """Of all ``rows``, if they are like these."""
    n, columns = max(1, tables.count_rows(value)), tables.count_columns(value)
    if tables.is_sparse(value):
        return Stats(
            rows,
            columns,
            density=stored_share(value),
            dtype=value.dtype.name,
            partitions=blocks,
            sparse=True,
        )
    dtype = getattr(getattr(value, "dtype", None), "name", "mixed")
    nbytes = round(tables.count_bytes(value) / n * rows)
    density = 1.0
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub" and value.size:
        density = float(np.count_nonzero(value)) / value.size
    return Stats(
        rows, columns, density=density, dtype=dtype, bytes=nbytes, partitions=blocks
    )


def grown(stats: Stats, values: Sequence[Any]) -> Stats:
    """With as many columns as all rows may give, where some give more than they are.

    Words go on coming, as a power of the rows (Heaps' law): that of the two largest of the
    samples whose ``values`` these are, the largest last.
    """
    if len(values) < 2 or not all(map(tables.is_sparse, values[-2:])):
        return stats
    rows, columns, stored = np.array([_counts(value) for value in values[-2:]]).T
    if columns[1] <= max(columns[0], rows[1]) or rows[1] <= rows[0]:
        return stats
    times = stats.rows / rows[1]
    powers = np.log([columns[1] / columns[0], stored[1] / rows[1] / (stored[0] / rows[0])])
    more, longer = np.clip(powers / np.log(rows[1] / rows[0]), 0.0, 1.0)
    width = round(columns[1] * times**more)
    each = stored[1] / rows[1] * times**longer
    return replace(stats, columns=width, density=min(1.0, each / width), bytes=-1)


def _counts(value: Any) -> tuple[int, int, int]:
    """Rows, columns and stored values of sparse rows, at least one of each."""
    n, columns = value.shape
    return max(1, n), max(1, columns), max(1, value.nnz)
