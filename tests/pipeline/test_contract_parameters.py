"""Parameters, names, slices and pictures of a pipeline, as scikit-learn has them."""

from __future__ import annotations

from typing import Any

import pytest
import sklearn.pipeline
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils import estimator_html_repr, get_tags
from tests.pipeline.peers import both, numbers

import mlopt

STEPS = [("scale", StandardScaler()), ("pca", PCA(2)), ("clf", LogisticRegression())]


def test_parameters_are_those_of_scikit_learn_and_our_own_two() -> None:
    ours, theirs = both(STEPS)
    assert set(ours.get_params()) - set(theirs.get_params()) == {
        "memory_budget",
        "optimize",
    }
    assert set(theirs.get_params()) <= set(ours.get_params())


def test_parameters_of_steps_are_set_by_name() -> None:
    ours, _ = both(STEPS)
    assert ours.set_params(clf__C=0.5, scale__with_mean=False) is ours
    assert ours.named_steps["clf"].C == 0.5
    assert ours.named_steps.scale.with_mean is False
    ours.set_params(pca=MinMaxScaler(), memory_budget="1MiB")
    assert isinstance(ours["pca"], MinMaxScaler)
    assert ours.memory_budget == "1MiB"


def test_parameters_reach_pipelines_within_pipelines() -> None:
    inner = mlopt.Pipeline([("scale", StandardScaler())])
    outer = mlopt.Pipeline([("inner", inner), ("clf", Ridge())])
    outer.set_params(inner__scale__with_std=False)
    assert inner[0].with_std is False


@pytest.mark.parametrize("name", ["nothing", "clf__nothing", "nobody__C"])
def test_a_parameter_that_is_not_there_is_an_error(name: str) -> None:
    ours, theirs = both(STEPS)
    for pipeline in (theirs, ours):
        with pytest.raises(ValueError, match="Invalid parameter"):
            pipeline.set_params(**{name: 1})


def test_all_steps_are_set_before_one_of_them() -> None:
    ours, _ = both(STEPS)
    ours.set_params(steps=[("junk", Ridge())], junk__alpha=3.0)
    assert ours["junk"].alpha == 3.0


def test_a_clone_is_unfitted_and_has_the_same_settings() -> None:
    ours, _ = both(STEPS, memory_budget="5MiB", optimize={"without": ["keep_results"]})
    ours.fit(*numbers(60))
    copy = clone(ours)
    assert type(copy) is mlopt.Pipeline
    assert copy.memory_budget == "5MiB"
    assert copy.optimize == {"without": ["keep_results"]}
    assert not hasattr(copy, "plan_")
    assert not hasattr(copy["scale"], "mean_")
    assert copy["scale"] is not ours["scale"]


def test_a_slice_is_a_planned_pipeline_of_the_same_steps() -> None:
    ours, _ = both(STEPS, memory_budget="5MiB", verbose=True, memory="nowhere")
    part = ours[:-1]
    assert type(part) is mlopt.Pipeline
    assert part.steps == ours.steps[:-1]
    assert part["scale"] is ours["scale"]
    assert (part.memory_budget, part.optimize) == ("5MiB", True)
    assert (part.verbose, part.memory) == (True, "nowhere")
    with pytest.raises(ValueError, match="step of 1"):
        ours[::2]


def test_a_step_is_found_by_number_and_by_name() -> None:
    ours, _ = both(STEPS)
    assert ours[0] is ours["scale"] is ours.named_steps.scale
    assert ours[-1] is ours["clf"]
    assert len(ours) == 3
    with pytest.raises(IndexError):
        ours[3]
    with pytest.raises(KeyError):
        ours["nobody"]


def test_a_fitted_slice_transforms() -> None:
    ours, _ = both(STEPS)
    X, y = numbers(60)
    ours.fit(X, y)
    assert ours[:-1].transform(X).shape == (60, 2)


def test_steps_may_be_exchanged_by_hand() -> None:
    ours, _ = both(STEPS)
    X, y = numbers(60)
    ours.fit(X, y)
    ours.steps.pop(1)
    ours.fit(X, y)
    assert ours[-1].n_features_in_ == X.shape[1]


def test_tags_are_those_of_the_last_step() -> None:
    ours, theirs = both(STEPS)
    assert is_classifier(ours)
    assert is_regressor(mlopt.Pipeline([("r", Ridge())]))
    assert get_tags(ours).estimator_type == get_tags(theirs).estimator_type
    assert get_tags(ours).input_tags == get_tags(theirs).input_tags


@pytest.mark.parametrize(
    ("last", "method"),
    [
        (Ridge(), "predict_proba"),
        (LogisticRegression(), "transform"),
        (Ridge(), "inverse_transform"),
        (StandardScaler(), "predict"),
        (Ridge(), "fit_predict"),
        (Ridge(), "fit_transform"),
        (StandardScaler(), "score"),
    ],
)
def test_only_methods_of_the_last_step_are_there(last: Any, method: str) -> None:
    ours, theirs = both([("pca", PCA(2)), ("last", last)])
    assert not hasattr(theirs, method)
    assert not hasattr(ours, method)


def test_text_and_picture_show_the_steps() -> None:
    ours, _ = both(STEPS)
    assert "LogisticRegression()" in repr(ours)
    assert repr(ours).startswith("Pipeline(")
    for pipeline in (ours, ours.fit(*numbers(60))):
        html = estimator_html_repr(pipeline)
        assert "StandardScaler" in html
        assert "PCA" in html
        assert pipeline._repr_html_()


def test_make_pipeline_names_steps_as_scikit_learn_does() -> None:
    steps = (StandardScaler(), PCA(2), PCA(1), Ridge())
    ours = mlopt.make_pipeline(*steps, memory_budget="1MiB", verbose=True)
    theirs = sklearn.pipeline.make_pipeline(*steps)
    assert type(ours) is mlopt.Pipeline
    assert [name for name, _ in ours.steps] == [name for name, _ in theirs.steps]
    assert [step for _, step in ours.steps] == list(steps)
    assert (ours.memory_budget, ours.verbose) == ("1MiB", True)
    with pytest.raises(TypeError, match="nothing"):
        mlopt.make_pipeline(*steps, nothing=1)
