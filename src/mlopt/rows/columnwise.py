"""Sparse rows that were given by columns: by rows they are made when somebody reads them.

Methods that go from column to column need no more than what was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mlopt.cluster import usable
from mlopt.locking import cached_property
from mlopt.rows.block import Block, Found, all_finite, as_csr, convert, inspect, make_usable


class _Given:
    """A CSC matrix, and its rows once somebody read them."""

    def __init__(self, columns: Any) -> None:
        self.columns = columns

    @cached_property
    def rows(self) -> Any:
        return convert(as_csr(self.columns), self.columns.dtype)

    def __getstate__(self) -> dict[str, Any]:
        return {"columns": self.columns}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.columns = state["columns"]
        make_usable(self.columns)


class Columnwise(Block):
    """A block of all rows.

    Parameters
    ----------
    given : _Given
        In canonical order, float32 or float64; other blocks of the same rows share it.
    """

    given: _Given

    def __init__(
        self, given: _Given, extra: Mapping[str, np.ndarray] | None = None, index: int = 0
    ) -> None:
        vars(self).update(given=given, extra=extra or {}, index=index)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state | {"extra": usable(dict(state["extra"]))})

    @staticmethod
    def of(X: Any) -> Columnwise:
        """Of a CSC matrix of floats, whose arrays are not written to."""
        return Columnwise(_Given(convert(X.T, X.dtype).T))

    @property
    def by_columns(self) -> Any:
        return self.given.columns

    @property
    def X(self) -> Any:
        """The rows as a `csr_array`."""
        return self.given.rows

    def beside(self, arrays: Mapping[str, np.ndarray]) -> Columnwise:
        return Columnwise(self.given, {**self.extra, **arrays}, self.index)

    @property
    def found(self) -> Found:
        """What it is like; rows are made to name the column of what is not finite."""
        if not all_finite(self.by_columns.data):
            return inspect(self.X)
        rows, columns = self.by_columns.shape
        found = inspect(self.by_columns, finite=True)
        return replace(found, rows=rows, columns=columns)
