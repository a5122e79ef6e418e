"""Lockstep SGD, against scikit-learn one model at a time and a slow twin in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import SGDClassifier, SGDRegressor

from mlopt.errors import InputError
from mlopt.kernels.losses import HINGE, HUBER, LOGISTIC, LOSSES, MULTINOMIAL
from mlopt.kernels.sgd import SCHEDULES, SPARSE_INTERCEPT_DECAY, Steps, sgd_epoch

Array = NDArray[Any]
NAMES = {
    "logistic": "log_loss",
    "hinge": "hinge",
    "squared_hinge": "squared_hinge",
    "squared": "squared_error",
    "huber": "huber",
}
RATES = ("constant", "invscaling", "optimal")
DELTA = 0.4


@dataclass(frozen=True)
class Setting:
    """One model: what scikit-learn calls its parameters."""

    loss: str = "logistic"
    rate: str = "constant"
    alpha: float = 1e-3
    eta0: float = 0.02
    power_t: float = 0.4
    intercept: bool = True

    def peer(self, epochs: int) -> Any:
        """scikit-learn's model, in the order of the rows."""
        regression = self.loss in ("squared", "huber")
        kind = SGDRegressor if regression else SGDClassifier
        return kind(
            loss=NAMES[self.loss], learning_rate=self.rate, alpha=self.alpha,
            eta0=self.eta0, power_t=self.power_t, fit_intercept=self.intercept,
            epsilon=DELTA, shuffle=False, tol=None, max_iter=epochs,
        )  # fmt: skip


def steps_of(settings: list[Setting], decay: float = 1.0) -> Steps:
    return Steps(
        np.array([SCHEDULES[s.rate] for s in settings]),
        np.array([s.alpha for s in settings]),
        np.array([s.eta0 for s in settings]),
        np.array([s.power_t for s in settings]),
        np.ones(len(settings)),
        np.array([decay if s.intercept else 0.0 for s in settings]),
    )


@dataclass
class Lockstep:
    """Arguments of `sgd_epoch` that stay, and the models so far."""

    X: Any
    targets: Array
    weights: Array
    segments: NDArray[np.int64]
    deltas: Array
    steps: Steps
    W: Array
    b: Array

    def run(self, epochs: int, order: NDArray[np.int64] | None = None) -> Array:
        """Losses of the last epoch."""
        loss = np.zeros(len(self.b))
        for _ in range(epochs):
            loss = sgd_epoch(
                self.X,
                np.arange(self.X.shape[0]) if order is None else order,
                self.targets, self.weights, self.W, self.b, self.segments, self.deltas,
                self.steps,
            )  # fmt: skip
        return loss


