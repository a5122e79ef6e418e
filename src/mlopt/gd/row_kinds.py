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
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.normal_equations import Moments, centred, sparse_gram
from mlopt.gd.panels import Layout, lower_gram
from mlopt.gd.pricing import shape_of
from mlopt.gd.sizes import LOST
from mlopt.kernels.linear import mirror
from mlopt.rows import Block, Rows
from mlopt.rows.block import row_slice

Array = NDArray[np.float64]
_BITS = np.finfo(np.float64).nmant
"""Of a float64: so many sets of rows have a bit each in one number."""
TRAIN, JUDGE = "weights", "score_weights"
_APART, _NONE = range(-1, 1)
"""Codes of rows of a block where weights differ, and of rows in no set."""


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
        sets = rows.first(row_sets)
        for names in ((TRAIN, JUDGE), (TRAIN,)):
            coded = rows.compute_beside(_coded, target, names)
            codes = coded.map_reduce(_codes, operator.or_) - {_NONE}
            if _APART not in codes and len(codes) <= sets + 1:
                return Kinds._multiplied(coded, intercept, sets)
        return None

    @staticmethod
    def _multiplied(rows: Rows, intercept: bool, sets: int) -> Kinds:
        sparse = shape_of(rows, 1).multiplies_sparse
        layout = Layout.of(rows, 1, intercept, shifted=not sparse)
        found = rows.map_reduce(_grams, _added, layout, sparse)
        codes = np.array(sorted(found))
        bits = codes[:, None] >> np.arange(_BITS) & 1 == 1
        trained, judged = bits[:, :sets], bits[:, sets : 2 * sets]
        return Kinds(layout, np.stack([found[c] for c in codes]), trained, judged, rows)

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
        return np.asarray(np.where(eps * size < LOST * found, found, np.nan))


def row_sets(block: Block) -> int:
    """How many sets of rows there are."""
    return int(block.extra[TRAIN].shape[1])


def _weights(block: Block) -> Array:
    return np.asarray(block.extra[TRAIN], np.float64)


def _coded(block: Block, target: int, names: tuple[str, ...]) -> dict[str, NDArray[Any]]:
    """The weight that a row has wherever it counts, and a bit for each set it is in."""
    there = [block.extra[name] for name in names if name in block.extra]
    weights = there[0] if len(there) == 1 else np.concatenate(there, axis=1)
    common = reduce(np.maximum, weights.T)[:, None]
    inside = weights > 0
    if weights.shape[1] <= _BITS and ((weights == common) | ~inside).all():
        # A product of floats is exact here, and a BLAS has it.
        code = (inside @ 2.0 ** np.arange(weights.shape[1])).astype(np.int64)
    else:
        code = np.full(block.rows, _APART)
    return {"targets": block.extra["targets"][:, [target]], TRAIN: common, "code": code}


def _codes(block: Block) -> frozenset[int]:
    code = block.extra["code"]
    ends = np.flatnonzero(code[1:] != code[:-1])  # of neighbours of one kind, often many
    return frozenset(code[ends].tolist()) | {int(code[-1])}


def _grams(block: Block, layout: Layout, sparse: bool) -> dict[int, Array]:
    """Of the rows of each kind that is there, (m, m)."""
    grams, code = {}, block.extra["code"]
    for kind in _codes(block) - {_NONE}:
        part = _cut(block, np.flatnonzero(code == kind))
        multiplied = sparse_gram if sparse else lower_gram
        grams[kind] = mirror(multiplied(part, layout))
    return grams


def _added(a: dict[int, Array], b: dict[int, Array]) -> dict[int, Array]:
    both = a.keys() & b.keys()
    return a | b | {kind: a[kind] + b[kind] for kind in both}


def _cut(block: Block, rows: NDArray[np.intp]) -> Block:
    """Some rows, where they are if they follow one another."""
    start, stop = rows[0], rows[-1] + 1
    near = stop - start == len(rows)
    X = row_slice(block.X, start, stop) if near else block.X[rows]
    beside = {name: block.extra[name][rows] for name in ("targets", TRAIN)}
    return Block(X, beside, block.index)
