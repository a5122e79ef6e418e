"""Work that changes nothing: columns selected whole, joins of one part.

::

    #0 Source X              #0 Source X
    #1 Join union #0    ->
"""

from __future__ import annotations

from dataclasses import replace

from mlopt.pipeline.graph.operators import Convert, Join, Operator
from mlopt.pipeline.rules.base import Context, Draft


def drop_unused(draft: Draft, context: Context) -> Draft:
    """Leave out joins of one part and conversions of conversions.

    Branches that lead nowhere are not reached from the sinks.
    """
    del context
    return draft.rebuilt(_without)


def _without(op: Operator) -> Operator:
    if isinstance(op, Join) and op.changes_nothing:
        return op.parts[0]
    if isinstance(op, Convert) and isinstance(op.x, Convert):
        return replace(op, x=op.x.x)
    return op
