"""What one fit of an estimator will take, from fits on two samples of the rows."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from mlopt.cluster import single_threaded
from mlopt.costs import Cost, Fit
from mlopt.rows import Rows
from mlopt.tuning.crews.problem import Problem

SIZES = (1024, 2048)
"""Rows of the two samples; a small data set gives a quarter and a half of itself."""
FEWEST = 200
"""Rows below which a fit is not worth predicting."""


def sampled_fit(problem: Problem, estimator: Any) -> Cost | None:
    """One fit on the training rows of the first split, extrapolated linearly.

    None when there are few rows, when the rows are not here, or when the estimator cannot
    be fitted to a sample: the search then finds out what that means.

    References
    ----------
    KeystoneML, section V-D: profile at two sizes, extrapolate time linearly.
    """
    train = problem.splits[0].train
    if isinstance(problem.X, Rows) or len(train) < FEWEST:
        return None
    sizes = [
        min(size, len(train) // part) for size, part in zip(SIZES, (4, 2), strict=True)
    ]
    rows = np.random.default_rng(problem.seed).permutation(train)
    try:
        seconds = [_timed_fit(problem, estimator, rows[:size]) for size in sizes]
    except Exception:
        return None
    return Cost(fixed=Fit.of(sizes, seconds).at(len(train)), source="sampled")


def _timed_fit(problem: Problem, estimator: Any, rows: Any) -> float:
    X = _safe_indexing(problem.X, rows)
    y = problem.y[rows] if problem.supervised else None
    start = time.perf_counter()
    # On one thread, as trials are; OpenMP on so few rows would wait more than it works.
    with single_threaded(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a sample may be too small for good results
        clone(estimator).fit(X, y)
    return time.perf_counter() - start
