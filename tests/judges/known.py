"""Differences from scikit-learn that are documented, each with its reason.

Whatever else differs fails. docs/compatibility.md lists them for people.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.judges.errors import is_of_another_branch, is_of_what_is_not_applied

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

SHARE_OF = {"PCA.noise_variance_": "explained_variance_"}
"""Attributes that a sum leaves over, by the largest of what was taken from it: they are
known to the rounding of the whole."""


@dataclass(frozen=True)
class Known:
    """A documented difference.

    Attributes
    ----------
    applies : callable(case, parts, difference) -> bool
    reason : str
    """

    applies: Callable[[Any, set[str], Any], bool]
    reason: str


def _tells_another_step(case: Any, parts: set[str], difference: Any) -> bool:
    return is_of_another_branch(case, difference)


def _makes_dense(case: Any, parts: set[str], difference: Any) -> bool:
    refused = "!= TypeError: Sparse data was passed" in difference.what
    # As dense rows they are learnt from, or refused in turn.
    ours = str(difference).partition("!=")[0]
    return refused and ("fit: Pipeline" in ours or "fit: InputError" in ours)


def _is_not_applied(case: Any, parts: set[str], difference: Any) -> bool:
    return is_of_what_is_not_applied(case, difference)


KNOWN: tuple[Known, ...] = (
    Known(_makes_dense, "a model that takes dense rows only is given sparse ones densely"),
    Known(_is_not_applied, "a step is not applied in `fit` where nothing is fitted behind"),
    Known(
        _tells_another_step,
        "where several branches cannot be fitted, the error of another may be told",
    ),
)


def excuse(case: Any, parts: set[str], difference: Any) -> Known | None:
    """The documented difference that this one is, if it is one."""
    return next((k for k in KNOWN if k.applies(case, parts, difference)), None)
