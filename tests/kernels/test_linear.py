"""The pass over many models, against slow twins in NumPy and SciPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_softmax, softmax

from mlopt.errors import InputError
from mlopt.kernels import linear, losses
from mlopt.kernels.linear import Pass, block_rows, linear_pass
from mlopt.kernels.losses import LOSSES, MULTINOMIAL

Array = NDArray[Any]
SINGLE = [name for name in LOSSES if name != "multinomial"]
MARGIN = ["logistic", "hinge", "squared_hinge"]
FORMATS: dict[str, Callable[[Array], Any]] = {
    "dense": lambda X: X,
    "csr": sparse.csr_array,
}


def loss_twin(loss: int, z: Array, y: Array, delta: float = 1.0) -> Array:
    """The losses again, in NumPy: slow, short, and easy to believe."""
    r = np.abs(z - y)
    values = {
        losses.SQUARED: 0.5 * r**2,
        losses.LOGISTIC: np.logaddexp(0, -y * z),
        losses.HINGE: np.maximum(0, 1 - y * z),
        losses.SQUARED_HINGE: np.maximum(0, 1 - y * z) ** 2,
        losses.HUBER: np.where(r <= delta, 0.5 * r**2, delta * r - 0.5 * delta**2),
    }
    return np.asarray(values[loss])


def slope_twin(loss: int, z: Array, y: Any, delta: float = 1.0) -> Array:
    inside = 1 - y * z >= 0
    slopes = {
        losses.SQUARED: z - y,
        losses.LOGISTIC: -y * np.exp(-np.logaddexp(0, y * z)),
        losses.HINGE: np.where(inside, -y, 0),
        losses.SQUARED_HINGE: np.where(inside, -2 * y * (1 - y * z), 0),
        losses.HUBER: np.clip(z - y, -delta, delta),
    }
    return np.asarray(slopes[loss])


@dataclass(frozen=True)
class Problem:
    """Arguments of `linear_pass`."""

    X: Any
    W: Array
    b: Array
    targets: Array
    weights: Array
    segments: NDArray[np.int64]
    deltas: Array
    score_weights: Array | None = None

    def run(self, gradient: bool = True) -> Pass:
        return linear_pass(
            self.X, self.W, self.b, self.targets, self.weights, self.segments,
            self.deltas, self.score_weights, gradient,
        )  # fmt: skip

    def twin(self) -> tuple[Array, Array, Array, Array]:
        """Losses, gradient, intercept gradient and scores by the definitions."""
        X = np.asarray(self.X.todense() if sparse.issparse(self.X) else self.X, np.float64)
        Z = X @ self.W.astype(np.float64) + self.b
        loss, slope, scores = np.zeros(Z.shape[1]), np.zeros(Z.shape), []
        for (start, stop, kind, target, weight, K), delta in zip(
            self.segments.tolist(), self.deltas.tolist(), strict=True
        ):
            y, c = self.targets[:, target].astype(float), self.weights[:, weight]
            v = (
                np.zeros(len(y))
                if self.score_weights is None
                else self.score_weights[:, weight]
            )
            for k in range(start, stop, K):
                z, one_hot = Z[:, k : k + K], y[:, None] == np.arange(K)
                if kind == MULTINOMIAL:
                    loss[k] = -c @ log_softmax(z, axis=1)[one_hot]
                    slope[:, k : k + K] = c[:, None] * (softmax(z, axis=1) - one_hot)
                for j in range(K if kind != MULTINOMIAL else 0):
                    t = y if K == 1 else np.where(one_hot[:, j], 1.0, -1.0)
                    loss[k + j] = c @ loss_twin(kind, z[:, j], t, delta)
                    slope[:, k + j] = c * slope_twin(kind, z[:, j], t, delta)
                if K > 1:
                    scores.append(v @ (z.argmax(axis=1) == y))
                elif kind in (losses.SQUARED, losses.HUBER):
                    scores.append(v @ (z[:, 0] - y) ** 2)
                else:
                    scores.append(v @ ((z[:, 0] > 0) == (y > 0)))
        return loss, X.T @ slope, slope.sum(axis=0), np.array(scores)


def problem(
    losses: list[str],
    *,
    n: int = 700,
    d: int = 11,
    models: int = 3,
    K: int = 1,
    dtype: Any = np.float64,
    seed: int = 0,
) -> Problem:
    """One segment a loss, each with targets, weights and a delta of its own."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    width = models * K
    real = [rng.normal(size=n), np.where(rng.random(n) < 0.5, -1.0, 1.0)]
    targets = np.stack([*real, rng.integers(0, K, n).astype(float)], axis=1)
    segments = [
        (
            i * width,
            (i + 1) * width,
            LOSSES[name],
            2 if K > 1 else int(name in MARGIN),
            i % 2,
            K,
        )
        for i, name in enumerate(losses)
    ]
    weights = rng.random((n, 2)) * (rng.random((n, 2)) < 0.7)
    B = width * len(losses)
    arrays = (
        X,
        rng.normal(size=(d, B)),
        rng.normal(size=B),
        targets,
        weights,
    )
    X, W, b, targets, weights = (a.astype(dtype) for a in arrays)
    score_weights = (rng.random((n, 2)) < 0.5).astype(dtype)
    deltas = np.linspace(0.3, 1.5, len(losses)).astype(dtype)
    return Problem(
        X, W, b, targets, weights, np.array(segments, np.int64), deltas, score_weights
    )


