"""Work that changes nothing: columns selected whole, joins of one part.

::

    #0 Source X              #0 Source X
    #1 Join union #0    ->
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlopt.pipeline.graph.operators import Convert, Join, Operator
from mlopt.pipeline.rules.base import Context, Draft


@dataclass(frozen=True)
class DropUnused:
    """Branches that lead nowhere are not reached from the sinks; the rest goes here."""

    name: str = "drop_unused"

    def rewrite(self, draft: Draft, context: Context) -> Draft:
        """Leave out joins of one part and conversions of conversions."""
        del context
        return draft.rebuilt(_without)


def _without(op: Operator) -> Operator:
    if isinstance(op, Join) and len(op.parts) == 1 and op.weights == (1.0,):
        # Alone, a part keeps its names and its layout only if nobody asked for others.
        plain = not op.prefix and op.sparse_below > 1.0
        return op.parts[0] if plain else op
    if isinstance(op, Convert) and isinstance(op.x, Convert):
        return replace(op, x=op.x.x)
    return op
