"""What linear models share: one way to be fitted and explained, and to predict.

Shapes: ``n`` rows, ``d`` features, ``K`` classes, ``T`` targets. Two classes have one
plane, more have one each.
"""

from __future__ import annotations

import sys
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from mlopt.cluster import Executor, executor
from mlopt.errors import InputError
from mlopt.gd.as_scikit_learn import fit_as_scikit_learn, plan_as_scikit_learn
from mlopt.gd.estimator_base import (
    Sample,
    apply,
    brought_if_few,
    plan_after,
    plan_before,
    read,
    score,
)
from mlopt.gd.plans.fitting import Chosen, choose
from mlopt.gd.plans.method import Start
from mlopt.gd.plans.running import Outcome
from mlopt.gd.plans.stop import Stop
from mlopt.gd.plans.task import Problem
from mlopt.parameters import check_parameters
from mlopt.plan import Plan, format_seconds
from mlopt.rows import Rows
from mlopt.rows.source import collected_together, is_dask

Array = NDArray[Any]

MAX_ITER = 1000
"""Steps where `max_iter` is None, as in scikit-learn."""


class Asked(NamedTuple):
    """What a query asks of a fit, beside parameters.

    Attributes
    ----------
    method : str
        The only one that may fit it; "" for those of the parameters.
    seconds : float or None
        After which a fit ends with what it has.
    told : callable or None
        What is called with why a fit ended early, in place of a warning.
    """

    method: str = ""
    seconds: float | None = None
    told: Callable[[str], None] | None = None


