"""Least squares of one target for many penalties, on many sets of the same rows.

::

    rows by the sets they are in     sums of Gram matrices    eigenvectors

      in sets 1, 2:  G0               set 0:  G1 + G2           V L V'
      in sets 0, 2:  G1       ->      set 1:  G0 + G2     ->    w = V (L + a)^-1 V' X'y
      in sets 0, 1:  G2               set 2:  G0 + G1           for every penalty a

Folds share nearly all of their rows: every row is multiplied once, whatever their number,
and nothing is subtracted that would cost digits. One eigendecomposition a set serves all
penalties.

Shapes: ``S`` row sets, ``C`` kinds of rows by the sets they are in, ``A`` penalties.
"""

from __future__ import annotations

import operator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from mlopt.gd.normal_equations import (
    Moments,
    Solution,
    centred,
    moments,
    multiplies_sparse,
    solve,
    sparse_gram,
)
from mlopt.gd.panels import Layout, lower_gram, mirror
from mlopt.rows import Block, Rows

Array = NDArray[np.float64]
_BITS = np.finfo(np.float64).nmant + 1
"""Of a float64: so many row sets have a bit each in one number."""


def moments_of_sets(rows: Rows, target: int, intercept: bool) -> list[Moments]:
    """What the normal equations of one target need to know of each row set.

    Parameters
    ----------
    rows : Rows
        With "targets" (n, T) and "weights" (n, S) beside them.
    target : int
    intercept : bool
    """
    sets, codes = rows.first(_sets), rows.map_reduce(_codes, _joined)
    if codes is None or len(codes) > sets:
        return [
            moments(rows.compute_beside(_of_one_set, target, s), 1, intercept)
            for s in range(sets)
        ]
    rows = rows.compute_beside(_of_all_sets, target)
    sparse = multiplies_sparse(rows)
    layout = Layout.of(rows, 1, intercept, shifted=not sparse)
    kinds = sorted(codes)
    grams = rows.map_reduce(_grams, operator.add, layout, sparse, kinds)
    inside = np.array(kinds)[:, None] >> np.arange(sets) & 1 == 1
    return [centred(grams[inside[:, s]].sum(axis=0), layout) for s in range(sets)]


def solve_path(moments: Moments, alphas: Array, accuracy: float) -> Solution:
    """Minimise ``||Xw - y||^2 + alpha ||w||^2`` for every penalty, (d, A).

    Penalties for which eigenvalues are too far apart for ``accuracy`` have a factor each,
    for which the units of columns cost no digits.
    """
    gram, right = moments.gram[:-1, :-1], moments.gram[:-1, -1]
    values, vectors = scipy.linalg.eigh(gram, check_finite=False)
    with np.errstate(divide="ignore", invalid="ignore"):
        below = np.maximum(values, 0.0)[:, None] + alphas
        coef = vectors @ ((vectors.T @ right)[:, None] / below)
        errors = np.finfo(np.float64).eps * (below[-1] / below[0])
    for i in np.flatnonzero(~(errors <= accuracy)):
        one = solve(moments, alphas[[i]])
        coef[:, [i]], errors[i] = one.coef, one.error
    return Solution(coef, float(errors.max()))


def _sets(block: Block) -> int:
    return int(block.extra["weights"].shape[1])


def _codes(block: Block) -> frozenset[int] | None:
    """A bit for each set that a row is in, of all rows; None where its weights differ."""
    weights = block.extra["weights"]
    alike = (weights == weights.max(axis=1, keepdims=True)) | (weights <= 0)
    if weights.shape[1] > _BITS or not alike.all():
        return None
    return frozenset(np.unique(_code(weights)).tolist())


def _code(weights: NDArray[Any]) -> NDArray[np.int64]:
    # A product of floats is exact here, and a BLAS has it.
    powers = 2.0 ** np.arange(weights.shape[1])
    return ((weights > 0) @ powers).astype(np.int64)


def _joined(a: frozenset[int] | None, b: frozenset[int] | None) -> frozenset[int] | None:
    return None if a is None or b is None else a | b


def _of_one_set(block: Block, target: int, rowset: int) -> dict[str, NDArray[Any]]:
    targets, weights = block.extra["targets"], block.extra["weights"]
    return {"targets": targets[:, [target]], "weights": weights[:, [rowset]]}


def _of_all_sets(block: Block, target: int) -> dict[str, NDArray[Any]]:
    targets, weights = block.extra["targets"], block.extra["weights"]
    common = weights.max(axis=1, keepdims=True)
    return {"targets": targets[:, [target]], "weights": common, "code": _code(weights)}


def _grams(block: Block, layout: Layout, sparse: bool, kinds: list[int]) -> Array:
    """Of the rows of each kind, (C, m, m)."""
    code = block.extra["code"]
    order = np.argsort(code, kind="stable")
    edges = np.searchsorted(code[order], kinds)
    grams = []
    for rows in np.split(order, edges[1:]):
        beside = {name: block.extra[name][rows] for name in ("targets", "weights")}
        part = replace(block, X=block.X[rows], extra=beside)
        grams.append(
            sparse_gram(part, layout) if sparse else mirror(lower_gram(part, layout))
        )
    return np.stack(grams)
