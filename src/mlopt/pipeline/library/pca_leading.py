"""The leading singular vectors, pass by pass: by a random sketch, or by Lanczos.

    Q = orth(random (d, l));  Q = orth(Xc.T (Xc Q)), again and again;  Xc Q = U S W.T

Xc is X less its column means, and is never formed: dense rows are centred panel by panel,
sparse ones only in the products. Each iteration is one pass, and only (d, l) numbers
travel. The singular values come from a QR of Xc Q, which squares nothing.

Halko, Martinsson, Tropp, "Finding structure with randomness", SIAM Review 53, 2011,
algorithms 4.4 and 5.1, on the side of the columns: rows stay where they are.

ARPACK asks for ``Xc.T (Xc v)`` until the vectors have converged, one a pass, so it is exact
also where variances decay too slowly for a random sketch: Lehoucq, Sorensen, Yang, "ARPACK
Users' Guide", SIAM, 1998.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh

from mlopt.cluster import between_passes
from mlopt.gd.tsqr import stack
from mlopt.pipeline.library.moments import added
from mlopt.rows import Block, Rows

Array = NDArray[Any]

_CACHE = 1 << 19
"""Bytes of a panel of rows, which stay in a core's cache from one product to the next."""
_FEWEST = 256
"""Rows of a panel at least: of fewer, products are of vectors and not of matrices."""


def leading(
    rows: Rows, mean: Array, sketch: int, iterations: int, random: np.random.RandomState
) -> tuple[Array, Array]:
    """Singular values (l,), largest first, and right singular vectors (l, d) of Xc.

    Parameters
    ----------
    rows : Rows
    mean : ndarray of shape (d,)
    sketch : int
        Columns l of the sketch: components wanted, and about ten more.
    iterations : int
        Power iterations after the first product.
    random : RandomState
    """
    start = random.standard_normal((rows.d, sketch))
    return leading_from(rows, mean, start, iterations + 1)


def leading_from(
    rows: Rows, mean: Array, start: Array, products: int
) -> tuple[Array, Array]:
    """The same from a given sketch (d, l), after so many products with ``Xc.T Xc``."""
    with between_passes():
        basis = _orthonormal(start)
        for _ in range(products):
            basis = _orthonormal(squared(rows, basis, mean))
    triangle = rows.map_reduce(_sketched, stack, basis, mean)
    _, s, Wt = scipy.linalg.svd(triangle, check_finite=False)
    return s, Wt[: len(s)] @ basis.T


def squared(rows: Rows, basis: Array, mean: Array) -> Array:
    """``Xc.T @ (Xc @ basis)``, shape (d, l), float64: one pass."""
    product, sums = rows.map_reduce(_product, added, basis, mean)
    return np.asarray(product - np.outer(mean, sums))


def _orthonormal(matrix: Array) -> Array:
    return np.asarray(np.linalg.qr(matrix)[0])


def _product(block: Block, basis: Array, mean: Array) -> tuple[Array, Array]:
    """Of one block, what `squared` adds up: (d, l), and what to take off for the mean."""
    X = block.X
    basis = basis.astype(X.dtype, copy=False)
    if sp.issparse(X):
        Y = _sparse_sketch(X, basis, mean)
        # One outer product at the end instead of one for each block.
        return X.T @ Y, Y.sum(axis=0, dtype=np.float64)
    total = np.zeros(basis.shape)
    for panel in centred_panels(X, mean):
        total += panel.T @ (panel @ basis)
    return total, np.zeros(basis.shape[1])


def _sketched(block: Block, basis: Array, mean: Array) -> Array:
    """A matrix of l columns with the Gram matrix of ``Xc @ basis``."""
    X = block.X
    basis = basis.astype(X.dtype, copy=False)
    stacked = np.empty((0, basis.shape[1]))
    if sp.issparse(X):
        return stack(stacked, _sparse_sketch(X, basis, mean).astype(np.float64))
    for panel in centred_panels(X, mean):
        stacked = stack(stacked, (panel @ basis).astype(np.float64))
    return stacked


def _sparse_sketch(X: Any, basis: Array, mean: Array) -> Array:
    return np.asarray(X @ basis - (mean @ basis).astype(X.dtype))


def centred_panels(X: Array, mean: Array) -> Iterator[Array]:
    """Dense rows less their mean, a few at a time in the same memory.

    Subtracting afterwards, as is done for sparse rows, would lose the digits that data
    far from zero have in common.
    """
    size = max(_FEWEST, _CACHE // (X.itemsize * X.shape[1]))
    buffer = np.empty((min(size, len(X)), X.shape[1]), X.dtype)
    for start in range(0, len(X), size):
        part = X[start : start + size]
        panel = buffer[: len(part)]
        np.subtract(part, mean, out=panel, casting="same_kind")
        yield panel


def leading_exact(
    rows: Rows, mean: Array, components: int, random: np.random.RandomState
) -> tuple[Array, Array, int]:
    """Singular values (k,), largest first, singular vectors (k, d) of Xc, and passes.

    Parameters
    ----------
    rows : Rows
        Not all of them equal.
    mean : ndarray of shape (d,)
    components : int
        Fewer than ``min(n, d)``.
    random : RandomState
        Gives the first vector; the result hardly depends on it.
    """
    passes = 0

    def product(vector: Array) -> Array:
        nonlocal passes
        passes += 1
        return squared(rows, vector.reshape(-1, 1), mean)[:, 0]

    gram = LinearOperator((rows.d, rows.d), matvec=product, dtype=np.float64)
    start = random.uniform(-1.0, 1.0, rows.d)
    kept = krylov(components, rows.d)
    with between_passes():
        values, vectors = eigsh(gram, components, ncv=kept, v0=start)
    order = np.argsort(values)[::-1]
    return np.sqrt(np.maximum(values[order], 0.0)), vectors.T[order], passes


def krylov(components: int, d: int) -> int:
    """Vectors that ARPACK keeps: scipy's rule."""
    return min(d, max(2 * components + 1, 20))
