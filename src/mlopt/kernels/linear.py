"""One pass over rows for many linear models: losses, gradients and scores, in sums.

And what their Hessians are made of: curvatures of rows, and weighted Gram matrices.

Shapes: ``n`` rows, ``d`` columns of ``X``, ``B`` columns of ``W``, ``M`` models, ``T``
targets, ``S`` sets of row weights. A model has ``K`` neighbouring columns of ``W``: one
for binary classification and regression, otherwise one a class. Neighbouring models that
share loss, target, weights and ``K`` form a segment.
"""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.extending import get_cython_function_address
from numpy.typing import NDArray
from scipy import sparse

from mlopt.errors import InputError
from mlopt.kernels.compiled import kernel, read_only
from mlopt.kernels.few import few
from mlopt.kernels.losses import (
    HINGE,
    HUBER,
    LOGISTIC,
    MULTINOMIAL,
    SQUARED,
    SQUARED_HINGE,
)
from mlopt.kernels.simd import lane_count
from mlopt.kernels.slopes import Inputs
from mlopt.kernels.sparse import sparse_pass
from mlopt.kernels.tiles import tiled

Array = NDArray[Any]

_LANES = {size: lane_count(size) for size in (4, 8)}
"""By the bytes of a number."""
_BLOCK = 200_000
"""Bytes of rows in a block: it stays in the second-level cache, margins beside it."""
_CACHED, _LONG = 16_000_000, 10_000
"""Bytes of rows that the last cache may hold from one pass to the next; and of a row that
is long enough to be read ahead of by itself, beside others."""
_CACHE = 400_000
"""Bytes of weighted rows that go into a product while they are in cache."""
_BAND, _COMING = 4_000_000, 4
"""Bytes of a Gram matrix that sparse rows are added to at a time, and pairs of values in
whose time a row is come by: 1 to 8 MB of matrices of 2000 to 5000 columns take as long, and
all of them at once 2 to 5 times longer; of 1 to 32 pairs 4 and 8 are within 8% of the best
on seven shapes that they were not set by (benchmarks/kernels.py)."""
_TILE = 64
"""Rows and columns of a tile of a symmetric matrix: as many cache lines as the first-level
cache holds twice. `benchmarks/kernels.py` has what others take."""


def _routine(name: str) -> Any:
    address = get_cython_function_address("scipy.linalg.cython_blas", name)
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 10)(address)


_SYRK = {4: (_routine("ssyrk"), ctypes.c_float), 8: (_routine("dsyrk"), ctypes.c_double)}
"""By the bytes of a number."""


@dataclass(frozen=True)
class Pass:
    """Sums over the rows of one pass.

    Attributes
    ----------
    loss : ndarray of shape (B,), float64
        Weighted loss of each column; a multinomial model's is in its first column, with
        0 in the others.
    gradient : ndarray of shape (d, B) or None
        Of the losses by ``W``; in C or in Fortran order, whichever it was made in.
    intercept_gradient : ndarray of shape (B,) or None
        Of the losses by ``b``.
    score : ndarray of shape (M,), float64, or None
        Per model the weighted number of right predictions, or for the squared and the
        Huber loss with one column the weighted sum of squared errors.
    """

    loss: NDArray[np.float64]
    gradient: Array | None
    intercept_gradient: Array | None
    score: NDArray[np.float64] | None


