"""Sums over rows added up block by block; means and squares, without losing digits."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlopt.rows import Block


class Summed:
    """A dataclass of sums over some rows: those of two parts are added field by field."""

    def __add__(self: Any, other: Any) -> Any:
        names = [field.name for field in fields(self)]
        return type(self)(*(getattr(self, n) + getattr(other, n) for n in names))


def added(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same of tuples of sums."""
    return tuple(one + other for one, other in zip(a, b, strict=True))


Moments = tuple[Any, Any, Any]
"""Count, mean, and sum of squares about the mean: of all entries, or (d,) of columns."""


def join(a: Moments, b: Moments) -> Moments:
    """The moments of two samples together.

    Chan, Golub, LeVeque, "Updating formulae", 1979: no digits lost far from zero.
    """
    count, step = a[0] + b[0], b[1] - a[1]
    mean = a[1] + step * b[0] / count
    return count, mean, a[2] + b[2] + step**2 * a[0] * b[0] / count


def column_moments(block: Block) -> Moments:
    """The moments of each column of a block, in float64; sparse ones stay sparse."""
    X, n = block.X, float(block.rows)
    if not sp.issparse(X):
        mean = X.mean(axis=0, dtype=np.float64)
        return n, mean, np.square(X - mean).sum(axis=0)
    d = X.shape[1]
    mean = np.bincount(X.indices, X.data, d) / n
    about = np.bincount(X.indices, np.square(X.data - mean[X.indices]), d)
    zeros = n - np.bincount(X.indices, minlength=d)
    return n, mean, about + zeros * mean**2
