"""How good predictions are, as records that merge: one a block, added up.

KeystoneML's evaluators for two classes, many classes, ranked lists and augmented examples.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError
from mlopt.pipeline.library.moments import Summed

Array = NDArray[Any]


@dataclass(frozen=True)
class BinaryMetrics(Summed):
    """Counts of right and wrong answers to a question.

    Attributes
    ----------
    tp, fp, tn, fn : float
        True and false positives, true and false negatives; or sums of weights.
    """

    tp: float
    fp: float
    tn: float
    fn: float

    @classmethod
    def of(cls, predicted: Any, actual: Any) -> BinaryMetrics:
        """From truth values of shape (n,)."""
        p, a = _truths(predicted), _truths(actual)
        _check_shapes(p, a, (1, 1))
        both = [(p & a).sum(), (p & ~a).sum(), (~p & ~a).sum(), (~p & a).sum()]
        return cls(*map(float, both))

    @property
    def accuracy(self) -> float:
        """Share of right answers."""
        total = self.tp + self.fp + self.tn + self.fn
        return _ratio(self.tp + self.tn, total)

    @property
    def precision(self) -> float:
        """Share of the positive answers that are right."""
        return _ratio(self.tp, self.tp + self.fp)

    @property
    def recall(self) -> float:
        """Share of the positives that were found."""
        return _ratio(self.tp, self.tp + self.fn)

    @property
    def specificity(self) -> float:
        """Share of the negatives that were found."""
        return _ratio(self.tn, self.tn + self.fp)

    def f_score(self, beta: float = 1.0) -> float:
        """Weighted harmonic mean of precision and recall."""
        square = beta**2
        below = (1 + square) * self.tp + square * self.fn + self.fp
        return _ratio((1 + square) * self.tp, below)


@dataclass(frozen=True, eq=False)
class MulticlassMetrics:
    """A confusion matrix.

    Attributes
    ----------
    classes : ndarray of shape (K,)
    confusion : ndarray of shape (K, K)
        Row: what it is; column: what was predicted.
    """

    classes: Array
    confusion: Array

    @classmethod
    def of(cls, predicted: Any, actual: Any, classes: Any = None) -> MulticlassMetrics:
        """From labels of shape (n,); ``classes`` are those that occur by default."""
        p, a = np.asarray(predicted), np.asarray(actual)
        _check_shapes(p, a, (1, 1))
        known = (
            np.unique(np.concatenate([p, a])) if classes is None else np.asarray(classes)
        )
        size = len(known)
        rows, columns = np.searchsorted(known, a), np.searchsorted(known, p)
        wrong = (known[np.minimum(rows, size - 1)] != a) | (
            known[np.minimum(columns, size - 1)] != p
        )
        if wrong.any():
            raise InputError(
                f"Labels must be among `classes` {known.tolist()}, which must be sorted; "
                f"row {int(np.argmax(wrong))} has another."
            )
        counts = np.bincount(rows * size + columns, minlength=size * size)
        return cls(known, counts.reshape(size, size))

    def __add__(self, other: MulticlassMetrics) -> MulticlassMetrics:
        known = np.union1d(self.classes, other.classes)
        total = np.zeros((len(known), len(known)), np.int64)
        for one in (self, other):
            places = np.searchsorted(known, one.classes)
            total[np.ix_(places, places)] += one.confusion
        return MulticlassMetrics(known, total)

    @property
    def accuracy(self) -> float:
        """Share of right predictions."""
        return _ratio(float(np.trace(self.confusion)), float(self.confusion.sum()))

    @property
    def error(self) -> float:
        """Share of wrong predictions."""
        return 1.0 - self.accuracy

    def of_class(self, label: Any) -> BinaryMetrics:
        """One class against all others."""
        (places,) = np.nonzero(self.classes == label)
        if not len(places):
            raise InputError(
                f"`label` must be one of {self.classes.tolist()}, got {label!r}."
            )
        k, total = int(places[0]), float(self.confusion.sum())
        tp = float(self.confusion[k, k])
        fp = float(self.confusion[:, k].sum()) - tp
        fn = float(self.confusion[k].sum()) - tp
        return BinaryMetrics(tp, fp, total - tp - fp - fn, fn)

    def macro(self, metric: str = "recall") -> float:
        """The mean over classes of "precision", "recall" or "accuracy"."""
        return float(np.mean([getattr(self.of_class(c), metric) for c in self.classes]))

    @property
    def micro_f_score(self) -> float:
        """F1 of all decisions together; with one label a row it is the accuracy."""
        total = sum((self.of_class(c) for c in self.classes), BinaryMetrics(0, 0, 0, 0))
        return total.f_score()


@dataclass(frozen=True, eq=False)
class RankingMetrics:
    """Scores and truth of every row: a ranking needs them all.

    Attributes
    ----------
    scores : ndarray of float, shape (n, K)
    actual : ndarray of bool, shape (n, K)
    """

    scores: Array
    actual: Array

    @classmethod
    def of(cls, scores: Any, actual: Any) -> RankingMetrics:
        """From the arguments of `mean_average_precision`."""
        found = cls(np.asarray(scores, float), _truths(actual))
        _check_shapes(found.scores, found.actual, (2, 2))
        return found

    def __add__(self, other: RankingMetrics) -> RankingMetrics:
        return RankingMetrics(
            np.concatenate([self.scores, other.scores]),
            np.concatenate([self.actual, other.actual]),
        )

    @property
    def average_precisions(self) -> Array:
        """Of each class, shape (K,); nan for one that no row has."""
        pairs = zip(self.scores.T, self.actual.T, strict=True)
        return np.array([_average_precision(score, truth) for score, truth in pairs])


def mean_average_precision(scores: Any, actual: Any) -> Array:
    """Average precision of each class, shape (K,), interpolated at 11 recalls (VOC 2007).

    Parameters
    ----------
    scores : array of shape (n, K)
    actual : array of bool, shape (n, K)
        Which classes each row has: several, one or none.
    """
    return RankingMetrics.of(scores, actual).average_precisions


def _average_precision(scores: Array, actual: Array) -> float:
    order = np.argsort(-scores, kind="stable")
    hits = np.cumsum(actual[order])
    if not len(hits) or hits[-1] == 0:
        return float("nan")
    precision = hits / np.arange(1, len(hits) + 1)
    recall = hits / hits[-1]
    best = np.maximum.accumulate(precision[::-1])[::-1]
    at = np.searchsorted(recall, np.linspace(0, 1, 11) - 1e-12)
    return float(np.mean(best[np.minimum(at, len(best) - 1)]))


def vote(scores: Any, groups: Any, how: str = "average") -> tuple[Array, Array]:
    """Scores of augmented examples as one for each original.

    Parameters
    ----------
    scores : array of shape (n, K)
    groups : array of shape (n,)
        Which rows come from one original.
    how : {"average", "borda"}
        The mean of the scores, or of the ranks that they give the classes.

    Returns
    -------
    groups : ndarray of shape (g,)
    scores : ndarray of shape (g, K)
    """
    scores, groups = np.asarray(scores, float), np.asarray(groups)
    _check_shapes(scores, groups, (2, 1))
    if how not in ("average", "borda"):
        raise InputError(f"`how` must be 'average' or 'borda', got {how!r}.")
    values = (
        scores.argsort(axis=1).argsort(axis=1).astype(float) if how == "borda" else scores
    )
    known, codes = np.unique(groups, return_inverse=True)
    total = np.zeros((len(known), scores.shape[1]))
    np.add.at(total, codes, values)
    return known, total / np.bincount(codes)[:, None]


def _ratio(above: float, below: float) -> float:
    return above / below if below else 0.0


def _truths(values: Any) -> Array:
    """As booleans; -1, "no" and nan would all count as true."""
    found = np.asarray(values)
    if found.dtype.kind not in "biufO" or not np.all((found == 0) | (found == 1)):
        raise InputError("Truth values must be booleans, or numbers 0 and 1.")
    return found.astype(bool)


def _check_shapes(left: Array, right: Array, axes: tuple[int, int]) -> None:
    """Refuse other numbers of axes, and lengths that differ."""
    both = min(axes)
    if (left.ndim, right.ndim) != axes or left.shape[:both] != right.shape[:both]:
        first, second = ("(n, K)" if number == 2 else "(n,)" for number in axes)
        raise InputError(
            f"They must have shape {first} and {second}, got {left.shape} and "
            f"{right.shape}."
        )
