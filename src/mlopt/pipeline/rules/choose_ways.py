"""For each model the way of learning it with the least predicted time (KeystoneML, III)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from mlopt.errors import InputError
from mlopt.identity import is_known
from mlopt.pipeline.graph.operators import Learn, Operator
from mlopt.pipeline.profiling.profile import Option
from mlopt.pipeline.rules.base import Context, Draft

TIE, TRIFLE = 1.2, 1e-3
"""Times within this factor and so many seconds are equal: the earlier in the table wins."""


@dataclass(frozen=True)
class ChooseWays:
    """Without a profile, and without this rule, the first way in the table is taken."""

    name: str = "choose_ways"

    def rewrite(self, draft: Draft, context: Context) -> Draft:
        """Every `Learn` with its cheapest way."""
        profile = context.profile
        if profile is None:
            return draft

        def choose(op: Operator) -> Operator:
            if not isinstance(op, Learn) or op.token not in profile.options:
                return op
            best = cheapest(op, profile.options[op.token])
            return op if best.way is op.way else replace(op, way=best.way)

        return draft.rebuilt(choose)


def cheapest(op: Learn, options: tuple[Option, ...]) -> Option:
    """The first option that takes the least time, or as good as.

    Raises
    ------
    InputError
        When none can be had, with the reason of each.
    """
    possible = [option for option in options if option.seconds is not None]
    if not possible:
        reasons = "; ".join(f"{option.name}: {option.reason}" for option in options)
        kind = type(op.estimator)
        declare = f"declare ways to fit `{kind.__name__}` with `mlopt.register`, or "
        raise InputError(
            f"Step `{op.step}` cannot be fitted to these data. {reasons}. To go on, "
            f"{'' if is_known(kind) else declare}give more memory, or data in fewer or "
            "smaller blocks."
        )
    least = min(option.seconds or 0.0 for option in possible)
    return next(o for o in possible if (o.seconds or 0.0) <= TIE * least + TRIFLE)
