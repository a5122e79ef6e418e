"""State reuse: what was made in one pipeline is not made again in another (KeystoneML)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.ensemble import RandomForestClassifier, StackingClassifier, VotingClassifier
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import mlopt
from mlopt.pipeline.environment import Environment, environment

N = 6000


@pytest.fixture(autouse=True)
def _nothing_made_before() -> Iterator[None]:
    environment.clear()
    with dask.config.set({"mlopt.reuse-models": "1GiB"}):
        yield
    environment.clear()


def data() -> tuple[NDArray[Any], NDArray[Any]]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 5))
    return X, (X[:, 0] + X[:, 1] + rng.normal(size=N) > 0).astype(int)


def fitted(*steps: Any, X: NDArray[Any] | None = None, **settings: Any) -> Any:
    found, y = data()
    names = [(f"s{number}", step) for number, step in enumerate(steps)]
    return mlopt.Pipeline(names, **settings).fit(found if X is None else X, y)


def features(seed: int | None = 0) -> RBFSampler:
    return RBFSampler(n_components=8, random_state=seed)


def test_an_equal_prefix_never_fits_twice() -> None:
    first = fitted(features(), LogisticRegression())
    before = environment.hits
    second = fitted(features(), LogisticRegression())
    assert environment.hits == before + 2
    X, _ = data()
    assert (first.predict_proba(X) == second.predict_proba(X)).all()


def test_a_longer_pipeline_finds_the_models_of_its_prefix() -> None:
    fitted(features(), LogisticRegression())
    before = environment.hits
    plan = fitted(features(), features(1), LogisticRegression()).plan_
    assert environment.hits == before + 1
    assert plan.choices[0].chosen == "learnt before: not fitted again"


def test_another_branch_leaves_the_first_as_it_is() -> None:
    fitted(make_union(features()), Ridge())
    before = environment.hits
    fitted(make_union(features(), features(1)), Ridge())
    assert environment.hits == before + 1


def test_other_parameters_downstream_leave_what_is_upstream() -> None:
    fitted(features(), LogisticRegression(C=1.0))
    before = environment.hits
    fitted(features(), LogisticRegression(C=2.0))
    assert environment.hits == before + 1


def test_what_is_random_without_a_seed_is_never_reused() -> None:
    before = environment.hits
    one, two = (fitted(features(None), Ridge()) for _ in range(2))
    assert environment.hits == before
    assert (one[0].random_offset_ != two[0].random_offset_).any()


def _noisy(X: NDArray[Any]) -> NDArray[Any]:
    return X + np.random.default_rng().normal(size=X.shape)


def test_what_follows_a_random_function_is_never_reused() -> None:
    before = environment.hits
    one, two = (fitted(FunctionTransformer(_noisy), Ridge()) for _ in range(2))
    assert environment.hits == before
    assert (one[-1].coef_ != two[-1].coef_).any()


def test_data_changed_in_place_are_other_data() -> None:
    X, y = data()
    pipeline = mlopt.Pipeline([("features", features()), ("ridge", Ridge())])
    first = pipeline.fit(X, y)[-1].coef_.copy()
    X[: N // 2] *= 2.0
    before = environment.hits
    assert (pipeline.fit(X, y)[-1].coef_ != first).any()
    assert environment.hits == before


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_kept_rows_are_reused_where_that_is_asked_for(where: str, tmp_path: Path) -> None:
    settings = {"mlopt.reuse-rows": "1GiB"} if where == "memory" else {}
    if where == "disk":
        settings = {"mlopt.disk": str(tmp_path)}
    X, _ = data()
    expected = fitted(
        StandardScaler(), features(), LogisticRegression(C=2.0)
    ).predict_proba(X)
    environment.clear()
    with dask.config.set(settings):
        fitted(StandardScaler(), features(), LogisticRegression())
        if where == "disk":
            environment.clear()  # as in a new process
        again = fitted(StandardScaler(), features(), LogisticRegression(C=2.0))
    assert "there from before" in again.plan_.notes[-1]
    # Ways are chosen by time, and differ in the last digits.
    np.testing.assert_allclose(again.predict_proba(X), expected, rtol=1e-9)


@pytest.mark.parametrize("n", [500, N])
def test_rows_that_are_handed_out_are_the_users_own(n: int) -> None:
    X = data()[0][:n]
    expected = StandardScaler().fit_transform(X)
    with dask.config.set({"mlopt.reuse-rows": "1GiB"}):
        for _ in range(3):
            found = mlopt.make_pipeline(StandardScaler()).fit_transform(X)
            np.testing.assert_allclose(found, expected, atol=1e-12)
            found *= 0.0
    before = X.copy()
    with dask.config.set({"mlopt.reuse-rows": "1GiB"}):
        mlopt.make_pipeline(FunctionTransformer(), StandardScaler()).fit(X)
        X[:] = 7.0
        again = mlopt.make_pipeline(FunctionTransformer(), StandardScaler())
        np.testing.assert_allclose(again.fit_transform(before), expected, atol=1e-12)


def test_a_later_process_finds_models_on_disk(tmp_path: Path) -> None:
    with dask.config.set({"mlopt.disk": str(tmp_path)}):
        fitted(features(), Ridge())
        environment.clear()
        before = environment.hits
        fitted(features(), Ridge())
    assert environment.hits == before + 2


def test_what_another_version_left_on_disk_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dask.config.set({"mlopt.disk": str(tmp_path), "mlopt.reuse-models": 0}):
        environment.put("a", Ridge())
        environment.put_rows("b", [np.ones(3)])
        assert "a" in environment
        assert environment.has_rows("b")
        monkeypatch.setattr("mlopt.pipeline.environment._version", lambda: "999.0+local")
        assert "a" not in environment
        assert not environment.has_rows("b")
        environment.put("a", Ridge())
        assert "a" in environment


def test_the_folder_of_the_disk_may_be_below_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with dask.config.set({"mlopt.disk": "~/kept"}):
        environment.put("a", Ridge())
    assert (tmp_path / "kept").is_dir()


def test_no_rows_stay_by_default() -> None:
    fitted(features(), Ridge())
    assert not environment.takes_rows
    assert (
        "there from before" not in fitted(features(), LogisticRegression()).plan_.notes[-1]
    )


def test_models_beyond_the_budget_are_forgotten_oldest_first() -> None:
    here = Environment()
    with dask.config.set({"mlopt.reuse-models": 200}):
        for name in "abc":
            here.put(name, np.zeros(10))
        assert ("a" in here, "c" in here) == (False, True)
        here.put("large", np.zeros(1000))
        assert "large" not in here


def test_nothing_is_remembered_unless_asked_for() -> None:
    with dask.config.set({"mlopt.reuse-models": 0}):
        fitted(features(), Ridge())
        assert not len(environment)
    before = environment.hits
    fitted(features(), Ridge())
    with dask.config.set({"mlopt.reuse-models": 0}):
        fitted(features(), Ridge())
    assert environment.hits == before


class Scaled(TransformerMixin, BaseEstimator):
    """A step of a user: what it does depends on a class attribute."""

    by = 1.0

    def fit(self, X: Any, y: Any = None) -> Scaled:
        self.fitted_ = True
        return self

    def transform(self, X: Any) -> Any:
        return X * self.by


def _voting() -> Any:
    return VotingClassifier([("rf", RandomForestClassifier(3, max_depth=2))], voting="soft")


def _stacking() -> Any:
    return StackingClassifier([("rf", RandomForestClassifier(2, max_depth=2))], cv=2)


def _moving() -> Any:
    return RBFSampler(n_components=2, random_state=GENERATOR)


def _drawing() -> Any:
    return FunctionTransformer(_noisy)


GENERATOR = np.random.RandomState(0)


@pytest.mark.parametrize("make", [_voting, _stacking, _moving, _drawing])
def test_a_scaler_is_not_that_of_another_forest(make: Any) -> None:
    X, y = data()
    means = []
    for _ in range(2):
        found = mlopt.make_pipeline(make(), StandardScaler(), Ridge()).fit(X, y)
        means.append(found[1].mean_)
        if make is not _drawing:
            seen = found[0].transform(X).mean(axis=0)
            np.testing.assert_allclose(found[1].mean_, seen, atol=0.2)
    assert (means[0] != means[1]).any()


def test_a_class_attribute_is_part_of_what_is_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, _ = data()
    mlopt.register(Scaled, row_wise=True, stateless=True)
    before = environment.hits
    one = mlopt.make_pipeline(Scaled(), StandardScaler()).fit(X)
    same = mlopt.make_pipeline(Scaled(), StandardScaler()).fit(X)
    assert environment.hits > before
    np.testing.assert_array_equal(one[1].mean_, same[1].mean_)
    monkeypatch.setattr(Scaled, "by", 15.0)
    other = mlopt.make_pipeline(Scaled(), StandardScaler()).fit(X)
    np.testing.assert_allclose(other[1].mean_, 15.0 * one[1].mean_)


FACTOR = 1.0


def _by_a_global(X: Any) -> Any:
    return X * FACTOR


@pytest.mark.parametrize("declare", [False, True])
def test_a_global_is_part_of_what_is_remembered(
    declare: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, _ = data()
    if declare:
        mlopt.register(_by_a_global, row_wise=True)

    def mean() -> Any:
        steps = FunctionTransformer(_by_a_global), StandardScaler()
        return mlopt.make_pipeline(*steps).fit(X)[1].mean_

    once = mean()
    monkeypatch.setitem(globals(), "FACTOR", 15.0)
    np.testing.assert_allclose(mean(), 15.0 * once)


def _scaler_by(factor: float) -> Any:
    class Scaler(Scaled):
        by = factor

    return Scaler()


def test_two_classes_of_one_factory_are_two_branches() -> None:
    X, _ = data()
    union = make_union(_scaler_by(1.0), _scaler_by(2.0))
    found = mlopt.make_pipeline(union, StandardScaler()).fit(X)
    mean = X.mean(axis=0)
    np.testing.assert_allclose(found[1].mean_, [*mean, *(2 * mean)])
