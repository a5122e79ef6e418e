"""A stored study goes on with the same data and settings only; what differs is named."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GroupKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests import forks

import mlopt
from mlopt import events
from mlopt.errors import InputError, StudyError
from mlopt.tuning.bandits import ActionElimination

ROOT = Path(__file__).parents[2]
X, Y = make_classification(80, 4, random_state=0)
ONE = np.ones(80)
OTHER_X = X.copy()
OTHER_X[7, 2] += 1e-9
HEAVIER = ONE.copy()
HEAVIER[3] = 2.0
Settings = dict[str, Any]


def plain_accuracy(estimator: Any, X: Any, y: Any) -> float:
    return float(accuracy_score(y, estimator.predict(X)))


def run(storage: Path, data: Settings | None = None, **settings: Any) -> tuple[Any, int]:
    """The search, and how many trials it trained."""
    trained = []

    def observe(event: events.Event) -> None:
        if isinstance(event, events.TrialScored) and not event.replayed:
            trained.append(event.trial)

    given: Settings = {
        "estimator": GaussianNB(), "space": {"var_smoothing": [1e-9, 1e-3, 1.0]},
        "n_trials": 3, "cv": 2, "sampler": "random",
    }  # fmt: skip
    search = mlopt.ModelSearchCV(**given | settings, storage=storage, observer=observe)
    search.fit(**{"X": X, "y": Y} | (data or {}))
    return search, len(trained)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("X", {}, {"X": OTHER_X}),
        ("X", {"X": pd.DataFrame(X)}, {"X": pd.DataFrame(X, columns=list("abcd"))}),
        ("y", {}, {"y": 1 - Y}),
        ("sample_weight", {}, {"sample_weight": HEAVIER}),
        ("sample_weight", {"sample_weight": ONE}, {"sample_weight": HEAVIER}),
    ],
)
def test_other_data_are_refused_by_name(
    tmp_path: Path, name: str, before: Settings, after: Settings
) -> None:
    run(tmp_path / "study.db", before)
    with pytest.raises(StudyError, match=f"`{name}` differs from that of this study") as e:
        run(tmp_path / "study.db", after)
    assert "give another `study_name`" in str(e.value)
    assert len(str(e.value)) < 400
    assert run(tmp_path / "study.db", before)[1] == 0
    assert run(tmp_path / "study.db", after, study_name="another")[1] == 3


def test_other_groups_are_refused_by_name(tmp_path: Path) -> None:
    groups = np.arange(80) % 5
    run(tmp_path / "study.db", {"groups": groups}, cv=GroupKFold(2))
    with pytest.raises(StudyError, match="`groups` differs from that of this study"):
        run(tmp_path / "study.db", {"groups": groups[::-1]}, cv=GroupKFold(2))


def test_another_fit_parameter_is_refused_by_name(tmp_path: Path) -> None:
    tree: Settings = {
        "estimator": make_pipeline(DecisionTreeClassifier()),
        "space": {"max_depth": [1, 2, 3]},
    }
    weight = "decisiontreeclassifier__sample_weight"
    run(tmp_path / "study.db", {weight: ONE}, **tree)
    with pytest.raises(StudyError, match=f"`{weight}` differs from that of this study"):
        run(tmp_path / "study.db", {weight: HEAVIER}, **tree)


class Custom(ClassifierMixin, BaseEstimator):
    """A classifier whose code the tests exchange."""

    def __init__(self, level: int = 0) -> None:
        self.level = level

    def fit(self, X: Any, y: Any) -> Custom:
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.classes_[self.level % 2])


def other_predict(self: Any, X: Any) -> Any:
    return np.full(len(X), self.classes_[-1])


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("scoring", {"scoring": "accuracy"}, {"scoring": "f1"}),
        ("scoring", {"scoring": plain_accuracy}, {"scoring": "accuracy"}),
        ("splits", {"cv": 2}, {"cv": 3}),
        ("random_state", {"random_state": 0}, {"random_state": 1}),
        ("sampler", {"sampler": "random"}, {"sampler": "tpe"}),
        ("bandit", {}, {"bandit": ActionElimination(eps=0.1)}),
        ("priors", {}, {"estimator": GaussianNB(priors=[0.3, 0.7])}),
        ("var_smoothing", {}, {"space": {"var_smoothing": [1e-9, 1e-3, 2.0]}}),
        ("weighted_scores", {}, {"weighted_scores": True}),
        ("error_score", {}, {"error_score": 0.0}),
        (
            "refit",
            {"scoring": ["accuracy", "f1"], "refit": "accuracy"},
            {"scoring": ["accuracy", "f1"], "refit": "f1"},
        ),
    ],
)
def test_other_settings_are_refused_by_name(
    tmp_path: Path, name: str, before: Settings, after: Settings
) -> None:
    run(tmp_path / "study.db", **before)
    with pytest.raises(StudyError, match=f"`{name}` differs from that of this study"):
        run(tmp_path / "study.db", **after)


@pytest.mark.parametrize("wrong", [{"bandit": "hyperbnd"}, {"sampler": "gaussian"}])
def test_a_setting_that_is_refused_stores_nothing(tmp_path: Path, wrong: Settings) -> None:
    with pytest.raises(InputError):
        run(tmp_path / "study.db", **wrong)
    assert not [*tmp_path.iterdir()]


def test_another_step_of_equal_parameters_is_refused(tmp_path: Path) -> None:
    space = {"var_smoothing": [1e-9, 1e-3]}
    pipelines = [
        make_pipeline(scaler, GaussianNB())
        for scaler in (StandardScaler(), MinMaxScaler(copy=True, clip=False))
    ]
    for pipeline in pipelines:
        pipeline.steps[0] = ("scale", pipeline.steps[0][1])
    run(tmp_path / "study.db", estimator=pipelines[0], space=space)
    with pytest.raises(StudyError, match="this study"):
        run(tmp_path / "study.db", estimator=pipelines[1], space=space)


def test_edited_code_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: Settings = {"estimator": Custom(), "space": {"level": [0, 1, 2]}}
    run(tmp_path / "study.db", **given)
    assert run(tmp_path / "study.db", **given)[1] == 0
    monkeypatch.setattr(Custom, "predict", other_predict)
    with pytest.raises(StudyError, match="`estimator` differs from that of this study"):
        run(tmp_path / "study.db", **given)


def test_many_differences_are_told_briefly(tmp_path: Path) -> None:
    families = {
        "line": (LogisticRegression(), {"C": [0.1, 1.0]}),
        "bayes": (GaussianNB(), {"var_smoothing": [1e-9, 1e-3]}),
        "tree": (DecisionTreeClassifier(), {"max_depth": [1, 2]}),
    }
    run(tmp_path / "study.db", estimator=families, space=None)
    few = {name: families[name] for name in ("line", "bayes")}
    with pytest.raises(StudyError, match="`tree`") as caught:
        run(tmp_path / "study.db", estimator=few, space=None)
    assert len(str(caught.value)) < 300
    assert "more" not in str(caught.value)


SAME_ELSEWHERE = """
import sys
from tests.tuning.test_same_study import everything_by_object, run
from pathlib import Path
print(run(Path(sys.argv[1]), **everything_by_object())[1])
"""


def everything_by_object() -> Settings:
    return {
        "sampler": optuna.samplers.TPESampler(seed=3),
        "bandit": ActionElimination(eps=0.3),
        "scoring": plain_accuracy,
        "estimator": Custom(),
        "space": {"level": [0, 1, 2]},
    }


@pytest.mark.cluster
def test_another_process_takes_up_a_study_of_objects(tmp_path: Path) -> None:
    _, trained = run(tmp_path / "study.db", **everything_by_object())
    assert trained == 3
    done = forks.run(
        [sys.executable, "-c", SAME_ELSEWHERE, str(tmp_path / "study.db")],
        capture_output=True, text=True, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.stdout == "0\n", done.stderr


class Locked:
    """A scorer that nobody can tell from another."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        return plain_accuracy(estimator, X, y)


def test_what_cannot_be_identified_is_stored_and_not_resumed(tmp_path: Path) -> None:
    assert run(tmp_path / "study.db", scoring=Locked())[1] == 3
    with pytest.raises(StudyError, match="whether `scoring` is the same cannot be told"):
        run(tmp_path / "study.db", scoring=Locked())
