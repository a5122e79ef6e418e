"""One or several metrics, and scoring from margins that are already there.

A batched scan gives the margins of all models in one matrix product. `FromMargins` lets any
scikit-learn scorer read them as if it had asked a fitted estimator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import check_scoring
from sklearn.metrics._scorer import _check_multimetric_scoring, _MultimetricScorer
from sklearn.model_selection._validation import _score

from mlopt.errors import InputError

FloatArray = NDArray[np.floating[Any]]

SINGLE = "score"
"""The name of the metric of a search that has one, in scikit-learn's tables."""


@dataclass(frozen=True)
class Metrics:
    """The metrics of a search; ``main`` is what the search maximises.

    Parameters
    ----------
    scorer : callable
        Gives a number, or numbers by name, of ``(estimator, X, y)``.
    main : str
    names_only : bool, default=False
        Whether every scorer is one of scikit-learn's own by its name: these look at
        predictions only, never at the rows or at the estimator.
    scoring : any
        As the user gave it.
    error_score : "raise" or float, default=nan
        The score where fitting or scoring fails.
    """

    scorer: Any
    main: str
    names_only: bool = False
    scoring: Any = None
    error_score: Any = np.nan

    @property
    def multiple(self) -> bool:
        """Whether there are several metrics, as far as is known before the first score."""
        return isinstance(self.scorer, _MultimetricScorer)

    @property
    def names(self) -> Mapping[str, str | None]:
        """Names of scikit-learn's scorers by those of the metrics; of the user's own, none.

        None stands for an estimator's own ``score``.
        """
        if not self.names_only:
            return {}
        if isinstance(self.scoring, Mapping):
            return self.scoring
        return {n: n for n in self.scorers} if self.multiple else {self.main: self.scoring}

    @property
    def scorers(self) -> Mapping[str, Any]:
        """Scorers by the names of their metrics."""
        return dict(self.scorer._scorers) if self.multiple else {self.main: self.scorer}

    def score(
        self, estimator: Any, X: Any, y: Any, params: Mapping[str, Any] | None = None
    ) -> dict[str, float]:
        """Every metric of a fitted ``estimator``; `error_score` for those that fail.

        Raises
        ------
        ValueError
            A scorer gave something that is no number.
        Exception
            What a scorer raises, with ``error_score="raise"``.
        """
        given = dict(params or {})
        found = _score(estimator, X, y, self.scorer, given, self.error_score)
        scores = found if isinstance(found, dict) else {SINGLE: found}
        return {name: float(score) for name, score in scores.items()}

    def raising(self, error: Exception) -> Metrics:
        """The same metrics, each of which raises ``error``: of rows that cannot be made."""

        def scorer(*_: Any, **__: Any) -> float:
            raise error

        if not self.multiple:
            return replace(self, scorer=scorer)
        strict = self.error_score == "raise"
        many = _MultimetricScorer(
            scorers=dict.fromkeys(self.scorers, scorer), raise_exc=strict
        )
        return replace(self, scorer=many)

    def failed(self, names: Iterable[str] | None = None) -> dict[str, float]:
        """The scores of a fit that failed, for the metrics of ``names`` if there are."""
        score = np.nan if self.error_score == "raise" else float(self.error_score)
        return dict.fromkeys(names or (self.scorers if self.multiple else [SINGLE]), score)

    def alike(self, rows: Sequence[Mapping[str, float]]) -> list[Mapping[str, float]]:
        """Scores of splits, all under the names that the scorer gave where it did not fail.

        Where nothing was fitted, ``rows`` are empty.
        """
        names = given_names(tuple(row) for row in rows) or tuple(self.failed())
        failed = {(), (SINGLE,)} - {names}
        return [self.failed(names) if tuple(row) in failed else row for row in rows]


def given_names(found: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The names that a scorer gave, of those found; a function that failed gave none."""
    names = [one for one in found if one]
    return next((one for one in names if one != (SINGLE,)), (SINGLE,) if names else ())


def metrics_of(
    scoring: Any, estimator: Any, refit: Any, error_score: Any = np.nan
) -> Metrics:
    """Read ``scoring`` as scikit-learn's searches do.

    Raises
    ------
    InputError
        Several metrics, and ``refit`` does not say which one decides; an ``error_score``
        that is none.
    TypeError, ValueError
        As in scikit-learn, of a ``scoring`` that is none.
    """
    if error_score != "raise" and not isinstance(error_score, int | float | np.number):
        raise InputError(
            f'`error_score` must be a number or the string "raise", got {error_score!r}.'
        )
    if callable(scoring):
        main = refit if isinstance(refit, str) else SINGLE
        return Metrics(scoring, main, False, scoring, error_score)
    if scoring is None or isinstance(scoring, str):
        scorer = check_scoring(estimator, scoring=scoring)
        return Metrics(scorer, SINGLE, True, scoring, error_score)
    scorers = _check_multimetric_scoring(estimator, scoring)
    check_refit(refit, scorers)
    main = refit if isinstance(refit, str) else next(iter(scorers))
    given = scoring.values() if isinstance(scoring, Mapping) else scoring
    named = all(isinstance(one, str) for one in given)
    many = _MultimetricScorer(scorers=scorers, raise_exc=error_score == "raise")
    return Metrics(many, main, named, scoring, error_score)


def check_refit(refit: Any, metrics: Mapping[str, Any]) -> None:
    """Raise when ``refit`` does not say which of several ``metrics`` decides."""
    if refit is False or callable(refit) or (isinstance(refit, str) and refit in metrics):
        return
    raise InputError(
        "For multi-metric scoring, the parameter refit must be set to a scorer key or a "
        "callable to refit an estimator with the best parameter setting, or be False. "
        f"Metrics here: {', '.join(metrics)}. {refit!r} was passed."
    )


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
    return None if callable(metrics.scoring) else FROM_SQUARES.get(metrics.scoring)


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
        p[p.sum(axis=1) == 0] = 1.0  # as scikit-learn has it
        shares: FloatArray = p / p.sum(axis=1, keepdims=True)
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
