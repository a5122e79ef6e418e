"""PCA finds what scikit-learn's finds, with every solver, on every kind of input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import PCA as Reference
from sklearn.utils.extmath import svd_flip

from mlopt.errors import InputError
from mlopt.pipeline.library.pca import PCA
from mlopt.pipeline.library.pca_fit import WAYS
from mlopt.rows import Rows, rows

Array = NDArray[Any]
SOLVERS = ["auto", "full", "covariance_eigh", "tsqr", "randomized", "arpack"]


def points(n: int = 600, d: int = 12, *, far: float = 50.0, decay: float = 0.7) -> Array:
    """Correlated columns of decaying variance, far from zero."""
    rng = np.random.default_rng(0)
    turned = np.linalg.qr(rng.normal(size=(d, d)))[0]
    scaled = rng.normal(size=(n, d)) * decay ** np.arange(d)
    return np.asarray(scaled @ turned + far)


def counts(n: int = 700, d: int = 40) -> sparse.csr_array:
    rng = np.random.default_rng(1)
    dense = rng.poisson(0.1 + 2.0 * 0.6 ** np.arange(d), size=(n, d)).astype(float)
    return sparse.csr_array(dense)


def assert_same(ours: PCA, theirs: Any, *, rtol: float = 1e-7) -> None:
    """The same fit; components up to the rule for signs, which older versions lack."""
    expected = svd_flip(None, theirs.components_.copy(), u_based_decision=False)[1]
    np.testing.assert_allclose(ours.components_, expected, atol=rtol)
    for name in ("explained_variance_", "explained_variance_ratio_", "singular_values_"):
        found, wanted = getattr(ours, name), getattr(theirs, name)
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * wanted.max())
    np.testing.assert_allclose(ours.mean_, np.ravel(theirs.mean_), rtol=rtol, atol=rtol)
    assert ours.n_components_ == theirs.n_components_
    assert ours.noise_variance_ == pytest.approx(theirs.noise_variance_, rel=1e-4)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("shape", [(600, 12), (30, 80), (40, 40)])
def test_every_solver_finds_scikit_learns_components(
    solver: str, shape: tuple[int, int]
) -> None:
    X = points(*shape)
    ours = PCA(5, svd_solver=solver, iterated_power=12, random_state=0).fit(X)
    assert_same(ours, Reference(5, svd_solver="full").fit(X))


@pytest.mark.parametrize("solver", SOLVERS)
def test_float32_stays_float32(solver: str) -> None:
    X = points(far=5.0).astype(np.float32)
    ours = PCA(4, svd_solver=solver, random_state=0).fit(X)
    assert_same(ours, Reference(4, svd_solver="full").fit(X.astype(float)), rtol=1e-4)
    assert ours.components_.dtype == ours.mean_.dtype == np.float32
    assert ours.transform(X).dtype == np.float32
    assert ours.inverse_transform(ours.transform(X)).dtype == np.float32


@pytest.mark.parametrize("solver", [one for one in SOLVERS if one != "full"])
@pytest.mark.parametrize("layout", [sparse.csr_array, sparse.csc_matrix])
def test_sparse_rows_give_what_dense_ones_give(solver: str, layout: Any) -> None:
    X = counts()
    ours = PCA(3, svd_solver=solver, iterated_power=20, random_state=0).fit(layout(X))
    theirs = Reference(3, svd_solver="full").fit(X.toarray())
    assert_same(ours, theirs, rtol=1e-6)
    np.testing.assert_allclose(
        ours.transform(layout(X)), ours.transform(X.toarray()), atol=1e-10
    )


@pytest.mark.parametrize("solver", ["covariance_eigh", "randomized", "arpack", "auto"])
def test_sparse_rows_are_never_made_dense(
    solver: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = sparse.random_array(
        (3000, 400), density=0.002, format="csr", rng=np.random.default_rng(0)
    )
    small = sparse.csr_array.toarray

    def refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
        assert self.shape != X.shape
        assert self.shape[0] <= 400
        return small(self, *args, **kwargs)

    monkeypatch.setattr(sparse.csr_array, "toarray", refuse)
    model = PCA(3, svd_solver=solver, random_state=0).fit(X)
    assert model.transform(X).shape == (3000, 3)


@pytest.mark.parametrize("solver", ["auto", "full", "covariance_eigh", "tsqr"])
@pytest.mark.parametrize("shape", [(100, 12), (10, 30)])
def test_none_keeps_all(solver: str, shape: tuple[int, int]) -> None:
    X = points(*shape, far=0.0)
    ours = PCA(svd_solver=solver).fit(X)
    theirs = Reference().fit(X)
    assert ours.components_.shape == theirs.components_.shape
    np.testing.assert_allclose(
        ours.explained_variance_, theirs.explained_variance_, atol=1e-9
    )
    k = ours.n_components_
    np.testing.assert_allclose(ours.components_ @ ours.components_.T, np.eye(k), atol=1e-9)
    np.testing.assert_allclose(ours.inverse_transform(ours.transform(X)), X, atol=1e-9)
    assert ours.noise_variance_ == 0.0


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("solver", ["auto", "full", "covariance_eigh", "tsqr"])
def test_a_share_of_the_variance_keeps_as_many_as_it_takes(
    share: float, solver: str
) -> None:
    X = points()
    assert_same(PCA(share, svd_solver=solver).fit(X), Reference(share).fit(X))


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_whitened_coordinates_have_unit_variance_and_go_back(layout: Any) -> None:
    X = layout(points(far=1.0))
    model = PCA(4, whiten=True).fit(X)
    Z = model.transform(X)
    np.testing.assert_allclose(np.cov(Z.T), np.eye(4), atol=1e-9)
    plain = PCA(4).fit(X)
    back = plain.inverse_transform(plain.transform(X))
    np.testing.assert_allclose(model.inverse_transform(Z), back, atol=1e-9)


def test_fit_transform_is_fit_then_transform() -> None:
    X = points()
    Z = PCA(3).fit_transform(X)
    np.testing.assert_array_equal(Z, PCA(3).fit(X).transform(X))
    reference = Reference(3, svd_solver="full").fit(X)
    np.testing.assert_allclose(Z, reference.transform(X), atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_data_far_from_zero_lose_no_digits(solver: str) -> None:
    near = points(4000, far=0.0)
    far = PCA(3, svd_solver=solver, random_state=0).fit(near + 1e6)
    expected = PCA(3, svd_solver="full").fit(near)
    np.testing.assert_allclose(far.components_, expected.components_, atol=1e-7)


def test_nor_does_a_column_of_sparse_rows_that_alone_is_far() -> None:
    rng = np.random.default_rng(0)
    S = sparse.random(4000, 40, density=0.05, format="csr", random_state=0)
    t = rng.normal(size=(4000, 1))
    far, near = (sparse.csr_array(sparse.hstack([S, c])) for c in (1.7e9 + t, t))
    found = PCA(2, svd_solver="covariance_eigh").fit(far)
    expected = PCA(2, svd_solver="full").fit(near.toarray())
    np.testing.assert_allclose(
        found.explained_variance_, expected.explained_variance_, rtol=1e-6
    )


def test_flat_spectra_of_wide_sparse_data_are_found_exactly() -> None:
    X = sparse.random_array(
        (300, 1200), density=0.01, format="csr", rng=np.random.default_rng(0)
    )
    expected = Reference(5, svd_solver="full").fit(X.toarray())
    assert_same(PCA(5, svd_solver="arpack", random_state=1).fit(X), expected, rtol=1e-6)
    assert PCA(5).explain(X).choices[0].chosen != "randomized"


def test_tsqr_resolves_variances_that_a_covariance_matrix_loses() -> None:
    X = points(far=0.0, decay=0.01)
    expected = 0.01 ** np.arange(7) * np.sqrt(600)
    s = PCA(svd_solver="tsqr").fit(X).singular_values_[:7]
    np.testing.assert_allclose(s, expected, rtol=0.2)
    notes = PCA(svd_solver="covariance_eigh").fit(X).plan_.choices[0].notes
    assert any("below the rounding error" in note for note in notes)


def test_axes_beside_a_large_column_are_of_an_svd_where_scikit_learn_has_one() -> None:
    X = points(200, 40)
    X[:, 0] *= 1e8
    ours = PCA(36, svd_solver="covariance_eigh").fit(X)
    theirs = Reference(36, svd_solver="full").fit(X)
    assert np.abs(np.sum(ours.components_ * theirs.components_, axis=1)).min() > 1 - 1e-9
    np.testing.assert_allclose(ours.singular_values_, theirs.singular_values_)
    assert "read again" in ours.plan_.explain()


def test_the_randomized_solver_depends_on_its_seed_alone() -> None:
    X = points()
    fits = [PCA(3, svd_solver="randomized", random_state=seed).fit(X) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(fits[0].components_, fits[1].components_)
    assert not np.array_equal(fits[0].components_, fits[2].components_)


@pytest.mark.parametrize("solver", SOLVERS)
def test_constant_data_have_no_variance(solver: str) -> None:
    model = PCA(2, svd_solver=solver, random_state=0).fit(np.full((10, 3), 7.0))
    np.testing.assert_allclose(model.explained_variance_, 0.0, atol=1e-20)
    assert np.isfinite(model.explained_variance_ratio_).all()
    np.testing.assert_allclose(model.transform(np.full((2, 3), 7.0)), 0.0, atol=1e-12)


@pytest.mark.parametrize("value", [3.5, 0.1, 1e7 / 3])
def test_constant_columns_turn_nothing(value: float) -> None:
    da = pytest.importorskip("dask.array")
    X = da.full((1100, 2), value, chunks=(550, 2))
    model = PCA(2, svd_solver="tsqr").fit(X)
    np.testing.assert_array_equal(model.components_, np.eye(2))
    np.testing.assert_array_equal(model.explained_variance_, 0.0)
    np.testing.assert_array_equal(model.mean_, value)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("known", [True, False])
def test_dask_in_dask_out(solver: str, known: bool) -> None:
    da = pytest.importorskip("dask.array")
    X = points()
    lazy = da.from_array(X, chunks=(170, 5))
    lazy = lazy if known else lazy[lazy[:, 0] > -np.inf]
    model = PCA(3, svd_solver=solver, random_state=0).fit(lazy)
    assert_same(model, Reference(3, svd_solver="full").fit(X), rtol=1e-6)
    Z = model.transform(lazy)
    assert isinstance(Z, da.Array)
    np.testing.assert_allclose(Z.compute(), model.transform(X))
    back = model.inverse_transform(Z)
    assert isinstance(back, da.Array)
    np.testing.assert_allclose(back.compute(), model.inverse_transform(Z.compute()))


def test_data_frames_have_names() -> None:
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(points(), columns=[f"x{i}" for i in range(12)])
    lazy = dd.from_pandas(frame, npartitions=3)
    for table in (frame, lazy):
        model = PCA(2).fit(table)
        assert list(model.feature_names_in_) == list(frame.columns)
        assert list(model.get_feature_names_out()) == ["pca0", "pca1"]
        assert_same(model, Reference(2, svd_solver="full").fit(frame))
    np.testing.assert_allclose(model.transform(lazy).compute(), model.transform(frame))
    named = PCA(2).set_output(transform="pandas").fit_transform(frame)
    assert list(named.columns) == ["pca0", "pca1"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(frame[frame.columns[::-1]])


def test_the_plan_says_what_was_rejected_and_what_it_took() -> None:
    X = points()
    choice = PCA(3).explain(X).choices[0]
    rejected = {one.name: one for one in choice.rejected}
    assert {choice.chosen, *rejected} == set(WAYS.values())
    assert all(one.seconds is not None for one in rejected.values())
    assert "approximate" in rejected["randomized"].reason
    model = PCA(3).fit(X)
    assert model.plan_.choices[0].chosen == choice.chosen
    assert model.plan_.measured is not None


def test_explaining_leaves_the_estimator_as_it_was() -> None:
    model = PCA(3)
    model.explain(points())
    assert vars(model) == vars(PCA(3))


def test_a_gathering_solver_reads_no_more_than_fits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows, "memory_limit", lambda: 1000)
    with pytest.raises(InputError, match="All rows need"):
        Rows.of(points()).collect()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 13}, r"13 must be between 1 and min\(n_samples, n_features\)=12"),
        ({"n_components": 1.0}, "The 'n_components' parameter of PCA must be .*Got 1.0"),
        ({"svd_solver": "magic"}, "The 'svd_solver' parameter of PCA must be .*'tsqr'"),
        ({"svd_solver": "arpack", "n_components": 12}, "`n_components` must be below"),
        ({"svd_solver": "randomized", "n_components": 0.5}, "must be an integer"),
        ({"iterated_power": -1}, "The 'iterated_power' parameter of PCA must be"),
        ({"n_oversamples": 0}, "The 'n_oversamples' parameter of PCA must be"),
    ],
)
def test_wrong_parameters_say_what_to_do(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PCA(**parameters).fit(points())


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[1.0, np.nan], [0.0, 1.0]]), "column number 1 has NaN.*Impute it"),
        (np.array([[1.0, np.inf], [0.0, 1.0]]), "column number 1 has inf"),
        (np.ones((1, 3)), "at least 2 rows.*n_samples = 1"),
    ],
)
def test_wrong_data_say_what_to_do(X: Array, message: str) -> None:
    with pytest.raises(InputError, match=message):
        PCA(1).fit(X)


def test_sparse_rows_are_not_gathered_for_a_dense_svd() -> None:
    with pytest.raises(InputError, match="X is sparse, and it would make it dense"):
        PCA(2, svd_solver="full").fit(counts())


def test_coordinates_of_another_width_are_refused() -> None:
    model = PCA(2).fit(points())
    with pytest.raises(InputError, match="one column for each of the 2 components"):
        model.inverse_transform(np.ones((3, 4)))


@pytest.mark.filterwarnings("error")
def test_likelihoods_of_dask_rows_are_lazy() -> None:
    da = pytest.importorskip("dask.array")
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(90, 4)), columns=[*"abcd"])
    model = PCA(2).fit(frame)
    expected = model.score_samples(frame)
    empty = dd.concat([dd.from_pandas(frame, npartitions=3), dd.from_pandas(frame[:0])])
    nameless = PCA(2).fit(frame.to_numpy())
    blocks = da.from_array(frame.to_numpy(), chunks=(40, 2))
    for fitted, X in ((model, empty), (nameless, blocks)):
        found = fitted.score_samples(X)
        assert isinstance(found, da.Array)
        np.testing.assert_allclose(found.compute(), expected)
        assert fitted.score(X) == pytest.approx(expected.mean())
