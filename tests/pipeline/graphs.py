"""Small graphs of operators, written as they are drawn."""

from __future__ import annotations

from textwrap import dedent
from typing import Any

from sklearn.preprocessing import MinMaxScaler, StandardScaler

from mlopt.pipeline.graph.operators import Apply, Join, Learn, Operator, Source

DATA = Source("X", "content-of-x")
OTHER = Source("X", "other-content")


def scaled(step: str, x: Operator, estimator: Any = None) -> Apply:
    """``x`` after a scaler that is fitted to it."""
    return Apply(step, Learn(step, estimator or StandardScaler(), x), x)


def ranged(step: str, x: Operator) -> Apply:
    """``x`` after another scaler."""
    return scaled(step, x, MinMaxScaler())


def union(*parts: Operator, prefix: bool = False) -> Join:
    """Parts side by side."""
    names = tuple(f"p{number}" for number in range(len(parts)))
    return Join("union", parts, names, (None,) * len(parts), prefix)


def text(drawing: str) -> str:
    """A drawing without its indentation."""
    return dedent(drawing).strip()
