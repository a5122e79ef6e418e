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
from mlopt.kernels.moments import moments
from mlopt.prices import count, price
from mlopt.rows import Block, Rows
from mlopt.stats import sample_rows

SEED = 20151113
"""Samples are part of the algorithm: the same rows give the same training."""
USUAL_LOSS = price("start.loss")
_BESIDE = ("targets", "weights")
_LEAST = count("start.least")
_ENOUGH = count("start.enough")
_SPARE = count("start.spare")
_USUAL = count("start.columns")
KINKED = "squared_hinge"
"""The loss whose curvature comes and goes."""
_EACH_WEIGHT, _CURVED = count("newton.hessian.least"), count("newton.hessian.curved")
_HESSIAN_SHARE, _FEW_STORED = count("newton.hessian.share"), price("hessian.few")
_START_PART, _START_LEAST = count("newton.start.part"), count("newton.start.fewest")
_START_EACH = count("newton.start.each")


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


def hessian_rows(
    n: int, d: int, columns: int, stored: float | None = None, *, loss: str = ""
) -> int:
    """Rows from which to make a Hessian, for about the work of four passes over all.

    Parameters
    ----------
    n, d, columns : int
    stored : float, optional
        Values that a row stores, where rows are sparse.
    loss : str, default=""
        Of a squared hinge few rows are curved, those that lie near the other class or in
        it: a sample has to hold enough of them.
    """
    size = columns * (d + 1)
    if columns == 1 and stored is not None and stored <= _FEW_STORED:
        return n
    curved = _CURVED if loss == KINKED else 1
    wanted = max(curved * _EACH_WEIGHT * size, _HESSIAN_SHARE * n // size)
    return n if wanted > n // 2 else wanted


def start_rows(n: int, d: int, columns: int) -> int:
    """Rows whose solution is where a method with exact Hessians starts; 0 for none."""
    size = n // _START_PART
    return size if size >= max(_START_LEAST, _START_EACH * columns * (d + 1)) else 0


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
    """Of every column of X, over all rows, each counting alike.

    Attributes
    ----------
    squares : ndarray of shape (d,), float64
        The mean of its squares.
    spread : ndarray of shape (d,), float64
        That of its squares about its mean.
    """

    squares: Floats
    spread: Floats

    @staticmethod
    def of(rows: Rows) -> Moments:
        """One pass over the rows."""
        shift = np.zeros(rows.d) if rows.sparse else rows.first(_first_row)
        sums = rows.map_reduce(_block_sums, np.add, shift) / rows.n
        spread = np.maximum(sums[1] - sums[0] ** 2, 0.0)
        return Moments(spread + (sums[0] + shift) ** 2, spread)

    def lacking(self, sample: Rows) -> NDArray[np.float64]:
        """What a sample misses of this spread, and d/m of it, (d,).

        A sample of m rows says too little of directions that it barely contains. About the
        means: where columns are far from zero, every row says so.
        """
        missing = np.maximum(self.spread - Moments.of(sample).spread, 0.0)
        return np.asarray(missing + self.spread * (sample.d / sample.n), np.float64)


def _first_row(block: Block) -> Floats:
    return np.asarray(block.X[0], np.float64)


def _block_sums(block: Block, shift: Floats) -> Floats:
    """Sums of the columns less ``shift``, and of their squares, (2, d)."""
    X, (n, d) = block.X, block.X.shape
    if sp.issparse(X):
        data = X.data.astype(np.float64)
        each = (np.bincount(X.indices, one, minlength=d) for one in (data, data**2))
        return np.array([*each])
    return np.array(moments(X, shift, np.ones(n), np.ones((n, 0)))[:2])


def lacking_squares(rows: Rows, sample: Rows) -> NDArray[np.float64]:
    """Mean squares of the columns of X, about their means, that it misses, (d,)."""
    if sample.n == rows.n:
        return np.zeros(rows.d)
    return Moments.of(rows).lacking(sample)
