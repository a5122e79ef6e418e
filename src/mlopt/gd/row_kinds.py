"""Gram matrices of rows by the sets that they are in, each row multiplied once.

::

    rows by the sets they are in      train on            judged by

      in sets 1, 2; judge 0:  G0      set 0:  G1 + G2     set 0:  G0
      in sets 0, 2; judge 1:  G1      set 1:  G0 + G2     set 1:  G1
      in sets 0, 1; judge 2:  G2      set 2:  G0 + G1     set 2:  G2

Folds share nearly all of their rows. Nothing is subtracted that would cost digits.

Shapes: ``S`` row sets, ``C`` kinds of rows, ``m`` columns of `mlopt.gd.panels`, ``A``
models.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.normal_equations import Moments, centred, multiplies_sparse, sparse_gram
from mlopt.gd.panels import Layout, lower_gram, mirror
from mlopt.rows import Block, Rows
from mlopt.rows.block import row_slice

Array = NDArray[np.float64]
_BITS = np.finfo(np.float64).nmant + 1
"""Of a float64: so many sets of rows have a bit each in one number."""
_DIGITS = 1e-10
"""What the error of a sum of squares may be, relative to it: far below what decides."""
TRAIN, JUDGE = "weights", "score_weights"


@dataclass(frozen=True, eq=False)
class Kinds:
    """Gram matrices of kinds of rows.

    Attributes
    ----------
    layout : Layout
    grams : ndarray of shape (C, m, m)
    trained, judged : bool ndarrays of shape (C, S)
        The kinds that each set trains on, and is judged by; by none where rows judge with
        other weights than they train with.
    rows : Rows
        With the weight that a row has wherever it counts, as "weights" (n, 1).
    """

    layout: Layout
    grams: Array
    trained: NDArray[np.bool_]
    judged: NDArray[np.bool_]
    rows: Rows

    @staticmethod
    def of(rows: Rows, target: int, intercept: bool) -> Kinds | None:
        """One pass; None where weights differ, or there are too many kinds to pay."""
        sets = rows.first(_sets)
        for names in ((TRAIN, JUDGE), (TRAIN,)):
            codes = rows.map_reduce(_codes, _joined, names)
            if codes is not None and len(codes) <= sets + 1:
                return Kinds._multiplied(rows, target, intercept, sorted(codes), names)
        return None

    @staticmethod
    def _multiplied(
        rows: Rows, target: int, intercept: bool, codes: list[int], names: tuple[str, ...]
    ) -> Kinds:
        alike, sets = rows.compute_beside(_of_all_sets, target, names), rows.first(_sets)
        sparse = multiplies_sparse(rows)
        layout = Layout.of(alike, 1, intercept, shifted=not sparse)
        grams = alike.map_reduce(_grams, operator.add, layout, sparse, codes)
        bits = np.array(codes)[:, None] >> np.arange(_BITS) & 1 == 1
        trained, judged = bits[:, :sets], bits[:, sets : 2 * sets]
        return Kinds(layout, grams, trained, judged, alike)

    def moments(self) -> list[Moments]:
        """What the normal equations need to know of each set."""
        return [
            centred(self.grams[kinds].sum(axis=0), self.layout) for kinds in self.trained.T
        ]

    def whole(self, rows: Rows) -> Moments | None:
        """Of all ``rows``, one set, if each counts there as it does here."""
        pairs = zip(rows.map(_weights), self.rows.map(_weights), strict=True)
        if not all(np.array_equal(one, other) for one, other in pairs):
            return None
        return centred(self.grams.sum(axis=0), self.layout)

    @property
    def pays(self) -> bool:
        """Whether products with them are cheaper, and they take less room, than rows."""
        return len(self.grams) * self.layout.columns <= self.rows.n

    def squares(self, rowset: int, coef: Array, intercept: Array) -> Array:
        """Weighted sums of squared errors, of the rows that judge a set, (A,).

        NaN where there are none, and where digits were lost: of what fits to the last.

        Parameters
        ----------
        rowset : int
        coef : ndarray of shape (d, A)
        intercept : ndarray of shape (A,)
        """
        shift, d = self.layout.shift, len(coef)
        offset = intercept + shift[:d] @ coef - shift[d]
        first = -offset[None][: int(self.layout.intercept)]
        V = np.concatenate([first, -coef, np.ones((1, coef.shape[1]))])
        gram = self.grams[self.judged[:, rowset]].sum(axis=0)
        found = np.einsum("ia,ia->a", V, gram @ V)
        size = np.einsum("ia,ia->a", np.abs(V), np.abs(gram) @ np.abs(V))
        eps = np.finfo(np.float64).eps
        return np.asarray(np.where(eps * size < _DIGITS * found, found, np.nan))


def _sets(block: Block) -> int:
    return int(block.extra[TRAIN].shape[1])


def _weights(block: Block) -> Array:
    return np.asarray(block.extra[TRAIN], np.float64)


def _codes(block: Block, names: tuple[str, ...]) -> frozenset[int] | None:
    """A bit for each set that a row is in, of rows in any; None where weights differ."""
    weights = _beside_each_other(block, names)
    alike = (weights == weights.max(axis=1, keepdims=True)) | (weights <= 0)
    if weights.shape[1] > _BITS or not alike.all():
        return None
    return frozenset(np.unique(_code(weights)).tolist()) - {0}


def _beside_each_other(block: Block, names: tuple[str, ...]) -> NDArray[Any]:
    there = [block.extra[name] for name in names if name in block.extra]
    return there[0] if len(there) == 1 else np.concatenate(there, axis=1)


def _code(weights: NDArray[Any]) -> NDArray[np.int64]:
    # A product of floats is exact here, and a BLAS has it.
    powers = 2.0 ** np.arange(weights.shape[1])
    return ((weights > 0) @ powers).astype(np.int64)


def _joined(a: frozenset[int] | None, b: frozenset[int] | None) -> frozenset[int] | None:
    return None if a is None or b is None else a | b


def _of_all_sets(
    block: Block, target: int, names: tuple[str, ...]
) -> dict[str, NDArray[Any]]:
    weights = _beside_each_other(block, names)
    return {
        "targets": block.extra["targets"][:, [target]],
        TRAIN: weights.max(axis=1, keepdims=True),
        "code": _code(weights),
    }


def _grams(block: Block, layout: Layout, sparse: bool, kinds: list[int]) -> Array:
    """Of the rows of each kind, (C, m, m)."""
    parts = (_cut(block, np.flatnonzero(block.extra["code"] == kind)) for kind in kinds)
    return np.stack(
        [
            sparse_gram(part, layout) if sparse else mirror(lower_gram(part, layout))
            for part in parts
        ]
    )


def _cut(block: Block, rows: NDArray[np.intp]) -> Block:
    """Some rows, where they are if they follow one another."""
    start, stop = (rows[0], rows[-1] + 1) if len(rows) else (0, 0)
    near = stop - start == len(rows)
    X = row_slice(block.X, start, stop) if near else block.X[rows]
    beside = {name: block.extra[name][rows] for name in ("targets", TRAIN)}
    return replace(block, X=X, extra=beside)
