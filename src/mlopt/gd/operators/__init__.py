"""Gradient descent from seven operators (ML4all): algorithms, sources, the plan space."""

from mlopt.gd.operators.algorithm import Algorithm
from mlopt.gd.operators.compute import TABLE_3, Gradient, UserGradient
from mlopt.gd.operators.interfaces import Batch, Context, Sums, per_unit
from mlopt.gd.operators.references import MORE_PLANS, PLANS, PlanRow, Settings, plan_row
from mlopt.gd.operators.running import Record, Result, Run
from mlopt.gd.operators.samplers import Bernoulli, RandomPartition, ShuffledPartition
from mlopt.gd.operators.sources import MatrixSource, Source
from mlopt.gd.operators.speculation import Speculation, drawn, speculate
from mlopt.gd.operators.text import CsvSource, LibsvmSource

__all__ = [
    "MORE_PLANS",
    "PLANS",
    "TABLE_3",
    "Algorithm",
    "Batch",
    "Bernoulli",
    "Context",
    "CsvSource",
    "Gradient",
    "LibsvmSource",
    "MatrixSource",
    "PlanRow",
    "RandomPartition",
    "Record",
    "Result",
    "Run",
    "Settings",
    "ShuffledPartition",
    "Source",
    "Speculation",
    "Sums",
    "UserGradient",
    "drawn",
    "per_unit",
    "plan_row",
    "speculate",
]
