"""What a few hundred rows say of the eigenvalues of all, and of conjugate gradients."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from mlopt.cluster import Threads
from mlopt.gd.plans import Task, plan, task
from mlopt.gd.spectrum import Spectrum
from mlopt.rows import Rows

Array = NDArray[Any]


def factors(n: int, d: int, k: int, strength: float) -> Array:
    """``k`` directions of a variance of ``strength * d``, and noise of variance 1."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(n, k)) @ np.linalg.qr(rng.normal(size=(d, k)))[0].T
    return np.asarray(rng.normal(size=(n, d)) + np.sqrt(strength * d) * common)


def spectrum(X: Any) -> Spectrum | None:
    with closing(Threads(1)) as here:
        beside = {name: np.ones((X.shape[0], 1)) for name in ("targets", "weights")}
        return Spectrum.of(Rows.of(X, executor=here).attach(**beside))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [0, 1, 12])
def test_eigenvalues_that_stand_out_are_found_without_their_noise(
    k: int, dtype: Any
) -> None:
    seen = spectrum(factors(3000, 800, k, 0.2).astype(dtype))
    assert seen is not None
    assert len(seen.leading) == k
    assert seen.rest == pytest.approx(1.0, rel=0.1)
    np.testing.assert_allclose(seen.leading, 0.2 * 800, rtol=0.5)
    assert seen.leading.mean() == pytest.approx(160.0, rel=0.25) if k else True


def test_where_columns_lie_makes_no_difference() -> None:
    X = factors(3000, 800, 3, 0.2)
    near, far = spectrum(X), spectrum(X + 1e3)
    assert near is not None
    assert far is not None
    np.testing.assert_allclose(near.leading, far.leading, rtol=1e-6)


def test_few_rows_few_columns_and_sparse_rows_are_not_looked_at() -> None:
    assert spectrum(np.ones((300, 800))) is None
    assert spectrum(np.ones((3000, 300))) is None
    assert spectrum(sparse.random(3000, 800, density=0.01, format="csr")) is None


def test_a_constant_matrix_has_no_spectrum_that_could_stop_a_plan() -> None:
    seen = spectrum(np.ones((3000, 800)))
    assert seen is not None
    assert seen.steps(1e-6, 1e-3) == 1
    assert seen.steps(0.0, 1e-3) >= 1


@pytest.mark.slow
@pytest.mark.parametrize(("k", "strength"), [(1, 0.5), (20, 0.5), (0, 1.0), (60, 0.1)])
@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
def test_steps_are_foreseen_within_a_factor_of_two(
    k: int, strength: float, gap: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task, "_LARGE", 0)
    X = factors(3000, 700, k, strength)
    rng = np.random.default_rng(1)
    y = X @ rng.normal(size=700) / np.sqrt(700) + rng.normal(size=3000)
    names = ["sparse_cg", "sketched_cg"]
    found = plan(Task("squared", l2=1e-3), X, y, tolerance=gap, methods=names)
    assert {one.passes.source for one in found.alternatives} == {"foreseen"}
    for one in found.alternatives:
        passes = one.run().n_iter
        # Conjugate gradients alone look back at nine steps before they stop.
        most = max(2 * one.passes.expected + 1, 12)
        assert one.passes.expected / 2 - 1 <= passes <= most
    sketched = next(one for one in found.alternatives if one.name == "sketched_cg")
    plain = next(one for one in found.alternatives if one.name == "sparse_cg")
    assert sketched.passes.expected <= plain.passes.expected


def test_methods_of_single_rows_and_columns_are_seen_to_take_long_on_columns_alike(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(task, "_LARGE", 0)
    X = factors(1500, 1600, 10, 0.5)
    y = X @ np.ones(1600) / 40 + np.random.default_rng(1).normal(size=1500)
    found = plan(Task("squared", l2=1e-2), X, y, tolerance=1e-4, speculation=1e-3)
    passes = {one.name: one.passes for one in found.alternatives}
    one = "primal-coordinate-descent"
    assert passes[one].source == "foreseen"
    assert passes[one].expected > 500
    assert passes["sketched_cg"].expected < 200
    assert found.chosen.name != one
    logistic = plan(Task("logistic", l2=1e-2), X, y > 0, speculation=1e-3)
    assert {a.passes.source for a in logistic.alternatives if a.name == one} == {"typical"}


def test_steps_are_finite_where_nothing_but_rounding_is_left() -> None:
    assert Spectrum(np.empty(0), 0.9, 5000, 5000).steps(0.0, 1e-4) == 5000
    assert Spectrum(np.empty(0), 0.9, 5000, 50).steps(0.0, 0.0) >= 1
    random = np.random.default_rng(0)
    low = random.normal(size=(3000, 5)) @ random.normal(size=(5, 800))
    one = np.ones((3000, 1))
    rows = Rows.of(low, executor=Threads(1)).attach(targets=one, weights=one)
    seen = Spectrum.of(rows)
    assert seen is not None
    assert seen.rank(0.0) > 0
    assert 1 <= seen.steps(0.0, 1e-6) <= 800
