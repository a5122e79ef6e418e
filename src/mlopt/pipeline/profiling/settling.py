"""What only a sample tells of operators: whether unions come out dense or sparse."""

from __future__ import annotations

from dataclasses import replace

from mlopt.pipeline.blocks import tables
from mlopt.pipeline.graph.operators import Join, Operator
from mlopt.pipeline.graph.walking import Sinks, rebuild
from mlopt.pipeline.profiling.trial import Trial


def settle(sinks: Sinks, trial: Trial) -> Sinks:
    """Unions come out dense or sparse as scikit-learn would have it, in every block."""

    def look(op: Operator) -> Operator:
        if not isinstance(op, Join) or op.layout != "auto":
            return op
        value = trial.value(op)
        if not any(tables.is_sparse(trial.value(part)) for part in op.parts):
            return op
        return replace(op, layout="sparse" if tables.is_sparse(value) else "dense")

    return rebuild(sinks, look)
