"""What a sample tells before all rows do: whether unions come out dense or sparse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mlopt.pipeline.blocks import tables
from mlopt.pipeline.graph.operators import Join, Operator
from mlopt.pipeline.graph.walking import Sinks, rebuild
from mlopt.pipeline.profiling.trial import Trial


def settle(sinks: Sinks, trial: Trial, known: Mapping[str, str]) -> Sinks:
    """Unions come out dense or sparse as scikit-learn would have it, in every block.

    That is by the density of all rows where it is ``known``, by the path of a union, and
    else by that of a sample: whoever runs the plan must see whether that holds
    (`mlopt.pipeline.finishing.misjudged`).
    """

    def look(op: Operator) -> Operator:
        if not isinstance(op, Join) or op.layout != "auto":
            return op
        if op.step in known:
            return replace(op, layout=known[op.step])
        value = trial.value(op)
        if not any(tables.is_sparse(trial.value(part)) for part in op.parts):
            return op
        return replace(op, layout="sparse" if tables.is_sparse(value) else "dense")

    return rebuild(sinks, look)
