"""Hessians that many columns share.

The Hessian of a linear model is ``X' diag(h) X``, where ``h`` depends on its margins.
Columns whose ``h`` agree on a few hundred probe rows have nearly the same Hessian, whatever
their penalty, fold or class: the folds of one configuration always do, weakly penalised
models mostly do, and at zero weights, or for the squared loss, all do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.cluster import added
from mlopt.gd.columns import Indices, Layout
from mlopt.gd.passes import Floats, Sums, beside
from mlopt.gd.sample import Moments
from mlopt.kernels.linear import decision, hessian_weights, weighted_gram
from mlopt.kernels.losses import HINGE, HUBER, LOGISTIC, MULTINOMIAL, SQUARED, SQUARED_HINGE
from mlopt.prices import count
from mlopt.rows import Block, Rows

PROBE_ROWS = count("hessian.probe")
MAX_GROUPS = 4
"""Hessians or factors of a training: each takes the memory of d x d. What is beyond shares
one with a neighbour."""
RADIUS = 0.1
"""Curvatures this close (relative, in the mean) share a Hessian."""
_MEMBERS = 4
"""Columns of a group whose curvatures are looked at; others are like them."""
FLATTEST = {
    SQUARED: 1.0,
    LOGISTIC: 1e-5,
    HINGE: 1e-3,
    SQUARED_HINGE: 1e-3,
    HUBER: 1e-3,
    MULTINOMIAL: 1e-5,
}
"""Least second derivative of each loss that a Newton step may use; 1 if it is constant."""
STEEPEST = {
    "squared": 1.0,
    "logistic": 0.25,
    "hinge": 1.0,
    "squared_hinge": 2.0,
    "huber": 1.0,
    "multinomial": 0.5,
}
"""Largest second derivative of each loss by the margin; for the hinge, a stand-in."""


@dataclass(frozen=True)
class Probe:
    """A few rows on which curvatures are compared.

    Attributes
    ----------
    block : Block
    many : bool
        Whether rows are so many that the Hessian of a row set is that of any other.
    """

    block: Block
    many: bool

    @staticmethod
    def of(sample: Rows, *, many: bool) -> Probe:
        """Rows at even distances through ``sample``."""
        rows = np.linspace(0, sample.n - 1, min(PROBE_ROWS, sample.n)).astype(int)
        own = {name: array[rows] for name, array in beside(sample).items()}
        return Probe(Block(sample.take(rows), own), many)

    def curvatures(self, weights: Floats, plan: Layout, sums: Sums) -> Floats:
        """``h`` times the row weight, (rows, B).

        NaN, which `distance` leaves out, where a row is not in the row set; 0 there when
        rows are few, so that row sets count as different.
        """
        h = margin_curvatures(self.block, weights, plan.segments, plan.deltas)
        c = self.block.extra["weights"] / sums.weights
        return np.where(c > 0, c, np.nan if self.many else 0.0)[:, plan.rowsets] * h

    def along(self, curvatures: Floats, directions: Floats) -> NDArray[np.float64]:
        """Mean second derivative of a row's loss along each direction, (B,).

        Parameters
        ----------
        curvatures : ndarray of shape (rows, B)
            As `curvatures` gives them.
        directions : ndarray of shape (d + 1, B)
        """
        Z = decision(self.block.X, directions[:-1], directions[-1])
        return mean_over(curvatures * np.square(Z, dtype=np.float64))


def mean_over(curvatures: Floats) -> NDArray[np.float64]:
    """Means (B,) over the rows that have them, of (rows, B)."""
    count = np.maximum(np.isfinite(curvatures).sum(axis=0), 1)
    return np.asarray(np.nansum(curvatures, axis=0) / count, np.float64)


def distance(curvatures: Floats, other: Floats) -> NDArray[np.float64]:
    """Mean relative difference of (rows, B) to (rows, B) or (rows, 1), over shared rows."""
    apart = np.nansum(np.abs(curvatures - other), axis=0)
    size = 0.5 * np.nansum(curvatures + other, axis=0)
    return np.asarray(apart / np.maximum(size, 1e-300), np.float64)


def group_columns(curvatures: Floats, limit: int = MAX_GROUPS) -> Indices:
    """Label every column with its group: farthest points become centres (Gonzalez, 1985).

    Stops when every column is within `RADIUS` of its centre, or at ``limit`` groups.
    """
    label = np.zeros(curvatures.shape[1], np.int64)
    nearest = distance(curvatures, curvatures[:, :1])
    for group in range(1, limit):
        farthest = int(nearest.argmax())
        if nearest[farthest] <= RADIUS:
            break
        there = distance(curvatures, curvatures[:, farthest : farthest + 1])
        label[there < nearest] = group
        nearest = np.minimum(nearest, there)
    return np.unique(label, return_inverse=True)[1].astype(np.int64)


def margin_curvatures(
    block: Block, weights: Floats, segments: Indices, deltas: NDArray[np.float64]
) -> Floats:
    """Second derivatives of the losses by the margins, (rows, B).

    The hinge has none; a parabola over two units of margin around its corner stands in.
    None is below a small share of the steepest: where a loss is flat, or straight, Newton's
    step would be beyond all measure.
    """
    Z = decision(block.X, weights[:-1], weights[-1])
    for (start, stop, loss, target, _, K), delta in zip(
        segments.tolist(), deltas, strict=True
    ):
        y = block.extra["targets"][:, target]
        if loss == MULTINOMIAL:
            for first in range(start, stop, K):
                at = slice(first, first + K)
                h = hessian_weights(loss, Z[:, at], y, delta)
                np.maximum(h, FLATTEST[loss], out=Z[:, at])
            continue
        codes = np.arange(stop - start) % K
        signs = np.where(y[:, None] == codes, 1.0, -1.0).astype(Z.dtype)
        targets = signs if K > 1 else y[:, None]
        z = Z[:, start:stop]
        if loss == HINGE:
            h = 0.5 * (np.abs(1 - targets * z) < 1)
        else:
            h = hessian_weights(loss, z, targets, delta)
        np.maximum(h, FLATTEST[loss], out=z)
    return Z


@dataclass(frozen=True)
class Hessians:
    """One Hessian a group, without penalties.

    Attributes
    ----------
    matrices : ndarray of shape (G, d + 1, d + 1)
        The last row and column belong to the intercept.
    group : ndarray of shape (B,)
    """

    matrices: NDArray[np.float64]
    group: Indices

    def take(self, columns: Indices) -> Hessians:
        """Those of some columns."""
        return Hessians(self.matrices, self.group[columns])


def shared_hessians(
    sample: Rows,
    moments: Moments | None,
    weights: Floats,
    plan: Layout,
    group: Indices,
) -> Hessians:
    """The mean Hessian of each group, from a sample.

    A sample of m rows tells nothing of directions that it does not contain, and too little
    of those it barely contains. So when it is not the whole, the diagonal gets what it
    lacks of the full data's, and d/m of the full data's on top.

    Parameters
    ----------
    sample : Rows
    moments : Moments or None
        Of all rows; None when the sample is all rows.
    weights : ndarray of shape (d + 1, B)
    plan : Layout
    group : ndarray of shape (B,)
    """
    members = _members(group)
    owners = np.unique(plan.owner[np.concatenate(members)])
    narrow, taken = plan.select(owners.tolist())
    place = np.empty(plan.width, np.int64)
    place[taken] = np.arange(len(taken))
    mean = np.zeros((len(taken), len(members)))
    for g, own in enumerate(members):
        mean[place[own], g] = 1.0 / len(own)
    sums = sample.map_reduce(weight_sums, np.add)
    share = _rowset_shares(plan, group, sums)
    parts = (weights[:, taken], narrow.segments, narrow.deltas, mean, share)
    total = sample.map_reduce(_block_hessians, added, sample.executor.put(parts))
    if moments is not None:
        _complete(total, sample, moments)
    return Hessians(total, group)


def _members(group: Indices) -> list[Indices]:
    """A few columns of each group, at even distances."""
    chosen = []
    for g in range(int(group.max()) + 1):
        own = np.flatnonzero(group == g)
        places = np.linspace(0, len(own) - 1, min(_MEMBERS, len(own))).round().astype(int)
        chosen.append(own[places])
    return chosen


def _rowset_shares(plan: Layout, group: Indices, sums: Floats) -> Floats:
    """What weight each row set has in each group's Hessian, (S, G)."""
    share = np.zeros((len(sums), int(group.max()) + 1))
    np.add.at(share, (plan.rowsets, group), 1.0)
    share /= share.sum(axis=0)
    return share / np.maximum(sums, 1e-300)[:, None]


def weight_sums(block: Block) -> Floats:
    """Sums of the row weights of each row set, (S,)."""
    return np.asarray(block.extra["weights"].sum(axis=0, dtype=np.float64))


def _block_hessians(block: Block, parts: tuple[Any, ...]) -> NDArray[np.float64]:
    weights, segments, deltas, mean, share = parts
    dtype = block.X.dtype
    h = margin_curvatures(block, weights, segments, deltas) @ mean.astype(dtype)
    h *= block.extra["weights"] @ share.astype(dtype)
    groups, d = h.shape[1], block.X.shape[1]
    out = np.empty((groups, d + 1, d + 1))
    for g in range(groups):
        column = np.ascontiguousarray(h[:, g])
        out[g, :d, :d] = weighted_gram(block.X, column)
        out[g, d, :d] = out[g, :d, d] = block.X.T @ column
        out[g, d, d] = column.sum()
    return out


def _complete(total: NDArray[np.float64], sample: Rows, moments: Moments) -> None:
    """Add to the diagonals what the sample may have missed."""
    mass = total[:, -1, -1]
    diagonal = np.arange(sample.d)
    total[:, diagonal, diagonal] += moments.lacking(sample) * mass[:, None]
