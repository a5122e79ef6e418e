"""`PerClassWeightedLeastSquares`: least squares where rare classes count as much."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mlopt.cluster import Executor, executor
from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd.estimator_base import Sample, read, resources_of
from mlopt.gd.linear_model import encode
from mlopt.parameters import check_count, check_positive
from mlopt.pipeline.library.choosing import choose
from mlopt.pipeline.library.learning.block_cost import cost
from mlopt.pipeline.library.learning.block_descent import Keeping
from mlopt.pipeline.library.learning.block_fit import (
    penalties,
    plan_of,
    work_of,
    work_to_come,
)
from mlopt.pipeline.library.learning.block_least_squares import BlockModel
from mlopt.pipeline.library.learning.by_scores import _Classifies
from mlopt.pipeline.library.learning.feature_blocks import (
    Features,
    block_rows,
    fitted_features,
)
from mlopt.pipeline.library.learning.per_class_descent import Mixture, PerClassDescent
from mlopt.plan import Choice, Plan
from mlopt.resources import Resources
from mlopt.stats import Stats

Array = NDArray[Any]


def _apart(scores: Array) -> Array:
    return np.asarray(scores[:, 1] - scores[:, 0])


class PerClassWeightedLeastSquares(_Classifies, BlockModel):
    """Least squares to indicators, each class with weights of rows of its own.

    For every class c minimises ``sum_i s_ic (y_ic - w_c z_i - b_c)^2 + alpha ||w_c||^2``,
    with y of 1 or -1 and weights that sum to 1: ``(1 - w) / n`` for every row, and
    ``w / n_c`` more for each of the n_c rows of class c. One block of features at a time,
    made when needed; see `BlockLeastSquares`.

    Parameters
    ----------
    alpha : float or array-like of shape (K,), default=1e-3
        Penalty, at least 0, beside a *mean* of squares: ``n`` times smaller than that of
        `BlockLeastSquares`.
    mixture_weight : float, default=0.5
        The weight w of a class's own rows, from 0, where all rows weigh the same, to 1,
        where others do not count.
    features : None or Features, default=None
        See `BlockLeastSquares`.
    block_size : int, default=1024
        Features b of a block. There are K matrices (b, b) at a time.
    n_iter : int, default=3
        Sweeps over all blocks.
    fit_intercept : bool, default=True

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    coef_ : ndarray of shape (K, D)
    intercept_ : ndarray of shape (K,)
    features_, n_iter_, plan_, n_features_in_, feature_names_in_
        See `BlockLeastSquares`.

    References
    ----------
    KeystoneML's `PerClassWeightedLeastSquares` and `BlockWeightedLeastSquares`.
    """

    _of_two: ClassVar[Callable[[Array], Array]] = staticmethod(_apart)

    def __init__(
        self,
        alpha: Any = 1e-3,
        *,
        mixture_weight: float = 0.5,
        features: Any = None,
        block_size: int = 1024,
        n_iter: int = 3,
        fit_intercept: bool = True,
    ) -> None:
        self.alpha = alpha
        self.mixture_weight = mixture_weight
        self.features = features
        self.block_size = block_size
        self.n_iter = n_iter
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any) -> PerClassWeightedLeastSquares:
        """Fit to X and the classes y.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask collection or Rows, (n, d)
        y : array-like of shape (n,)
            At least two classes.

        Returns
        -------
        self

        Raises
        ------
        InputError
            When a parameter is out of range, or X or y is malformed.
        """
        started = time.perf_counter()
        with closing(executor()) as where:
            sample, features, codes, choice = self._prepare(X, y, where)
            rows, K = sample.rows, len(self.classes_)
            signs = np.where(codes[:, None] == np.arange(K), 1.0, -1.0).astype(rows.dtype)
            descent = PerClassDescent(
                rows.attach(signs=signs, codes=codes),
                features,
                self.block_size,
                penalties(self.alpha, K),
                Mixture(float(self.mixture_weight), np.bincount(codes)),
                bool(self.fit_intercept),
            )
            self._sweep(descent, features, choice, started)
        return self

    def explain(self, X: Any, y: Any, sample_weight: None = None) -> Plan:
        """The plan of `fit` for the same arguments; fits nothing but `features`."""
        del sample_weight
        with closing(executor()) as where:
            choice = clone(self)._prepare(X, y, where)[-1]
        return plan_of(self, choice)

    def _foreseen(self, stats: Stats, resources: Resources) -> Cost | None:
        work = work_to_come(self, stats)
        return None if work is None else cost(work, Keeping(False, False), resources)

    def _prepare(
        self, X: Any, y: Any, where: Executor
    ) -> tuple[Sample, Features, NDArray[np.intp], Choice]:
        size = check_count("block_size", self.block_size)
        passes = check_count("n_iter", self.n_iter)
        if check_positive("mixture_weight", self.mixture_weight, zero=True) > 1:
            raise InputError(
                f"`mixture_weight` must lie between 0 and 1, got {self.mixture_weight!r}."
            )
        sample = read(
            self, X, y, executor=where, numeric=False, block_rows=block_rows(size)
        )
        self.classes_, codes = encode(self, sample.y, sample.weights)
        penalties(self.alpha, len(self.classes_))
        features = fitted_features(self.features, sample.rows)
        outputs, resources = len(self.classes_), resources_of(where)
        work = work_of(sample.rows, features, outputs, size, passes)
        options = {"keep nothing": cost(work, Keeping(False, False), resources)}
        choice = choose(type(self).__name__, "auto", options, resources, "sweeps")
        note = f"{outputs} matrices of {min(size, work.features)} columns at a time"
        return sample, features, codes, replace(choice, notes=(note,))
