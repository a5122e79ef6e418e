"""One pass over rows for many linear models: losses, gradients and scores, in sums.

Shapes: ``n`` rows, ``d`` columns of ``X``, ``B`` columns of ``W``, ``M`` models, ``T``
targets, ``S`` sets of row weights. A model has ``K`` neighbouring columns of ``W``: one
for binary classification and regression, otherwise one a class. Neighbouring models that
share loss, target, weights and ``K`` form a segment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlopt.errors import InputError
from mlopt.kernels.compiled import read_only
from mlopt.kernels.dense import dense_pass
from mlopt.kernels.hessian import hessian_weights, weighted_gram
from mlopt.kernels.losses import (
    HINGE,
    HUBER,
    LOGISTIC,
    LOSSES,
    MULTINOMIAL,
    SQUARED,
    SQUARED_HINGE,
)
from mlopt.kernels.sparse import sparse_pass
from mlopt.kernels.sparse_gram import sparse_gram

__all__ = [
    "HINGE",
    "HUBER",
    "LOGISTIC",
    "LOSSES",
    "MULTINOMIAL",
    "SQUARED",
    "SQUARED_HINGE",
    "Pass",
    "decision",
    "hessian_weights",
    "linear_pass",
    "sparse_gram",
    "weighted_gram",
]


Array = NDArray[Any]


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
    inputs = (
        read_only(np.asarray(b, X.dtype)),
        read_only(np.asarray(targets, X.dtype)),
        read_only(np.asarray(weights, X.dtype)),
        read_only(np.asarray(validation, X.dtype)),
        read_only(np.asarray(segments, np.int64)),
        read_only(np.asarray(deltas, X.dtype)),
    )
    run = sparse_pass if sparse.issparse(X) else dense_pass
    G = run(X, W, inputs, sums, scores, gradient)
    return Pass(
        sums[0],
        G if gradient else None,
        sums[1].astype(X.dtype) if gradient else None,
        None if score_weights is None else scores,
    )


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
