"""What a query learns: a linear model with its plan; what `PERSIST` stores of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError, did_you_mean
from mlopt.gd.least_squares import LinearRegression
from mlopt.gd.logistic import LogisticRegression
from mlopt.plan import Plan
from mlopt.plan.units import format_seconds
from mlopt.query.words import Task
from mlopt.readers.table import Known, listed

_LARGEST_SHOWN = 10
"""Weights that a printed model shows."""


@dataclass(frozen=True)
class Features:
    """The columns that a model reads.

    Parameters
    ----------
    names : tuple of str
    columns : tuple of int
        Their numbers in the file, from 1; empty where they came from several files.
    width : int
        How many columns the file has; 0 where there were several files.
    named : bool, default=True
        Whether the names stand in the file; they were made up otherwise.
    numbered_from : int or None
        The number of the first column, if it is a LIBSVM file.
    decimal : str or None
        As of `mlopt.readers.table.Table`.
    """

    names: tuple[str, ...]
    columns: tuple[int, ...] = ()
    width: int = 0
    named: bool = True
    numbered_from: int | None = None
    decimal: str | None = None

    @property
    def known(self) -> Known:
        """What is known of a text with these columns."""
        return Known(self.names if self.named else (), decimal=self.decimal)

    @staticmethod
    def numbered(d: int) -> Features:
        """Columns without names: x1, x2, ..."""
        names = tuple(f"x{number}" for number in range(1, d + 1))
        return Features(names, named=False)

    def places(self, columns: Sequence[Any], where: str) -> list[int] | None:
        """Where they stand among columns with names; None where these do not tell.

        Raises
        ------
        InputError
            Some of the names are there and others are not, or one is there twice.
        """
        times = Counter(columns)
        missing = [name for name in self.names if not times[name]]
        # Columns of several files may have the same name.
        same = len(set(self.names)) < len(self.names)
        if same or len(missing) == len(self.names) or (missing and not self.named):
            return None
        if twice := [name for name in self.names if times[name] > 1]:
            raise InputError(
                f"{where} must have each column of the model once; it has {listed(twice)} "
                "more often."
            )
        if missing:
            raise InputError(
                f"{where} must have all columns of the model, or name what goes for them; "
                f"it lacks {listed(missing)}.{did_you_mean(missing[0], map(str, columns))}"
            )
        place = {name: number for number, name in enumerate(columns)}
        return [place[name] for name in self.names]


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A linear model: ``X @ coef + intercept``.

    Attributes
    ----------
    task : {"classification", "regression"}
    loss : str
        "logistic", "hinge", "squared_hinge" or "squared".
    coef : ndarray of shape (d,), or (d, K) for K > 2 classes
    intercept : float or ndarray of shape (K,)
    classes : ndarray of shape (K,), or None
        Labels in the order of the columns of ``coef``; of two classes, the second one is
        where ``X @ coef + intercept`` is positive.
    features : Features
    plan : Plan or None
        What was run, predicted beside measured; None for a model from a file.
    seconds : float or None
        What the query took, with reading.
    converged : bool or None
        Whether EPSILON was reached.
    message : str
        Which constraint to revisit, where one was not met.
    name : str
        Under which `PERSIST` and `PREDICT` find it.
    """

    task: Task
    loss: str
    coef: NDArray[Any]
    intercept: Any
    features: Features
    classes: NDArray[Any] | None = None
    plan: Plan | None = None
    seconds: float | None = None
    converged: bool | None = None
    message: str = ""
    name: str = ""

    def predict(self, X: Any) -> Any:
        """Classes or numbers for rows.

        Parameters
        ----------
        X : array-like, sparse matrix, data frame, dask array or dask dataframe, (n, d)
            Of a frame, the columns with the names of the features, or all, in the order
            of the features, if none of their names is there.

        Returns
        -------
        ndarray or lazy dask array of shape (n,)

        Raises
        ------
        InputError
            ``X`` has another number of columns than the model has features, or columns
            with some of their names.
        """
        X = self._only_features(X)
        return self._estimator(X).predict(X)

    def describe(self) -> str:
        """The plan, and what was found, in some lines."""
        lines = [] if self.plan is None else [self.plan.explain(), ""]
        lines += [str(self), *self._coefficients()]
        return "\n".join([*lines, self.message] if self.message else lines)

    def __repr__(self) -> str:
        parts = [f"{self.loss} loss", f"{len(self.coef)} features"]
        if self.classes is not None:
            parts.insert(1, f"classes {listed_plainly(self.classes)}")
        if self.converged is not None:
            parts.append("converged" if self.converged else "not converged")
        if self.seconds is not None:
            parts[-1] += f" in {format_seconds(self.seconds)}"
        name = f"{self.name}: " if self.name else ""
        return f"<{name}{self.task}, {', '.join(parts)}>"

    def _coefficients(self) -> list[str]:
        """The largest coefficients, by name."""
        planes = np.asarray(self.coef).reshape(len(self.coef), -1)
        size = np.abs(planes).max(axis=1)
        order = np.argsort(-size, kind="stable")[:_LARGEST_SHOWN]
        names = ["intercept", *(self.features.names[i] for i in order)]
        values = [np.atleast_1d(self.intercept), *planes[order]]
        wide = max(map(len, names))
        lines = [
            f"  {name.ljust(wide)}  {'  '.join(f'{v:11.5g}' for v in row)}"
            for name, row in zip(names, values, strict=True)
        ]
        left = len(size) - len(order)
        return [*lines, f"  and {left} smaller ones"] if left else lines

    def _only_features(self, X: Any) -> Any:
        names, wanted = _column_names(X), list(self.features.names)
        if names is not None and self.features.places(names, "X") is not None:
            return X[wanted] if hasattr(X, "iloc") else X.select(wanted)
        if not hasattr(X, "shape"):
            X = np.asarray(X)
        if len(X.shape) != 2 or X.shape[1] != len(wanted):
            raise InputError(
                f"X must have one column for each of the {len(wanted)} features of the "
                f"model ({listed(wanted)}), got shape {tuple(X.shape)}."
            )
        return X

    def _estimator(self, X: Any) -> Any:
        """An estimator that predicts, here or on Dask: all losses decide alike."""
        fitted: Any = LinearRegression()
        coef, intercept = np.asarray(self.coef), self.intercept
        if self.classes is not None:
            fitted = LogisticRegression()
            fitted.classes_ = self.classes
            coef, intercept = np.atleast_2d(coef.T), np.atleast_1d(intercept)
        fitted.coef_ = np.ascontiguousarray(coef)
        fitted.intercept_ = intercept
        fitted.n_features_in_ = len(self.features.names)
        if (names := _column_names(X)) is not None:
            fitted.feature_names_in_ = np.asarray(names, dtype=object)
        return fitted


def _column_names(X: Any) -> list[Any] | None:
    """Of a frame: of Arrow, or of all others."""
    names = getattr(X, "column_names", getattr(X, "columns", None))
    return None if names is None else list(names)


def listed_plainly(values: Sequence[Any] | NDArray[Any]) -> str:
    """The first few values of many, as text."""
    shown = [str(value) for value in values[:5]]
    return "/".join([*shown, "..."] if len(values) > 5 else shown)
