"""Searches that the judges draw, beside `GridSearchCV`: recipes, and one case judged."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
import sklearn
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.metrics import accuracy_score, f1_score, make_scorer, mean_squared_error
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    PredefinedSplit,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils import all_estimators
from sklearn.utils._test_common.instance_generator import _construct_instances
from tests.judges.compare import ROUNDING, SOLVED, check
from tests.judges.objectives import nearer
from tests.judges.outcomes import Difference, Raised, outcome

import mlopt

ROWS = 42

GRIDS: dict[str, list[Any]] = {
    "C": [0.05, 1.0], "alpha": [0.1, 2.0], "n_neighbors": [2, 5], "max_depth": [1, 3],
    "n_estimators": [2, 4], "n_clusters": [2, 3], "n_components": [1, 2],
    "var_smoothing": [1e-9, 0.1], "reg_param": [0.0, 0.5], "radius": [2.0, 5.0],
    "learning_rate": [0.1, 0.5], "shrink_threshold": [None, 0.2], "strategy": ["mean", "x"],
    "fit_intercept": [True, False], "alpha_1": [1e-6, 1.0], "kernel": ["linear", "rbf"],
}  # fmt: skip

SLOW = {"TheilSenRegressor", "QuantileRegressor", "GaussianProcessClassifier"}
"""Above a second a fit, or drawn by chance without a seed."""


@cache
def estimators() -> dict[str, Any]:
    """Fast instances of all estimators that predict, by name."""
    found: dict[str, Any] = {}
    for kind in ("classifier", "regressor", "cluster"):
        for name, estimator in all_estimators(kind):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                made = list(_construct_instances(estimator)) if name not in SLOW else []
                if made:
                    found[name] = _settled(made[0])
    return found


def _settled(estimator: Any) -> Any:
    """The same with a seed, and solved as far as doubles go."""
    params = estimator.get_params()
    seeded: dict[str, Any] = {
        p: 0 for p in params if p.rpartition("__")[2] == "random_state"
    }
    if type(estimator).__name__ in EXACT:
        seeded |= {"tol": 1e-9, "max_iter": 5000}
    return clone(estimator).set_params(**seeded)


READ_AT_ONCE = {"PassiveAggressiveClassifier", "PassiveAggressiveRegressor"}
"""Their constructor reads `C` and nothing does later, so that `set_params` has no effect in
`GridSearchCV`. mlopt fits clones of what was set: docs/search.md."""


def _read_again(kind: Any) -> Any:
    """A class like ``kind`` whose `set_params` has an effect."""

    def set_params(self: Any, **params: Any) -> Any:
        kind.set_params(self, **params)
        self.__init__(**self.get_params(deep=False))
        return self

    return type(kind.__name__, (kind,), {"set_params": set_params})


EXACT = {
    "LogisticRegression", "LinearSVC", "Ridge", "RidgeClassifier", "Lasso", "ElasticNet",
}  # fmt: skip
"""Searches that mlopt trains by solvers of its own, to the same minimum by another path."""


class Purged(KFold):
    """Reads a time from X, and leaves out of training what is near the test rows."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Iterator[tuple[Any, Any]]:
        rows = X.toarray() if sp.issparse(X) else np.asarray(X)
        when = np.argsort(rows[:, 0], kind="stable")
        if np.allclose(rows, 0):
            raise ValueError("No times in X.")
        for train, test in super().split(X, y, groups):
            kept = when[train][~np.isin(train, [test[0] - 1, test[-1] + 1])]
            yield kept, when[test]


def _negative_error(estimator: Any, X: Any, y: Any) -> float:
    return -float(np.mean(estimator.predict(X) != y))


def _several(estimator: Any, X: Any, y: Any) -> dict[str, float]:
    guess = estimator.predict(X)
    return {
        "wrong": -float(np.mean(guess != y)),
        "first": float(np.mean(guess == guess[0])),
    }


