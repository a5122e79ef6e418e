"""Dense or sparse numbers where a way of learning needs them (KeystoneML's Densify)."""

from __future__ import annotations

from dataclasses import replace

from mlopt.pipeline.graph.operators import Convert, Learn
from mlopt.pipeline.profiling.profile import Profile
from mlopt.pipeline.rules.base import Context, Draft


def convert_layouts(draft: Draft, context: Context) -> Draft:
    """Conversions in front of the models whose ways say what they need."""
    profile = context.profile
    if profile is None:
        return draft
    return draft.rebuilt(lambda op: suited(op, profile) if isinstance(op, Learn) else op)


def suited(op: Learn, profile: Profile) -> Learn:
    """Reading its rows in the layout that its way needs."""
    stats = profile.stats(op.x)
    if op.way is not None and stats is not None and not isinstance(op.x, Convert):
        if op.way.needs == "dense" and stats.sparse:
            return replace(op, x=Convert(op.step, op.x, "dense"))
        if op.way.needs == "sparse" and not stats.sparse:
            return replace(op, x=Convert(op.step, op.x, "sparse"))
    return op
