"""Differences from scikit-learn that are documented, each with its reason.

Whatever else differs fails. docs/pipelines.md lists them for people.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

ITERATIONS = "linear models stop by mlopt's rules, by `tol` or better"

SOLVERS = "a ridge that mlopt has solved names the nearest of scikit-learn's solvers"

ATTRIBUTES: dict[str, str] = {
    "LogisticRegression.n_iter_": ITERATIONS,
    "LinearSVC.n_iter_": ITERATIONS,
    "Ridge.n_iter_": ITERATIONS,
    "RidgeClassifier.n_iter_": ITERATIONS,
    "Ridge.solver_": SOLVERS,
    "RidgeClassifier.solver_": SOLVERS,
}
"""Attributes whose values are not compared, only that they are there."""


@dataclass(frozen=True)
class Known:
    """A documented difference.

    Attributes
    ----------
    where : str
        Part of the place that `compare` names.
    applies : callable(case, parts) -> bool
    reason : str
    """

    where: str
    applies: Callable[[Any, set[str]], bool]
    reason: str


KNOWN: tuple[Known, ...] = ()


def excuse(case: Any, parts: set[str], difference: Any) -> Known | None:
    """The documented difference that this one is, if it is one."""
    for known in KNOWN:
        if known.where in difference.where and known.applies(case, parts):
            return known
    return None
