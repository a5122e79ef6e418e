"""Products of columns with each other, and when it pays to make them.

Shapes: ``n`` rows, ``d`` columns, ``k`` of them chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlopt.kernels.linear import sparse_gram
from mlopt.prices import count, price

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_PANEL = 1 << 25
"""Values of columns that are copied at once: a quarter of a GiB."""
PRODUCTS = price("columns.products")
STEPS = count("columns.dual-steps")
_CREEPING = count("columns.sweeps")
_SPARSE_PRODUCTS = price("columns.sparse-products")


def gram(X: Any, one: Indices, other: Indices, h: Array) -> Array:
    """``sum_i h_i x_ij x_ik`` for columns ``j`` and ``k``, (one, other).

    Parameters
    ----------
    X : ndarray or CSR array of shape (d, n)
    one, other : ndarray of int64
        Column numbers.
    h : ndarray of shape (n,) or (1,)
    """
    n, same = X.shape[1], one is other
    if sp.issparse(X):
        h, left = np.broadcast_to(h, (n,)), X[one]
        if same:
            return sparse_gram(left.T.tocsr(), h)
        weighted = left.astype(np.float64).multiply(h[None]).tocsr()
        return np.asarray((weighted @ X[other].T.astype(np.float64)).toarray())
    total = np.zeros((len(one), len(other)))
    size = max(_PANEL // max(len(one), len(other), 1), 64)
    root = np.sqrt(h)
    for start in range(0, n, size):
        panel = X if size >= n else np.ascontiguousarray(X[:, start : start + size])
        weights = root if len(root) == 1 else root[start : start + size]
        left = _weighted(panel, one, weights)
        right = left if same else _weighted(panel, other, weights)
        total += left @ right.T  # one symmetric product where both are the same
    return total * h if len(h) == 1 else total


def stacked(X: Any, parts: Sequence[Indices], roots: Array) -> tuple[Array, Array]:
    """``B B'`` and ``B roots'``, where B stacks ``x_j roots_k`` for the columns of part k.

    Parameters
    ----------
    X : ndarray or CSR array of shape (d, n)
    parts : K arrays of int64
        Column numbers, k of them in all.
    roots : ndarray of shape (K, n)

    Returns
    -------
    ndarray of shape (k, k)
    ndarray of shape (k, K)
    """
    n, k = X.shape[1], sum(map(len, parts))
    pairs = [(one, at) for at, one in enumerate(parts) if len(one)]
    if sp.issparse(X):
        B = sp.vstack([X[one].multiply(roots[at][None]) for one, at in pairs]).tocsr()
        return (B @ B.T).toarray(), np.asarray(B @ roots.T)
    among, beside = np.zeros((k, k)), np.zeros((k, len(parts)))
    size = max(_PANEL // k, 64)
    for start in range(0, n, size):
        rows = slice(start, start + size)
        B = np.concatenate([X[one, rows] * roots[at, rows] for one, at in pairs])
        among += B @ B.T
        beside += B @ roots[:, rows].T
    return among, beside


def _weighted(X: NDArray, chosen: Indices, root: Array) -> Array:
    """Chosen columns in float64, times the roots of the rows' weights if they differ."""
    found = X.take(chosen, axis=0).astype(np.float64, copy=False)
    if len(root) > 1:
        found *= root
    return np.asarray(found)


def sweeps_worth(X: Any, chosen: Indices, new: int, known: int) -> float:
    """Sweeps over the chosen columns that take as long as products of the ``new`` ones.

    Infinite where those are too many to hold. Between more columns than rows, and between
    sparse ones, they make a sweep longer, but sweeps that creep shorter: after as many as a
    round may have, there are Newton's steps by them, whose factor is counted.

    Parameters
    ----------
    X : ndarray or CSR array of shape (d, n)
    chosen : ndarray of shape (k,)
    new : int
        Chosen columns whose products are not known.
    known : int
        Columns that these are to be multiplied with, besides each other.
    """
    k, n = len(chosen), X.shape[1]
    if not sp.issparse(X):
        pairs = new * (new / 2.0 + known)
        if k <= n:
            return float(pairs / (PRODUCTS * max(k, 1)))
        if k**2 > _PANEL:
            return np.inf
        return max(float(pairs + k**3 / 3.0 / n) / (PRODUCTS * k), float(_CREEPING))
    stored = float(np.diff(X.indptr)[chosen].sum())
    made = float((new + known) / max(k, 1) * stored / n / _SPARSE_PRODUCTS)
    if k**2 <= stored:
        return made
    if k**2 > _PANEL:
        return np.inf
    return max(made + k**3 / 3.0 / (PRODUCTS * max(stored, 1.0)), float(_CREEPING))


def sweeps_worth_step(X: Any, chosen: Indices) -> float:
    """Sweeps over the chosen columns that take as long as a step in the rows' unknowns.

    Infinite where rows are sparse, or more than twice these columns.
    """
    k, n = len(chosen), X.shape[1]
    if sp.issparse(X) or 2 * k <= n or k * n > _PANEL:
        return np.inf
    n = min(k, n)
    return float((n / 2.0 + n**2 / (3.0 * k)) / PRODUCTS)


class Products:
    """Products of the columns that were ever asked for, with weights that stay."""

    def __init__(self, X: Any, h: Array, all_of_them: Array | None = None) -> None:
        """``all_of_them`` (d, d), where they are known."""
        self._X, self._h = X, h
        d = X.shape[0]
        self._place = np.full(d, -1)
        self._known = np.empty(0, np.int64)
        self._gram = np.empty((0, 0))
        if all_of_them is not None:
            self._known, self._gram = np.arange(d), all_of_them
            self._place[:] = self._known

    @property
    def whole(self) -> Array | None:
        """Products of all columns, (d, d), in their order, where they are known."""
        if len(self._known) < len(self._place):
            return None
        inner = np.arange(len(self._place))
        return self._gram if np.array_equal(self._place, inner) else None

    def sweeps_worth(self, chosen: Indices) -> float:
        """See `sweeps_worth`."""
        new = int((self._place[chosen] < 0).sum())
        return sweeps_worth(self._X, chosen, new, len(self._known)) if new else 0.0

    def of(self, chosen: Indices) -> Array:
        """Products of the chosen columns, (k, k)."""
        new = chosen[self._place[chosen] < 0]
        if len(new):
            old = self._known
            whole = np.empty((len(old) + len(new),) * 2)
            whole[: len(old), : len(old)] = self._gram
            whole[len(old) :, len(old) :] = gram(self._X, new, new, self._h)
            if len(old):
                across = gram(self._X, old, new, self._h)
                whole[: len(old), len(old) :] = across
                whole[len(old) :, : len(old)] = across.T
            self._known, self._gram = np.concatenate((old, new)), whole
            self._place[new] = np.arange(len(old), len(whole))
        at = self._place[chosen]
        return np.asarray(self._gram[np.ix_(at, at)])
