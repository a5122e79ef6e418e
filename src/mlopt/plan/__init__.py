"""The plan: what was chosen, what was rejected at what cost, and what it really took."""

from mlopt.plan.estimate import Estimate
from mlopt.plan.tree import Alternative, Choice, Plan, decide
from mlopt.plan.units import format_bytes, format_seconds

__all__ = [
    "Alternative",
    "Choice",
    "Estimate",
    "Plan",
    "decide",
    "format_bytes",
    "format_seconds",
]
