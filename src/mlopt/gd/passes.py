"""One pass over the rows for all columns: means and gradients from a map and a sum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from mlopt.cluster import Threads
from mlopt.errors import InputError
from mlopt.gd.columns import Indices, Layout, Model, layout, without_penalty
from mlopt.gd.sizes import HALF, PIECE
from mlopt.kernels.linear import Pass, decision, linear_pass
from mlopt.prices import count
from mlopt.rows import Block, Rows

Floats = NDArray[np.floating[Any]]

_COPY = count("pass.copy")
_FEWEST = count("pass.rows")


@dataclass(frozen=True)
class Evaluation:
    """Objectives, their gradient and the scores at one matrix of weights.

    Attributes
    ----------
    value : ndarray of shape (U,), float64
        Objective of each unit, with its penalty.
    gradient : ndarray of shape (d + 1, B) or None
        The last row belongs to the intercepts; 0 where a model has none.
    score : ndarray of shape (M,) or None
        Accuracy, or minus the mean squared error, on the rows of ``score_weights``.
    """

    value: NDArray[np.float64]
    gradient: Floats | None
    score: NDArray[np.float64] | None


@dataclass(frozen=True)
class Sums:
    """Sums of row weights, of one `Rows`.

    Attributes
    ----------
    weights : ndarray of shape (S,)
    scored : ndarray of shape (S,) or None
        Of ``score_weights``, where rows carry them.
    squares : ndarray of shape (S, T)
        Weighted mean squares of the targets.
    """

    weights: NDArray[np.float64]
    scored: NDArray[np.float64] | None
    squares: NDArray[np.float64]

    @staticmethod
    def of(rows: Rows) -> Sums:
        """Add up the weights that ``rows`` carry."""
        weights, scored, squares = rows.map_reduce(_block_sums, _add_sums)
        if not (weights > 0).all():
            empty = np.flatnonzero(~(weights > 0)).tolist()
            raise InputError(
                f"Every row set needs rows with a positive weight; `weights` has none in "
                f"column {empty[0]}."
            )
        return Sums(weights, scored, squares / weights[:, None])

    def scale(self, model: Model) -> float:
        """The size of a model's objective at zero weights, about."""
        if model.classifies:
            return 1.0
        return 0.5 * float(self.squares[model.rowset, model.target])


