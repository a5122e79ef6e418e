"""The optimizer of gradient descent: `plan` ranks every way of solving a `Task`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlopt.gd.operators import Algorithm
    from mlopt.gd.plans import Task, plan

__all__ = ["Algorithm", "Task", "plan"]


def __getattr__(name: str) -> Any:
    # What is imported here would be imported with every module of this package.
    if name not in __all__:
        raise AttributeError(f"module `mlopt.gd` has no attribute `{name}`.")
    from mlopt.gd import operators, plans

    return getattr(operators if name == "Algorithm" else plans, name)
