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
from numpy.typing import NDArray

from mlopt.cluster import Executor, Threads
from mlopt.gd.passes import Floats
from mlopt.kernels.moments import column_squares
from mlopt.prices import count, price
from mlopt.rows import Block, Rows
from mlopt.stats import sample_rows

SEED = 20151113
"""Samples are part of the algorithm: the same rows give the same training."""
WIDEST = 2048
"""Beyond so many columns a Hessian is not worth its memory and its factors."""
USUAL_LOSS = price("start.loss")
_BESIDE = ("targets", "weights")
_LEAST = count("start.least")
_ENOUGH = count("start.enough")
_SPARE = count("start.spare")
_USUAL = count("start.columns")


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


def start_gap(parameters: int, size: int) -> float:
    """How far above the minimum the solution of a sample is, about, relative to it."""
    return parameters / (2 * size) / USUAL_LOSS


def left_by_step(parameters: int, size: int, sparse: bool) -> float:
    """The share of the gap that a step in the metric of a sample leaves, about.

    With sparse rows it is a root: a sample says little of their rare columns.
    """
    return float(min(parameters / size, 0.5) ** (0.5 if sparse else 1.0))


def local_executor(rows: Rows) -> Executor:
    """Threads of this process, those of ``rows`` where it has them."""
    return rows.executor if isinstance(rows.executor, Threads) else Threads()


def draw(rows: Rows, size: int) -> Rows:
    """``size`` rows, the same share of every block, with their targets and weights."""
    if size >= rows.n and isinstance(rows.executor, Threads):
        return rows
    picks = sample_rows(rows.lengths, size, SEED)
    parts = rows.map(_beside, picks)
    extra = {name: np.concatenate([part[name] for part in parts]) for name in _BESIDE}
    return Rows.of(rows.pick(picks), executor=local_executor(rows)).attach(**extra)


def _beside(block: Block, picks: list[Any]) -> dict[str, Floats]:
    return {name: block.extra[name][picks[block.index]] for name in _BESIDE}


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

    def lacking(self, sample: Rows) -> NDArray[np.float64]:
        """What a sample misses of these squares, and d/m of them, (d,).

        A sample of m rows says too little of directions that it barely contains.
        """
        missing = np.maximum(self.squares - Moments.of(sample).squares, 0.0)
        return np.asarray(missing + self.squares * (sample.d / sample.n), np.float64)


def _block_squares(block: Block) -> Floats:
    if sp.issparse(block.X):
        squares = block.X.data.astype(np.float64) ** 2
        sums = np.bincount(block.X.indices, squares, minlength=block.X.shape[1])
        return np.asarray(sums, np.float64)
    return column_squares(block.X)


def lacking_squares(
    rows: Rows, sample: Rows, moments: Moments | None = None
) -> NDArray[np.float64]:
    """Mean squares of the columns of X that ``sample`` misses, (d,)."""
    if sample.n == rows.n:
        return np.zeros(rows.d)
    return (moments or Moments.of(rows)).lacking(sample)
