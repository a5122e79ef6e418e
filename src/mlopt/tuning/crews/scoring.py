"""One or several metrics, and scoring from margins that are already there.

A batched scan gives the margins of all models in one matrix product. `FromMargins` lets any
scikit-learn scorer read them as if it had asked a fitted estimator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring, get_scorer

from mlopt.errors import InputError

FloatArray = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Metrics:
    """The scorers of a search by name; ``main`` is what the search maximises."""

    scorers: Mapping[str, Any]
    main: str
    multiple: bool
    names_only: bool
    """Whether every scorer is one of scikit-learn's own, which never look at X."""
    scoring: Any = None

    def score(
        self, estimator: Any, X: Any, y: Any, sample_weight: FloatArray | None = None
    ) -> dict[str, float]:
        """Every metric of a fitted ``estimator``."""
        extra = {} if sample_weight is None else {"sample_weight": sample_weight}
        return {
            name: float(s(estimator, X, y, **extra)) for name, s in self.scorers.items()
        }


def metrics_of(scoring: Any, estimator: Any, refit: Any) -> Metrics:
    """Read ``scoring`` as scikit-learn's searches do.

    Raises
    ------
    InputError
        Several metrics, and ``refit`` does not say which one decides.
    """
    if scoring is None or isinstance(scoring, str) or callable(scoring):
        scorer = check_scoring(estimator, scoring=scoring)
        named = scoring is None or isinstance(scoring, str)
        return Metrics({"score": scorer}, "score", False, named, scoring)
    if not isinstance(scoring, Mapping):
        scoring = {name: name for name in scoring}
    scorers = {
        name: get_scorer(s) if isinstance(s, str) else s for name, s in scoring.items()
    }
    if not isinstance(refit, str) and len(scorers) > 1 and refit is not False:
        raise InputError(
            "With several metrics `refit` must name the one that decides, or be False; got "
            f"{refit!r}. Metrics here: {', '.join(scorers)}."
        )
    main = refit if isinstance(refit, str) else next(iter(scorers))
    if main not in scorers:
        raise InputError(f"`refit` must be one of {', '.join(scorers)}; got {main!r}.")
    named = all(isinstance(s, str) for s in scoring.values())
    return Metrics(scorers, main, True, named, scoring)


FROM_SQUARES: dict[str | None, str] = {
    None: "r2",
    "r2": "r2",
    "neg_mean_squared_error": "neg_mean_squared_error",
    "neg_root_mean_squared_error": "neg_root_mean_squared_error",
}
"""Regression metrics that follow from the mean squared error."""


def from_quality(metrics: Metrics, *, classifier: bool) -> str | None:
    """The metric that the scan itself counts, when that is all the search asks for."""
    if metrics.multiple:
        return None
    if classifier:
        return "accuracy" if metrics.scoring in (None, "accuracy") else None
    known = {None: "r2", "r2": "r2"}
    known |= {
        name: name for name in ("neg_mean_squared_error", "neg_root_mean_squared_error")
    }
    return known.get(metrics.scoring) if not callable(metrics.scoring) else None


def convert_quality(metric: str, quality: FloatArray, variance: FloatArray) -> FloatArray:
    """Scores from accuracy, or from minus the mean squared error and y's test variance."""
    if metric == "r2":
        # A constant y: scikit-learn calls a perfect prediction 1 and any other 0.
        constant = variance == 0
        ratio = quality / np.where(constant, 1.0, variance)
        return np.where(constant, np.where(quality == 0, 1.0, 0.0), 1.0 + ratio)
    if metric == "neg_root_mean_squared_error":
        return -np.sqrt(-quality)
    return quality


class FromMargins(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose margins are known for the rows it will be asked about."""

    def __init__(
        self, margins: FloatArray, classes: NDArray[Any], proba: str | None
    ) -> None:
        self.margins = margins
        self.classes = classes
        self.proba = proba

    def __sklearn_is_fitted__(self) -> bool:
        return True

    @property
    def classes_(self) -> NDArray[Any]:
        return self.classes

    def decision_function(self, X: Any) -> FloatArray:
        """Margins, (n,) for two classes, else (n, classes)."""
        del X
        return self.margins

    def predict(self, X: Any) -> NDArray[Any]:
        """The class of the largest margin."""
        del X
        if self.margins.ndim == 1:
            codes = (self.margins > 0).astype(int)
        else:
            codes = self.margins.argmax(axis=1)
        labels: NDArray[Any] = self.classes[codes]
        return labels

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the logistic losses."""
        del X
        if self.proba is None:
            raise InputError("This loss gives no probabilities; use a logistic loss.")
        if self.proba == "softmax" and self.margins.ndim > 1:
            return np.asarray(softmax(self.margins, axis=1))
        p: FloatArray = expit(self.margins)
        if p.ndim == 1:
            return np.column_stack([1 - p, p])
        total = np.maximum(p.sum(axis=1, keepdims=True), np.finfo(p.dtype).tiny)
        shares: FloatArray = p / total
        return shares


class FromPredictions(RegressorMixin, BaseEstimator):
    """A fitted regressor whose predictions are known for the rows it is asked about."""

    def __init__(self, predictions: FloatArray) -> None:
        self.predictions = predictions

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> FloatArray:
        """The known predictions, (n,)."""
        del X
        return self.predictions
