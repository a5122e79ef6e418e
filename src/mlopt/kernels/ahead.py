"""Every kernel compiled before it is needed, on all cores: ``python -m mlopt.kernels``.

A kernel compiles at its first call for each kind of number it meets, and is read from disk
from then on. Here each is called once with next to nothing to do. What takes longest comes
first, so that the cores end together.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mlopt.kernels import (
    compiling,
    coordinates,
    dual,
    dual_logistic,
    sgd,
    shrinkage,
    terms,
    windows,
)
from mlopt.kernels.by_column import step_along
from mlopt.kernels.factors_als import confide_rows, solve_rows
from mlopt.kernels.factors_sgd import LANES, visit
from mlopt.kernels.gibbs import LANES as TOPICS
from mlopt.kernels.gibbs import infer, list_topics, sweep
from mlopt.kernels.grouping import first_repeat, grouped
from mlopt.kernels.keyed import keyed_sums, nearest_centres
from mlopt.kernels.linear import linear_pass, sparse_gram
from mlopt.kernels.losses import LOGISTIC
from mlopt.kernels.moments import moments
from mlopt.kernels.one_row import (
    combination,
    curved,
    products,
    seeded,
    sloped,
    squared_norms,
)
from mlopt.kernels.permutation import permutation
from mlopt.kernels.pointwise import losses_and_slopes
from mlopt.kernels.queues import run as run_queues
from mlopt.kernels.separable import separable
from mlopt.kernels.tokens import code_tokens

compiling.silence()  # here it is what was asked for, in every process

Array = NDArray[Any]
Kind = type[np.floating[Any]]

_N, _D = 8, 9
_FEW, _MANY = 1, 40
"""Models: so few, and so many, that every loop is the one that is taken."""


def compile_all(processes: int = -1) -> int:
    """Compile every kernel in ``processes`` processes, -1 for one a core.

    Returns
    -------
    int
        The number of calls that it took.
    """
    calls: list[Callable[[], None]] = [
        partial(call, kind) for call in _OF_NUMBERS for kind in (np.float64, np.float32)
    ]
    calls += _OF_OTHERS
    joblib.Parallel(n_jobs=processes, batch_size=1)(joblib.delayed(c)() for c in calls)
    return len(calls)


def _rows(kind: Kind) -> Array:
    return np.random.default_rng(0).normal(size=(_N, _D)).astype(kind)


def _signs(kind: Any = np.float64) -> Array:
    return np.where(np.arange(_N) % 2, 1, -1).astype(kind)


def _csr(kind: Kind) -> Any:
    return sparse.csr_array(_rows(kind))


def _wide_csr(kind: Kind) -> Any:
    """The same with 64-bit indices, as SciPy makes them for large data."""
    X = _csr(kind)
    indices, indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return sparse.csr_array((X.data, indices, indptr), shape=X.shape)


def _arguments(kind: Kind, models: int) -> tuple[Array, ...]:
    """W, b, targets, weights, segments and deltas of logistic models."""
    segments = np.array([[0, models, LOGISTIC, 0, 0, 1]], np.int64)
    ones = np.ones((_N, 1), kind)
    W, b = np.zeros((_D, models), kind), np.zeros(models, kind)
    return W, b, _signs(kind)[:, None], ones, segments, np.ones(1, kind)


def _pass(kind: Kind, rows: Callable[[Kind], Any], models: int) -> None:
    W, b, targets, weights, segments, deltas = _arguments(kind, models)
    linear_pass(rows(kind), W, b, targets, weights, segments, deltas)


def _sgd(kind: Kind, rows: Callable[[Kind], Any], models: int) -> None:
    W, b, targets, weights, segments, deltas = _arguments(kind, models)
    numbers = [np.ones(models) for _ in range(5)]
    steps = sgd.Steps(np.zeros(models, np.int64), *numbers)
    order = np.arange(_N)
    sgd.sgd_epoch(rows(kind), order, targets, weights, W, b, segments, deltas, steps)


def _dual(kind: Kind) -> None:
    X = _rows(kind)
    squared_norms(_csr(kind))
    costs: dict[str, Any] = {"positive": 1.0, "costs": (1.0, 1.0), "squared": True}
    rule: dict[str, Any] = {"bias": 1.0, "tol": 1.0, "epochs": 1}
    for own in (np.float64, kind):
        state = dual.DualState.start(_N, _D, 0)
        norms, codes, weights = squared_norms(X), _signs(own), np.ones(_N, own)
        dual.dual_epochs(X, norms, codes, weights, state, **costs, **rule)


def _dual_logistic(kind: Kind) -> None:
    X, sign, ones = _rows(kind), _signs(), np.ones(_N)
    dual_logistic.dual_logistic_epoch(
        X, squared_norms(X), sign, ones, bias=0.0, intercept=0.0, alpha=ones / 2,
        margins=np.zeros(_N), w=np.zeros(_D + 1), order=np.arange(_N), random=seeded(0),
    )  # fmt: skip


def _coordinates(kind: Kind) -> None:
    w, y = np.zeros(_D + 1), _signs()
    coordinates.coordinate_epoch(
        np.ascontiguousarray(_rows(kind).T), y, np.ones(_N), np.arange(_D), loss="logistic",
        l2=1.0, delta=1.0, trifle=0.0, bound=np.ones(_D + 1), z=np.zeros(_N), slopes=-y / 2,
        w=w, curvature=np.ones(_D + 1),
    )  # fmt: skip


def _by_column(kind: Kind) -> None:
    x = _rows(kind)
    step_along(x.copy(), x, np.ones(_D), x)


def _single_rows(kind: Kind) -> None:
    X = _rows(kind)
    products(X, np.ones(_D))
    combination(X, np.ones(_N))
    sloped(X, np.ones(_N), np.ones(_N))
    curved(X, np.ones(_N), np.ones(_D + 1))


def _keyed(kind: Kind) -> None:
    nearest_centres(_rows(kind), np.ones((1, _D), kind))
    keyed_sums(_rows(kind), np.zeros(_N, np.int32), np.ones(_N), 1)


def _moments(kind: Kind) -> None:
    for vectors in (np.ones((_N, 2)), np.ones((_N, 0))):
        moments(_rows(kind), np.zeros(_D), np.ones(_N), vectors)


def _shrinkage(kind: Kind) -> None:
    for columns in (_rows(kind), _csr(kind)):
        every, ones = np.arange(_N), np.ones(_D)
        sums, squares = shrinkage.column_moments(columns, every, ones)
        for h in (ones, ones[:1]):
            shrinkage.shrink(
                columns, every, h=h, weight=float(_D), mean=sums / _D, H=squares, l1=0.1,
                l2=0.0, positive=False, slopes=ones.copy(), shift=np.zeros(1),
                w=np.zeros(_N),
            )  # fmt: skip


def _shrinkage_gram() -> None:
    k = np.zeros(_D)
    given: Any = {"l1": 0.1, "l2": 0.0, "positive": False, "g": k, "w": k.copy()}
    shrinkage.shrink_gram(np.eye(_D), **given)
    shrinkage.descend_gram(np.eye(_D), **given, gap=0.1, still=0.1, most=1)


def _gram(kind: Kind) -> None:
    for X in (_csr(kind), _wide_csr(kind)):
        sparse_gram(X, np.ones(_N))


def _images(kind: Kind) -> None:
    images = np.ones((1, 4, 4, 1), kind)
    windows.unfold(images, 2, 1.0)
    windows.pool(images, 2, 2, "sum", "identity")
    windows.both_signs(images, 0.0, 0.0)
    taps, out = np.ones((1, 1, 2), kind), np.empty((1, 9), kind)
    separable(np.ones((1, 4, 4), kind), taps, taps, np.empty(12, kind), out)


def _text() -> None:
    text = np.frombuffer(b"a b a", np.uint8)
    folds = np.zeros((1, 256), np.uint8)
    folds[0, ord("a") : ord("z")] = np.arange(ord("a"), ord("z"))
    starts, least = np.array([0, 3, 5]), np.ones(1, np.int64)
    tokens, bounds, _ = code_tokens(text, starts, np.zeros(2, np.uint8), folds, least)
    slots = 8
    codes, keys = terms.code_grams(tokens, tokens, bounds, 2, slots)
    terms.recognise_grams(tokens, tokens, bounds, 2, keys, slots)
    rows = terms.count_rows(codes[None], bounds, len(keys))
    terms.choose_columns(*rows[:3], np.zeros(len(keys), np.int32), 1)
    heads = np.arange(2, dtype=np.int32)  # of the tokens a and b
    found = np.zeros((len(keys), 2), np.int64)
    terms.merge_keys((keys, keys), (found, found), (heads, heads), (heads, heads))
    terms.find_keys(keys, keys, heads, heads)


def _margins() -> None:
    losses_and_slopes("logistic", np.zeros(_N), _signs())


_OF_NUMBERS: tuple[Callable[[Kind], None], ...] = (
    partial(_pass, rows=_rows, models=_MANY),
    partial(_pass, rows=_csr, models=_MANY),
    partial(_pass, rows=_rows, models=_FEW),
    partial(_pass, rows=_wide_csr, models=_MANY),
    partial(_sgd, rows=_rows, models=_MANY),
    partial(_sgd, rows=_csr, models=_MANY),
    partial(_sgd, rows=_rows, models=_FEW),
    _coordinates,
    _by_column,
    _shrinkage,
    _dual,
    _dual_logistic,
    _images,
    _gram,
    _single_rows,
    _moments,
    _keyed,
)


def _order() -> None:
    permutation(_N, 0)


def _factors() -> None:
    numbers = np.zeros(1, np.int32)
    order, starts = grouped(numbers, 1)
    first_repeat(starts, numbers, 1)
    F, ones = np.ones((1, LANES), np.float32), np.ones(1, np.float32)
    rows = starts, numbers, ones[order]
    sides = (F.copy(), F.copy()), (ones.copy(), ones.copy())
    visit(
        (numbers, numbers, ones), *sides, mean=0.0, rate=0.1, penalty=0.1, biased=True,
        nonnegative=False,
    )  # fmt: skip
    solve_rows(rows, F, F.copy(), columns=1, penalty=1.0)
    confide_rows(rows, F, F.T @ F, F.copy(), steps=1)


def _topics() -> None:
    word, starts, topics = np.zeros(1, np.int32), np.arange(2), np.zeros(1, np.int32)
    one, sizes = np.zeros(1, np.int32), np.zeros(1, np.int32)
    list_topics(starts[:1], starts, topics, starts, one.copy(), one, sizes)
    for model in ((np.ones((1, TOPICS), np.int32),), (starts, word.copy(), one, sizes)):
        sweep(
            word, starts, topics, model, starts[1:].copy(), alpha=1.0, beta=1.0, seed=(0,)
        )
    infer(word, np.ones(1), starts, np.ones((1, 1)), 1.0, 1, 1.0, np.ones((1, 1)))


def _queues() -> None:
    one = np.ones(1)
    run_queues(
        one, one, np.ones((1, 1)), one, one, np.ones(3), message=0.0, ahead=0.0,
        prefetch=False, in_turn=False, warm=1, total=2,
    )  # fmt: skip


_OF_OTHERS: tuple[Callable[[], None], ...] = (
    _text,
    _margins,
    _shrinkage_gram,
    _order,
    _factors,
    _topics,
    _queues,
)