class LinearModel:
    """An estimator whose fit is a problem of `mlopt.gd.plans`, and its best weights.

    Subclasses say what the problem is, and what is asked of its solution.
    """

    _kind: ClassVar[type]
    """Of scikit-learn, whose own fit does what only it has a solver for."""
    fit_intercept: bool
    max_iter: int | None
    plan_: Any
    coef_: Array
    intercept_: Any
    _asked = Asked()
    _draws = True
    """From ``random_state``: a plan draws nothing that others would miss."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to X and y, by the method that is chosen or by scikit-learn's own fit.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask array or dask dataframe, (n, d)
        y : array-like of shape (n,)
            Labels, or numbers: then of several targets, too, (n, T).
        sample_weight : float or array-like of shape (n,), optional

        Returns
        -------
        self
        """
        return self._fitted(X, y, sample_weight)

    def _fitted(self, X: Any, y: Any, sample_weight: Any) -> Self:
        started = time.perf_counter()
        check_parameters(self)
        if why := self._not_ours():
            kind, theirs = self._kind, self._theirs()
            fit_as_scikit_learn(self, kind, why, X, y, sample_weight, **theirs)
            return self
        if not is_dask(X):  # else they come with its rows
            y, sample_weight = collected_together(y, sample_weight)
        with closing(self._executor(X, y, sample_weight)) as where:
            given, chosen = self._prepare(X, y, sample_weight, where)
            limit, start = self._limit, self._start(chosen.ranked[0].problem)
            outcome = chosen.run(limit, start, self._seconds_left(started))
        notes = (*self._learn(given, outcome), *chosen.choice.notes)
        started += given.read_in  # what made the rows is not this fit
        self.plan_ = plan_after(replace(chosen.choice, notes=notes), started)
        if getattr(self, "verbose", 0):
            sys.stderr.write(f"{self.plan_}\n")
        if not outcome.converged:
            why = self._what_lacks(outcome, limit)
            if self._asked.told is None:
                warnings.warn(why, ConvergenceWarning, stacklevel=3)
            else:
                self._asked.told(why)
        return self

    score = score

    def explain(self, X: Any, y: Any, sample_weight: Any = None) -> Plan:
        """The plan of `fit` for the same arguments; fits nothing.

        Returns
        -------
        Plan
            What would be chosen and rejected, with predicted seconds.
        """
        twin = clone(self)
        twin._asked = self._asked
        if getattr(self, "warm_start", False):  # from the last fit
            known = ("coef_", "intercept_")
            vars(twin).update({k: v for k, v in vars(self).items() if k in known})
        check_parameters(twin)
        twin._draws = False
        if why := twin._not_ours():
            twin._theirs()
            return plan_as_scikit_learn(self, why, X)
        if not is_dask(X):  # else they come with its rows
            y, sample_weight = collected_together(y, sample_weight)
        with closing(self._executor(X, y, sample_weight)) as where:
            _, chosen = twin._prepare(X, y, sample_weight, where)
        return plan_before(chosen.choice)

    def _executor(self, *rows: Any) -> Executor:
        return executor(n_jobs=getattr(self, "n_jobs", None), rows=rows)

    @abstractmethod
    def _not_ours(self) -> str:
        """Which parameter asks for what only scikit-learn has a solver for; or ""."""

    @abstractmethod
    def _methods(self) -> tuple[str, ...]:
        """Names of the methods that fit it with these parameters."""

    @abstractmethod
    def _problem(self, sample: Sample) -> Problem:
        """What is minimised, over which rows."""

    @abstractmethod
    def _asks(self, problem: Problem) -> tuple[str, Stop, Mapping[str, str]]:
        """A method or "auto", where it stops, what "auto" leaves aside; see `choose`."""

    def _block_rows(self) -> Callable[[Any], int | None] | None:
        """See `read`."""
        return None

    @property
    def _by_columns(self) -> bool:
        """See `read`."""
        return False

    def _posed(
        self, X: Any, y: Any, sample_weight: Any, where: Executor
    ) -> tuple[Sample, Problem]:
        """What `fit` trains on, and the problem that it solves there."""
        sample = read(
            self, X, y, sample_weight, executor=where,
            numeric=isinstance(self, RegressorMixin), block_rows=self._block_rows(),
            by_columns=self._by_columns,
        )  # fmt: skip
        if not isinstance(X, Rows):  # whose place somebody else has chosen
            rows, told = brought_if_few(sample.rows)
            sample = replace(sample, rows=rows, told=told)
        return sample, self._problem(sample)

    def _prepare(
        self, X: Any, y: Any, sample_weight: Any, where: Executor
    ) -> tuple[Sample, Chosen]:
        """What `fit` trains on, and the solver that it chose."""
        started = time.perf_counter()
        sample, problem = self._posed(X, y, sample_weight, where)
        told = sample.told
        if is_dask(X):
            read_in = time.perf_counter() - started
            sample = replace(sample, read_in=read_in)
            told = (f"read in {format_seconds(read_in)} before", *told)
        wanted, stop, aside = self._asks(problem)
        named = getattr(self, "solver", "auto") != "auto"
        methods = (self._asked.method,) if self._asked.method else self._methods()
        chosen = choose(
            str(self), wanted, methods, problem, stop, aside,
            max_iter=self._limit, firm=named, comes=not isinstance(X, Rows),
        )  # fmt: skip
        return sample, chosen.noting(*told)

    @property
    def _limit(self) -> int:
        """Steps at most."""
        return MAX_ITER if self.max_iter is None else self.max_iter

    def _seconds_left(self, started: float) -> float | None:
        """For the run, if there is a limit; with none left it ends at once."""
        if self._asked.seconds is None:
            return None
        left = self._asked.seconds - (time.perf_counter() - started)
        return max(left, np.finfo(float).tiny)

    @abstractmethod
    def _learn(self, given: Sample, outcome: Outcome) -> tuple[str, ...]:
        """Set the attributes; returns what the plan has to say of the run."""

    @abstractmethod
    def _what_lacks(self, outcome: Outcome, limit: int) -> str:
        """What to tell who gets a fit that did not converge, and what to do."""

    def _start(self, problem: Problem) -> Start:
        """The last fit, if it was one of the same shape; None for the method's own."""
        if not getattr(self, "warm_start", False):
            return None
        shape, last = (problem.outputs, problem.rows.d), getattr(self, "coef_", np.empty(0))
        if last.shape not in (shape, shape[shape[0] == 1 :]):
            return None
        held = self.intercept_ if self.fit_intercept else 0.0
        return last.reshape(shape), np.broadcast_to(held, shape[:1])

    def _theirs(self) -> dict[str, Any]:
        """Parameters that scikit-learn's own fit takes otherwise."""
        return {}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        tags.array_api_support = False
        return tags

    def _apply(self, function: Callable[..., Array], X: Any) -> Any:
        rowwise = partial(function, coef=self.coef_, intercept=self.intercept_)
        return apply(self, X, rowwise)