def _without_y(estimator: Any, X: Any, y: Any = None) -> float:
    return float(np.mean(estimator.predict(X) == estimator.predict(X)[0]))


def _last(results: dict[str, Any]) -> int:
    return len(results["params"]) - 1


CV: dict[str, Callable[[], Any]] = {
    "3": lambda: 3,
    "none": lambda: None,
    "shuffled": lambda: KFold(3, shuffle=True, random_state=0),
    "stratified": lambda: StratifiedKFold(3),
    "purged": lambda: Purged(3),
    "pairs": lambda: list(KFold(3).split(np.zeros(ROWS))),
    "generator": lambda: KFold(3).split(np.zeros(ROWS)),
    "groups": lambda: GroupKFold(3),
    "random": lambda: ShuffleSplit(2, test_size=0.3, random_state=0),
    "predefined": lambda: PredefinedSplit(np.arange(ROWS) % 3 - 1),
    "times": lambda: TimeSeriesSplit(3),
}
CLASSES: dict[str, Any] = {
    "default": None,
    "accuracy": "accuracy",
    "f1": "f1_macro",
    "log loss": "neg_log_loss",
    "auc": "roc_auc",
    "list": ["accuracy", "f1_macro"],
    "tuple": ("balanced_accuracy", "accuracy"),
    "mapping": {"a": "accuracy", "f": make_scorer(f1_score, average="macro")},
    "function": _negative_error,
    "function of several": _several,
    "scorer": make_scorer(accuracy_score),
    "without y": _without_y,
}
NUMBERS: dict[str, Any] = {
    "default": None,
    "r2": "r2",
    "error": "neg_mean_squared_error",
    "list": ["r2", "neg_mean_absolute_error"],
    "mapping": {"m": make_scorer(mean_squared_error, greater_is_better=False), "r": "r2"},
    "function": _negative_error,
    "function of several": _several,
    "without y": _without_y,
}
REFIT: dict[str, Any] = {"true": True, "false": False, "function": _last}
FORMS = ("plain", "pipeline", "list of grids", "no grid", "failing", "precomputed")
ROWS_OF = ("array", "array", "pandas", "csr", "lists", "float32")


@dataclass(frozen=True)
class Search:
    """A search, as a recipe."""

    estimator: str
    form: str
    rows: str
    cv: str
    scoring: str
    refit: str
    error_score: float | str
    train_scores: bool
    weighted: str
    seed: int


@st.composite
def searches(draw: Any) -> Search:
    """Searches that work more often than not."""
    names = estimators()
    name = draw(st.sampled_from([*names, *sorted(EXACT) * 4]))
    classes = is_classifier(names[name])
    scoring = draw(st.sampled_from(list(CLASSES if classes else NUMBERS)))
    plain = draw(st.integers(0, 2)) > 0
    form = draw(st.sampled_from(["plain"] * 5 + list(FORMS)))
    return Search(
        estimator="SVC" if form == "precomputed" else name,
        form=form,
        rows=draw(st.sampled_from(ROWS_OF)),
        cv="3" if plain else draw(st.sampled_from(list(CV))),
        scoring="default" if draw(st.integers(0, 2)) == 0 else scoring,
        refit=draw(st.sampled_from(["true"] * 4 + list(REFIT))),
        error_score=draw(st.sampled_from([np.nan, np.nan, 0.0, "raise"])),
        train_scores=draw(st.booleans()),
        weighted=draw(st.sampled_from(["no", "no", "no", "weights", "routed", "list"])),
        seed=draw(st.integers(0, 5)),
    )


def _problem(case: Search, classes: bool) -> tuple[Any, Any, Any, Any]:
    rng = np.random.default_rng(case.seed)
    X = np.abs(rng.normal(size=(ROWS, 3))) + 0.1
    score = X @ [1.0, -1.0, 0.5] + 0.5 * rng.normal(size=ROWS)
    y = (score > np.median(score)).astype(int) if classes else score - score.min() + 0.5
    weight, groups = rng.uniform(0.5, 2.0, ROWS), np.arange(ROWS) % 6
    if case.form == "precomputed":
        return X @ X.T, y, weight, groups
    rows = {
        "pandas": lambda: pd.DataFrame(X, columns=["a", "b", "c"]),
        "csr": lambda: sp.csr_array(X),
        "lists": X.tolist,
        "float32": lambda: X.astype(np.float32),
    }
    return rows.get(case.rows, lambda: X)(), y, weight, groups


