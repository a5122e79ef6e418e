"""Least squares on more features than fit in memory: `BlockLeastSquares` and a classifier.

KeystoneML's `BlockLeastSquaresEstimator`, with what generates its features inside.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from mlopt.cluster import executor
from mlopt.costs import Cost
from mlopt.gd.estimator_base import Sample, apply
from mlopt.pipeline.budget import budget_bytes
from mlopt.pipeline.library.choosing import least
from mlopt.pipeline.library.learning.block_cost import costs
from mlopt.pipeline.library.learning.block_fit import (
    descent_of,
    plan_of,
    prepare,
    work_to_come,
)
from mlopt.pipeline.library.learning.by_scores import _Classifies, _Regresses
from mlopt.pipeline.library.learning.feature_blocks import Features, column_blocks, scores
from mlopt.plan import Choice, Plan
from mlopt.resources import Resources
from mlopt.stats import Stats

Array = NDArray[Any]


class BlockModel(BaseEstimator):
    """Parameters, plan and scores of both forms."""

    features_: Features
    coef_: Array
    intercept_: Any
    _targets: Callable[[Sample], Array]

    def __init__(
        self,
        alpha: Any = 1.0,
        *,
        features: Any = None,
        block_size: int = 4096,
        n_iter: int = 3,
        fit_intercept: bool = True,
        memory_budget: Any = "auto",
    ) -> None:
        self.alpha = alpha
        self.features = features
        self.block_size = block_size
        self.n_iter = n_iter
        self.fit_intercept = fit_intercept
        self.memory_budget = memory_budget

    def explain(self, X: Any, y: Any, sample_weight: Any = None) -> Plan:
        """The plan of `fit` for the same arguments; fits nothing but `features`.

        Returns
        -------
        Plan
            What would be kept in memory and what not, with predicted seconds.
        """
        twin = clone(self)
        with closing(executor()) as where:
            ready = prepare(twin, X, y, sample_weight, twin._targets, where)
        return plan_of(self, ready.choice)

    def _foreseen(self, stats: Stats, resources: Resources) -> Cost | None:
        """What a fit would cost, before there are rows."""
        work = work_to_come(self, stats)
        budget = budget_bytes(self.memory_budget, None)
        return None if work is None else least(costs(work, resources, budget), resources)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        started = time.perf_counter()
        with closing(executor()) as where:
            ready = prepare(self, X, y, sample_weight, self._targets, where)
            descent = descent_of(self, ready)
            self._sweep(descent, ready.features, ready.choice, started)

    def _sweep(
        self, descent: Any, features: Features, choice: Choice, started: float
    ) -> None:
        """Sweep, and learn what comes of it; ``started`` is when the fit was."""
        begun = time.perf_counter()
        descent.advance(self.n_iter)
        swept = time.perf_counter() - begun
        self.features_, self.n_iter_ = features, self.n_iter
        self.coef_ = descent.coef.T.astype(descent.dtype)
        self.intercept_ = descent.intercept.astype(descent.dtype)
        total = time.perf_counter() - started
        self.plan_ = plan_of(self, choice).with_measured({choice.step: swept}, total=total)

    def _scores(self, X: Any, function: Any) -> Any:
        """``function`` of the scores (n, k) of rows."""
        coef, intercept = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        blocks = column_blocks(coef.shape[1], self.block_size)
        parts = [
            (self.features_.columns(one.start, one.stop), coef[:, one].T) for one in blocks
        ]
        rowwise = partial(_applied, parts=parts, intercept=intercept, function=function)
        return apply(self, X, rowwise)


class BlockLeastSquares(_Regresses, BlockModel):
    """Least squares with an L2 penalty, solved for one block of features at a time.

    Minimises ``sum_i s_i ||y_i - W z_i - b||^2 + alpha ||W||^2`` by Gauss-Seidel: every
    block of ``block_size`` features is solved for exactly with the others fixed, ``n_iter``
    times in turn. With one block that is ridge regression; with several, more sweeps come
    closer to it. The features z of a row are its columns, or come from ``features``, which
    makes them again block by block: they never exist all at once.

    Parameters
    ----------
    alpha : float or array-like of shape (k,), default=1.0
        Penalty, at least 0; one for each target if an array.
    features : None or Features, default=None
        What generates the features of a row, not fitted, such as
        ``RandomFeatures(65536, gamma=...)``. None for the columns of X.
    block_size : int, default=4096
        Features b of a block. A sweep takes ``n D (b + k)`` operations.
    n_iter : int, default=3
        Sweeps over all blocks.
    fit_intercept : bool, default=True
        The intercept is not penalised.
    memory_budget : int, str or "auto", default="auto"
        Bytes ("2GiB") that may be kept beside X, of all workers together: a block of
        features between its two uses, factors from sweep to sweep. What is not kept is made
        again. "auto" is the setting ``mlopt.memory-budget``, or three quarters of the
        memory.

    Attributes
    ----------
    coef_ : ndarray of shape (D,) or (k, D)
    intercept_ : float or ndarray of shape (k,)
    features_ : Features
        Fitted.
    n_iter_ : int
    plan_ : Plan
        What was kept, with predicted and measured seconds.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Sparks et al., "KeystoneML" (ICDE 2017), section III and Table I. Tu, Roelofs,
    Venkataraman, Recht, "Large scale kernel learning using block coordinate descent", 2016.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BlockLeastSquares:
        """Fit to X and y.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask collection or Rows, (n, d)
            Features have its dtype: give float32 for half the memory and time.
        y : array-like of shape (n,) or (n, k)
        sample_weight : float or array-like of shape (n,), optional

        Returns
        -------
        self

        Raises
        ------
        InputError
            When a parameter is out of range, or X, y or the weights are malformed.
        """
        self._fit(X, y, sample_weight)
        if self._one:
            self.coef_, self.intercept_ = self.coef_[0], self.intercept_[0]
        return self


class BlockLeastSquaresClassifier(_Classifies, BlockModel):
    """`BlockLeastSquares` to indicators of the classes, 1 and -1; the largest score wins.

    Parameters
    ----------
    alpha, features, block_size, n_iter, fit_intercept, memory_budget
        See `BlockLeastSquares`.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    coef_ : ndarray of shape (K, D), or (1, D) for two classes
    intercept_ : ndarray of shape (K,) or (1,)
    features_, n_iter_, plan_, n_features_in_, feature_names_in_
        See `BlockLeastSquares`.
    """

    classes_: Array

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> BlockLeastSquaresClassifier:
        """Fit to X and the classes y; see `BlockLeastSquares.fit`.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask collection or Rows, (n, d)
        y : array-like of shape (n,)
            At least two classes.
        sample_weight : float or array-like of shape (n,), optional

        Returns
        -------
        self
        """
        self._fit(X, y, sample_weight)
        return self


def _applied(X: Any, parts: Any, intercept: Array, function: Any) -> Array:
    return np.asarray(function(scores(X, parts, intercept)))