class LinearClassifier(LinearModel, ClassifierMixin, BaseEstimator):
    """Decides from ``classes_`` (K,), ``coef_`` (planes, d), ``intercept_`` (planes,)."""

    C: float
    class_weight: Any
    tol: float
    classes_: Array

    def decision_function(self, X: Any) -> Any:
        """Signed distance, up to a factor, from the plane of each class.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask array or dask dataframe, (n, d)

        Returns
        -------
        ndarray or lazy dask array of shape (n,) for two classes, else (n, K)
        """
        check_is_fitted(self)
        return self._apply(decide, X)

    def predict(self, X: Any) -> Any:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask array or dask dataframe, (n, d)

        Returns
        -------
        ndarray or lazy dask array of shape (n,)
        """
        check_is_fitted(self)
        function = partial(_labels, classes=self.classes_)
        return self._apply(function, X)

    def _learn(self, given: Sample, outcome: Outcome) -> tuple[str, ...]:
        self.coef_ = np.ascontiguousarray(outcome.coef, given.rows.dtype)
        self.intercept_ = outcome.intercept.astype(given.rows.dtype)
        *left, last = outcome.methods
        then = f" by {' and '.join(left)}, and then {last}" if left else ""
        return (f"took {outcome.passes} passes{then}",)

    def _what_lacks(self, outcome: Outcome, limit: int) -> str:
        return (
            f"{outcome.methods[-1]} failed to converge: {type(self).__name__} did not "
            f"reach `tol`={self.tol} in {outcome.passes} passes. Scale the features, or "
            f"increase `max_iter` ({limit}) or `tol`."
        )

    def _encode(self, y: Any, weights: NDArray[np.float64]) -> NDArray[np.intp]:
        """Set ``classes_`` and return the code 0 ... K-1 of every row.

        Raises
        ------
        InputError
            Unless two classes at least have rows of positive weight.
        """
        self.classes_, codes = encode(self, y, weights)
        return codes

    def _class_weights(
        self, codes: NDArray[np.intp], weights: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """What ``class_weight`` says of each class, shape (K,).

        Raises
        ------
        InputError
            When a class has a negative weight, or none can be found for it.
        """
        with np.errstate(divide="ignore"):  # a class without weight
            found = compute_class_weight(
                self.class_weight,
                classes=self.classes_,
                y=self.classes_[codes],
                sample_weight=weights,
            )
        if not np.isfinite(found).all():
            lacking = self.classes_[~np.isfinite(found)]
            raise InputError(
                f"`class_weight`={self.class_weight!r} needs rows of positive weight of "
                f"every class, got none of {lacking.tolist()}: leave these rows out, or "
                "give the weights of classes as a dict."
            )
        if (found < 0).any():
            raise InputError(
                f"`class_weight`={self.class_weight!r} must hold weights of at least 0, "
                f"got a negative one for {self.classes_[found < 0].tolist()}: an objective "
                "that rows make smaller may have no minimum."
            )
        return np.asarray(found, np.float64)

    def _penalty(self, weight: float, C: float) -> float:
        """What ``C`` means against the mean loss of rows of this weight in all."""
        if not weight:
            raise InputError(
                "`class_weight` must leave rows of positive weight, got "
                f"{self.class_weight!r}: give one class a positive weight at least."
            )
        return 1.0 / (C * weight)


class LinearRegressor(LinearModel, BaseEstimator):
    """Predicts from ``coef_`` of shape (d,) or (T, d) and ``intercept_``."""

    def _learn(self, given: Sample, outcome: Outcome) -> tuple[str, ...]:
        """Coefficients and intercepts in the dtype of X and the shape of y."""
        dtype, single = given.rows.dtype, given.y.ndim == 1
        coef, intercept = outcome.coef.astype(dtype), outcome.intercept.astype(dtype)
        # As scikit-learn: of a column of y its own keeps the row, others a vector.
        column = len(coef) == 1 and not isinstance(self, LinearRegression)
        self.coef_ = coef[0] if single or column else coef
        self.intercept_ = 0.0
        if self.fit_intercept:
            self.intercept_ = intercept[0] if single else intercept
        return outcome.notes

    def predict(self, X: Any) -> Any:
        """Predict the targets.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask array or dask dataframe, (n, d)

        Returns
        -------
        ndarray or lazy dask array of shape (n,) or (n, T)
        """
        check_is_fitted(self)
        return self._apply(_predict, X)


def encode(
    estimator: Any, y: Any, weights: NDArray[np.float64]
) -> tuple[Array, NDArray[np.intp]]:
    """The classes (K,) in order, and the code of each row, (n,).

    Raises
    ------
    InputError
        Unless two classes at least have rows of positive weight; it names ``estimator``.
    """
    y = column_or_1d(y, warn=True)
    check_classification_targets(y)
    classes, codes = np.unique(y, return_inverse=True)
    present = np.unique(codes[weights > 0])
    if len(present) < 2:
        raise InputError(
            f"{type(estimator).__name__} needs rows of at least two classes in y, got one "
            f"class of positive weight: {classes[present].tolist()}."
        )
    return classes, np.asarray(codes, np.intp)


def winners(scores: Array, classes: Array) -> Array:
    """The class of the largest score; by the sign of (n,) or (n, 1), those of two."""
    if scores.ndim == 1 or scores.shape[1] == 1:
        return np.asarray(classes[(scores.ravel() > 0).astype(np.intp)])
    return np.asarray(classes[scores.argmax(axis=1)])


def decide(X: Any, coef: Array, intercept: Array) -> Array:
    """Margins of shape (n,) for one plane, else (n, K)."""
    # Sparsified coefficients of sparse rows would give sparse margins.
    margins = np.asarray(safe_sparse_dot(X, coef.T, dense_output=True) + intercept)
    return margins[:, 0] if margins.shape[1] == 1 else margins


def _labels(X: Any, coef: Array, intercept: Array, classes: Array) -> Array:
    return winners(decide(X, coef, intercept), classes)


def _predict(X: Any, coef: Array, intercept: Any) -> Array:
    return np.asarray(X @ coef.T + intercept)