def linear_pass(
    X: Any,
    W: Array,
    b: Array,
    targets: Array,
    weights: Array,
    segments: NDArray[np.int64],
    deltas: Array,
    score_weights: Array | None = None,
    gradient: bool = True,
) -> Pass:
    """Loss, gradient and score of all columns of ``W`` in one pass over ``X``.

    Uses one thread, no BLAS, and releases the GIL: run it on slices of rows in several
    threads, and add up what they return.

    Parameters
    ----------
    X : ndarray of shape (n, d) or CSR matrix or array, float32 or float64
    W : ndarray of shape (d, B), of the dtype of ``X``
    b : ndarray of shape (B,)
        Intercepts.
    targets : ndarray of shape (n, T)
        For models of one column -1 or 1 (margin losses) or the value to predict; for
        models of K columns the codes 0 to K - 1.
    weights : ndarray of shape (n, S)
        Row weights in training; 0 leaves the row out. A segment without any weight in a
        block of rows costs no gradient there.
    segments : int64 ndarray of shape (number of segments, 6)
        Rows ``start, stop, loss, target, weight, K``: the columns from ``start`` to
        ``stop`` share a loss (see `LOSSES`), a column of ``targets``, a column of
        ``weights`` and ``score_weights``, and K. Together they cover all columns, in
        order. Margin and squared losses with K > 1 are one-vs-rest.
    deltas : ndarray of shape (number of segments,)
        Of the Huber loss.
    score_weights : ndarray of shape (n, S), optional
        Row weights in validation; None: no scores.
    gradient : bool, default=True

    Returns
    -------
    Pass

    Raises
    ------
    InputError
        If shapes or dtypes do not fit together.
    """
    models = checked_models(X, W, b, targets, weights, segments, deltas, score_weights)
    n, B = X.shape[0], W.shape[1]
    sums, scores = np.zeros((2, B)), np.zeros(models)
    validation = np.empty((n, 0), X.dtype) if score_weights is None else score_weights
    numbers = (read_only(np.asarray(a, X.dtype)) for a in (b, targets, weights, validation))
    kinds, delta = np.asarray(segments, np.int64), np.asarray(deltas, X.dtype)
    inputs = *numbers, read_only(kinds), read_only(delta), sums, scores
    run = sparse_pass if sparse.issparse(X) else dense_pass
    G = run(X, W, inputs, gradient)
    return Pass(
        sums[0],
        G if gradient else None,
        sums[1].astype(X.dtype) if gradient else None,
        None if score_weights is None else scores,
    )


