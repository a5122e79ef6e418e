"""Common subexpressions: what occurs twice is computed once (KeystoneML, IV-B).

::

    #0 Source X              #0 Source X
    #1 Learn a/scale #0      #1 Learn a/scale #0
    #2 Learn b/scale #0  ->  #2 Join union #1 #1
    #3 Join union #1 #2
"""

from __future__ import annotations

from mlopt.pipeline.graph.operators import Operator
from mlopt.pipeline.rules.base import Context, Draft


def share_work(draft: Draft, context: Context) -> Draft:
    """One node for each token: inputs come first, so one walk reaches the fixed point."""
    del context
    first: dict[str, Operator] = {}
    merged: list[Operator] = []

    def one(op: Operator) -> Operator:
        known = first.setdefault(op.token, op)
        if known is not op:
            merged.append(op)
        return known

    draft = draft.rebuilt(one)
    for op in merged:
        kept = first[op.token].step
        if op.step != kept:
            draft = draft.note(op, f"shared by {kept} and {op.step}")
    return draft