def _estimator(case: Search, ours: bool) -> tuple[Any, Any]:
    estimator = clone(estimators()[case.estimator])
    if case.estimator in READ_AT_ONCE and not ours:
        estimator = _read_again(type(estimator))(**estimator.get_params())
    if case.form == "precomputed":
        return SVC(kernel="precomputed"), {"C": [0.1, 1.0]}
    known = estimator.get_params()
    grid: Any = next(({p: v} for p, v in GRIDS.items() if p in known), {})
    if case.form == "failing" and grid:
        grid = {name: [*values[:1], "no such value"] for name, values in grid.items()}
    if case.form == "no grid":
        grid = {}
    if case.weighted == "routed" and hasattr(estimator, "set_fit_request"):
        estimator.set_fit_request(sample_weight=True)
    if case.form == "pipeline":
        step = case.estimator.lower()
        grid = {f"{step}__{name}": values for name, values in grid.items()}
        return make_pipeline(StandardScaler(with_mean=case.rows != "csr"), estimator), grid
    if case.form == "list of grids" and grid:
        name, values = next(iter(grid.items()))
        grid = [{name: values[:1]}, {name: values[1:]}]
    return estimator, grid


def _run(case: Search, ours: bool) -> Any:
    classes = is_classifier(estimators()[case.estimator]) or case.form == "precomputed"
    X, y, weight, groups = _problem(case, classes)
    estimator, grid = _estimator(case, ours)
    scoring = (CLASSES if classes else NUMBERS).get(case.scoring)
    refit = REFIT[case.refit]
    if refit is True and isinstance(scoring, list | tuple | dict):
        refit = next(iter(scoring))
    elif refit is True and scoring is _several:
        refit = "wrong"
    settings: dict[str, Any] = {
        "cv": CV[case.cv](),
        "scoring": scoring,
        "refit": refit,
        "error_score": case.error_score,
        "return_train_score": case.train_scores,
    }
    params: dict[str, Any] = {"groups": groups} if case.cv == "groups" else {}
    if case.weighted != "no":
        name = "sample_weight"
        if case.form == "pipeline" and case.weighted != "routed":
            name = f"{case.estimator.lower()}__{name}"
        params[name] = weight.tolist() if case.weighted == "list" else weight
    if ours:
        search = mlopt.ModelSearchCV(
            estimator, grid, sampler="grid", bandit=None, n_jobs=1, **settings
        )
    else:
        search = GridSearchCV(estimator, grid, **settings)
    with sklearn.config_context(enable_metadata_routing=case.weighted == "routed"):
        return search.fit(X, y, **params), X


def judge_search(case: Search) -> None:
    """That a search gives what `GridSearchCV` gives.

    Raises
    ------
    Difference
    """
    mine, others = outcome(lambda: _run(case, True)), outcome(lambda: _run(case, False))
    if isinstance(mine, Raised) or isinstance(others, Raised):
        left, right = (one if isinstance(one, Raised) else one[0] for one in (mine, others))
        if not (_mixes_names(case, right) and not isinstance(left, Raised)):
            check("fit", left, right, 0.0)
        return
    (ours, _), (theirs, X) = mine, others
    # A solution is found to `tol`; what is counted of it is the same.
    tolerance = SOLVED if case.estimator in EXACT else ROUNDING
    order = _check_table(ours.cv_results_, theirs.cv_results_, tolerance)
    if hasattr(theirs, "best_index_"):
        try:
            _check_best(ours, theirs, X, order, tolerance)
        except Difference as difference:
            if difference.off is None or not _is_as_near(case, ours, theirs):
                raise
    elif hasattr(ours, "best_index_"):
        raise Difference("best_index_", "is there and must not be")
    check("multimetric_", ours.multimetric_, theirs.multimetric_, 0.0)
    check("n_splits_", ours.n_splits_, theirs.n_splits_, 0.0)


