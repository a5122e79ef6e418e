"""Speculation on the rows themselves: what may take far less is run first for a while.

Samples tell nothing of dense rows with more columns than a sample has rows, and where one
plan may take .7 s or 12 s, another that takes 2.6 s is the better guess. A tenth of that,
though, shows how its gaps fall; and none of it is lost, for the other goes on from there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlopt.gd.plans.falling import FEWEST
from mlopt.gd.plans.running import Alternative
from mlopt.gd.plans.stop import RelativeGap
from mlopt.prices import price

SHARE = price("speculation.share")
_TRIFLE = price("run.trifle")


def to_try(ranked: Sequence[Alternative]) -> Alternative | None:
    """Which to run before the first of them, which is predicted to be the fastest."""
    best, *others = ranked
    goes_on = best.method.continues or not best.method.iterates
    if not goes_on or not isinstance(best.stop, RelativeGap):
        return None
    tells = [one for one in others if _tells(one, SHARE * best.predicted_seconds)]
    gain, found = max(
        ((_gain(one, best.predicted_seconds), one) for one in tells),
        key=lambda pair: pair[0],
        default=(0.0, None),
    )
    return found if gain > _TRIFLE else None


def _tells(one: Alternative, seconds: float) -> bool:
    """Whether its gaps soon show where they lead, and its weights are of use then."""
    method = one.method
    gradual = method.iterates and not method.sudden
    return gradual and method.continues and one.forecast.seconds(FEWEST) <= seconds


def _gain(one: Alternative, best: float) -> float:
    """Seconds to expect of it, where the best takes so many: its own are log-uniform."""
    low, high = one.span
    if not low < min(high, best):
        return 0.0
    digits, end = math.log(high / low), min(high, best)
    ends = math.log(end / low) / digits
    return best * ends - (end - low) / digits - SHARE * best * (1 - ends)
