"""Shared Hessians and their factors, against Hessians written down column by column."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from tests.gd.problems import binary, folds, rows_of

from mlopt.cluster import Threads
from mlopt.gd.columns import Layout, Model, layout
from mlopt.gd.curvature import Probe, distance, group_columns, shared_hessians
from mlopt.gd.passes import Sums
from mlopt.gd.preconditioner import factorise, kinds_of
from mlopt.gd.sample import Moments, draw, sample_size
from mlopt.gd.sampled_curvature import SampledCurvature
from mlopt.rows import Rows

X, y = binary(600)
C = folds(600)


def hessian(model: Model, w: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Second derivatives of a logistic model's mean loss, intercept last."""
    A = np.column_stack([X, np.ones(len(X))])
    p = 1 / (1 + np.exp(-A @ w))
    return np.asarray((A * (c * p * (1 - p) / c.sum())[:, None]).T @ A)


def shape_of(rows: Rows, plan: Layout) -> SampledCurvature:
    return SampledCurvature.of(rows, Sums.of(rows), plan.width)


def test_one_group_of_one_column_has_its_exact_hessian() -> None:
    model = Model("logistic", 0.1, rowset=1)
    rows, plan = rows_of(X, y, C), layout([model])
    w = np.random.default_rng(0).standard_normal((9, 1)) * 0.1
    found = shared_hessians(rows, None, w, plan, np.zeros(1, int))
    np.testing.assert_allclose(
        found.matrices[0], hessian(model, w[:, 0], C[:, 1]), rtol=1e-9
    )


def test_with_exact_hessians_the_preconditioner_solves_newtons_equation() -> None:
    models = [Model("logistic", l2, rowset=0) for l2 in (1e-3, 1e-1, 10.0)]
    rows, plan = rows_of(X, y, C), layout(models)
    w = np.zeros((9, 3))
    inverse = shape_of(rows, plan).current(w, plan, work=0.0)
    g = np.random.default_rng(1).standard_normal((9, 3))
    found = inverse(g)
    for column, model in enumerate(models):
        H = hessian(model, w[:, column], C[:, 0])
        H[np.arange(8), np.arange(8)] += model.l2
        np.testing.assert_allclose(H @ found[:, column], g[:, column], atol=1e-8)


def test_models_without_intercept_keep_it_out() -> None:
    plan = layout([Model("logistic", 0.1, fit_intercept=False)])
    rows = rows_of(X, y, C)
    inverse = shape_of(rows, plan).current(np.zeros((9, 1)), plan, work=0.0)
    g = np.zeros((9, 1))
    g[:8, 0] = 1.0
    assert inverse(g)[8, 0] == 0.0


@pytest.mark.parametrize("full", [True, False], ids=["factors", "diagonal"])
def test_preconditioners_are_symmetric_and_positive(full: bool) -> None:
    models = [Model("logistic", 1e-6), Model("squared_hinge", 1e-2, fit_intercept=False)]
    rows, plan = rows_of(X, y, C), layout(models)
    shape = replace(shape_of(rows, plan), full=full)
    inverse = shape.current(np.zeros((9, 2)), plan, work=0.0)
    columns = [inverse(np.outer(np.eye(9)[k], np.ones(2))) for k in range(9)]
    for j in range(2):
        H = np.stack([column[:, j] for column in columns])
        np.testing.assert_allclose(H, H.T, rtol=1e-9, atol=1e-12 * np.abs(H).max())
        assert np.linalg.eigvalsh(H).min() > 0


def test_a_singular_hessian_is_lifted_until_it_has_a_factor() -> None:
    twice = np.column_stack([X, X])
    rows, plan = rows_of(twice, y, C), layout([Model("logistic", 0.0)])
    hessians = shared_hessians(rows, None, np.zeros((17, 1)), plan, np.zeros(1, int))
    inverse = factorise(hessians, kinds_of(np.zeros(1, int), plan, 8), Threads(1))
    assert np.isfinite(inverse(np.ones((17, 1)))).all()


def test_folds_of_one_configuration_share_a_group_and_distant_margins_do_not() -> None:
    rows = rows_of(X, y, C)
    plan = layout([Model("logistic", 0.1, rowset=k) for k in range(3)] * 2)
    w = np.zeros((9, 6))
    far = [i for i in range(6) if plan.order[i] >= 3]
    w[0, far] = 20.0
    curvatures = Probe.of(rows, many=True).curvatures(w, plan, Sums.of(rows))
    group = group_columns(curvatures)
    assert len(set(group)) == 2
    assert set(group[far]).isdisjoint(set(np.delete(group, far)))


def test_the_squared_loss_has_one_hessian_wherever_the_weights_are() -> None:
    rows = rows_of(X, y, C)
    plan = layout([Model("squared", l2, rowset=k) for l2 in (0.1, 1.0) for k in range(3)])
    w = np.random.default_rng(0).standard_normal((9, 6))
    curvatures = Probe.of(rows, many=True).curvatures(w, plan, Sums.of(rows))
    assert (group_columns(curvatures) == 0).all()
    # Folds differ in size, a little.
    assert distance(curvatures, curvatures[:, :1]).max() < 0.05


def test_merged_penalties_still_precondition_well() -> None:
    models = [Model("logistic", l2) for l2 in np.geomspace(1e-4, 10, 30)]
    rows, plan = rows_of(X, y, C), layout(models)
    w = np.zeros((9, 30))
    group = np.zeros(30, int)
    hessians = shared_hessians(rows, None, w, plan, group)
    few = factorise(hessians, kinds_of(group, plan, 10), Threads(1))
    assert len(few.factors) == 10
    g = np.random.default_rng(1).standard_normal((9, 30))
    exact, near = factorise(hessians, kinds_of(group, plan, 30), Threads(1))(g), few(g)
    ratio = np.einsum("ij,ij->j", g, near) / np.einsum("ij,ij->j", g, exact)
    assert ratio.min() > 0.3
    assert ratio.max() < 3.0


def test_samples_take_the_same_share_of_every_block() -> None:
    rows = rows_of(X, y, C, block_rows=100)
    sample = draw(rows, 120)
    assert sample.n == 120
    weights = np.concatenate(sample.map(lambda block: block.extra["weights"]))
    assert weights.shape == (120, 3)
    again = draw(rows, 120)
    np.testing.assert_array_equal(sample.collect(), again.collect())


def test_a_sample_of_everything_is_everything() -> None:
    rows = rows_of(X, y, C)
    assert draw(rows, 600) is rows


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_moments_are_mean_squares_and_those_about_means(kind: str) -> None:
    found = Moments.of(rows_of(sp.csr_array(X) if kind == "sparse" else X, y, C))
    np.testing.assert_allclose(found.squares, (X**2).mean(axis=0))
    np.testing.assert_allclose(found.spread, X.var(axis=0))


def test_spreads_far_from_zero_keep_their_digits() -> None:
    far = Moments.of(rows_of(X + 1e8, y, C))
    np.testing.assert_allclose(far.spread, X.var(axis=0), rtol=1e-6)


@pytest.mark.parametrize("n", [10, 1000, 10**5, 10**7])
@pytest.mark.parametrize("d", [1, 50, 2000])
@pytest.mark.parametrize("width", [1, 320])
def test_samples_are_large_beside_the_columns_or_everything(
    n: int, d: int, width: int
) -> None:
    size = sample_size(n, d, width)
    assert size == n or 4 * d <= size <= n // 2