def block_rows(d: int, itemsize: int) -> int:
    """Return how many rows make a block, a multiple of 8."""
    return min(max(_BLOCK // (d * itemsize), 64), 256) // 8 * 8


def dense_pass(X: Array, W: Array, inputs: Inputs, gradient: bool) -> Array:
    """Add up a pass; return the gradient (d, B), or (d, 0)."""
    d, B = W.shape
    lanes, R = _LANES[X.itemsize], block_rows(d, X.itemsize)
    width = 2 * lanes
    # A tile costs the same however many of its columns are used.
    if 3 * width // 8 >= B and d >= lanes:
        G = np.zeros((B if gradient else 0, d), X.dtype)
        by_four = _whole_bytes(X) <= _CACHED or d * X.itemsize >= _LONG
        few(read_only(X), read_only(W.T), inputs, G, R, by_four)
        return G.T
    panels = _to_panels(W, width)
    G = np.zeros_like(panels if gradient else panels[:0])
    tiled(read_only(X), read_only(panels.reshape(-1)), inputs, G.reshape(-1), R)
    return _from_panels(G, B)


def _whole_bytes(X: Array) -> int:
    """Bytes of the array that ``X`` is a block of, as far as its memory tells."""
    return X.base.nbytes if isinstance(X.base, np.ndarray) else X.nbytes


def _to_panels(W: Array, width: int) -> Array:
    """Return ``W (d, B)`` as panels (P, d, width), filled up with zeros."""
    d, B = W.shape
    P = -(-B // width)
    filled = np.zeros((d, P * width), W.dtype)
    filled[:, :B] = W
    return np.ascontiguousarray(filled.reshape(d, P, width).transpose(1, 0, 2))


def _from_panels(panels: Array, B: int) -> Array:
    P, d, width = panels.shape
    return panels.transpose(1, 0, 2).reshape(d, P * width)[:, :B]


def checked_models(
    X: Any,
    W: Array,
    b: Array,
    targets: Array,
    weights: Array,
    segments: NDArray[np.int64],
    deltas: Array,
    score_weights: Array | None,
) -> int:
    """Return the number of models; raises `InputError` where the arguments do not fit."""
    n, d = X.shape
    if X.dtype not in (np.float32, np.float64) or W.dtype != X.dtype:
        raise InputError(
            f"`X` and `W` must both be float32 or float64, got {X.dtype} and {W.dtype}."
        )
    if sparse.issparse(X) and X.format != "csr":
        raise InputError(f"A sparse `X` must be CSR, got {X.format}. Use `X.tocsr()`.")
    B = W.shape[1]
    expected = {
        "W": (W, (d, B)),
        "b": (b, (B,)),
        "targets": (targets, (n, targets.shape[1])),
        "weights": (weights, (n, weights.shape[1])),
        "segments": (segments, (len(segments), 6)),
        "deltas": (deltas, (len(segments),)),
        "score_weights": (
            weights if score_weights is None else score_weights,
            weights.shape,
        ),
    }
    for name, (array, shape) in expected.items():
        if array.shape != shape:
            raise InputError(f"`{name}` must have shape {shape}, got {array.shape}.")
    return _check_segments(segments, B, targets.shape[1], weights.shape[1])


def _check_segments(segments: NDArray[np.int64], B: int, T: int, S: int) -> int:
    # What is wrong here would be read from wrong memory: kernels do not check indices.
    end = models = 0
    for start, stop, loss, target, weight, K in segments.tolist():
        fits = 0 <= target < T and 0 <= weight < S and 0 <= loss <= MULTINOMIAL
        whole = K >= 1 and stop > start == end and (stop - start) % K == 0
        if not (fits and whole) or (loss == MULTINOMIAL and K < 2):
            raise InputError(
                "`segments` must cover the columns in order with whole models, and name "
                f"columns of `targets` ({T}) and `weights` ({S}); "
                f"got {[start, stop, loss, target, weight, K]} after column {end}."
            )
        end, models = stop, models + (stop - start) // K
    if end != B:
        raise InputError(f"`segments` must cover all {B} columns, got {end}.")
    return models


def decision(X: Any, W: Array, b: Array) -> Array:
    """Return the margins ``X @ W + b``, shape (n, B)."""
    Z: Array = np.asarray(X @ W)
    Z += b
    return Z


def weighted_gram(X: Any, h: Array) -> Array:
    """Return ``X' diag(h) X``, symmetric, of shape (d, d).

    For dense rows on as many threads as BLAS may use.

    Parameters
    ----------
    X : ndarray of shape (n, d) or CSR matrix or array, float32 or float64
    h : ndarray of shape (n,), not negative
    """
    if sparse.issparse(X):
        return sparse_gram(X, h).astype(X.dtype, copy=False)
    (n, d) = X.shape
    root = np.sqrt(np.asarray(h, X.dtype))[:, None]
    # At least d rows: adding up squares of d must not cost more than the products.
    R = max(_CACHE // (d * X.itemsize), d, 256)
    G, buffer = np.zeros((d, d), X.dtype), np.empty((min(R, n), d), X.dtype)
    for start in range(0, n, R):
        rows = buffer[: min(R, n - start)]
        np.multiply(X[start : start + R], root[start : start + R], out=rows)
        add_gram(rows, G)
    return mirror(G)


def add_gram(X: NDArray[Any], total: NDArray[Any]) -> None:
    """Add ``X' X`` to ``total``, up to its diagonal; what is above it is not touched.

    Takes as many threads as BLAS may use, without the GIL, which SciPy's wrapper of the
    same routine holds. NumPy's product makes a new matrix each time, and copies it across
    its diagonal.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        Copied if it is not in C order, or of another dtype than ``total``.
    total : ndarray of shape (d, d), float32 or float64
        In C order.
    """
    n, d = X.shape
    if not n or not d:
        return
    syrk, number = _SYRK[total.itemsize]
    X = np.ascontiguousarray(X, total.dtype)
    # BLAS counts by columns: to it this is the part above the diagonal.
    upper, plain, one = ctypes.c_char(b"U"), ctypes.c_char(b"N"), number(1.0)
    columns, rows, by = ctypes.c_int(d), ctypes.c_int(n), ctypes.byref
    syrk(
        by(upper), by(plain), by(columns), by(rows), by(one), X.ctypes.data,
        by(columns), by(one), total.ctypes.data, by(columns),
    )  # fmt: skip


def mirror(total: NDArray[Any]) -> NDArray[Any]:
    """``total`` itself, (d, d), with what is below its diagonal copied above it."""
    for start in range(0, len(total), _TILE):
        tile = slice(start, start + _TILE)
        total[:start, tile] = total[tile, :start].T
        corner = total[tile, tile]
        above = np.triu_indices(len(corner), 1)
        corner[above] = corner.T[above]
    return total


def hessian_weights(loss: int, z: Array, y: Array, delta: float = 1.0) -> Array:
    """Return d2 loss / dz2 at margins ``z``: what weighs the rows in a Hessian.

    Parameters
    ----------
    loss : int
        A number of `LOSSES`. The hinge loss has no curvature: 0.
    z : ndarray of shape (n,) or (n, B)
        For `MULTINOMIAL` (n, K), and the result is the diagonal ``p (1 - p)`` of the
        softmax; ``y`` is not used.
    y : ndarray that broadcasts to ``z``
    delta : float, default=1.0
        Of the Huber loss.

    Returns
    -------
    ndarray of the shape and dtype of ``z``
    """
    if loss == MULTINOMIAL:
        p = np.exp(z - z.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        return np.asarray(p * (1 - p))
    if loss == LOGISTIC:
        e = np.exp(-np.abs(z))
        return np.asarray(e / (1 + e) ** 2)
    curved = {
        SQUARED: np.full(z.shape, 1.0),
        HINGE: np.full(z.shape, 0.0),
        SQUARED_HINGE: np.where(y * z < 1, 2.0, 0.0),
        HUBER: np.where(np.abs(z - y) <= delta, 1.0, 0.0),
    }
    return curved[loss].astype(z.dtype)


@kernel
def _accumulate(
    data: Array, indices: Array, indptr: Array, h: Array, size: int, out: Array
) -> None:
    start = indptr[:-1].copy()
    for high in range(size, len(out) + size, size):
        for row in range(len(h)):
            first, last, p = indptr[row], indptr[row + 1], start[row]
            while p < last and (indices[p] < high or high >= len(out)):
                at, scaled = indices[p], h[row] * data[p]
                into = out[at]
                into[at] += scaled * data[p]
                for q in range(first, p):
                    other, product = indices[q], scaled * data[q]
                    if other < at:
                        into[other] += product
                    elif other > at:
                        out[other, at] += product
                    else:  # a column that is stored twice meets itself in both orders
                        into[at] += 2 * product
                p += 1
            start[row] = p


def add_sparse_gram(X: Any, h: Array, total: Array) -> None:
    """Add ``X' diag(h) X`` of CSR rows to ``total``, up to its diagonal.

    A row with s stored values touches s (s + 1) / 2 entries: far fewer than a product of
    dense rows, and without the bookkeeping of a sparse one. Of a large ``total`` some rows
    are filled at a time, so that they stay in cache, with what all rows of ``X`` add.

    Parameters
    ----------
    X : CSR matrix or array of shape (n, d)
        A column may be stored more than once in a row; values then add up.
    h : ndarray of shape (n,)
    total : float64 ndarray of shape (m, m)
        In C order, m at least d.
    """
    weights, m = np.ascontiguousarray(h, np.float64), max(len(total), 1)
    stored = X.nnz / max(X.shape[0], 1)
    # To come by a row once more takes as long as some pairs do.
    bands = min(total.nbytes / _BAND, stored * stored / (2 * _COMING))
    if bands > 1 and not X.has_sorted_indices:
        X = X.sorted_indices()
    size = math.ceil(m / max(bands, 1))
    _accumulate(*map(read_only, (X.data, X.indices, X.indptr, weights)), size, total)


def sparse_gram(X: Any, h: Array) -> Array:
    """Return ``X' diag(h) X`` of CSR rows, as `add_sparse_gram`: (d, d), float64."""
    total = np.zeros((X.shape[1], X.shape[1]))
    add_sparse_gram(X, h, total)
    return mirror(total)
