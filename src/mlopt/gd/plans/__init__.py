"""The cost-based optimizer for solvers: every way to fit a linear model is a plan."""

from mlopt.gd.plans.ranking import plan
from mlopt.gd.plans.running import Alternative, Result
from mlopt.gd.plans.solver_plan import SolverPlan
from mlopt.gd.plans.task import Task

__all__ = ["Alternative", "Result", "SolverPlan", "Task", "plan"]
