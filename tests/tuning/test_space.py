"""What users write as a space, and what samplers and studies see of it."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, ParameterGrid
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

import mlopt
from mlopt.errors import InputError
from mlopt.tuning.space.grid import at, count, cut, grid
from mlopt.tuning.space.parameters import parameter
from mlopt.tuning.space.space import Space


def pipeline() -> Pipeline:
    return Pipeline(
        [("scale", StandardScaler()), ("pca", PCA()), ("clf", LogisticRegression())]
    )


def lowest(name: str, distribution: BaseDistribution) -> Any:
    """A draw that always takes the first value."""
    del name
    return at(distribution, 0.0)


@pytest.mark.parametrize(
    ("given_", "seen"),
    [
        (IntDistribution(1, 9), IntDistribution(1, 9)),
        (stats.uniform(1, 2), FloatDistribution(1.0, 3.0)),
        (stats.loguniform(1e-3, 1e2), FloatDistribution(1e-3, 1e2, log=True)),
        (stats.loguniform(1e-12, 1e-9), FloatDistribution(1e-12, 1e-9, log=True)),
        (stats.randint(1, 5), IntDistribution(1, 4)),
        (range(1, 10, 2), IntDistribution(1, 9, step=2)),
        (range(9, 0, -2), IntDistribution(1, 9, step=2)),
        ([0.1, 1.0], CategoricalDistribution([0.1, 1.0])),
        (np.array([0.1, 1.0]), CategoricalDistribution([0.1, 1.0])),
        (("l1", None), CategoricalDistribution(["l1", None])),
        ([1, 1, 2], CategoricalDistribution([1, 2])),
    ],
)
def test_what_users_write_becomes_an_optuna_distribution(given_: Any, seen: Any) -> None:
    assert parameter("p", given_).distribution == seen


@pytest.mark.parametrize(
    "frozen",
    [
        stats.norm(3, 2),
        stats.expon(),
        stats.beta(2, 5),
        stats.gamma(2.0),
        stats.poisson(4),
        stats.beta(2, 5, scale=1e-9),
    ],
)
def test_other_scipy_distributions_are_drawn_by_quantile(frozen: Any) -> None:
    drawn = parameter("p", frozen)
    levels = np.linspace(0.05, 0.95, 19)
    values = [drawn.value(level) for level in levels]
    np.testing.assert_allclose(values, frozen.ppf(levels))
    assert drawn.label == "p (quantile)"
    assert all(
        math.isfinite(drawn.value(at(drawn.distribution, u))) for u in (0.0, 1 - 1e-16)
    )


def test_whole_numbers_stay_whole() -> None:
    drawn = parameter("p", stats.poisson(4))
    assert isinstance(drawn.value(0.5), int)
    # not equally probable, so not a range
    assert drawn.quantile is not None
    assert parameter("p", stats.rv_discrete(values=([1, 5], [0.5, 0.5]))).value(0.9) == 5


def test_values_that_a_study_cannot_hold_go_by_label() -> None:
    values = [SVC(), (1, 2), np.log1p, math.nan, None, dict, lambda x: x]
    drawn = parameter("p", values)
    labels = drawn.distribution.choices
    assert all(isinstance(label, str) for label in labels)
    assert len(set(labels)) == len(values)
    assert all(
        drawn.value(label) is value for label, value in zip(labels, values, strict=True)
    )


def test_true_is_not_one() -> None:
    drawn = parameter("p", [1, True, 1.0])
    assert [type(drawn.value(c)) for c in drawn.distribution.choices] == [int, bool, float]


@pytest.mark.slow
def test_labels_are_the_same_in_every_process() -> None:
    """An address in a label would make every resumed study another study."""
    code = (
        "from mlopt.tuning.space.parameters import parameter\n"
        "class Thing: pass\n"
        "print(parameter('p', [Thing(), Thing(), lambda x: x]).distribution.choices)"
    )
    runs = {
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, check=True, text=True
        ).stdout
        for _ in range(2)
    }
    assert runs == {"('Thing', 'Thing #1', '<lambda>')\n"}


@pytest.mark.parametrize(
    "bad", [5, "rbf", [], {}, range(0), None, {1, 2}, np.ones((2, 2)), np.array(1.0)]
)
def test_what_is_no_set_of_values_is_refused(bad: Any) -> None:
    with pytest.raises(InputError, match="`C` in the space must"):
        parameter("C", bad)


def test_names_are_found_without_underscores() -> None:
    space = Space.of(
        {"C": [1], "n_components": [2], "scale__with_mean": [True]}, pipeline()
    )
    assert list(space.distributions) == ["clf__C", "pca__n_components", "scale__with_mean"]


def test_an_ambiguous_name_lists_what_it_may_mean() -> None:
    with pytest.raises(InputError, match=r"Write one of \['pca__copy', 'scale__copy'\]"):
        Space.of({"copy": [True]}, pipeline())


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("c", "clf__C"),
        ("clf__c", "clf__C"),
        ("tolx", "clf__tol"),
        ("n_component", "n_comp"),
    ],
)
def test_an_unknown_parameter_names_the_likely_one(name: str, meant: str) -> None:
    with pytest.raises(InputError, match=f"`{name}` in the space.*Did you mean `.*{meant}"):
        Space.of({name: [1]}, pipeline())


class ByManyNames(LogisticRegression):
    """Lists some of its parameters and takes others, too, as libraries of boosting do."""

    def set_params(self, **params: Any) -> Any:
        if "penalty_of" in params:
            self.C = params.pop("penalty_of")
        return super().set_params(**params)


def test_a_name_that_an_estimator_takes_and_does_not_list_is_its_own() -> None:
    X, y = make_classification(100, random_state=0)
    for model, name in (
        (ByManyNames(), "penalty_of"),
        (make_pipeline(StandardScaler(), ByManyNames()), "bymanynames__penalty_of"),
    ):
        values = {name: [1e-4, 1.0]}
        ours = mlopt.ModelSearchCV(model, values, sampler="grid", bandit=None).fit(X, y)
        theirs = GridSearchCV(model, values).fit(X, y)
        assert ours.best_params_ == theirs.best_params_
        assert ours.best_score_ == theirs.best_score_
    for name in ("penalty_off", "bymanynames__penalty_off", "penalty_of"):
        with pytest.raises(InputError, match=f"`{name}` in the space must be a parameter"):
            mlopt.ModelSearchCV(model, {name: [1.0]}).fit(X, y)


def test_one_parameter_under_two_names_is_refused() -> None:
    with pytest.raises(InputError, match="names one parameter twice"):
        Space.of({"C": [1], "clf__C": [2]}, pipeline())


def test_parameters_of_a_step_that_the_space_puts_in_are_known() -> None:
    space = Space.of(
        {"clf": [SVC(), LogisticRegression()], "clf__gamma": [0.1]}, pipeline()
    )
    assert "clf__gamma" in space.distributions


def test_a_point_decodes_to_what_set_params_takes() -> None:
    space = Space.of({"clf": [SVC(), LogisticRegression()], "clf__C": [0.5]}, pipeline())
    family, params = space.decode(space.draw(lowest))
    assert family == ""
    assert pipeline().set_params(**params)["clf"].C == 0.5


def test_one_family_has_no_choice_of_family() -> None:
    space = Space.of_families({"svm": (SVC(), {"C": [1, 2]})})
    assert list(space.distributions) == ["C"]
    assert space.decode({"C": 2}) == ("svm", {"C": 2})


def test_families_have_parameters_of_their_own() -> None:
    space = Space.of_families(
        {"svm": (SVC(), {"C": [1, 2]}), "ridge": (Ridge(), {"alpha": [3]})}
    )
    assert list(space.distributions) == ["family", "svm:C", "ridge:alpha"]
    assert space.draw(lowest) == {"family": "svm", "svm:C": 1}
    assert space.decode({"family": "ridge", "ridge:alpha": 3}) == ("ridge", {"alpha": 3})
    assert space.size == 3


def test_a_family_may_have_nothing_to_vary() -> None:
    space = Space.of_families({"a": SVC(), "b": (Ridge(), None)})
    assert space.size == 2
    assert Space.of({}, SVC()).size == 1


@pytest.mark.parametrize(
    "families",
    [{"a": {"C": [1]}}, {"a": (None, {"C": [1]})}, {"a": (SVC, {"C": [1]})}, {"a": 3}],
)
def test_a_family_without_an_estimator_is_refused(families: Any) -> None:
    with pytest.raises(InputError, match="Family `a` must be"):
        Space.of_families(families)


class OfAFamily(BaseEstimator):
    """As generalised linear models name their distribution."""

    def __init__(self, family: str = "poisson") -> None:
        self.family = family

    def fit(self, X: Any, y: Any) -> OfAFamily:
        return self


def test_a_parameter_cannot_stand_for_the_name_of_a_family() -> None:
    space = {"family": ["poisson", "gamma"]}
    assert Space.of(space, OfAFamily()).size == 2
    with pytest.raises(InputError, match="`family` in the space of family `a`"):
        Space.of_families({"a": (OfAFamily(), space), "b": (Ridge(), {})})
    step = {f"ofafamily__{name}": values for name, values in space.items()}
    piped = {"a": (make_pipeline(OfAFamily()), step), "b": (Ridge(), {})}
    assert Space.of_families(piped).size == 3


def test_a_list_of_grids_is_refused() -> None:
    with pytest.raises(InputError, match="must map names of parameters to values"):
        Space.of([{"C": [1]}], SVC())  # type: ignore[arg-type]


def test_a_space_beside_families_is_refused() -> None:
    search = mlopt.ModelSearchCV({"svm": (SVC(), {})}, {"C": [1]})
    with pytest.raises(InputError, match="`space` must be None"):
        search.fit([[0.0], [1.0]] * 10, [0, 1] * 10)


def test_quantiles_of_one_value_are_one_model() -> None:
    """Coordinates differ, the model is the same: a duplicate."""
    space = Space.of({"n": stats.poisson(1)})
    assert space.key({"n (quantile)": 0.5}) == space.key({"n (quantile)": 0.6})
    assert space.key({"n (quantile)": 0.5}) != space.key({"n (quantile)": 0.99})


@pytest.mark.parametrize(
    "changed",
    [
        lambda: Space.of({"C": stats.norm(0, 2)}, SVC()),
        lambda: Space.of({"C": stats.norm(0, 1), "degree": [2]}, SVC()),
        lambda: Space.of({"C": stats.norm(0, 1)}, SVC(kernel="linear")),
        lambda: Space.of({"C": stats.norm(0, 1)}, LogisticRegression()),
    ],
)
def test_the_fingerprint_tells_searches_apart(changed: Callable[[], Space]) -> None:
    before = Space.of({"C": stats.norm(0, 1)}, SVC()).fingerprint()
    assert before == Space.of({"C": stats.norm(0, 1)}, SVC(verbose=True)).fingerprint()
    assert before != changed().fingerprint()


def test_a_grid_of_lists_is_scikit_learns() -> None:
    lists = {"a": [1, 2, 3], "b": ["x", "y"], "c": [None]}
    points = grid({n: CategoricalDistribution(v) for n, v in lists.items()}, 64)
    assert list(points) == list(ParameterGrid(lists))


@pytest.mark.parametrize("n", [2, 3, 4, 5])
def test_four_ranges_make_a_grid_of_the_fourth_power(n: int) -> None:
    """TuPAQ 4.1: 16, 81, 256, 625 evaluations, evenly spaced from end to end."""
    points = grid({name: FloatDistribution(0.0, 1.0) for name in "abcd"}, n**4)
    assert len(points) == n**4
    np.testing.assert_allclose(points.axes["a"], np.linspace(0, 1, n))


def test_levels_are_even_in_the_logarithm() -> None:
    np.testing.assert_allclose(
        cut(FloatDistribution(1e-3, 1e1, log=True), 5), [1e-3, 1e-2, 1e-1, 1, 10]
    )
    assert cut(IntDistribution(1, 1000, log=True), 4) == [1, 10, 100, 1000]


def test_choices_are_kept_whatever_the_budget() -> None:
    spaces = {
        "a": CategoricalDistribution(list(range(50))),
        "b": FloatDistribution(0.0, 1.0),
    }
    assert len(grid(spaces, 10)) == 50
    assert len(grid(spaces, 100)) == 100


@given(
    low=st.integers(1, 50),
    width=st.integers(0, 50),
    step=st.integers(1, 7),
    log=st.booleans(),
    levels=st.integers(1, 60),
    u=st.floats(0, 1, exclude_max=True),
)
def test_levels_and_draws_are_values_of_the_distribution(
    low: int, width: int, step: int, log: bool, levels: int, u: float
) -> None:
    step = 1 if log else step
    whole = IntDistribution(low, low + width // step * step, log=log, step=step)
    values = range(whole.low, whole.high + 1, step)
    assert count(whole) == len(values)
    assert set(cut(whole, levels)) <= set(values)
    assert [*cut(whole, len(values))] == [*values]
    assert at(whole, u) in values


def test_uniform_levels_give_uniform_draws() -> None:
    draws = [at(IntDistribution(1, 4), u) for u in np.linspace(0, 1, 1000, endpoint=False)]
    np.testing.assert_allclose(np.bincount(draws)[1:], 250, atol=2)
    logs = [at(FloatDistribution(0.01, 100, log=True), u) for u in (0.25, 0.5, 0.75)]
    np.testing.assert_allclose(logs, [0.1, 1, 10])


def test_a_grid_finds_a_point_without_building_the_others() -> None:
    points = grid({name: IntDistribution(0, 999) for name in "abcdef"}, None)
    assert len(points) == 1000**6
    assert points[10**18 - 1] == dict.fromkeys("abcdef", 999)
    with pytest.raises(IndexError):
        points[10**18]


class Wheel:
    """Draws what is no number, as `sklearn.model_selection.ParameterSampler` would ask."""

    def __init__(self, *values: Any) -> None:
        self.values = values

    def rvs(self, random_state: Any = None) -> Any:
        return self.values[random_state.randint(len(self.values))]


@pytest.mark.parametrize(
    "values", [(0.1, 0.5, 0.9), ([1], [2, 3]), ("a", None), (([1],), ([2],))]
)
def test_what_only_draws_is_seeded_by_its_coordinate(values: Any) -> None:
    space = Space.of({"x": Wheel(*values)})
    points = [{"x (quantile)": level} for level in np.linspace(0.01, 0.99, 40)]
    drawn = [space.decode(point)[1]["x"] for point in points]
    assert {str(value) for value in drawn} == {str(value) for value in values}
    assert drawn == [space.decode(point)[1]["x"] for point in points]
    assert len({space.key(point) for point in points}) == len(values)
    assert space.size is None


def test_a_distribution_of_one_value_gives_it() -> None:
    space = Space.of({"x": stats.uniform(0.5, 0)})
    assert space.decode({"x (quantile)": 0.3})[1] == {"x": 0.5}


@pytest.mark.parametrize(
    ("space", "told"),
    [
        ({"x": stats.loguniform(0.5, 0.5)}, "must give a value by .* raises ValueError"),
        ({3: [1]}, "must map names of parameters to values; 3 is no name"),
        ({"x": Wheel}, "or a list of values"),
    ],
)
def test_what_draws_nothing_is_refused_at_once(space: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        Space.of(space)


def test_draws_that_cannot_be_hashed_are_told_apart_by_their_content() -> None:
    class Masks:
        def rvs(self, random_state: Any = None) -> dict[str, Any]:
            return {"mask": random_state.rand(1500) < 0.01}

    def keep(X: Any, mask: Any) -> Any:
        return X[:, mask]

    X = np.random.default_rng(0).normal(size=(60, 1500))
    search = mlopt.ModelSearchCV(
        make_pipeline(FunctionTransformer(keep), Ridge()),
        {"functiontransformer__kw_args": Masks()},
        n_trials=12, sampler="random", bandit=None, cv=2,
    ).fit(X, X[:, 0])  # fmt: skip
    assert len(search.cv_results_["params"]) == 12
