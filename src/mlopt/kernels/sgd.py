"""Per-sample stochastic gradient descent for many linear models in lockstep.

One read of a row updates every model. The update rule is that of scikit-learn's
``SGDClassifier`` and ``SGDRegressor`` with an L2 penalty: the weights shrink by
``1 - eta * alpha`` (at least 0), then the step ``-eta * weight * slope`` is added, with
slopes clipped to 1e12 in size.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlopt.errors import InputError
from mlopt.kernels.compiled import kernel, part, read_only
from mlopt.kernels.csr_rows import Csr, add_row, padded, parts, row_margins
from mlopt.kernels.linear import checked_models
from mlopt.kernels.losses import MULTINOMIAL
from mlopt.kernels.sgd_dense import dense_epoch
from mlopt.kernels.sgd_steps import (
    ALPHA,
    BIAS,
    CODE,
    DELTA,
    FIELDS,
    FIXED,
    GROWING,
    INTERCEPT,
    MARGIN,
    NUMERATOR,
    POWER,
    ROWS,
    SCALE,
    START,
    STEP,
    add_up,
    step_group,
)
from mlopt.kernels.simd import aligned, lane_count, like, splat

Array = NDArray[Any]

CONSTANT, INVSCALING, OPTIMAL = range(3)
SCHEDULES = {
    "constant": CONSTANT,
    "invscaling": INVSCALING,
    "optimal": OPTIMAL,
    "adaptive": CONSTANT,
}
"""Schedules by number; for "adaptive" the caller lowers `Steps.eta0` between epochs."""

SPARSE_INTERCEPT_DECAY = 0.01
"""`Steps.intercept` that scikit-learn takes for sparse rows."""


@dataclass(frozen=True)
class Steps:
    """Step sizes of B columns; every array has shape (B,).

    Attributes
    ----------
    schedule : int64
        A number of `SCHEDULES`.
    alpha, eta0, power_t : float64
        L2 penalty, and the parameters of the schedule, as in scikit-learn.
    t : float64
        The number of the next step, from 1. `sgd_epoch` counts it up in place.
    intercept : float64
        Factor of the intercept's steps: 0 without intercept, 1 for dense rows,
        `SPARSE_INTERCEPT_DECAY` for sparse rows (as in scikit-learn).
    """

    schedule: NDArray[np.int64]
    alpha: NDArray[np.float64]
    eta0: NDArray[np.float64]
    power_t: NDArray[np.float64]
    t: NDArray[np.float64]
    intercept: NDArray[np.float64]

    def take(self, columns: Array) -> Steps:
        """Return the steps of some columns (indices or a mask), copied."""
        return Steps(*(getattr(self, f.name)[columns].copy() for f in fields(self)))


@dataclass(frozen=True)
class _Groups:
    """Columns in groups of lanes; see `mlopt.kernels.sgd_steps`."""

    size: int
    places: NDArray[np.int64]
    groups: NDArray[np.int64]
    columns: NDArray[np.int64]
    codes: NDArray[np.int64]


def sgd_epoch(
    X: Any,
    order: NDArray[np.int64],
    targets: Array,
    weights: Array,
    W: Array,
    b: Array,
    segments: NDArray[np.int64],
    deltas: Array,
    steps: Steps,
) -> NDArray[np.float64]:
    """Take one SGD step a row, in the given order, for all columns of ``W``.

    Releases the GIL. ``W``, ``b`` and ``steps.t`` change in place.

    Parameters
    ----------
    X, targets, weights, W, b, segments, deltas
        As for `mlopt.kernels.linear.linear_pass`; models of several columns are
        one-vs-rest, multinomial is not possible. A row with weight 0 leaves the columns
        of that weight set untouched: no step, no shrinking, no count.
    order : int64 ndarray
        Indices of the rows to visit.
    steps : Steps

    Returns
    -------
    ndarray of shape (B,), float64
        Unweighted losses of the visited rows, each before its step.

    Raises
    ------
    InputError
        If shapes or dtypes do not fit together, or for the multinomial loss.

    References
    ----------
    Bottou, "Stochastic gradient descent tricks", 2012, for the scale of the weights and
    the "optimal" schedule.
    """
    checked_models(X, W, b, targets, weights, segments, deltas, None)
    if (segments[:, 2] == MULTINOMIAL).any():
        raise InputError("`sgd_epoch` has no multinomial loss. Use one-vs-rest.")
    if order.size and not 0 <= order.min() <= order.max() < X.shape[0]:
        raise InputError(f"`order` must hold rows from 0 to {X.shape[0] - 1}.")
    count = lane_count(X.dtype.itemsize)
    size = count if sparse.issparse(X) else 2 * count
    lanes, state = _pack(size, X.dtype, segments, deltas, steps, b)
    sums = np.stack((np.zeros(state.shape[1]), state[START]))
    sums[1, lanes.places] = steps.t
    rows = (
        read_only(np.asarray(order, np.int64)),
        read_only(np.asarray(targets, X.dtype)),
        read_only(np.asarray(weights, X.dtype)),
    )
    run = _sparse_epoch if sparse.issparse(X) else _dense_epoch
    run(X, rows, W, lanes, state, sums)
    b[:] = state[BIAS, lanes.places]
    steps.t[:] = sums[1, lanes.places]
    return np.asarray(sums[0, lanes.places])


def _dense_epoch(
    X: Array, rows: Any, W: Array, lanes: _Groups, state: Array, sums: Array
) -> None:
    d, B = W.shape
    pair = 2 * lane_count(X.itemsize)
    V = aligned((B, -(-d // pair) * pair), X.dtype)
    V[:, :d] = W.T
    dense_epoch(
        read_only(X), *rows, V, lanes.size, lanes.groups, lanes.columns, state,
        sums, lanes.places,
    )  # fmt: skip
    np.multiply(V[:, :d].T, state[SCALE, lanes.places], out=W)


@part
def _rescale_columns(W: Array, places: Array, state: Array, at: int, size: int) -> None:
    B = places.shape[0]
    for k in range(B):
        if at <= places[k] < at + size:
            for j in range(W.shape[0] // B):
                W[j * B + k] *= state[SCALE, places[k]]
    for k in range(at, at + size):
        state[SCALE, k] = like(state[SCALE, k], 1.0)


@part
def _moves(weights: Array, columns: Array, i: int) -> bool:
    """Whether row ``i`` has weight in any of the columns."""
    moves = False
    for k in range(columns.shape[0]):
        moves |= weights[i, columns[k, 1]] != 0
    return moves


@kernel
def csr_epoch(
    X: Csr, order: Array, targets: Array, weights: Array, W: Array, size: int,
    groups: Array, columns: Array, state: Array, sums: Array, places: Array,
) -> None:  # fmt: skip
    """Any number of models on CSR rows; ``W`` as in `csr_rows`, its columns unpacked."""
    P, B = state.shape[1], places.shape[0]
    z = np.zeros(P, W.dtype)
    form = splat(like(z[0], 0.0))
    for r in range(order.shape[0]):
        i = order[r]
        if not _moves(weights, columns, i):
            continue
        row_margins(X, i, W, B, z, 0)
        for k in range(B):
            state[MARGIN, places[k]] = z[k]
        for g in range(0, P, size):
            if step_group(form, state, g, size, groups, columns, i, targets, weights, 0):
                _rescale_columns(W, places, state, g, size)
        for k in range(P):
            z[k] = state[STEP, places[k]] if k < B else like(z[0], 0.0)
        add_row(X, i, z, 0, W, B)
        if r % ROWS == 0:
            add_up(state, sums)
    add_up(state, sums)


def _sparse_epoch(
    X: Any, rows: Any, W: Array, lanes: _Groups, state: Array, sums: Array
) -> None:
    V = padded(W)
    csr_epoch(
        parts(X), *rows, V, lanes.size, lanes.groups, lanes.columns, state, sums,
        lanes.places,
    )  # fmt: skip
    scales = state[SCALE, lanes.places]
    np.multiply(V[: W.size].reshape(W.shape), scales, out=W)


def _pack(
    size: int, dtype: Any, segments: NDArray[np.int64], deltas: Array,
    steps: Steps, b: Array,
) -> tuple[_Groups, Array]:  # fmt: skip
    power = (steps.schedule == INVSCALING) & (steps.power_t != 0)
    lanes = _grouped(size, segments.tobytes(), power.tobytes())
    state = _state(len(lanes.columns), dtype, lanes.places, steps, b)
    sizes = segments[:, 1] - segments[:, 0]
    state[DELTA, lanes.places] = np.repeat(deltas, sizes)
    state[CODE, lanes.places] = lanes.codes
    return lanes, state


@lru_cache(maxsize=64)
def _grouped(size: int, segments: bytes, powers: bytes) -> _Groups:
    """Kept from epoch to epoch: in all of them, columns go by the same groups."""
    each = np.frombuffer(segments, np.int64).reshape(-1, 6)
    power = np.frombuffer(powers, np.bool_)
    sizes = each[:, 1] - each[:, 0]
    loss, target, weight, K = (np.repeat(each[:, i], sizes) for i in (2, 3, 4, 5))
    places = _places(2 * loss + (K > 1), power, size)
    P = -(-(int(places.max()) + 1) // size) * size
    first = np.repeat(each[:, 0], sizes)
    codes = np.where(K > 1, (np.arange(len(power)) - first) % K, 0)
    # A filling column does as the column before it, with step size 0.
    owner = _owners(places, P)
    columns = np.stack([target[owner], weight[owner]], axis=1)
    by_group = columns.reshape(-1, size, 2)
    groups = np.stack(
        [
            loss[owner][::size],
            (K > 1)[owner][::size],
            power[owner].reshape(-1, size).any(axis=1),
            (by_group != by_group[:, :1]).any(axis=(1, 2)),
        ],
        axis=1,
    ).astype(np.int64)
    return _Groups(size, places, groups, columns, codes)


def _places(
    kind: NDArray[np.int64], power: NDArray[np.bool_], size: int
) -> NDArray[np.int64]:
    """Put columns of one kind side by side, each kind from a multiple of ``size`` on.

    Those whose steps have a power of t, which takes time, follow the others of their kind.
    """
    places = np.empty(len(kind), np.int64)
    start = 0
    for value in np.unique(kind):
        members = np.flatnonzero(kind == value)
        members = members[np.argsort(power[members], kind="stable")]
        places[members] = start + np.arange(len(members))
        start += -(-len(members) // size) * size
    return places


def _owners(places: NDArray[np.int64], P: int) -> NDArray[np.int64]:
    """The column at each place, or before it where there is none."""
    owner = np.zeros(P, np.int64)
    owner[places] = np.arange(len(places))
    filled = np.zeros(P, np.int64)
    filled[places] = places
    return owner[np.maximum.accumulate(filled)]


def _state(P: int, dtype: Any, places: Array, steps: Steps, b: Array) -> Array:
    state = aligned((FIELDS, P), dtype)
    for field in (SCALE, FIXED, START):
        state[field] = 1.0
    optimal = steps.schedule == OPTIMAL
    with np.errstate(divide="ignore", invalid="ignore"):
        # scikit-learn's first "optimal" step is alpha ** -0.25, whatever the loss.
        fixed = np.where(optimal, steps.alpha * (steps.alpha**-0.75 - 1.0), 1.0)
    state[BIAS, places] = b
    state[NUMERATOR, places] = np.where(optimal, 1.0, steps.eta0)
    state[FIXED, places] = fixed
    state[GROWING, places] = np.where(optimal, steps.alpha, 0.0)
    inverse = steps.schedule == INVSCALING
    state[POWER, places] = np.where(inverse, steps.power_t, 0.0)
    state[ALPHA, places] = steps.alpha
    state[INTERCEPT, places] = steps.intercept
    state[START, places] = steps.t
    return state
