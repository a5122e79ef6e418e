"""The leading singular vectors of X as it is, not centred, pass by pass.

Shapes: ``X`` is (n, d); ``k`` components; ``l`` columns of a sketch.

With the same random numbers as scikit-learn. For n < d the sketch is ``X.T`` times random
rows, which is what scikit-learn makes there, too; for n >= d it is random columns, and what
is found has half an iteration more.

Halko, Martinsson, Tropp, "Finding structure with randomness", SIAM Review 53, 2011.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import svd_flip

from mlopt.pipeline.library.moments import Moments, column_moments, join
from mlopt.pipeline.library.pca_leading import leading_exact, leading_from
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Decomposition:
    """The leading part of the SVD of X.

    Attributes
    ----------
    components : ndarray of shape (k, d)
        In each, the entry of largest magnitude is positive.
    singular : ndarray of shape (k,)
        Largest first.
    variances, total : ndarray of shape (k,), float
        Of the rows along each component, and of all columns together.
    """

    components: Array
    singular: Array
    variances: Array
    total: float


def by_sketch(
    rows: Rows, k: int, sketch: int, iterations: int, random: np.random.RandomState
) -> Decomposition:
    """A random sketch and ``iterations`` power iterations: one pass each."""
    if rows.n < rows.d:
        draws = random.normal(size=(rows.n, sketch))
        start, products = _sketched(rows, draws), iterations
    else:
        start, products = random.normal(size=(rows.d, sketch)), iterations + 1
    s, Vt = leading_from(rows, np.zeros(rows.d), start, products)
    return _described(rows, s[:k], Vt[:k])


def by_lanczos(rows: Rows, k: int, random: np.random.RandomState) -> Decomposition:
    """ARPACK: one pass for each product with a vector; exact."""
    s, Vt, _ = leading_exact(rows, np.zeros(rows.d), k, random)
    return _described(rows, s, Vt)


def _sketched(rows: Rows, draws: Array) -> Array:
    """``X.T @ draws``, (d, l)."""
    beside = rows.attach(draws=draws.astype(rows.dtype))
    return np.asarray(beside.map_reduce(_transposed, operator.add))


def _transposed(block: Block) -> Array:
    return np.asarray(block.X.T @ block.extra["draws"], dtype=np.float64)


def _described(rows: Rows, singular: Array, Vt: Array) -> Decomposition:
    """With signs, and variances from one more pass."""
    _, components = svd_flip(None, np.array(Vt), u_based_decision=False)
    whole, along = rows.map_reduce(_spread, _both, components)
    total = float(np.sum(whole[2])) / rows.n
    return Decomposition(components, singular, along[2] / rows.n, total)


def _spread(block: Block, components: Array) -> tuple[Moments, Moments]:
    """Moments of the columns, and of the coordinates along the components."""
    along = np.asarray(block.X @ components.T.astype(block.X.dtype))
    return column_moments(block), column_moments(Block(along))


def _both(
    a: tuple[Moments, Moments], b: tuple[Moments, Moments]
) -> tuple[Moments, Moments]:
    return join(a[0], b[0]), join(a[1], b[1])
