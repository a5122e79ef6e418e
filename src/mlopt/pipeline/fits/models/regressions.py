"""Least squares, scikit-learn's and mlopt's estimators, by mlopt's solvers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn import linear_model
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils import check_array
from sklearn.utils.class_weight import compute_sample_weight

from mlopt.costs import Cost
from mlopt.gd import least_squares
from mlopt.gd.least_squares_fit import Regressor, accuracy_of
from mlopt.gd.plans.fitting import passes_to_expect, prices
from mlopt.gd.plans.methods import BY_NAME
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.sparse_cg import left_out
from mlopt.gd.plans.stop import CoefficientError
from mlopt.pipeline.fits.base import SEEN
from mlopt.pipeline.fits.few import Few
from mlopt.pipeline.fits.models.objectives import (
    dense_only,
    solves_exactly,
    squares_differ,
)
from mlopt.pipeline.fits.models.twin import Twin, same
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.stats import Stats

_ITERATE = ("sparse_cg", "sketched_cg")
_PENALISED = ("sketched_cg", "mixed_cholesky", "dual_cholesky")
_REFINED = (*_ITERATE, "mixed_cholesky")
_EXACT, _EXACT32 = 1e-10, 1e-6
"""Relative error of coefficients up to which is solved what scikit-learn solves exactly: no
more than rounding leaves of its normal equations at a condition of 1e6, in float64, and of
100, in float32, which it keeps."""


class Penalised(Twin):
    """`Ridge`."""

    ours: ClassVar[type | None] = least_squares.Ridge
    kinds: tuple[type, ...] = (linear_model.Ridge, least_squares.Ridge)
    learnt = ("coef_", "intercept_", "n_iter_", "solver_")

    def twin(self, estimator: Any, rows: Rows) -> Any:
        given = same(estimator, "alpha", "fit_intercept", "max_iter", "tol")
        if self.solver in _REFINED and solves_exactly(estimator, rows.sparse):
            given["tol"] = min(given["tol"], _exact(rows.dtype.itemsize))
        return least_squares.Ridge(solver=self.solver, **given)

    def suits_not(self, estimator: Any, stats: Stats) -> str:
        if reason := super().suits_not(estimator, stats):
            return reason
        aside = left_out(stats.sparse) if estimator.solver == "auto" else {}
        return aside.get(self.solver, "") or self._needs_penalty(estimator)

    def differs(self, estimator: Any, stats: Stats) -> str:
        if reason := squares_differ(estimator):
            return reason
        if stats.sparse and dense_only(estimator):
            return "its solver does not take sparse rows"
        exact = solves_exactly(estimator, stats.sparse)
        if not exact and getattr(estimator, "max_iter", None) is not None:
            return "`max_iter` may end it before it has converged"
        if exact and self.solver == "sparse_cg":
            return "it stops at a gradient, where scikit-learn solves exactly"
        return self._needs_penalty(estimator)

    def _needs_penalty(self, estimator: Any) -> str:
        free = not np.all(np.asarray(getattr(estimator, "alpha", 0.0)) > 0)
        return "it needs a penalty" if free and self.solver in _PENALISED else ""

    def passes(self, estimator: Any, stats: Stats) -> float:
        if self.solver in _ITERATE:
            return passes_to_expect("sparse_cg", squares_outline(stats, estimator))
        return 1.0

    def doubt(self, estimator: Any) -> float:
        return BY_NAME["sparse_cg"].doubt if self.solver in _ITERATE else 1.0

    def speculate(
        self, estimator: Any, few: Few, stats: Stats
    ) -> tuple[float, float] | None:
        if self.solver != "sparse_cg" or few.y is None:
            return None
        sample, target = few.rows, np.asarray(few.y)
        target = target[:, 0] if target.ndim == 2 else target
        if target.dtype.kind not in "fiu":
            target = target == target[0]
        twin = self.learner(estimator, sample)
        twin.set_params(tol=min(_asked(estimator).gradient, 0.1) or 1e-4)
        # Steps depend on the spectrum against the penalty: both shrink with the rows.
        shrunk = np.max(getattr(estimator, "alpha", 0.0)) * sample.n / stats.rows
        if shrunk:
            twin.set_params(alpha=shrunk)
        twin.fit(sample, target.astype(sample.dtype))
        steps = float(np.max(twin.n_iter_))
        # Few rows have few directions: what is usual is the least to expect.
        return max(steps, self.passes(estimator, stats)), SEEN

    def priced(
        self,
        estimator: Any,
        stats: Stats,
        resources: Resources,
        passes: float | None = None,
    ) -> Cost | str:
        outline, asked = squares_outline(stats, estimator), _asked(estimator)
        if self.solver in _REFINED and solves_exactly(estimator, stats.sparse):
            exact = _exact(stats.itemsize)
            asked = CoefficientError(exact, min(asked.gradient, exact))
            outline = replace(outline, stop=asked)
        known = self.solver == "sparse_cg" and passes is not None
        steps = math.ceil(passes or 0.0) if known else None
        return prices([self.solver], outline, resources, steps)[self.solver]


class Ordinary(Penalised):
    """`LinearRegression`, by solvers that find its rank as scikit-learn does."""

    ours = least_squares.LinearRegression
    kinds = (linear_model.LinearRegression, ours)
    learnt = ("coef_", "intercept_", "rank_", "singular_")

    def twin(self, estimator: Any, rows: Rows) -> Any:
        del rows
        given = same(estimator, "fit_intercept", "tol")
        return least_squares.LinearRegression(solver=self.solver, **given)

    def fit(self, estimator: Any, rows: Rows, y: Any, weight: Any) -> Any:
        fitted = super().fit(estimator, rows, y, weight)
        if type(estimator) is self.ours:
            return fitted
        if rows.sparse:  # of these scikit-learn iterates, and tells neither
            for name in ("rank_", "singular_"):
                vars(fitted).pop(name, None)
        if "singular_" in vars(fitted):
            fitted.singular_ = fitted.singular_.astype(rows.dtype, copy=False)
        return fitted

    def differs(self, estimator: Any, stats: Stats) -> str:
        blind = self.solver in _ITERATE and not stats.sparse
        if blind and not squares_differ(estimator):
            return "it finds neither rank nor singular values"
        return super().differs(estimator, stats)


class Signed(Penalised):
    """`RidgeClassifier`: least squares to -1 and 1, a target for each of many classes."""

    kinds = (linear_model.RidgeClassifier,)
    ours = None

    def fit(self, estimator: Any, rows: Rows, y: Any, weight: Any) -> Any:
        y = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        binarizer = LabelBinarizer(pos_label=1, neg_label=-1)
        signs = binarizer.fit_transform(y).astype(rows.dtype)
        if estimator.class_weight:
            balance = compute_sample_weight(estimator.class_weight, y)
            weight = balance if weight is None else weight * balance
        fitted = super().fit(estimator, rows, signs, weight)
        # In some versions of scikit-learn the classes are a property of the binarizer.
        vars(fitted).update(_label_binarizer=binarizer, classes_=binarizer.classes_)
        return fitted


def _exact(itemsize: int) -> float:
    """What counts as exact for values of so many bytes."""
    return _EXACT32 if itemsize < 8 else _EXACT


def _asked(estimator: Any) -> CoefficientError:
    tol = float(getattr(estimator, "tol", 1e-4) or 0.0)
    if isinstance(estimator, Regressor):
        return CoefficientError(estimator._settings().accuracy, tol)
    return CoefficientError(accuracy_of(tol), tol)


def squares_outline(stats: Stats, estimator: Any) -> Outline:
    """The problem, as far as the prices of its solvers depend on it."""
    penalty = float(np.min(getattr(estimator, "alpha", 0.0))) / stats.rows
    outline = Outline.of_stats("squared", stats)
    return replace(outline, l2=penalty, stop=_asked(estimator))


SOLVERS = (
    "sparse_cg", "cholesky", "sketched_cg", "mixed_cholesky", "dual_cholesky", "svd",
)  # fmt: skip
"""Of least squares: an iterative one first, as KeystoneML has it."""

REGRESSIONS = (
    *map(Penalised, SOLVERS),
    *map(Ordinary, ("cholesky", "svd", "sparse_cg")),
    *map(Signed, SOLVERS),
)
