"""The cost-based optimizer for solvers: every way to fit a linear model is a plan."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlopt.gd.plans.ranking import plan
    from mlopt.gd.plans.result import Result
    from mlopt.gd.plans.running import Alternative
    from mlopt.gd.plans.solver_plan import SolverPlan
    from mlopt.gd.plans.task import Task

__all__ = ["Alternative", "Result", "SolverPlan", "Task", "plan"]
_HOMES = {
    "Alternative": "running",
    "Result": "result",
    "SolverPlan": "solver_plan",
    "Task": "task",
    "plan": "ranking",
}


def __getattr__(name: str) -> Any:
    # Imported here, the table of methods would be imported by the solvers that it holds.
    if name not in _HOMES:
        raise AttributeError(f"module `mlopt.gd.plans` has no attribute `{name}`.")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
