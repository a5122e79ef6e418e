"""Families as a configuration names them: estimators by name, spaces from plain values.

Estimators come from the table below, never from an import string: a configuration file must
not be able to run code.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from sklearn.base import BaseEstimator, is_classifier
from sklearn.pipeline import Pipeline

from mlopt.errors import ConfigError, did_you_mean
from mlopt.sweep.config import Family
from mlopt.sweep.families import DEFAULTS, SPARSE, Built, Case, linear_steps, tree_steps
from mlopt.sweep.tabular import SPELLED_OUT

LINEAR = "scaled and one-hot"
TREES = "codes"

ESTIMATORS: Mapping[str, tuple[str, str]] = {
    "LogisticRegression": ("mlopt", LINEAR),
    "LinearSVC": ("mlopt", LINEAR),
    "LinearRegression": ("mlopt", LINEAR),
    "Ridge": ("mlopt", LINEAR),
    "SGDClassifier": ("sklearn.linear_model", LINEAR),
    "SGDRegressor": ("sklearn.linear_model", LINEAR),
    "Lasso": ("sklearn.linear_model", LINEAR),
    "ElasticNet": ("sklearn.linear_model", LINEAR),
    "SVC": ("sklearn.svm", LINEAR),
    "SVR": ("sklearn.svm", LINEAR),
    "KNeighborsClassifier": ("sklearn.neighbors", LINEAR),
    "KNeighborsRegressor": ("sklearn.neighbors", LINEAR),
    "MLPClassifier": ("sklearn.neural_network", LINEAR),
    "MLPRegressor": ("sklearn.neural_network", LINEAR),
    "DecisionTreeClassifier": ("sklearn.tree", TREES),
    "DecisionTreeRegressor": ("sklearn.tree", TREES),
    "RandomForestClassifier": ("sklearn.ensemble", TREES),
    "RandomForestRegressor": ("sklearn.ensemble", TREES),
    "ExtraTreesClassifier": ("sklearn.ensemble", TREES),
    "ExtraTreesRegressor": ("sklearn.ensemble", TREES),
    "HistGradientBoostingClassifier": ("sklearn.ensemble", TREES),
    "HistGradientBoostingRegressor": ("sklearn.ensemble", TREES),
}


def check_names(
    chosen: Iterable[str], entries: Iterable[str], known: Iterable[str] = DEFAULTS
) -> None:
    """Refuse names of families that are neither configured nor known.

    Raises
    ------
    ConfigError
    """
    names = sorted({*entries, *known})
    for name in chosen:
        if name not in names:
            raise ConfigError(
                f"`families` names {name!r}, which must be one of {', '.join(names)}."
                f"{did_you_mean(name, names)}"
            )


def families_of(
    case: Case, wanted: Mapping[str, Family], only: Iterable[str] = ()
) -> dict[str, Built]:
    """The families of a sweep.

    Parameters
    ----------
    case : Case
    wanted : mapping of str to Family
        As configured; all default families where none is enabled.
    only : iterable of str
        Names to keep, enabled or not; empty for all that are enabled.

    Raises
    ------
    ConfigError
        A name, an estimator or a parameter that does not exist.
    """
    known = DEFAULTS if case.roles is not None else SPARSE
    enabled = {name: family for name, family in wanted.items() if family.enabled}
    entries = enabled or {name: Family() for name in known if name not in wanted}
    chosen = list(only) or list(entries)
    entries |= wanted
    check_names(chosen, entries, known)
    if not chosen:
        raise ConfigError(
            f"`families` must leave one enabled, but all are not: {', '.join(wanted)}."
        )
    return {name: _build(case, name, entries.get(name, Family())) for name in chosen}


def _build(case: Case, name: str, family: Family) -> Built:
    known = DEFAULTS if case.roles is not None else SPARSE
    if family.estimator is not None:
        space: dict[str, Any] = {}
        pipeline = _from_registry(case, name, family.estimator)
    elif name in known:
        pipeline, space = known[name](case)
    else:
        raise ConfigError(
            f"`families.{name}` must name its `estimator`; only {', '.join(known)} go "
            "without one."
        )
    _set_params(pipeline, name, family.params)
    # What is set is meant, and varied where the file says so too.
    space = {
        key: values
        for key, values in space.items()
        if key.removeprefix("model__") not in family.params
    }
    own = {
        f"model__{key}": values_of(key, value, name) for key, value in family.space.items()
    }
    known_params = pipeline.get_params(deep=True)
    for key in own:
        if key not in known_params:
            _unknown_parameter(name, "space", key.removeprefix("model__"), pipeline)
    return pipeline, own if family.space else space


def _from_registry(case: Case, name: str, estimator: str) -> Pipeline:
    if estimator not in ESTIMATORS:
        raise ConfigError(
            f"`families.{name}.estimator` must be one of {', '.join(ESTIMATORS)}; got "
            f"{estimator!r}.{did_you_mean(estimator, list(ESTIMATORS))}"
        )
    module, encoding = ESTIMATORS[estimator]
    model = getattr(importlib.import_module(module), estimator)()
    if is_classifier(model) != case.classifies:
        raise ConfigError(
            f"`families.{name}.estimator`: {estimator} is not for {case.target.task}, "
            f"which {case.target.name!r} asks for."
        )
    steps: list[tuple[str, Any]] = []
    if case.roles is not None:
        trees = encoding == TREES
        steps = tree_steps(case, SPELLED_OUT)[0] if trees else linear_steps(case)
    return Pipeline([*steps, ("model", model)])


def _set_params(pipeline: Pipeline, name: str, params: Mapping[str, Any]) -> None:
    model = pipeline.named_steps["model"]
    for key, value in params.items():
        if key not in model.get_params(deep=True):
            _unknown_parameter(name, "params", key, pipeline)
        model.set_params(**{key: value})


def _unknown_parameter(name: str, section: str, key: str, pipeline: Pipeline) -> None:
    model: BaseEstimator = pipeline.named_steps["model"]
    known = sorted(model.get_params(deep=True))
    raise ConfigError(
        f"`families.{name}.{section}.{key}` is no parameter of {type(model).__name__}."
        f"{did_you_mean(key, known)} Its parameters: {', '.join(known)}."
    )


def values_of(key: str, value: Any, name: str) -> Any:
    """A list of values, or a range ``{ low = 1e-3, high = 10.0, log = true }``.

    Raises
    ------
    ConfigError
        Neither of them, or a range that is none.
    """
    where = f"`families.{name}.space.{key}`"
    if isinstance(value, list) and value:
        return value
    if not isinstance(value, dict) or not {"low", "high"} <= set(value):
        raise ConfigError(
            f"{where} must be a list of values or {{ low = ..., high = ..., log = true }}; "
            f"got {value!r}."
        )
    unknown = set(value) - {"low", "high", "log", "step"}
    if unknown:
        raise ConfigError(
            f"{where} has unknown keys {sorted(unknown)}; low, high, log, step."
        )
    return _range(where, value)


def _range(where: str, value: Mapping[str, Any]) -> BaseDistribution:
    whole = isinstance(value["low"], int) and isinstance(value["high"], int)
    step = {"step": value["step"]} if "step" in value else {}
    try:
        kind = IntDistribution if whole else FloatDistribution
        return kind(value["low"], value["high"], log=value.get("log", False), **step)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{where}: {error}") from None
