"""Sparse rows that were given by columns: by rows they are made when somebody reads them.

Methods that go from column to column need no more than what was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mlopt.locking import cached_property
from mlopt.rows.block import Block, Found, all_finite, as_csr, convert, inspect


class Columnwise(Block):
    """A block of all rows.

    Parameters
    ----------
    columns : csc_array of shape (n, d)
        In canonical order, float32 or float64.
    """

    def __init__(
        self, columns: Any, extra: Mapping[str, np.ndarray] | None = None, index: int = 0
    ) -> None:
        vars(self).update(columns=columns, extra=extra or {}, index=index)

    @staticmethod
    def of(X: Any) -> Columnwise:
        """Of a CSC matrix of floats, whose arrays are not written to."""
        return Columnwise(convert(X.T, X.dtype).T)

    @property
    def by_columns(self) -> Any:
        return vars(self)["columns"]

    @cached_property
    def X(self) -> Any:
        """The rows as a `csr_array`."""
        return convert(as_csr(self.by_columns), self.by_columns.dtype)

    def beside(self, arrays: Mapping[str, np.ndarray]) -> Columnwise:
        return Columnwise(self.by_columns, {**self.extra, **arrays}, self.index)

    @property
    def found(self) -> Found:
        """What it is like; rows are made to name the column of what is not finite."""
        if not all_finite(self.by_columns.data):
            return inspect(self.X)
        rows, columns = self.by_columns.shape
        found = inspect(self.by_columns, finite=True)
        return replace(found, rows=rows, columns=columns)