def assert_right(p: Problem) -> None:
    got, (loss, gradient, intercept_gradient, score) = p.run(), p.twin()
    assert got.gradient is not None
    assert got.gradient.dtype == p.W.dtype
    assert got.gradient.shape == p.W.shape
    tolerance = 1e-11 if p.W.dtype == np.float64 else 2e-5
    scale = float(p.weights.sum())
    pairs: list[tuple[Any, Any]] = [
        (got.loss, loss),
        (got.gradient, gradient),
        (got.intercept_gradient, intercept_gradient),
        (got.score, score if p.score_weights is not None else None),
    ]
    for mine, theirs in pairs:
        if theirs is None:
            assert mine is None
        else:
            np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("models", [1, 3, 40])
@pytest.mark.parametrize("name", SINGLE)
def test_every_loss_agrees_with_its_definition(
    name: str, models: int, form: str, dtype: Any
) -> None:
    p = problem([name], models=models, dtype=dtype)
    assert_right(replace(p, X=FORMATS[form](p.X)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("K", [2, 3, 10])
@pytest.mark.parametrize("name", LOSSES)
def test_several_classes_agree_with_scipy(name: str, K: int, form: str, dtype: Any) -> None:
    p = problem([name], models=2, K=K, dtype=dtype)
    assert_right(replace(p, X=FORMATS[form](p.X)))


@given(
    st.lists(st.sampled_from(SINGLE), min_size=1, max_size=6),
    st.integers(1, 4),
    st.integers(1, 40),
    st.integers(1, 9),
    st.sampled_from(list(FORMATS)),
    st.booleans(),
    st.integers(0, 99),
)
def test_segments_do_not_disturb_each_other(
    losses: list[str], models: int, n: int, d: int, form: str, scored: bool, seed: int
) -> None:
    p = problem(losses, n=n, d=d, models=models, seed=seed)
    assert_right(
        replace(p, X=FORMATS[form](p.X), score_weights=p.score_weights if scored else None)
    )


@pytest.mark.parametrize("name", LOSSES)
def test_the_gradient_is_the_slope_of_the_loss(name: str) -> None:
    p = problem([name], n=60, d=4, models=2, K=3 if name == "multinomial" else 1)
    h, got = 1e-6, p.run()
    assert got.gradient is not None
    for j in range(len(p.W)):
        for k in range(p.W.shape[1]):
            step = np.zeros_like(p.W)
            step[j, k] = h
            above = replace(p, W=p.W + step).run(gradient=False).loss.sum()
            below = replace(p, W=p.W - step).run(gradient=False).loss.sum()
            assert got.gradient[j, k] == pytest.approx((above - below) / (2 * h), abs=2e-4)


@pytest.mark.parametrize("models", [1, 40])
def test_blocks_of_rows_add_up(models: int) -> None:
    n = 2 * block_rows(200, 8) + 137
    assert_right(problem(["logistic", "huber"], n=n, d=200, models=models))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rows", [1, 3, 4, 61, 203])
@pytest.mark.parametrize("columns", [8, 9, 15, 16, 23, 50])
def test_rows_from_memory_as_rows_from_a_cache(
    rows: int, columns: int, dtype: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other, in several blocks; and four at a time."""
    p = problem(["logistic", "huber"], n=rows, d=columns, models=1, dtype=dtype)
    cached = p.run()
    monkeypatch.setattr(linear, "_CACHED", 0)
    streamed = p.run()
    assert_right(p)
    assert streamed.gradient is not None
    assert cached.gradient is not None
    np.testing.assert_allclose(
        streamed.gradient, cached.gradient, rtol=1e-4, atol=1e-4 * rows
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rows", [5, 8, 12, 2600])
@pytest.mark.parametrize("columns", [8, 9, 24])
@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.parametrize("cached", [0, 10**9])
def test_models_that_share_targets_and_weights(
    models: int,
    columns: int,
    rows: int,
    dtype: Any,
    cached: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Slopes in registers, for one loss and for several beside each other."""
    monkeypatch.setattr(linear, "_CACHED", cached)
    for names in (["logistic"], ["hinge"], ["squared_hinge", "logistic"], ["squared"]):
        p = problem(names, n=rows, d=columns, models=models, dtype=dtype)
        p.segments[:, 3:5] = 0
        target = slice(1, 2) if names[0] in MARGIN else slice(1)
        targets, weights = p.targets[:, target], p.weights[:, :1]
        p = replace(p, targets=targets, weights=weights, score_weights=None)
        assert_right(p)
        loss_alone = p.run(gradient=False)
        np.testing.assert_array_equal(loss_alone.loss, p.run().loss)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("models", [1, 40])
def test_a_pass_over_parts_of_the_rows_adds_up_to_the_whole(models: int, form: str) -> None:
    p = problem(["logistic", "squared"], models=models)
    whole = replace(p, X=FORMATS[form](p.X)).run()
    parts = [
        replace(
            p,
            X=FORMATS[form](p.X[rows]),
            targets=p.targets[rows],
            weights=p.weights[rows],
            score_weights=None if p.score_weights is None else p.score_weights[rows],
        ).run()
        for rows in (slice(0, 333), slice(333, None))
    ]
    for name in ("loss", "gradient", "intercept_gradient", "score"):
        total = sum(getattr(part, name) for part in parts)
        np.testing.assert_allclose(getattr(whole, name), total, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("models", [1, 20])
def test_rows_without_weight_are_left_out_whatever_is_in_them(
    models: int, form: str
) -> None:
    p = problem(["logistic", "huber", "hinge"], models=models)
    kept = p.weights.sum(axis=1) > 0
    inside = replace(
        p,
        X=FORMATS[form](p.X[kept]),
        targets=p.targets[kept],
        weights=p.weights[kept],
        score_weights=None,
    ).run()
    assert inside.gradient is not None
    whole = replace(p, X=FORMATS[form](p.X)).run()
    assert whole.gradient is not None
    np.testing.assert_allclose(whole.loss, inside.loss, rtol=1e-12)
    np.testing.assert_allclose(whole.gradient, inside.gradient, atol=1e-10)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("models", [1, 20])
def test_segments_without_weight_have_no_loss_and_no_gradient(
    models: int, form: str
) -> None:
    p = problem(["logistic", "squared", "hinge"], models=models)
    p.weights[:, 0] = 0
    got = replace(p, X=FORMATS[form](p.X)).run()
    assert got.gradient is not None
    assert not got.gradient[:, :models].any()
    assert not got.loss[:models].any()
    assert_right(replace(p, X=FORMATS[form](p.X)))


@pytest.mark.parametrize("form", FORMATS)
def test_without_gradient_losses_and_scores_are_the_same(form: str) -> None:
    p = problem(["logistic", "squared"])
    p = replace(p, X=FORMATS[form](p.X))
    full, short = p.run(), p.run(gradient=False)
    assert short.gradient is None
    assert short.intercept_gradient is None
    np.testing.assert_array_equal(full.loss, short.loss)
    np.testing.assert_array_equal(full.score, short.score)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ["logistic", "multinomial"])
def test_large_margins_overflow_nothing(name: str, dtype: Any) -> None:
    p = problem([name], K=3 if name == "multinomial" else 1, dtype=dtype)
    got = replace(p, W=p.W * dtype(1e30)).run()
    assert got.gradient is not None
    assert np.isfinite(got.loss).all()
    assert np.isfinite(got.gradient).all()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("models", [2, 20])
def test_a_nan_in_the_weights_is_a_nan_in_the_loss(name: str, models: int) -> None:
    p = problem([name], models=models, K=3 if name == "multinomial" else 1)
    p.W[0, 0] = np.nan
    got = p.run()
    assert np.isnan(got.loss[0])
    assert np.isfinite(got.loss[-1])


def test_read_only_and_fortran_ordered_inputs_give_the_same() -> None:
    p = problem(["logistic"])
    for a in (p.X, p.W, p.targets, p.weights):
        a.flags.writeable = False
    other = replace(p, W=np.asfortranarray(p.W), targets=np.asfortranarray(p.targets))
    np.testing.assert_array_equal(p.run().gradient, other.run().gradient)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"W": np.zeros((3, 3))}, "`W` must have shape"),
        ({"b": np.zeros(1)}, "`b` must have shape"),
        ({"targets": np.zeros((5, 3))}, "`targets` must have shape"),
        ({"score_weights": np.zeros((5, 2))}, "`score_weights` must have shape"),
        ({"deltas": np.zeros(3)}, "`deltas` must have shape"),
        ({"W": np.zeros((11, 3), np.float32)}, "float32 or float64"),
        ({"segments": np.array([[0, 3, 1, 9, 0, 1]])}, "`targets` "),
        ({"segments": np.array([[0, 3, 5, 0, 0, 1]])}, "`segments`"),
        ({"segments": np.array([[0, 3, 1, 0, 0, 2]])}, "whole models"),
        ({"segments": np.array([[0, 2, 1, 0, 0, 1]])}, "all 3 columns"),
    ],
)
def test_what_does_not_fit_together_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        replace(problem(["logistic"]), **change).run()


