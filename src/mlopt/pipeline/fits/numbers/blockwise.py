"""What all one-pass fits of numbers share: blocks without rows, weights, column names.

A fit says what it learns from a block that has rows, how two neighbours are joined, and
what scikit-learn would have set. Blocks without rows have no statistics: None.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.validation import _num_features, validate_data

from mlopt.errors import InputError
from mlopt.pipeline.blocks.tables import count_rows
from mlopt.pipeline.fits.base import OnePass


@dataclass(frozen=True)
class Columns:
    """How many columns the blocks have, and their names where blocks are frames.

    Attributes
    ----------
    count : int
    names : tuple of str, or None
        None where scikit-learn would set no ``feature_names_in_``.
    """

    count: int
    names: tuple[str, ...] | None = None

    @staticmethod
    def of(estimator: Any, X: Any) -> Columns:
        """The columns of a block, by scikit-learn's own rules."""
        seen = clone(estimator)
        validate_data(seen, X, skip_check_array=True)
        names = getattr(seen, "feature_names_in_", None)
        return Columns(_num_features(X), None if names is None else tuple(names))

    def check(self, other: Columns) -> None:
        """Raise unless the other's columns are the same."""
        if self != other:
            raise InputError(
                f"All blocks must have the same columns, got {self._shown()} and "
                f"{other._shown()}: select or rename them before."
            )

    def block(self, values: Any) -> Any:
        """``values`` of shape (n, d) as scikit-learn would have been given them."""
        if self.names is None:
            return values
        if sp.issparse(values):
            return pd.DataFrame.sparse.from_spmatrix(values, columns=list(self.names))
        # Not inferred: text would become `str`, and None in it NaN.
        return pd.DataFrame(values, columns=list(self.names), dtype=values.dtype)

    def _shown(self) -> str:
        return f"{self.count}" if self.names is None else f"{list(self.names)}"


class Blockwise(OnePass):
    """A one-pass fit by what it does with rows; blocks without rows change nothing.

    Statistics are whatever the fit likes, with their `Columns` as ``columns``.

    Attributes
    ----------
    weighted : bool
        Whether scikit-learn's ``fit`` takes weights of rows.
    """

    weighted: ClassVar[bool] = False

    @final
    def part(self, estimator: Any, X: Any, y: Any, weight: Any) -> Any:
        if weight is not None and not self.weighted:
            raise InputError(
                f"`{type(estimator).__name__}` takes no weights of rows: leave them out."
            )
        if not count_rows(X):
            return None
        weight = None if weight is None else np.asarray(weight)
        return self.learn(clone(estimator), X, y, weight)

    @final
    def merge(self, left: Any, right: Any) -> Any:
        if left is None or right is None:
            return left if right is None else right
        left.columns.check(right.columns)
        return self.join(left, right)

    @final
    def finish(self, estimator: Any, statistics: Any) -> Any:
        if statistics is None:
            raise InputError(
                f"`{type(estimator).__name__}` needs at least one row: no block has any."
            )
        return self.fitted(clone(estimator), statistics)

    @abstractmethod
    def learn(self, model: Any, X: Any, y: Any, weight: Any) -> Any:
        """Statistics of one row or more; ``model`` is a copy of the estimator, to use.

        None when no row counts.
        """

    @abstractmethod
    def join(self, left: Any, right: Any) -> Any:
        """Statistics of two blocks that have rows and the same columns; changes neither."""

    @abstractmethod
    def fitted(self, model: Any, statistics: Any) -> Any:
        """``model``, a copy of the estimator, fitted."""


def filled(columns: Columns, rows: int, dtype: Any = np.float64) -> Any:
    """A block of zeros: scikit-learn's ``fit`` on it checks parameters and sets names."""
    return columns.block(np.zeros((rows, columns.count), dtype))


def as_before(model: Any, estimator: Any, *names: str) -> Any:
    """``model`` with parameters put back to what they are in ``estimator``."""
    given = estimator.get_params(deep=False)
    return model.set_params(**{name: given[name] for name in names})