def data(n: int = 300, d: int = 13, seed: int = 0) -> tuple[Array, Array]:
    """Rows with zeros in them, and targets: classes -1 and 1, and real numbers."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    value = X[:, 0] - X[:, 1] + rng.normal(size=n)
    return X, np.stack([np.where(value > 0, 1.0, -1.0), value], axis=1)


def lockstep(
    settings: list[Setting], X: Any, targets: Array, weights: Array | None = None
) -> Lockstep:
    """Every setting a segment of its own."""
    rows = [
        (k, k + 1, LOSSES[s.loss], int(s.loss in ("squared", "huber")), 0, 1)
        for k, s in enumerate(settings)
    ]
    n, d = X.shape
    decay = SPARSE_INTERCEPT_DECAY if sparse.issparse(X) else 1.0
    return Lockstep(
        X,
        targets.astype(X.dtype),
        (np.ones((n, 1)) if weights is None else weights).astype(X.dtype),
        np.array(rows),
        np.full(len(settings), DELTA),
        steps_of(settings, decay),
        np.zeros((d, len(settings)), X.dtype),
        np.zeros(len(settings), X.dtype),
    )


def assert_like_scikit_learn(
    together: Lockstep, settings: list[Setting], epochs: int, tolerance: float
) -> None:
    for k, s in enumerate(settings):
        y = together.targets[:, int(s.loss in ("squared", "huber"))]
        peer = s.peer(epochs).fit(
            together.X, y, sample_weight=together.weights[:, 0].astype(np.float64)
        )
        np.testing.assert_allclose(
            together.W[:, k], peer.coef_.ravel(), rtol=tolerance, atol=tolerance
        )
        np.testing.assert_allclose(
            together.b[k], peer.intercept_[0], rtol=tolerance, atol=tolerance
        )


# With less regularisation the first "optimal" steps on a square explode: chaos, in both.
EVERY = [
    Setting(loss, rate, 0.5 if rate == "optimal" else 1e-3, intercept=intercept)
    for loss in NAMES
    for rate in RATES
    for intercept in (True, False)
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("count", [1, 3, len(EVERY)])
def test_coefficients_are_those_of_scikit_learn(
    count: int, csr: bool, weighted: bool
) -> None:
    X, targets = data()
    weights = np.random.default_rng(1).random((len(X), 1)) + 0.1 if weighted else None
    settings = EVERY if count > 3 else EVERY[4 : 4 + count]
    together = lockstep(settings, sparse.csr_array(X) if csr else X, targets, weights)
    together.run(3)
    assert_like_scikit_learn(together, settings, 3, 1e-10)


@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("count", [2, len(EVERY)])
def test_float32_follows_scikit_learn_to_its_precision(count: int, csr: bool) -> None:
    X, targets = data()
    small = X.astype(np.float32)
    settings = EVERY[:count]
    together = lockstep(settings, sparse.csr_array(small) if csr else small, targets)
    together.run(2)
    assert_like_scikit_learn(together, settings, 2, 2e-3)


@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("count", [1, 10])
def test_steps_that_shrink_everything_reset_the_weights(count: int, csr: bool) -> None:
    X, targets = data()
    harsh = [Setting(rate="constant", alpha=a, eta0=0.5) for a in (1.0, 1.9, 2.0, 3.0)]
    settings = (harsh * 3)[:count] if count > 1 else harsh[2:3]
    together = lockstep(settings, sparse.csr_array(X) if csr else X, targets)
    together.run(2)
    assert_like_scikit_learn(together, settings, 2, 1e-10)


def test_huge_slopes_are_clipped_as_in_scikit_learn() -> None:
    X, targets = data(n=20)
    settings = [Setting(loss="squared", eta0=1e-13, alpha=0.0)]
    together = lockstep(settings, X * 1e7, targets * 1e13)
    together.run(1)
    assert_like_scikit_learn(together, settings, 1, 1e-10)


@pytest.mark.parametrize("csr", [False, True])
def test_one_vs_rest_columns_are_binary_models(csr: bool) -> None:
    X, _ = data()
    codes = np.random.default_rng(2).integers(0, 5, len(X))
    form = sparse.csr_array(X) if csr else X
    settings = [Setting(rate="optimal")] * 10
    model = replace_segments(
        lockstep(settings, form, codes[:, None].astype(float)),
        [(0, 5, LOGISTIC, 0, 0, 5), (5, 10, HINGE, 0, 0, 5)],
    )
    model.run(2)
    for k in range(10):
        setting = Setting(loss="logistic" if k < 5 else "hinge", rate="optimal")
        peer = setting.peer(2).fit(form, np.where(codes == k % 5, 1, -1))
        np.testing.assert_allclose(model.W[:, k], peer.coef_[0], atol=1e-10)
        np.testing.assert_allclose(model.b[k], peer.intercept_[0], atol=1e-10)


def replace_segments(model: Lockstep, rows: Sequence[tuple[int, ...]]) -> Lockstep:
    segments = np.array(rows)
    return replace(model, segments=segments, deltas=np.full(len(rows), DELTA))


@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("repeats", [1, 3])
def test_a_row_without_weight_does_not_exist(csr: bool, repeats: int) -> None:
    X, targets = data()
    form: Any = sparse.csr_array if csr else np.asarray
    folds = np.random.default_rng(3).integers(0, 3, len(X))
    masks = (folds[:, None] != np.arange(3)).astype(float)
    settings = [Setting(rate=rate) for rate in RATES] * repeats
    rows = [
        (k * repeats, (k + 1) * repeats, LOGISTIC, 0, k, 1) for k in range(3)
    ]  # a fold a segment
    model = replace_segments(lockstep(settings, form(X), targets, masks), rows)
    loss = model.run(2)
    for fold in range(3):
        kept = folds != fold
        alone = lockstep(
            settings[fold * repeats : (fold + 1) * repeats], form(X[kept]), targets[kept]
        )
        expected = alone.run(2)
        at = slice(fold * repeats, (fold + 1) * repeats)
        np.testing.assert_allclose(model.W[:, at], alone.W, atol=1e-12)
        np.testing.assert_allclose(model.b[at], alone.b, atol=1e-12)
        np.testing.assert_allclose(loss[at], expected, rtol=1e-9)
        np.testing.assert_array_equal(model.steps.t[at], alone.steps.t)


def twin(model: Lockstep, order: NDArray[np.int64]) -> tuple[Array, Array, Array]:
    """Weights, intercepts and losses after one epoch, number by number."""
    W, b = model.W.astype(float).copy(), model.b.astype(float).copy()
    t, losses = model.steps.t.copy(), np.zeros(len(b))
    for i in order:
        for start, stop, loss, target, weight, _ in model.segments.tolist():
            c, y = model.weights[i, weight], model.targets[i, target]
            for k in range(start, stop) if c else ():
                z = model.X[i] @ W[:, k] + b[k]
                if loss == HUBER:
                    slope = min(max(z - y, -DELTA), DELTA)
                    value = slope * (z - y - 0.5 * slope)
                else:
                    value, slope = np.logaddexp(0, -y * z), -y * expit(-y * z)
                alpha, eta = model.steps.alpha[k], model.steps.eta0[k]
                if model.steps.schedule[k] == SCHEDULES["invscaling"]:
                    eta /= t[k] ** model.steps.power_t[k]
                elif model.steps.schedule[k] == SCHEDULES["optimal"]:
                    eta = 1 / (alpha * (alpha**-0.75 + t[k] - 1))
                W[:, k] = max(0, 1 - eta * alpha) * W[:, k] - eta * c * slope * model.X[i]
                b[k] -= eta * c * slope * model.steps.intercept[k]
                losses[k] += value
                t[k] += 1
    return W, b, losses


@given(
    st.integers(1, 20),
    st.integers(1, 25),
    st.integers(1, 30),
    st.integers(0, 99),
)
def test_any_mixture_agrees_with_the_rule(columns: int, d: int, n: int, seed: int) -> None:
    """To 1e-9, or to what the rule itself makes of rows that differ by a rounding."""
    rng = np.random.default_rng(seed)
    X, targets = data(n, d + 1, seed)
    settings = [
        Setting(rate=RATES[rng.integers(3)], alpha=10 ** rng.uniform(-5, -1))
        for _ in range(columns)
    ]
    model = lockstep(settings, X, targets, rng.integers(0, 3, (n, 2)).astype(float))
    rows = [
        (k, k + 1, (HUBER, LOGISTIC)[k % 2], 1 - k % 2, int(rng.integers(2)), 1)
        for k in range(columns)
    ]
    model = replace_segments(model, rows)
    model.W[:] = rng.normal(size=model.W.shape)
    model.b[:] = rng.normal(size=columns)
    order = rng.integers(0, n, 40)
    expected = twin(model, order)
    rounded = twin(replace(model, X=np.nextafter(model.X, np.inf)), order)
    found = model.W, model.b, model.run(1, order)
    for one, other, nudged in zip(found, expected, rounded, strict=True):
        steps_that_grow = 100 * np.abs(nudged - other)
        np.testing.assert_array_less(
            np.abs(one - other), 1e-9 * (1 + np.abs(other)) + steps_that_grow
        )


@pytest.mark.parametrize("count", [2, 12])
def test_batching_models_gives_what_separate_runs_give(count: int) -> None:
    X, targets = data()
    settings = [
        Setting(rate=RATES[k % 3], alpha=10.0 ** -(k % 5 + 1)) for k in range(count)
    ]
    together = lockstep(settings, X, targets)
    together.run(2)
    for k, setting in enumerate(settings):
        alone = lockstep([setting], X, targets)
        alone.run(2)
        np.testing.assert_allclose(together.W[:, k], alone.W[:, 0], atol=1e-12)


@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("count", [3, 12])
def test_parts_of_an_epoch_make_the_epoch(count: int, csr: bool) -> None:
    X, targets = data()
    form = sparse.csr_array(X) if csr else X
    settings = [Setting(rate=RATES[k % 3]) for k in range(count)]
    whole, parts = lockstep(settings, form, targets), lockstep(settings, form, targets)
    order = np.random.default_rng(0).permutation(len(X))
    loss = whole.run(1, order)
    sums = parts.run(1, order[:140]) + parts.run(1, order[140:])
    np.testing.assert_allclose(whole.W, parts.W, atol=1e-12)
    np.testing.assert_allclose(loss, sums, rtol=1e-12)
    np.testing.assert_array_equal(whole.steps.t, parts.steps.t)


def test_weights_in_fortran_order_are_updated_in_place_too() -> None:
    X, targets = data()
    for form in (X, sparse.csr_array(X)):
        settings = [Setting()] * 9
        usual, other = lockstep(settings, form, targets), lockstep(settings, form, targets)
        other.W = np.asfortranarray(other.W)
        usual.run(1)
        other.run(1)
        np.testing.assert_array_equal(usual.W, other.W)


def test_chosen_columns_keep_their_steps() -> None:
    steps = steps_of([Setting(alpha=a) for a in (0.1, 0.2, 0.3)])
    kept = steps.take(np.array([True, False, True]))
    np.testing.assert_array_equal(kept.alpha, [0.1, 0.3])
    kept.t[:] = 9
    assert steps.t.max() == 1


def test_what_cannot_be_is_refused() -> None:
    X, targets = data()
    model = lockstep([Setting()] * 3, X, targets)
    with pytest.raises(InputError, match="one-vs-rest"):
        replace_segments(model, [(0, 3, MULTINOMIAL, 0, 0, 3)]).run(1)
    with pytest.raises(InputError, match="`order`"):
        model.run(1, np.array([len(X)]))
    with pytest.raises(InputError, match="`W`"):
        replace(model, W=model.W[1:]).run(1)


@pytest.mark.slow
def test_steps_in_float32_are_counted_beyond_its_whole_numbers() -> None:
    rows, one = 2**24 + 5000, np.ones(1)
    steps = Steps(
        np.array([SCHEDULES["optimal"]]),
        1e-4 * one,
        one.copy(),
        0 * one,
        one.copy(),
        one.copy(),
    )
    columns = np.broadcast_to(np.float32(1), (rows, 1))
    X = np.ascontiguousarray(columns)
    sgd_epoch(
        X, np.arange(rows), X, X, np.zeros((1, 1), np.float32), np.zeros(1, np.float32),
        np.array([[0, 1, 1, 0, 0, 1]]), one, steps,
    )  # fmt: skip
    assert steps.t[0] - 1 == rows