def test_other_sparse_formats_are_refused() -> None:
    p = problem(["logistic"])
    with pytest.raises(InputError, match="CSR"):
        replace(p, X=sparse.csc_array(p.X)).run()


@pytest.mark.parametrize("form", FORMATS)
def test_decision_is_the_margin(form: str) -> None:
    p = problem(["logistic"])
    expected = p.X @ p.W + p.b
    np.testing.assert_allclose(linear.decision(FORMATS[form](p.X), p.W, p.b), expected)


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_weighted_gram_is_symmetric_and_right(form: str, dtype: Any) -> None:
    p = problem(["logistic"], dtype=dtype)
    h = p.weights[:, 0]
    got = linear.weighted_gram(FORMATS[form](p.X), h)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, got.T)
    expected = (p.X.T * h.astype(float)) @ p.X
    np.testing.assert_allclose(
        got, expected, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=1e-4
    )


@pytest.mark.parametrize("name", SINGLE)
@given(st.floats(-30, 30), st.sampled_from([-1.0, 1.0]))
def test_curvature_is_the_slope_of_the_slope(name: str, z: float, y: float) -> None:
    loss, h, delta = LOSSES[name], 1e-5, 0.7
    kinks = [abs(1 - y * z), abs(abs(z - y) - delta)]
    if min(kinks) < 1e-3:
        return
    at = np.array([z])
    rise = slope_twin(loss, at + h, y, delta) - slope_twin(loss, at - h, y, delta)
    curvature = linear.hessian_weights(loss, at, np.array([y]), delta)
    assert curvature[0] == pytest.approx(rise[0] / (2 * h), abs=1e-5)


def test_multinomial_curvature_is_the_diagonal_of_the_softmax() -> None:
    z = np.random.default_rng(0).normal(size=(5, 4)) * 10
    p = softmax(z, axis=1)
    got = linear.hessian_weights(MULTINOMIAL, z, np.zeros(5))
    np.testing.assert_allclose(got, p * (1 - p), atol=1e-15)
