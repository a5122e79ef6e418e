"""Lloyd's k-means on blocks of rows: several starts in the same passes.

Shapes: ``X`` is (n, d); ``R`` starts that still move, each of ``k`` centres: (R, k, d).
The nearest centre is the one of the least ``|c|^2 - 2 x.c``: one matrix product for
all starts. Dense rows are centred panel by panel, so that no digits are lost far from zero.

Lloyd, "Least squares quantization in PCM", 1982. Empty clusters and the tolerance are
treated as in scikit-learn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlopt.cluster import between_passes
from mlopt.kernels.keyed import keyed_sums, nearest_centres
from mlopt.pipeline.library.moments import added
from mlopt.pipeline.library.pca_leading import centred_panels
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]
Sums = tuple[Array, Array]
"""Weighted sums of the rows of each cluster, (R, k, d), and their weights, (R, k)."""


@dataclass(frozen=True)
class Clusters:
    """Where one start ended.

    Attributes
    ----------
    centres : ndarray of shape (k, d)
        Less ``shift``.
    labels : ndarray of shape (n,), int32
    inertia : float
        Weighted sum of squared distances to the nearest centre.
    iterations : int
    """

    centres: Array
    labels: NDArray[np.int32]
    inertia: float
    iterations: int


@dataclass(frozen=True)
class _Start:
    centres: Array
    iterations: int = 0
    done: bool = False


def lloyd(
    rows: Rows, starts: Array, shift: Array, tol: float, max_iter: int
) -> list[Clusters]:
    """Move centres to the means of their rows until they stay.

    Parameters
    ----------
    rows : Rows
        With "weights" (n,) beside them.
    starts : ndarray of shape (R, k, d)
        First centres, less ``shift``.
    shift : ndarray of shape (d,)
        What is taken off the rows; zero for sparse ones.
    tol : float
        Done when the squares of all centres' steps add up to no more.
    max_iter : int

    Returns
    -------
    list of Clusters
        One for each start. Each iteration is one pass, and two more find empty clusters
        a row, where there are any, and the labels.
    """
    states = [_Start(centres) for centres in starts]
    with between_passes():
        while moving := [i for i, state in enumerate(states) if not state.done]:
            centres = np.stack([states[i].centres for i in moving])
            sums, weights = rows.map_reduce(_sums, added, centres, shift)
            if not weights.all():
                _relocate(rows, centres, shift, sums, weights)
            for number, one, weight in zip(moving, sums, weights, strict=True):
                states[number] = _moved(states[number], one, weight, tol, max_iter)
        return _labelled(rows, states, shift)


def _moved(state: _Start, sums: Array, weights: Array, tol: float, limit: int) -> _Start:
    full = weights > 0
    means = sums / np.where(full, weights, 1.0)[:, None]
    means[~full] = means[np.argmax(weights)]
    still = float(np.square(means - state.centres).sum()) <= tol
    count = state.iterations + 1
    return replace(state, centres=means, iterations=count, done=still or count >= limit)


def _labelled(rows: Rows, states: list[_Start], shift: Array) -> list[Clusters]:
    centres = np.stack([state.centres for state in states])
    parts = rows.map(_assigned, centres, shift)
    labels = np.concatenate([labels for labels, _ in parts], axis=1)
    inertias = np.sum([inertia for _, inertia in parts], axis=0)
    return [
        Clusters(state.centres, labels[i], float(inertias[i]), state.iterations)
        for i, state in enumerate(states)
    ]


def _panels(block: Block, shift: Array) -> Iterator[tuple[Any, Array]]:
    """Rows less ``shift``, a few at a time if dense, with their weights."""
    weights = block.extra["weights"]
    if sp.issparse(block.X):
        yield block.X, weights
        return
    start = 0
    for panel in centred_panels(block.X, shift):
        yield panel, weights[start : start + len(panel)]
        start += len(panel)


def _nearest(X: Any, centres: Array) -> NDArray[np.int32]:
    """The number of the nearest centre of every start, (R, n)."""
    R, k, d = centres.shape
    flat = centres.reshape(R * k, d).astype(X.dtype, copy=False)
    squares = np.einsum("ij,ij->i", flat, flat).reshape(R, k)
    return nearest_centres(np.asarray(X @ flat.T), squares)


def _sums(block: Block, centres: Array, shift: Array) -> Sums:
    R, k, d = centres.shape
    sums, totals = np.zeros((R, k, d)), np.zeros((R, k))
    for X, weights in _panels(block, shift):
        for number, labels in enumerate(_nearest(X, centres)):
            if sp.issparse(X):
                sums[number] += (_picks(labels, weights, k) @ X).toarray()
                totals[number] += np.bincount(labels, weights, k)
            else:
                part, total = keyed_sums(X, labels, weights, k)
                sums[number] += part
                totals[number] += total
    return sums, totals


def _picks(labels: NDArray[np.int32], weights: Array, k: int) -> Any:
    """A matrix (k, n) with the weight of each row at its cluster."""
    places = labels, np.arange(len(labels))
    return sp.coo_array((weights, places), shape=(k, len(labels))).tocsr()


def _assigned(block: Block, centres: Array, shift: Array) -> tuple[Any, Array]:
    """Labels (R, n), and the inertia of each start."""
    found, inertia = [np.empty((len(centres), 0), np.int32)], np.zeros(len(centres))
    for X, weights in _panels(block, shift):
        labels = _nearest(X, centres)
        found.append(labels)
        for number, one in enumerate(labels):
            inertia[number] += weights @ _squared(X, centres[number], one)
    return np.concatenate(found, axis=1), inertia


def _squared(X: Any, centres: Array, labels: NDArray[np.int32]) -> Array:
    """Squared distance of each row to the centre of its cluster, (n,)."""
    if not sp.issparse(X):
        apart = X - centres[labels]
        return np.asarray(np.einsum("ij,ij->i", apart, apart), np.float64)
    squares = np.square(centres).sum(axis=1)
    products = np.asarray(X @ centres.T)[np.arange(len(labels)), labels]
    own = np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.asarray(np.maximum(own - 2.0 * products + squares[labels], 0.0))


def _relocate(
    rows: Rows, centres: Array, shift: Array, sums: Array, weights: Array
) -> None:
    """Give each empty cluster one of the rows that are farthest from their centre."""
    wanted = int((weights == 0).sum(axis=1).max())
    parts = rows.map(_farthest, centres, shift, wanted)
    for number in np.flatnonzero((weights == 0).any(axis=1)):
        far = [one for part in parts for one in part[number]]
        far.sort(key=lambda one: -one[0])
        if not far or far[0][0] == 0:
            continue
        empty = np.flatnonzero(weights[number] == 0)
        for cluster, (_, old, row, weight) in zip(empty, far, strict=False):
            sums[number, old] -= weight * row
            weights[number, old] -= weight
            sums[number, cluster] = weight * row
            weights[number, cluster] = weight


def _farthest(block: Block, centres: Array, shift: Array, count: int) -> list[list[Any]]:
    """Of each start: squared distance, cluster, values and weight of the farthest rows."""
    found: list[list[Any]] = [[] for _ in centres]
    for X, weights in _panels(block, shift):
        for number, labels in enumerate(_nearest(X, centres)):
            distances = _squared(X, centres[number], labels)
            for i in np.argsort(distances)[-count:]:
                row = X[[i]].toarray()[0] if sp.issparse(X) else X[i].astype(np.float64)
                found[number].append((distances[i], labels[i], row, weights[i]))
    return found
