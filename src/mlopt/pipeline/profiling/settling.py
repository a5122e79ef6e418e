"""What only a sample tells of operators: whether they go row by row, or at random."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from mlopt.pipeline.blocks import tables
from mlopt.pipeline.graph.operators import Apply, Join, Operator
from mlopt.pipeline.graph.walking import Sinks, rebuild
from mlopt.pipeline.profiling.trial import Trial


def settle(sinks: Sinks, trial: Trial) -> Sinks:
    """Find out on the sample what was unknown: whether steps go row by row, or at random.

    A step without state may do anything with the rows it is given. If it makes the same of
    some rows alone as of these rows among others, it is taken to go row by row.
    """

    def look(op: Operator) -> Operator:
        if isinstance(op, Join) and op.layout == "auto":
            return _with_layout(op, trial)
        if isinstance(op, Apply) and op.scope == "unknown":
            return _with_scope(op, trial)
        return op

    return rebuild(sinks, look)


def _with_layout(op: Join, trial: Trial) -> Join:
    """A union comes out dense or sparse as scikit-learn would have it, in every block."""
    value = trial.value(op)
    if not any(tables.is_sparse(trial.value(part)) for part in op.parts):
        return op
    return replace(op, layout="sparse" if tables.is_sparse(value) else "dense")


def _with_scope(op: Apply, trial: Trial) -> Apply:
    whole, n = trial.value(op), trial.rows
    if not _equal(whole, trial.again(op)):
        return replace(op, scope="all", random=True)
    half = trial.sample.part(max(1, n // 2))
    step = max(1, n // max(1, n // 2))
    among = tables.take_rows(whole, list(range(0, n, step))[: half.size])
    alone = Trial(half).value(op)
    return replace(op, scope="rows" if _equal(alone, among) else "all")


def _equal(left: Any, right: Any) -> bool:
    if tables.kind_of(left) != tables.kind_of(right):
        return False
    if tables.is_sparse(left):
        left, right = left.toarray(), right.toarray()
    a, b = np.asarray(left), np.asarray(right)
    if a.shape != b.shape:
        return False
    if a.dtype.kind in "fc":
        return bool(np.allclose(a, b, rtol=1e-6, atol=1e-12, equal_nan=True))
    return bool((a == b).all())
