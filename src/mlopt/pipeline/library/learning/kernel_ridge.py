"""`KernelRidge` with a gaussian kernel, by blocks, and a classifier."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.exceptions import ConvergenceWarning

from mlopt.cluster import Executor, executor
from mlopt.costs import Cost
from mlopt.gd.estimator_base import Sample, apply, read, resources_of
from mlopt.gd.pricing import Shape, arithmetic, shape_of, shape_of_stats
from mlopt.parameters import check_count, check_positive
from mlopt.pipeline.budget import budget_bytes
from mlopt.pipeline.library.choosing import choose, least
from mlopt.pipeline.library.learning.by_scores import _Classifies, _Regresses
from mlopt.pipeline.library.learning.feature_blocks import block_rows
from mlopt.pipeline.library.learning.kernel_blocks import KernelDescent, kernel_scores
from mlopt.plan import Choice, Plan, format_bytes
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.stats import Stats

Array = NDArray[Any]
KEPT, MADE = "keep the kernel", "make columns anew"

_EXPONENTIAL = price("kernel.exponential")


class _Kernel(BaseEstimator):
    """Parameters, plan and scores of both forms."""

    X_fit_: Any
    dual_coef_: Array
    _targets: Callable[[Sample], Array]

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        gamma: float | None = None,
        block_size: int = 2048,
        n_iter: int = 100,
        tol: float = 1e-4,
        memory_budget: Any = "auto",
    ) -> None:
        self.alpha = alpha
        self.gamma = gamma
        self.block_size = block_size
        self.n_iter = n_iter
        self.tol = tol
        self.memory_budget = memory_budget

    def explain(self, X: Any, y: Any) -> Plan:
        """The plan of `fit` for the same arguments; fits nothing.

        Returns
        -------
        Plan
            Whether the kernel would be kept in memory, with predicted seconds of all
            ``n_iter`` sweeps: an upper bound where ``tol`` ends them sooner.
        """
        with closing(executor()) as where:
            choice = clone(self)._prepare(X, y, where)[-1]
        return Plan(f"fit {self}", (choice,), choice.predicted)

    def _foreseen(self, stats: Stats, resources: Resources) -> Cost | None:
        """What a fit would cost at most, before there are rows."""
        budget, shape = budget_bytes(self.memory_budget, None), shape_of_stats(stats)
        found = _options(shape, self.block_size, self.n_iter, resources, budget)
        return least(found, resources)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _prepare(self, X: Any, y: Any, where: Executor) -> tuple[Sample, Array, Choice]:
        size = check_count("block_size", self.block_size)
        passes = check_count("n_iter", self.n_iter)
        check_positive("alpha", self.alpha)
        check_positive("tol", self.tol, zero=True)
        if self.gamma is not None:
            check_positive("gamma", self.gamma)
        sample = read(
            self,
            X,
            y,
            executor=where,
            numeric=is_regressor(self),
            block_rows=block_rows(size),
        )
        targets = self._targets(sample)
        budget, resources = budget_bytes(self.memory_budget, where), resources_of(where)
        shape = shape_of(sample.rows, targets.shape[1])
        options = _options(shape, size, passes, resources, budget)
        choice = choose(type(self).__name__, "auto", options, resources, "sweeps")
        return sample, targets, choice

    def _fit(self, X: Any, y: Any) -> None:
        with closing(executor()) as where:
            sample, targets, choice = self._prepare(X, y, where)
            self.gamma_ = 1.0 / sample.rows.d if self.gamma is None else float(self.gamma)
            started = time.perf_counter()
            descent = KernelDescent(
                sample.rows,
                targets,
                self.gamma_,
                float(self.alpha),
                self.block_size,
                choice.chosen == KEPT,
            )
            descent.advance(self.n_iter, self.tol)
            seconds = time.perf_counter() - started
            self.X_fit_ = sample.rows.collect()
        self.dual_coef_, self.n_iter_ = (
            descent.dual.astype(self.X_fit_.dtype),
            descent.passes,
        )
        self.residual_ = descent.residual
        note = f"{descent.passes} sweeps, residual {descent.residual:.1e}"
        choice = replace(choice, notes=(note,))
        plan = Plan(f"fit {self}", (choice,), choice.predicted)
        self.plan_ = plan.with_measured({choice.step: seconds}, total=seconds)
        if descent.residual > self.tol:
            warnings.warn(
                f"Kernel ridge stopped after {descent.passes} sweeps with a residual of "
                f"{descent.residual:.1e}, above `tol`={self.tol}: increase `n_iter`, "
                "`alpha` or `block_size`.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _scores(self, X: Any, function: Any) -> Any:
        """``function`` of the scores (n, k) of rows."""
        dual = self.dual_coef_.reshape(len(self.dual_coef_), -1)
        rowwise = partial(
            _applied, support=self.X_fit_, dual=dual, gamma=self.gamma_, function=function
        )
        return apply(self, X, rowwise)


class KernelRidge(_Regresses, _Kernel):
    """Ridge regression in the space of a gaussian kernel, one block of rows at a time.

    Solves ``(K + alpha I) A = Y`` with ``K_ij = exp(-gamma |x_i - x_j|^2)`` by Gauss-Seidel
    over blocks of kernel columns, which are made when needed: the problem of
    ``sklearn.kernel_ridge.KernelRidge(kernel="rbf")`` in memory for a panel of K.

    Parameters
    ----------
    alpha : float, default=1.0
        Penalty, positive.
    gamma : float, optional
        Default: ``1 / d``.
    block_size : int, default=2048
        Rows b of a block. Larger blocks need fewer sweeps.
    n_iter : int, default=100
        Sweeps at most. Each takes ``n^2 (d + k) + n b^2`` operations.
    tol : float, default=1e-4
        Done when ``|Y - (K + alpha I) A|`` is at most so many times ``|Y|``.
    memory_budget : int, str or "auto", default="auto"
        Bytes ("2GiB") in which all of K is kept, of all workers together, where they are
        enough. "auto" is the setting ``mlopt.memory-budget``, or three quarters of the
        memory.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n,) or (n, k)
    X_fit_ : ndarray or csr_array of shape (n, d)
        The training rows: predictions need them.
    gamma_, residual_ : float
    n_iter_ : int
        Sweeps.
    plan_ : Plan
        Whether K was kept, with predicted and measured seconds.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    References
    ----------
    Tu, Roelofs, Venkataraman, Recht, "Large scale kernel learning using block coordinate
    descent", 2016.
    """

    def fit(self, X: Any, y: Any) -> KernelRidge:
        """Fit to X and y.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask collection or Rows, (n, d)
        y : array-like of shape (n,) or (n, k)

        Returns
        -------
        self

        Raises
        ------
        InputError
            When a parameter is out of range, or X or y is malformed.
        """
        self._fit(X, y)
        if self._one:
            self.dual_coef_ = self.dual_coef_[:, 0]
        return self


class KernelRidgeClassifier(_Classifies, _Kernel):
    """`KernelRidge` to indicators of the classes, 1 and -1; the largest score wins.

    Parameters
    ----------
    alpha, gamma, block_size, n_iter, tol, memory_budget
        See `KernelRidge`.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
    dual_coef_ : ndarray of shape (n, K), or (n, 1) for two classes
    X_fit_, gamma_, residual_, n_iter_, plan_, n_features_in_, feature_names_in_
        See `KernelRidge`.
    """

    classes_: Array

    def fit(self, X: Any, y: Any) -> KernelRidgeClassifier:
        """Fit to X and the classes y; see `KernelRidge.fit`.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask collection or Rows, (n, d)
        y : array-like of shape (n,)
            At least two classes.

        Returns
        -------
        self
        """
        self._fit(X, y)
        return self


def kernel_costs(
    rows: Shape, size: int, passes: int, resources: Resources
) -> dict[str, Cost]:
    """Of all sweeps, with the kernel kept and with its columns made anew.

    Parameters
    ----------
    rows : Shape
        X, with k outputs.
    size : int
        Columns of a block.
    passes : int
        Sweeps.
    resources : Resources
    """
    n, share = float(rows.n), 1.0 / resources.workers
    size = min(size, rows.n)
    stored = rows.nonzero / n
    made = arithmetic(rows, share * n * n * (2.0 * stored + _EXPONENTIAL))
    # Factors are made here, on one thread: a cost is what all threads share.
    factors = Cost(flops=resources.threads * 2.0 * n * float(size) ** 2 / 3)
    used = arithmetic(rows, share * 12.0 * n * n * rows.columns)
    used += Cost(memory=3.0 * share * n * n * rows.itemsize)
    return {
        KEPT: made + factors + passes * used,
        MADE: passes * (made + factors + used),
    }


def _options(
    shape: Shape, size: int, passes: int, resources: Resources, budget: int
) -> dict[str, Cost | str]:
    """What there is room for."""
    options: dict[str, Cost | str] = {**kernel_costs(shape, size, passes, resources)}
    needed = shape.n**2 * shape.itemsize + 8 * shape.n * size
    if needed > budget:
        options[KEPT] = f"needs {format_bytes(needed)} of {format_bytes(budget)}"
    return options


def _applied(X: Any, support: Any, dual: Array, gamma: float, function: Any) -> Array:
    return np.asarray(function(kernel_scores(X, support, dual, gamma)))
