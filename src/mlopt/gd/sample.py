"""A sample of the rows, held in this process: where a training starts and looks for shape.

A few per cent of the rows say almost everything about the curvature of an objective, and
bring a model to within its statistical error of the solution, ``d / (2 n)`` in units of the
log-likelihood, at a few per cent of the cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlopt.cluster import Executor, Threads
from mlopt.gd.passes import Floats
from mlopt.rows import Block, Rows
from mlopt.stats import sample_rows

SEED = 20151113
"""Samples are part of the algorithm: the same rows give the same training."""
WIDEST = 2048
"""Beyond so many columns a Hessian is not worth its memory and its factors."""
_BESIDE = ("targets", "weights")
_LEAST, _ENOUGH, _SPARE, _USUAL = 4, 20, 500, 8


def sample_size(n: int, d: int, width: int) -> int:
    """How many rows to draw for ``width`` columns of weights.

    Between 4 and 20 times d, by what their Hessian costs beside a few passes; and
    an eighth of the rows where that is more, up to 500 times d, where the sampling error of
    the curvature no longer matters.
    """
    affordable = 32 * n * max(width, _USUAL) // (d + 1)
    needed = min(max(affordable, _LEAST * d), _ENOUGH * d)
    size = max(needed, min(n // 8, _SPARE * d), 2048)
    return n if size > n // 2 else size


def local_executor(rows: Rows) -> Executor:
    """Threads of this process, those of ``rows`` where it has them."""
    return rows.executor if isinstance(rows.executor, Threads) else Threads()


def draw(rows: Rows, size: int) -> Rows:
    """``size`` rows, the same share of every block, with their targets and weights."""
    if size >= rows.n and isinstance(rows.executor, Threads):
        return rows
    picks = sample_rows(rows.lengths, size, SEED)
    here = isinstance(rows.executor, Threads) and not rows.sparse
    X, parts = _copied(rows, picks) if here else _joined(rows, picks)
    extra = {name: np.concatenate([part[name] for part in parts]) for name in _BESIDE}
    return Rows.of(X, executor=local_executor(rows)).attach(**extra)


def _joined(rows: Rows, picks: list[Any]) -> tuple[Any, list[dict[str, Floats]]]:
    parts = rows.map(_pick, picks)
    matrices = [part[0] for part in parts]
    X = sp.vstack(matrices, format="csr") if rows.sparse else np.concatenate(matrices)
    return X, [part[1] for part in parts]


def _pick(block: Block, picks: list[Any]) -> tuple[Any, dict[str, Floats]]:
    chosen = picks[block.index]
    return block.X[chosen], _beside(block, chosen)


def _copied(rows: Rows, picks: list[Any]) -> tuple[Any, list[dict[str, Floats]]]:
    """Every row copied once, each block's to their place by its own thread."""
    places = np.cumsum([0, *map(len, picks)])
    X = np.empty((int(places[-1]), rows.d), rows.dtype)

    def copy(block: Block) -> dict[str, Floats]:
        chosen, i = picks[block.index], block.index
        np.take(block.X, chosen, axis=0, out=X[places[i] : places[i + 1]], mode="clip")
        return _beside(block, chosen)

    return X, rows.map(copy)


def _beside(block: Block, chosen: Any) -> dict[str, Floats]:
    return {name: block.extra[name][chosen] for name in _BESIDE}


@dataclass(frozen=True)
class Moments:
    """Sums of squares of every column of X over all rows, divided by their number.

    Attributes
    ----------
    squares : ndarray of shape (d,), float64
    """

    squares: Floats

    @staticmethod
    def of(rows: Rows) -> Moments:
        """One pass over the rows."""
        return Moments(rows.map_reduce(_block_squares, np.add) / rows.n)


def _block_squares(block: Block) -> Floats:
    if sp.issparse(block.X):
        squares = block.X.data.astype(np.float64) ** 2
        sums = np.bincount(block.X.indices, squares, minlength=block.X.shape[1])
        return np.asarray(sums, np.float64)
    total = np.zeros(block.X.shape[1])
    for start in range(0, block.rows, 1024):  # so that squares stay in cache
        part = block.X[start : start + 1024]
        total += np.einsum("ij,ij->j", part, part)
    return total
