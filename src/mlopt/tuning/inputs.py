"""From what a user gives to a `Problem`: every check that needs no training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import _routing_enabled as routing_enabled
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.validation import _make_indexable, _num_samples

from mlopt.cluster import Executor, executor, threads_beside
from mlopt.errors import InputError
from mlopt.pipeline.blocks.cut import check_room, framed
from mlopt.pipeline.budget import budget_bytes
from mlopt.pipeline.by_split import GATHERED, Streamed, gathering
from mlopt.pipeline.planning.optimizer import left_out
from mlopt.pipeline.planning.worth import LIGHT
from mlopt.pipeline.steps.telling import check_picklable
from mlopt.resources.probe import memory_limit
from mlopt.rows import Rows
from mlopt.rows.arriving import brought
from mlopt.rows.block import as_csr
from mlopt.rows.source import collected_together, held, is_dask, split_with
from mlopt.tuning.crews.chain import cut, is_planned
from mlopt.tuning.crews.linear_task import ADAPTERS, LinearTask, linear_form
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.crews.scoring import metrics_of
from mlopt.tuning.crews.splits import make_splits
from mlopt.tuning.on_dask import over


def placed(search: Any, X: Any, y: Any) -> tuple[Executor, Any, Any, str]:
    """Where trials run, X and y there, and what there is to say of it.

    Few rows of Dask data come here once, whoever trains on them. Linear models of few rows
    leave an active client alone, which would be asked several times a pass.
    """
    X, y, told = (X, y, "") if search.client is not None else brought(X, y)
    cuts = [cut(estimator) for estimator, _ in families_of(search).values()]
    light = all(
        isinstance(linear_form(parts.final), LinearTask)
        and all(type(step) in LIGHT for _, step in parts.steps)
        for parts in cuts
    )
    near = (X, y) if light else ()
    return executor(search.client, search.n_jobs, rows=near), X, y, told


def problem_of(
    search: Any,
    executor: Executor,
    X: Any,
    y: Any,
    groups: Any,
    sample_weight: Any,
    fit_params: Mapping[str, Any],
    told: str = "",
) -> Problem:
    """Check data and settings of a `ModelSearchCV` and cut the splits.

    What an estimator itself would refuse is left to its own ``fit``.

    Raises
    ------
    InputError
        X and y of different length, masked arrays, a split without rows; steps that
        cannot go to workers; settings that a pipeline's own ``fit`` refuses.
    """
    # Before the splitter draws: a generator may be that of the estimator, too.
    copies = {name: clone(one) for name, (one, _) in families_of(search).items()}
    if getattr(executor, "client", None) is not None:
        check_picklable([(name or type(one).__name__, one) for name, one in copies.items()])
    estimators = [*copies.values()]
    classifier = _one_kind(estimators)
    metrics = metrics_of(search.scoring, estimators[0], search.refit, search.error_score)
    beside = {"y": y, "groups": groups, "sample_weight": sample_weight, **fit_params}
    given_X = X
    budget, without = _settings(estimators, executor)
    X, given, told_of_X = _placed(X, beside, executor, copies, search.client, without)
    y, groups, weight = map(given.pop, ("y", "groups", "sample_weight"))
    n = X.n if isinstance(X, Rows | Streamed) else int(_num_samples(X))
    if y is not None and _num_samples(y) != n:
        raise InputError(
            "X and y must have as many rows as each other (found input variables with "
            f"inconsistent numbers of samples): X has {n}, y has {_num_samples(y)}."
        )
    _check_pairs(X, estimators)
    routed = _route(search, groups, weight, given)
    gathers = [told_of_X] if told_of_X else []
    splits = make_splits(
        search.cv, X, y, routed.split, n=n, classifier=classifier, told=gathers
    )
    return Problem(
        X=X,
        y=y,
        splits=splits,
        metrics=metrics,
        classifier=classifier,
        executor=executor,
        sample_weight=routed.weight,
        fit_params=routed.fit,
        score_params=routed.score,
        seed=search.random_state or 0,
        train_scores=search.return_train_score,
        told=told,
        near=threads_beside(executor, search.client, search.n_jobs, (given_X, y)),
        routed=routing_enabled(),
        estimators=copies,
        budget=budget,
        gathers=gathers,
    )


def _check_pairs(X: Any, estimators: list[Any]) -> None:
    """Kernels and distances between rows must be square: splits cut their columns too."""
    if not any(get_tags(estimator).input_tags.pairwise for estimator in estimators):
        return
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if len(shape) != 2 or shape[0] != shape[1]:
        raise InputError(
            "X should be a square kernel matrix, an array or sparse: the estimator takes "
            f"values of pairs of rows. Got {type(X).__name__} of shape {shape}."
        )


@dataclass(frozen=True)
class Routed:
    """Who gets which of the arguments of ``fit``."""

    split: Mapping[str, Any]
    fit: Mapping[str, Any]
    score: Mapping[str, Any] = field(default_factory=dict)
    weight: Any = None


def _route(search: Any, groups: Any, weight: Any, fit_params: Mapping[str, Any]) -> Routed:
    if routing_enabled():
        known = {"groups": groups, "sample_weight": weight}
        given = {k: v for k, v in known.items() if v is not None} | dict(fit_params)
        asked = _asked(search, given)
        return Routed(asked.splitter.split, asked.estimator.fit, asked.scorer.score)
    scored = weight is not None and _weighs_scores(search)
    score = {"sample_weight": weight} if scored else {}
    return Routed({"groups": groups}, fit_params, score, weight)


def _asked(search: Any, given: Mapping[str, Any]) -> Any:
    """What the estimator, scorers and the splitter of a search ask for.

    Raises
    ------
    InputError
        When families ask for different arguments: they are given the same.
    """
    found = []
    for estimator, _ in families_of(search).values():
        found.append(process_routing(over(search, estimator), "fit", **given))
    asked = [sorted(one.estimator.fit) for one in found]
    if any(names != asked[0] for names in asked):
        raise InputError(
            f"All families must ask for the same arguments of `fit`, they ask for {asked}. "
            "Set the same requests on all, or search them one by one."
        )
    return found[0]


def _weighs_scores(search: Any) -> bool:
    """Whether weights count in the scores; by default as in the installed scikit-learn."""
    if search.weighted_scores is not None:
        return bool(search.weighted_scores)
    check = getattr(BaseSearchCV, "_check_scorers_accept_sample_weight", None)
    if check is None:  # before scikit-learn 1.9
        return False
    return bool(check(search))


def families_of(search: Any) -> dict[str, tuple[Any, Any]]:
    """{name: (estimator, space)} of a search over one estimator or several families.

    A list of spaces is a family each, all of the one estimator: "0", "1", or "svm-0".
    """
    if isinstance(search.estimator, Mapping):
        if search.space is not None:
            raise InputError(
                "`space` must be None when `estimator` names several families: each family "
                "brings its own, {'name': (estimator, space)}."
            )
        if not search.estimator:
            raise InputError("`estimator` must name at least one family, it is empty.")
        found: dict[str, tuple[Any, Any]] = {}
        for name, value in search.estimator.items():
            parts = _of_spaces(name, *_pair(name, value))
            if twice := sorted(found.keys() & parts.keys()):
                raise InputError(
                    f"Families must have names of their own; {twice[0]!r} is one, and also "
                    "a part of a list of spaces: rename one of them."
                )
            found |= parts
        return found
    if not hasattr(search.estimator, "fit"):
        raise InputError(
            f"`estimator` must have a method fit, got {search.estimator!r}. For several "
            "families give {'name': (estimator, space)}."
        )
    return _of_spaces("", search.estimator, {} if search.space is None else search.space)


def _of_spaces(name: str, estimator: Any, space: Any) -> dict[str, tuple[Any, Any]]:
    """A family, or one for each of several spaces."""
    if not isinstance(space, list | tuple):
        return {name: (estimator, space)}
    if not space:
        raise InputError("`space` must hold at least one space, the list is empty.")
    if len(space) == 1:
        return {name: (estimator, space[0])}
    parts = (f"{name}-{i}" if name else f"{i}" for i in range(len(space)))
    return {part: (estimator, one) for part, one in zip(parts, space, strict=True)}


def _pair(name: str, value: Any) -> tuple[Any, Any]:
    if not (isinstance(value, tuple) and len(value) == 2 and hasattr(value[0], "fit")):
        raise InputError(
            f"Family {name!r} must be a pair (estimator, space) whose estimator has a "
            f"method fit; got {value!r}."
        )
    return value


def _one_kind(estimators: list[Any]) -> bool:
    kinds = {is_classifier(estimator) for estimator in estimators}
    if len(kinds) > 1:
        raise InputError("All families must be classifiers, or none of them; got both.")
    return bool(kinds.pop())


def _settings(
    estimators: list[Any], executor: Executor
) -> tuple[int | None, frozenset[str]]:
    """What `mlopt.Pipeline`s allow: the fewest bytes that one names, None where none does,
    and the rules that one of them leaves out: what is kept and made serves all families.

    Raises
    ------
    InputError
        As their own ``fit`` does.
    """
    room, without = [], set[str]()
    for one in filter(is_planned, estimators):
        budget, rules = budget_bytes(one.memory_budget, executor), left_out(one.optimize)
        without |= rules
        if "keep_results" in rules:
            room.append(0)
        elif one.memory_budget is not None and str(one.memory_budget) != "auto":
            room.append(budget)
    return min(room, default=None), frozenset(without)


def _placed(
    X: Any,
    beside: Mapping[str, Any],
    executor: Executor,
    families: Mapping[str, Any],
    client: Any,
    without: frozenset[str],
) -> tuple[Any, dict[str, Any], str]:
    """X as scikit-learn can index it; in blocks where they are, when models read those.

    And what goes with it, in this process, and what there is to say of it.
    """
    parts = {name: cut(estimator) for name, estimator in families.items()}
    others = {n: one.final for n, one in parts.items() if type(one.final) not in ADAPTERS}
    linear, lazy = not others, is_dask(X)
    if lazy and linear and not any(one.steps for one in parts.values()):
        _check_room(beside)
        source, values = split_with(X, [*beside.values()], executor)
        there = _indexable(dict(zip(beside, values, strict=True)))
        return Rows.on_shelves(source, executor), there, ""
    if lazy and linear:
        data = held({"X": X, **beside}, client)
        X, there = data.pop("X"), _here(data)
        return Streamed(X, there["y"], executor, without), there, ""
    told = gathering(X, _reads_all(others)) if lazy else ""
    there = _here(beside, X=X)
    X = there.pop("X")
    if all(map(is_planned, families.values())):
        return Streamed(X, there["y"], executor, without), there, told
    return X, there, told


def _reads_all(finals: Mapping[str, Any]) -> str:
    """Why rows are gathered for the last steps of these families."""
    name, final = next(iter(finals.items()))
    of = f" of family `{name}`" if name else ""
    return f"{type(final).__name__}{of} is no linear model that reads blocks of rows"


def _here(beside: Mapping[str, Any], **checked: Any) -> dict[str, Any]:
    """Data in this process, such that scikit-learn can index them."""
    _check_room(beside)
    data = {**checked, **beside}
    return _indexable(dict(zip(data, collected_together(*data.values()), strict=True)))


def _check_room(data: Mapping[str, Any]) -> None:
    for name, value in data.items():
        if is_dask(value):
            check_room(value, name, GATHERED * memory_limit())


def _indexable(data: Mapping[str, Any]) -> dict[str, Any]:
    found = {}
    for name, given in data.items():
        value = framed(given)
        if isinstance(value, np.ma.MaskedArray):
            raise InputError(
                f"`{name}` must not be a masked array: scikit-learn reads what is behind "
                f"the mask. Give `{name}.filled(np.nan)`, or the rows without a masked "
                "value."
            )
        if name in ("X", "y"):
            found[name] = _make_indexable(value)
        else:
            found[name] = as_csr(value) if sparse.issparse(value) else value
    return found
