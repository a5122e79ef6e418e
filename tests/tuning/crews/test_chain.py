"""Pipelines as chains: what is one step, what is equal, who gets which parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from mlopt.tuning.crews.chain import assemble, cut, params_of_final, step_token


def nested() -> Pipeline:
    inner = Pipeline([("scale", StandardScaler()), ("skip", None), ("pca", PCA(2))])
    model = Pipeline([("range", MinMaxScaler()), ("clf", LogisticRegression())])
    return Pipeline([("pre", inner), ("none", "passthrough"), ("model", model)])


def test_nested_pipelines_are_one_chain() -> None:
    parts = cut(nested())

    assert parts.names == ("pre__scale", "pre__pca", "model__range")
    assert parts.name == "model__clf"
    assert isinstance(parts.final, LogisticRegression)


@pytest.mark.parametrize("last", [None, "passthrough"])
def test_a_pipeline_without_a_last_step_is_left_whole(last: Any) -> None:
    pipeline = Pipeline([("scale", StandardScaler()), ("end", last)])
    assert cut(pipeline).final is pipeline
    assert cut(pipeline).steps == ()


def test_a_chain_that_begins_alike_has_the_same_first_tokens() -> None:
    few, many = (
        make_pipeline(StandardScaler(), PCA(k, random_state=0), LogisticRegression())
        for k in (2, 3)
    )
    assert cut(few).tokens[:2] == cut(many).tokens[:2]
    assert cut(few).key != cut(many).key


def test_the_final_estimator_does_not_count() -> None:
    one, other = (make_pipeline(MinMaxScaler(), LogisticRegression(C=C)) for C in (1, 2))
    assert cut(one).key == cut(other).key


def test_what_is_random_without_a_seed_is_never_equal() -> None:
    assert step_token(PCA(2)) != step_token(PCA(2))
    assert step_token(PCA(2, random_state=0)) == step_token(PCA(2, random_state=0))
    inside = make_column_transformer((PCA(2), [0, 1]))
    assert step_token(inside) != step_token(clone(inside))


def test_output_containers_and_fitted_content_count() -> None:
    framed = StandardScaler().set_output(transform="pandas")
    assert step_token(framed) != step_token(StandardScaler())
    X = np.arange(8.0).reshape(4, 2)
    one, other = (FrozenEstimator(StandardScaler().fit(k * X)) for k in (1, 2))
    assert step_token(one) != step_token(other)
    assert step_token(one) == step_token(clone(one))


def test_equal_steps_with_fit_parameters_of_their_own_are_not_shared() -> None:
    one, other = (
        Pipeline([(name, StandardScaler()), ("clf", LogisticRegression())]) for name in "ab"
    )
    assert cut(one).key == cut(other).key
    assert cut(one, ["a__sample_weight"]).key != cut(other, ["a__sample_weight"]).key


def test_fit_parameters_go_where_their_names_say() -> None:
    given = {"pre__scale__sample_weight": 1, "model__clf__sample_weight": 2, "other": 3}
    assert params_of_final(cut(nested()).path, given) == {"sample_weight": 2, "other": 3}
    assert params_of_final(cut(LogisticRegression()).path, given) == given


def test_fitted_steps_return_to_their_places() -> None:
    pipeline = nested()
    fitted = {"pre__scale": StandardScaler().fit([[0.0], [1.0]]), "model__clf": "fitted"}
    whole = assemble(pipeline, fitted)

    assert whole["pre"]["scale"] is fitted["pre__scale"]
    assert whole["model"]["clf"] == "fitted"
    assert whole["none"] == "passthrough"
    assert pipeline["pre"]["scale"] is not fitted["pre__scale"]
