"""What mini-batch descent does with one block of rows, and how long its steps may be."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mlopt.gd.columns import Indices, Layout
from mlopt.gd.passes import Floats
from mlopt.gd.sample import SEED, draw
from mlopt.kernels.linear import linear_pass
from mlopt.rows import Block, Rows

STEEPEST = {
    "squared": 1.0,
    "logistic": 0.25,
    "hinge": 1.0,
    "squared_hinge": 2.0,
    "huber": 1.0,
    "multinomial": 0.5,
}
"""Largest second derivative of each loss by the margin; for the hinge, a stand-in."""
_SAMPLE = 1024


@dataclass(frozen=True)
class Lane:
    """Some columns on their way through the rows.

    Attributes
    ----------
    columns : ndarray of shape (B',)
        Which columns of the training these are.
    plan : Layout
    weights, velocity, total : ndarray of shape (d + 1, B')
        ``total`` adds up the weights after each batch.
    rate : ndarray of shape (B',)
    loss : ndarray of shape (B',)
        Weighted sums since the pass began, each before its step.
    batches : int
    """

    columns: Indices
    plan: Layout
    weights: Floats
    velocity: Floats
    total: Floats
    rate: Floats
    loss: NDArray[np.float64]
    batches: int = 0


@dataclass(frozen=True)
class Recipe:
    """What all lanes share.

    Attributes
    ----------
    scale : ndarray of shape (S,)
        Rows over sum of weights: turns a batch's sums into estimates of means.
    """

    batch_rows: int
    momentum: float
    seed: tuple[int, int]
    scale: NDArray[np.float64]


def batch_eigenvalue(rows: Rows, batch_rows: int) -> float:
    """Largest eigenvalue of ``X'X / n`` (with intercept) that a batch may show.

    Of the mean matrix by power iteration on a sample, and the trace's share that single
    rows can add to it.
    """
    sample = draw(rows, min(_SAMPLE, rows.n))
    X = sample.collect()
    squares = np.asarray((X.multiply(X) if rows.sparse else X * X).sum(axis=1)) + 1.0
    random = np.random.default_rng(SEED)
    v, b, top = random.standard_normal(rows.d), 1.0, 1.0
    for _ in range(20):
        norm = float(np.sqrt(v @ v + b * b))
        v, b = v / norm, b / norm
        z = X @ v + b
        v, b = X.T @ z / sample.n, float(z.mean())
        top = float(np.sqrt(v @ v + b * b))
    return 1.1 * top + float(squares.max()) / batch_rows


def pass_of_block(block: Block, lane: Lane, recipe: Recipe) -> Lane:
    random = np.random.default_rng((*recipe.seed, block.index))
    order = random.permutation(block.rows)
    lane = replace(
        lane, weights=lane.weights.copy(), velocity=lane.velocity.copy(),
        total=lane.total.copy(), loss=lane.loss.copy(),
        batches=lane.batches + -(-block.rows // recipe.batch_rows),
    )  # fmt: skip
    for start in range(0, block.rows, recipe.batch_rows):
        _step(block, lane, recipe, order[start : start + recipe.batch_rows])
    return lane


# A model whose rate is too high overflows: it will be given up.
@np.errstate(over="ignore", invalid="ignore")
def _step(block: Block, lane: Lane, recipe: Recipe, rows: Indices) -> None:
    """One batch: the lane's own arrays change."""
    plan, extra, dtype = lane.plan, block.extra, lane.weights.dtype
    ahead = lane.weights + dtype.type(recipe.momentum) * lane.velocity
    found = linear_pass(
        block.X[rows], ahead[:-1], ahead[-1], extra["targets"][rows],
        extra["weights"][rows], plan.segments, plan.deltas,
    )  # fmt: skip
    assert found.gradient is not None
    assert found.intercept_gradient is not None
    lane.loss[:] += found.loss
    scale = (recipe.scale[plan.rowsets] / len(rows)).astype(dtype)
    step = np.empty_like(ahead)
    step[:-1] = found.gradient * scale + plan.l2.astype(dtype) * ahead[:-1]
    step[-1] = found.intercept_gradient * scale + plan.intercept_l2 * ahead[-1]
    step[-1, ~plan.with_intercept] = 0
    lane.velocity[:] = dtype.type(recipe.momentum) * lane.velocity - lane.rate * step
    lane.weights[:] += lane.velocity
    lane.total[:] += lane.weights
