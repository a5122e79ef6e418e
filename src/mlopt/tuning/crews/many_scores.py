"""Scores of many models of two classes at once, from their margins.

The values are those of scikit-learn's scorers of the same names, as functions of the
margins. One that is not defined there, or warned of, or that raises, is NaN here: whoever
asked then asks the scorer itself.

Shapes: ``Z`` (B, n) margins of ``B`` models, each line contiguous; ``positive`` (n,) says
which rows are of the second class; at least one is, and one is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Scores = NDArray[np.float64]
Lines = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]
Judge = Callable[[Lines, Mask], Scores]


def _counts(Z: Lines, positive: Mask) -> tuple[Any, Any, int, int]:
    """Rows called positive, those of them that are (B,); rows that are, and are not."""
    called = Z > 0
    right = np.count_nonzero(called & positive, axis=1).astype(np.float64)
    all_called = np.count_nonzero(called, axis=1).astype(np.float64)
    return all_called, right, (P := int(positive.sum())), len(positive) - P


def _accuracy(Z: Lines, positive: Mask) -> Scores:
    called, right, P, N = _counts(Z, positive)
    return np.asarray((right + N - (called - right)) / (P + N))


def _balanced_accuracy(Z: Lines, positive: Mask) -> Scores:
    called, right, P, N = _counts(Z, positive)
    return np.asarray((right / P + (N - (called - right)) / N) / 2)


def _precision(Z: Lines, positive: Mask) -> Scores:
    called, right, _, _ = _counts(Z, positive)
    return np.asarray(right / np.where(called > 0, called, np.nan))


def _recall(Z: Lines, positive: Mask) -> Scores:
    _, right, P, _ = _counts(Z, positive)
    return np.asarray(right / P)


def _f1(Z: Lines, positive: Mask) -> Scores:
    called, right, P, _ = _counts(Z, positive)
    return np.asarray(2 * right / (P + called))


def _matthews(Z: Lines, positive: Mask) -> Scores:
    called, right, P, N = _counts(Z, positive)
    n = P + N
    correct = right + N - (called - right)
    together = correct * n - (P * called + N * (n - called))
    apart = (n**2 - called**2 - (n - called) ** 2) * (float(n) ** 2 - P**2 - N**2)
    return np.asarray(together / np.sqrt(np.where(apart > 0, apart, np.nan)))


def _sorted_sides(Z: Lines, positive: Mask) -> Iterator[tuple[Lines, Lines]]:
    own, others = np.flatnonzero(positive), np.flatnonzero(~positive)
    for z in Z:
        yield np.sort(z[own]), np.sort(z[others])


def _roc_auc(Z: Lines, positive: Mask) -> Scores:
    """Pairs of a positive and a negative row in the right order; ties count half."""
    found = np.empty(len(Z))
    for i, (own, others) in enumerate(_sorted_sides(Z, positive)):
        twice = np.searchsorted(others, own).sum()
        twice += np.searchsorted(others, own, side="right").sum()
        found[i] = twice / (2 * len(own) * len(others))
    return found


def _average_precision(Z: Lines, positive: Mask) -> Scores:
    """The mean, over positive rows, of the precision with their margin as threshold."""
    found = np.empty(len(Z))
    for i, (own, others) in enumerate(_sorted_sides(Z, positive)):
        right = len(own) - np.searchsorted(own, own)
        wrong = len(others) - np.searchsorted(others, own)
        found[i] = np.mean(right / (right + wrong))
    return found


def _neg_log_loss(Z: Lines, positive: Mask) -> Scores:
    eps, found = np.finfo(Z.dtype).eps, np.empty(len(Z))
    for i, z in enumerate(Z):
        p = expit(z)
        own = np.clip(np.where(positive, p, 1 - p), eps, 1 - eps)
        found[i] = np.mean(np.log(own))
    return found


def _neg_brier_score(Z: Lines, positive: Mask) -> Scores:
    found = np.empty(len(Z))
    for i, z in enumerate(Z):
        found[i] = -np.mean((positive - expit(z)) ** 2)
    return found


_OF_CODES: dict[str | None, Judge] = {
    None: _accuracy,
    "accuracy": _accuracy,
    "balanced_accuracy": _balanced_accuracy,
    "matthews_corrcoef": _matthews,
    "roc_auc": _roc_auc,
}
_OF_LABEL_1: dict[str | None, Judge] = {
    "average_precision": _average_precision,
    "f1": _f1,
    "precision": _precision,
    "recall": _recall,
}
"""For scikit-learn the positive class of these is that of the label 1."""
_OF_PROBABILITIES: dict[str | None, Judge] = {"neg_log_loss": _neg_log_loss}
_OF_NUMBERED: dict[str | None, Judge] = {"neg_brier_score": _neg_brier_score}
"""Of probabilities too; scikit-learn refuses labels that are no numbers."""


def judge_of(
    name: str | None, classes: NDArray[Any], *, probabilities: bool
) -> Judge | None:
    """How the metric ``name`` follows from margins (B, n); None where it is not known.

    Parameters
    ----------
    name : str or None
        Of a scorer of scikit-learn; None: of a classifier's own ``score``.
    classes : ndarray
        Labels, in order.
    probabilities : bool
        Whether the logistic function of a margin is a model's probability.
    """
    if len(classes) != 2:
        return None
    known = dict(_OF_CODES)
    if classes.dtype.kind in "iuf" and classes[1] == 1:
        known |= _OF_LABEL_1
    if probabilities:
        known |= _OF_PROBABILITIES
        known |= _OF_NUMBERED if classes.dtype.kind in "biuf" else {}
    return known.get(name)
