"""`optimize`, `gather`, `and_then`, `export`: pipelines made of pipelines."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn.pipeline
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    StandardScaler,
)
from tests.pipeline.peers import SIZES, assert_same, numbers, people

import mlopt
from mlopt.errors import InputError

EXACT = LogisticRegression(tol=1e-8)


def table() -> ColumnTransformer:
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["age", "fare"]),
            ("words", OneHotEncoder(), ["sex", "port"]),
        ]
    )


def test_optimize_takes_the_steps_of_a_pipeline() -> None:
    plain = sklearn.pipeline.Pipeline(
        [("s", StandardScaler()), ("r", Ridge())], verbose=True
    )
    ours = mlopt.optimize(plain, memory_budget="1MiB")
    assert type(ours) is mlopt.Pipeline
    assert ours.steps == plain.steps
    assert ours.steps is not plain.steps
    assert (ours.verbose, ours.memory_budget) == (True, "1MiB")
    assert mlopt.optimize(ours) is ours


@SIZES
@pytest.mark.parametrize("kind", [table, lambda: make_union(SimpleImputer())])
def test_optimize_makes_one_step_of_anything_else(n: int, kind: Any) -> None:
    X, _ = people(n)
    X = X if kind is table else X[["age", "fare"]]
    step = kind()
    ours = mlopt.optimize(step)
    assert [name for name, _ in ours.steps] == [type(step).__name__.lower()]
    expected = clone(step).fit_transform(X)
    assert_same(ours.fit(X).transform(X), expected)
    assert_same(step.transform(X), expected)


@pytest.mark.parametrize("value", [5, None, "text", Ridge])
def test_optimize_needs_an_estimator(value: Any) -> None:
    with pytest.raises(InputError, match="must be given an estimator"):
        mlopt.optimize(value)


@SIZES
def test_gather_is_a_union_of_parts_without_names(n: int) -> None:
    X, y = numbers(n)
    parts = [PCA(2), make_pipeline(StandardScaler(), PCA(1)), StandardScaler()]
    expected = make_union(*map(clone, parts)).fit_transform(X)
    ours = mlopt.gather(*map(clone, parts))
    assert isinstance(ours, FeatureUnion)
    assert [name for name, _ in ours.transformer_list] == [
        "pca", "pipeline", "standardscaler",
    ]  # fmt: skip
    assert_same(ours.fit_transform(X), expected)
    assert_same(clone(ours).fit(X).transform(X), expected)
    pipeline = mlopt.Pipeline([("all", mlopt.gather(*parts)), ("r", Ridge())]).fit(X, y)
    assert_same(pipeline[:-1].transform(X), expected)


def test_gather_does_once_what_its_parts_have_in_common() -> None:
    X, _ = numbers(9000)
    parts = [mlopt.make_pipeline(StandardScaler(), PCA(k)) for k in (1, 2)]
    plan = mlopt.optimize(mlopt.gather(*parts)).explain(X)
    assert sum("StandardScaler" in choice.operator for choice in plan.choices) == 1


def test_gather_weighs_its_parts() -> None:
    X, _ = numbers(60)
    ours = mlopt.gather(StandardScaler(), "passthrough", weights=[2.0, 3.0])
    found = ours.fit_transform(X)
    np.testing.assert_allclose(found[:, :6], 2 * StandardScaler().fit_transform(X))
    np.testing.assert_allclose(found[:, 6:], 3 * X)
    with pytest.raises(InputError, match="one number for each of 2 parts"):
        mlopt.gather(PCA(), PCA(), weights=[1.0])
    with pytest.raises(InputError, match="at least one part"):
        mlopt.gather()


@SIZES
def test_and_then_makes_branches_and_leaves_the_stem(n: int) -> None:
    X, y = numbers(n)
    stem = mlopt.Pipeline([("scale", StandardScaler())], memory_budget="64MiB")
    left = stem.and_then(EXACT, X, y)
    right = stem.and_then(("last", Ridge()))
    assert [name for name, _ in left.steps] == ["scale", "logisticregression"]
    assert [name for name, _ in right.steps] == ["scale", "last"]
    assert len(stem) == 1
    assert left.memory_budget == "64MiB"
    assert not hasattr(stem[0], "mean_")
    assert not hasattr(right[0], "mean_")
    assert left.predict(X).shape == (n,)
    right.fit(X[:50], y[:50])
    np.testing.assert_allclose(left[0].mean_, X.mean(axis=0))
    np.testing.assert_allclose(right[0].mean_, X[:50].mean(axis=0))


def test_and_then_finds_a_name_that_is_free() -> None:
    stem = mlopt.make_pipeline(PCA(3)).and_then(PCA(2)).and_then(PCA(1))
    assert [name for name, _ in stem.steps] == ["pca", "pca-2", "pca-3"]


def test_and_then_keeps_what_the_stem_has_learnt() -> None:
    X, _ = numbers(60)
    stem = mlopt.make_pipeline(StandardScaler()).fit(X)
    longer = stem.and_then(MinMaxScaler())
    np.testing.assert_array_equal(longer[0].mean_, stem[0].mean_)
    assert longer[0] is not stem[0]


BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("mlopt", "dask", "distributed"):
            raise ImportError(name)
sys.meta_path.insert(0, Blocked())
import joblib
model, X, expected = joblib.load(sys.argv[1])
assert (model.predict(X) == expected).all()
print(type(model).__module__, type(model[0]).__module__)
"""


@pytest.mark.slow
@SIZES
def test_an_exported_pipeline_needs_no_mlopt(n: int, tmp_path: Path) -> None:
    X, y = people(n)
    inner = mlopt.Pipeline([
        ("columns", table()),
        ("both", mlopt.gather(StandardScaler(with_mean=False), "passthrough")),
    ])  # fmt: skip
    ours = mlopt.Pipeline([("inner", inner), ("clf", EXACT)]).fit(X, y)
    plain = ours.export()
    assert type(plain) is type(plain[0]) is sklearn.pipeline.Pipeline
    assert type(plain[0]["both"]) is FeatureUnion
    joblib.dump((plain, X, ours.predict(X)), tmp_path / "model")
    command = [sys.executable, "-W", "error", "-c", BLOCKED, str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["sklearn.pipeline", "sklearn.pipeline"]


def test_an_export_is_a_copy() -> None:
    X, y = numbers(60)
    ours = mlopt.make_pipeline(StandardScaler(), Ridge()).fit(X, y)
    plain = ours.export()
    before = plain.predict(X)
    ours.fit(2 * X, -y)
    np.testing.assert_array_equal(plain.predict(X), before)


def test_a_union_is_put_back_though_few_rows_have_fewer_columns() -> None:
    rng, n = np.random.default_rng(0), 4500
    rows, y = pd.DataFrame({"word": rng.choice(list("abcd"), n)}), rng.normal(size=n)
    rows.loc[n // 2, "word"] = "z"  # a column that `get_dummies` makes of this row alone

    def steps() -> list[tuple[str, Any]]:
        dummies = FunctionTransformer(pd.get_dummies)
        both = make_union(VarianceThreshold(), StandardScaler())
        return [("dummies", dummies), ("both", both), ("ridge", Ridge())]

    ours = mlopt.Pipeline(steps()).fit(dd.from_pandas(rows, npartitions=1), y)
    theirs = sklearn.pipeline.Pipeline(steps()).fit(rows, y)
    np.testing.assert_allclose(ours["ridge"].coef_, theirs["ridge"].coef_, atol=1e-8)
    assert list(ours["both"].feature_names_in_) == list(theirs["both"].feature_names_in_)
