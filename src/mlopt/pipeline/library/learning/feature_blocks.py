"""Features as blocks of columns: the columns of X, or columns generated whenever needed.

Only one block of columns exists at a time, and of it only a panel of rows where it is not
kept.

Shapes: ``X`` (n, d), ``D`` features in blocks of ``b``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import clone

from mlopt.cluster import Threads
from mlopt.errors import InputError
from mlopt.prices import price
from mlopt.rows import Block, Rows

Array = NDArray[Any]
Part = Callable[[Any], Array]
"""From rows (n, d) to some of their features (n, b), a new array; can be pickled."""

PANEL_BYTES = 1 << 25
"""Of features that are used as soon as they are made."""
_FEWEST = 256
"""Rows of a panel at least."""


OWN_FLOPS = price("block.copy")


class Features(Protocol):
    """What generates features: `mlopt.RandomFeatures`, or a class with these members.

    Laws: the columns of a range are those of any larger range; each row has its own. A
    method ``count(d)``, the features of ``d`` columns, lets a fit be priced beforehand.
    """

    @property
    def n_features_out_(self) -> int:
        """The number of features D, once fitted."""
        ...

    def fit(self, X: Any) -> Any:
        """Learn from `Rows`."""
        ...

    def columns(self, start: int, stop: int) -> Part:
        """A function that makes features ``start`` to ``stop`` of dense or CSR rows."""
        ...

    def flops_per_value(self, stored: float) -> float:
        """Operations of a matrix product that take as long as one feature of one row."""
        ...


@dataclass(frozen=True)
class OwnColumns:
    """The columns of X as features; see `Features`."""

    n_features_out_: int

    def fit(self, X: Any) -> OwnColumns:
        """Nothing is learnt."""
        del X
        return self

    def count(self, columns: int) -> int:
        """As many as there are columns."""
        return columns

    def columns(self, start: int, stop: int) -> Part:
        """Columns ``start`` to ``stop``, dense."""
        return partial(_own, start=start, stop=stop)

    def flops_per_value(self, stored: float) -> float:
        """The price of a copy."""
        del stored
        return OWN_FLOPS


def _own(X: Any, start: int, stop: int) -> Array:
    part = X[:, start:stop]
    return np.asarray(part.toarray()) if sp.issparse(part) else np.array(part)


def fitted_features(features: Any, rows: Rows) -> Features:
    """A fitted copy of ``features``, or the columns of X where it is None.

    Raises
    ------
    InputError
        When it is no `Features`.
    """
    if features is None:
        return OwnColumns(rows.d)
    needed = ("fit", "columns", "flops_per_value")
    missing = [name for name in needed if not callable(getattr(features, name, None))]
    if missing or isinstance(features, type):
        raise InputError(
            "`features` must be None, for the columns of X, or an object that generates "
            f"columns as `RandomFeatures(...)` does; got {features!r}."
        )
    own: Features = clone(features).fit(rows)
    return own


def column_blocks(count: int, size: int) -> list[slice]:
    """Ranges of ``size`` columns; the last one may be smaller."""
    return [slice(a, min(a + size, count)) for a in range(0, count, size)]


def block_rows(columns: int) -> Callable[[Any], int | None]:
    """How many rows of X in memory go into a block, where features have ``columns``.

    Every block of rows makes a matrix (b, b): with fewer than about 2 b rows, adding these
    up would take longer than making them. But eight blocks must be left to share.
    """

    def rows(X: Any) -> int | None:
        n = X.shape[0]
        if n * columns < 1 << 20:
            return None
        return int(max(_FEWEST, min(2 * columns, -(-n // 8))))

    return rows


def panels(block: Block, part: Part, shift: Array) -> Iterator[tuple[slice, Array]]:
    """The features of a block less ``shift`` (b,), some rows at a time.

    Where they were kept beside the rows they come at once.
    """
    kept = block.extra.get("features")
    if kept is not None and kept.shape[1]:
        yield slice(0, block.rows), kept
        return
    step = panel_rows(len(shift), block.X.dtype.itemsize)
    for start in range(0, block.rows, step):
        rows = slice(start, min(start + step, block.rows))
        yield rows, shifted(part(block.X[rows]), shift)


def panel_rows(columns: int, itemsize: int) -> int:
    """Rows of features that are used as soon as they are made."""
    return max(_FEWEST, PANEL_BYTES // (columns * itemsize))


def shifted(values: Array, shift: Array) -> Array:
    """``values - shift``, in the memory of ``values``."""
    return np.subtract(values, shift, out=values, casting="same_kind")


def keep_features(block: Block, part: Part, shift: Array) -> dict[str, Array]:
    """All features of a block less ``shift``, to be placed beside the rows."""
    return {"features": shifted(part(block.X), shift)}


def drop_features(block: Block) -> dict[str, Array]:
    """No features, to be placed beside the rows in their stead."""
    return {"features": np.empty((block.rows, 0))} if "features" in block.extra else {}


def first_mean(block: Block, part: Part) -> Array:
    """Mean of the features of a few rows: near that of all, so that digits are kept."""
    return np.asarray(part(block.X[:_FEWEST]).mean(axis=0, dtype=np.float64))


def scores(X: Any, parts: list[tuple[Part, Array]], intercept: Array) -> Array:
    """``Z @ W + intercept`` of shape (n, k), a panel of rows and a block of Z at a time.

    Parameters
    ----------
    X : ndarray or CSR of shape (n, d)
    parts : list of (function, ndarray of shape (b, k))
        What makes the columns of a block of Z, and their coefficients.
    intercept : ndarray of shape (k,)
    """
    dtype = np.float32 if X.dtype == np.float32 else np.float64
    out = np.empty((X.shape[0], len(intercept)), dtype)
    out[:] = intercept
    # converted once; slices of coefficients are views of columns in between
    own = [(part, np.ascontiguousarray(coef, dtype)) for part, coef in parts]
    columns = max(len(coef) for _, coef in own)

    def add(rows: slice) -> None:
        for part, coef in own:
            out[rows] += part(X[rows]) @ coef

    by_panels(add, len(out), panel_rows(columns, out.itemsize))
    return out


def by_panels(function: Callable[[slice], None], count: int, step: int) -> None:
    """Call ``function`` with ranges of ``step`` rows, on all threads."""
    ranges = [slice(a, min(a + step, count)) for a in range(0, count, step)]
    with closing(Threads()) as where:
        where.map(function, ranges)