def _mixes_names(case: Search, theirs: Any) -> bool:
    """Whether scikit-learn's search fell over scores of some splits without names.

    A documented difference: a function of several metrics that raises on some splits.
    """
    if case.scoring != "function of several" or not isinstance(theirs, Raised):
        return False
    words = "not 'dict'", "'float' object is not subscriptable"
    return isinstance(theirs.error, TypeError) and str(theirs.error).endswith(words)


def _is_as_near(case: Search, ours: Any, theirs: Any) -> bool:
    """Whether the best model of float32 lies as near to the minimum as scikit-learn's."""
    models = [getattr(one, "best_estimator_", None) for one in (ours, theirs)]
    logistic = case.estimator == "LogisticRegression"
    if not logistic or case.rows != "float32" or hasattr(models[0], "steps"):
        return False
    if None in models or ours.best_params_ != theirs.best_params_:
        return False
    X, y, weight, _ = _problem(case, True)
    weight = weight if case.weighted != "no" else np.ones(len(y))
    return nearer("logistic", models[0], models[1], X, y, weight)


def _check_table(ours: Any, theirs: Any, tolerance: float) -> list[int]:
    """Scores by configuration; gives the row of ours for each of theirs."""
    rows = [str(sorted(params.items(), key=str)) for params in ours["params"]]
    wanted = [str(sorted(params.items(), key=str)) for params in theirs["params"]]
    if sorted(rows) != sorted(wanted):
        raise Difference("cv_results_['params']", f"{rows} != {wanted}")
    order = [rows.index(one) for one in wanted]
    for name, values in theirs.items():
        if re.match(r"(split\d+|mean|std|rank)_(test|train)_", name):
            if name not in ours:
                raise Difference("cv_results_", f"lacks {name}")
            where, mine = f"cv_results_[{name}]", np.asarray(ours[name])
            if name.startswith("std_"):
                # Of scores that are compared: it is off by what they are off.
                check(where, mine, _spread(ours, name), ROUNDING)
            else:
                check(where, mine[order], values, tolerance)
        elif name.startswith(("mean_", "std_", "param_")) and name not in ours:
            raise Difference("cv_results_", f"lacks {name}")
    return order


def _spread(table: dict[str, Any], name: str) -> Any:
    """Of the scores of all folds, for ``std_test_score`` and its like."""
    what = name.removeprefix("std_")
    folds = [v for k, v in table.items() if re.fullmatch(rf"split\d+_{what}", k)]
    return np.std(np.array(folds, dtype=float), axis=0)


def _check_best(ours: Any, theirs: Any, X: Any, order: list[int], tolerance: float) -> None:
    if hasattr(theirs, "best_score_"):
        check("best_score_", ours.best_score_, theirs.best_score_, tolerance)
    index = ours.best_index_ == order[theirs.best_index_]
    tied = not index and hasattr(theirs, "best_score_")
    ranked = (v for k, v in theirs.cv_results_.items() if k.startswith("rank_"))
    ranks: Any = next(ranked, ())
    if tied and np.sum(np.asarray(ranks) == 1) > 1:
        return
    check("best_params_", ours.best_params_, theirs.best_params_, tolerance)
    if hasattr(theirs, "best_estimator_") != hasattr(ours, "best_estimator_"):
        raise Difference("best_estimator_", "is there on one side only")
    for method in ("predict", "predict_proba", "decision_function", "transform"):
        if hasattr(theirs, method):
            left = outcome(lambda: getattr(ours, method)(X))  # noqa: B023
            right = outcome(lambda: getattr(theirs, method)(X))  # noqa: B023
            check(method, left, right, tolerance)
