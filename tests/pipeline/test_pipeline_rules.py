"""Whatever rules run, the pipeline predicts the same."""

from __future__ import annotations

from functools import cache
from itertools import combinations
from typing import Any

import dask
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

import mlopt
from mlopt.pipeline.environment import environment
from mlopt.pipeline.planning.optimizer import RULES
from mlopt.pipeline.rules.choose_ways import TIE, TRIFLE

NAMES = list(RULES)
N = 6000
"""Rows enough for several blocks, and so for a profile."""


@pytest.fixture(autouse=True)
def _nothing_learnt_before() -> None:
    environment.clear()


def numbers() -> Any:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 6)) * np.arange(1, 7)
    y = (X @ rng.normal(size=6) + rng.normal(size=N) > 0).astype(int)
    steps = [
        ("scale", StandardScaler()),
        ("both", make_union(PCA(3, random_state=0), make_pipeline(StandardScaler()))),
        ("classify", LogisticRegression()),
    ]
    return X, y, steps


def mixed() -> Any:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({
        "a": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N)),
        "b": rng.exponential(size=N),
        "c": rng.choice(["x", "y", "z"], N),
    })  # fmt: skip
    y = frame["b"].to_numpy() + (frame["c"] == "x") + rng.normal(size=N) / 10
    prepare = make_column_transformer(
        (make_pipeline(SimpleImputer(), MinMaxScaler()), ["a", "b"]),
        (OneHotEncoder(), ["c"]),
    )
    return frame, y.to_numpy(), [("prepare", prepare), ("fit", Ridge())]


def words() -> Any:
    rng = np.random.default_rng(2)
    vocabulary = np.array([f"word{i}" for i in range(200)])
    documents = [" ".join(vocabulary[rng.integers(0, 200, 12)]) for _ in range(N)]
    y = np.array(["word7" in d or "word9" in d for d in documents]).astype(int)
    steps = [("terms", TfidfVectorizer()), ("classify", LogisticRegression(C=10))]
    return documents, y, steps


def sparse() -> Any:
    rng = np.random.default_rng(3)
    X = sp.random_array((N, 40), density=0.1, rng=rng, format="csr")
    y = X @ rng.normal(size=40)
    steps = [("scale", StandardScaler(with_mean=False)), ("fit", Ridge())]
    return X, y, steps


CASES = {case.__name__: case for case in (numbers, mixed, words, sparse)}


def predictions(case: Any, setting: Any) -> Any:
    X, y, steps = CASES[case]()
    fresh = [(name, clone(step)) for name, step in steps]
    return mlopt.Pipeline(fresh, optimize=setting).fit(X, y).predict(X)


@cache
def as_scikit_learn(case: str) -> Any:
    X, y, steps = CASES[case]()
    return make_pipeline(*(clone(step) for _, step in steps)).fit(X, y).predict(X)


def same(got: Any, expected: Any) -> Any:
    if expected.dtype.kind == "f":
        return np.allclose(got, expected, rtol=2e-3, atol=2e-3)
    return (got == expected).mean() > 0.999


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("without", [[], NAMES, *([name] for name in NAMES)], ids=str)
def test_predictions_are_scikit_learns(case: Any, without: Any) -> None:
    got = predictions(case, {"without": without})

    assert same(got, as_scikit_learn(case))


@pytest.mark.parametrize("pair", list(combinations(NAMES, 2))[::3], ids="+".join)
def test_pairs_of_rules_left_out_change_nothing(pair: Any) -> None:
    assert same(predictions("numbers", {"without": pair}), as_scikit_learn("numbers"))


def test_the_plan_names_steps_choices_and_what_is_kept() -> None:
    X, y, steps = numbers()
    plan = mlopt.Pipeline(steps).explain(X, y)
    found = dict(plan.walk())

    assert {"scale", "both", "classify"} <= set(found)
    assert found["classify"].rejected
    assert plan.predicted is not None
    assert plan.predicted > 0
    assert "rejected:" in plan.explain()


def test_no_way_that_is_rejected_is_shown_as_shorter_than_the_chosen_one() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.normal(size=60_000), "kind": rng.integers(0, 30, 60_000)}
    )
    frame["kind"] = frame["kind"].astype(str).astype("category")
    encode = make_column_transformer(
        (StandardScaler(), ["a"]), (OneHotEncoder(handle_unknown="ignore"), ["kind"])
    )
    model = make_pipeline(encode, LogisticRegression())
    with dask.config.set({"mlopt.plan": "always"}):
        plan = mlopt.optimize(model).explain(frame, frame["a"] > 0)
    found = [choice for _, choice in plan.walk() if choice.rejected]
    assert len(found) >= 3
    for choice in found:
        assert choice.predicted is not None
        shortest = min(o.seconds for o in choice.rejected if o.seconds is not None)
        assert choice.predicted <= TIE * shortest + TRIFLE


def test_after_the_run_the_plan_has_what_was_measured() -> None:
    X, y, steps = numbers()
    plan = mlopt.Pipeline(steps).fit(X, y).plan_

    assert plan.measured is not None
    assert plan.measured > 0
    assert all(choice.measured is not None for _, choice in plan.walk())