def pieces(X: Any, dtype: Any) -> Iterator[tuple[slice, Any]]:
    """Rows in another precision, with their numbers: all, or a few that stay in cache.

    Each is valid until the next one is asked for.
    """
    if X.dtype == dtype or sp.issparse(X):
        yield slice(0, X.shape[0]), X.astype(dtype, copy=False)
        return
    size = max(2 * PIECE // X.shape[1], _FEWEST)
    buffer = np.empty((min(size, len(X)), X.shape[1]), dtype)
    for start in range(0, len(X), size):
        rows = slice(start, min(start + size, len(X)))
        piece = buffer[: rows.stop - start]
        np.copyto(piece, X[rows])
        yield rows, piece


def weighted(rows: Rows, targets: NDArray[Any], weights: NDArray[Any]) -> Rows:
    """The rows with targets (n, T) and weights (n, S) in their dtype.

    Where most rows of this process have no weight they are left out: a copy of the others
    takes less than what a single pass over all would.
    """
    kept = np.flatnonzero(weights.any(axis=1))
    if isinstance(rows.executor, Threads) and 0 < len(kept) <= rows.n // 2:
        X, size = rows.take(kept), max(rows.lengths)
        left = Rows.of(X, executor=rows.executor, block_rows=size)
        rows, targets, weights = left, targets[kept], weights[kept]
    with np.errstate(over="ignore"):
        targets = targets.astype(rows.dtype)
    if not np.isfinite(targets).all():
        raise InputError(
            f"Input y contains infinity or a value too large for {rows.dtype}, the type of "
            "the rows: give these as float64, or y in other units."
        )
    return rows.attach(targets=targets, weights=weights.astype(rows.dtype))


def beside(rows: Rows) -> dict[str, Any]:
    """Targets (n, T) and weights (n, S) of all rows, in this process."""
    parts = rows.map(_targets_and_weights)
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _targets_and_weights(block: Block) -> dict[str, Any]:
    return {name: block.extra[name] for name in ("targets", "weights")}


def evaluate(
    rows: Rows,
    weights: Floats,
    plan: Layout,
    sums: Sums,
    *,
    gradient: bool = True,
    scored: bool = True,
) -> Evaluation:
    """Objective, gradient and score of every column, from one pass over ``rows``.

    Parameters
    ----------
    rows : Rows
        With the extra arrays "targets" (n, T), "weights" (n, S) and, if there is something
        to score, "score_weights" (n, S).
    weights : ndarray of shape (d + 1, B)
        The last row holds the intercepts.
    plan : Layout
    sums : Sums
    """
    if gradient and not scored and not weights.any():
        return _at_zero(rows, weights, plan, sums)
    scored = scored and sums.scored is not None
    handle = rows.executor.put((weights, plan.segments, plan.deltas))
    total = rows.map_reduce(_block_pass, add_passes, handle, gradient, scored)
    rows.executor.release(handle)
    return _penalised(total, weights, plan, sums)


def first_gradient(rows: Rows, models: Sequence[Model], sums: Sums) -> float:
    """The largest component of a gradient at zero, intercepts aside; at most 1.

    Of several columns, that of the one whose is the least, but for those that have none.
    LIBLINEAR stops by it (Lin, Weng, Keerthi, 2008): where rows are long and sparse, all
    components are small at once.
    """
    plan = layout(list(models))
    zeros = np.zeros((rows.d + 1, plan.width), rows.dtype)
    found = evaluate(rows, zeros, plan, sums, scored=False).gradient
    assert found is not None
    largest = np.abs(found[:-1]).max(axis=0, initial=0.0)
    some = largest[largest > HALF]
    return float(min(some.min(initial=1.0), 1.0))


def scores(rows: Rows, weights: Floats, plan: Layout, sums: Sums) -> NDArray[np.float64]:
    """The score of every model, (M,), from the rows that have a say in it."""
    handle = rows.executor.put((weights, plan.segments, plan.deltas))
    total = rows.map_reduce(_block_scores, np.add, handle)
    rows.executor.release(handle)
    return _scores(total, plan, sums)


def _at_zero(rows: Rows, weights: Floats, plan: Layout, sums: Sums) -> Evaluation:
    """Zero weights: models that differ in their penalty alone share one column."""
    kinds = list(without_penalty(plan.models))
    distinct = layout(list(dict.fromkeys(kinds)))
    number = {model: i for i, model in enumerate(distinct.models)}
    zeros = np.zeros((len(weights), distinct.width), weights.dtype)
    args = (zeros, distinct.segments, distinct.deltas), True, False
    total = rows.map_reduce(_block_pass, add_passes, *args)
    source = np.empty(plan.width, np.int64)
    for i, kind in enumerate(kinds):
        source[plan.columns(i)] = np.arange(distinct.width)[distinct.columns(number[kind])]
    spread = Pass(
        total.loss[source],
        total.gradient[:, source],
        total.intercept_gradient[source],
        None,
    )
    return _penalised(spread, weights, plan, sums)


# A trial step may be so long that it overflows: it will be refused.
@np.errstate(over="ignore", invalid="ignore")
def _penalised(total: Pass, weights: Floats, plan: Layout, sums: Sums) -> Evaluation:
    scale = 1.0 / sums.weights[plan.rowsets]
    w, b = weights[:-1], weights[-1].astype(np.float64)
    norms = np.einsum("ij,ij->j", w, w, dtype=np.float64)
    value = total.loss * scale + 0.5 * plan.l2 * norms + 0.5 * plan.intercept_l2 * b * b
    return Evaluation(
        plan.unit_sum(value),
        None if total.gradient is None else _gradient(total, weights, plan, scale),
        None if total.score is None else _scores(total.score, plan, sums),
    )


def _gradient(
    total: Pass, weights: Floats, plan: Layout, scale: NDArray[np.float64]
) -> Floats:
    dtype = weights.dtype
    G = np.empty_like(weights)
    assert total.gradient is not None
    assert total.intercept_gradient is not None
    np.multiply(total.gradient, scale.astype(dtype), out=G[:-1])
    G[:-1] += plan.l2.astype(dtype) * weights[:-1]
    G[-1] = total.intercept_gradient * scale + plan.intercept_l2 * weights[-1]
    G[-1, ~plan.with_intercept] = 0.0
    return G


def _scores(by_order: NDArray[np.float64], plan: Layout, sums: Sums) -> NDArray[np.float64]:
    assert sums.scored is not None
    rowsets = np.array([m.rowset for m in plan.models], np.int64)
    signs = np.array([1.0 if m.classifies else -1.0 for m in plan.models])
    with np.errstate(invalid="ignore", divide="ignore"):
        # A row set without rows to score gives NaN, which is the truth.
        scores: NDArray[np.float64] = (
            signs * plan.per_model(by_order) / sums.scored[rowsets]
        )
    return scores


@np.errstate(over="ignore", invalid="ignore")
def _block_pass(
    block: Block,
    problem: tuple[Floats, NDArray[np.int64], NDArray[np.float64]],
    gradient: bool,
    scored: bool,
) -> Pass:
    weights, segments, deltas = problem
    extra = block.extra
    judged = extra["score_weights"] if scored else None
    return linear_pass(
        block.X, weights[:-1], weights[-1], extra["targets"], extra["weights"], segments,
        deltas, score_weights=judged, gradient=gradient,
    )  # fmt: skip


def _block_scores(
    block: Block, problem: tuple[Floats, NDArray[np.int64], NDArray[np.float64]]
) -> NDArray[np.float64]:
    weights, segments, deltas = problem
    extra = block.extra
    having = [np.flatnonzero(extra["score_weights"][:, s[4]]) for s in segments]
    widths = segments[:, 1] - segments[:, 0]
    apart = sum(
        len(rows) * (width + _COPY) for rows, width in zip(having, widths, strict=True)
    )
    if apart > block.rows * weights.shape[1]:
        return _scores_of_rows(block, problem)
    scores = []
    for segment, delta, rows in zip(segments, deltas, having, strict=True):
        own = slice(segment[0], segment[1])
        beside = {name: array[rows] for name, array in extra.items()}
        part = Block(block.X[rows], beside, block.index)
        moved = segment - np.array([own.start, own.start, 0, 0, 0, 0])
        alone = np.ascontiguousarray(weights[:, own]), moved[None], np.array([delta])
        scores.append(_scores_of_rows(part, alone))
    return np.concatenate(scores)


def _scores_of_rows(
    block: Block, problem: tuple[Floats, NDArray[np.int64], NDArray[np.float64]]
) -> NDArray[np.float64]:
    found = _block_pass(block, problem, False, True).score
    assert found is not None
    return found


@np.errstate(over="ignore", invalid="ignore")
def add_passes(a: Pass, b: Pass) -> Pass:
    """The sums over two sets of rows together."""
    return Pass(
        a.loss + b.loss,
        _add(a.gradient, b.gradient),
        _add(a.intercept_gradient, b.intercept_gradient),
        _add(a.score, b.score),
    )


def _add(a: Floats | None, b: Floats | None) -> Any:
    return None if a is None or b is None else a + b


def _block_sums(block: Block) -> tuple[Floats, Floats | None, Floats]:
    weights = block.extra["weights"].astype(np.float64, copy=False)
    scored = block.extra.get("score_weights")
    return (
        weights.sum(axis=0),
        None if scored is None else scored.sum(axis=0, dtype=np.float64),
        weights.T @ block.extra["targets"].astype(np.float64) ** 2,
    )


def _add_sums(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(_add(x, y) for x, y in zip(a, b, strict=True))


def decision_values(rows: Rows, W: Floats, b: Floats, chosen: Indices) -> Floats:
    """Margins ``X @ W + b`` of the rows ``chosen`` in their order, (rows, B).

    Parameters
    ----------
    rows : Rows
    W : ndarray of shape (d, B)
    b : ndarray of shape (B,)
    chosen : int64 ndarray
        Row numbers, in any order and as often as one likes.
    """
    order = np.argsort(chosen, kind="stable")
    inside = chosen[order]
    parts = np.split(inside, np.searchsorted(inside, rows.starts[1:]))
    picks = [part - start for part, start in zip(parts, rows.starts, strict=True)]
    W = np.ascontiguousarray(W, rows.dtype)
    handle = rows.executor.put((W, np.asarray(b, rows.dtype)))
    margins = np.concatenate(rows.map(_block_decision, handle, picks))
    rows.executor.release(handle)
    arranged = np.empty_like(margins)
    arranged[order] = margins
    return arranged


def _block_decision(
    block: Block, weights: tuple[Floats, Floats], picks: list[Indices]
) -> Floats:
    return decision(block.X[picks[block.index]], *weights)
