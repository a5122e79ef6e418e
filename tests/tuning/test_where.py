"""Fits in processes of their own: where they pay, and that nothing else changes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier, HistGradientBoostingClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

import mlopt
from mlopt.cluster import processes
from mlopt.costs import Cost
from mlopt.tuning import samples, where
from mlopt.tuning.crews import plain
from mlopt.tuning.crews.plain import is_plain
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.forecast import Forecast

SPACE = {"histgradientboostingclassifier__max_leaf_nodes": [3, 5, 7, 9]}


class Own(TransformerMixin, BaseEstimator):
    def fit(self, X: Any, y: Any = None) -> Own:
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X: Any) -> Any:
        return X


def test_what_is_scikit_learns_alone_is_plain() -> None:
    assert is_plain(make_pipeline(StandardScaler(), SVC()))
    assert is_plain(FunctionTransformer(np.log1p))
    assert is_plain(TfidfVectorizer(dtype=np.float32))
    assert is_plain(BaggingClassifier(SVC(random_state=np.random.RandomState(0))))
    assert not is_plain(Own())
    assert not is_plain(TfidfVectorizer(tokenizer=str.split))
    assert not is_plain(BaggingClassifier(make_pipeline(Own(), SVC())))
    assert not is_plain(FunctionTransformer(lambda X: X))


class OwnSplits:
    """Of no use but to count how often it is asked."""

    def split(self, *_: Any) -> Iterator[Any]:
        return iter(())


def test_what_holds_an_object_of_yours_or_prints_is_not_plain() -> None:
    assert is_plain(LogisticRegressionCV(cv=KFold(3)))
    assert not is_plain(LogisticRegressionCV(cv=OwnSplits()))
    assert not is_plain(make_pipeline(StandardScaler(), SVC(verbose=True)))
    assert is_plain(ColumnTransformer([("all", StandardScaler(), pd.Index(["a"]))]))
    with config_context(enable_metadata_routing=True):  # requests know their estimator
        assert is_plain(SVC().set_fit_request(sample_weight=True))


def boosting(**settings: Any) -> mlopt.ModelSearchCV:
    model = HistGradientBoostingClassifier(max_iter=20, random_state=0)
    return mlopt.ModelSearchCV(
        make_pipeline(StandardScaler(), model), SPACE, n_trials=4, cv=3, n_jobs=2,
        random_state=0, sampler="grid", **settings,
    )  # fmt: skip


@pytest.fixture
def rows() -> tuple[Any, Any]:
    X, y = make_classification(600, 8, random_state=0)
    return X, y


@pytest.fixture
def crowded(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Samples beside each other take far longer, whatever else runs; processes none."""
    together = samples._side_by_side

    def slower(problem: Any, jobs: Sequence[Any], *wait: float) -> Any:
        looks, lost = together(problem, jobs, *wait)
        factor = 30.0 if len(jobs) > 1 else 1.0
        return [None if one is None else one.times(factor) for one in looks], lost

    monkeypatch.setattr(samples, "_side_by_side", slower)
    monkeypatch.setattr(plain, "price", lambda name: 0.0)
    yield
    for hands in [*processes._left._idle]:
        processes._left._end(hands)


@pytest.mark.cluster
@pytest.mark.usefixtures("crowded")
def test_a_search_in_processes_finds_what_one_in_threads_does(
    rows: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    call = processes.Processes.call

    def counted(self: Any, function: Any, args: Any) -> Any:
        calls.append(function.__name__)
        return call(self, function, args)

    monkeypatch.setattr(processes.Processes, "call", counted)
    settings: list[dict[str, Any]] = [{"return_train_score": True}, {"bandit": None}]
    for own in settings:
        there = boosting(**own).fit(*rows)
        # The scaler once a split; the pipeline's model once a split and look at least.
        assert calls.count("transform") == 3
        assert calls.count("train_on") >= 12
        calls.clear()
        with monkeypatch.context() as threads:
            threads.setattr(where, "may_pay", lambda *_: False)
            here = boosting(**own).fit(*rows)
        assert calls == []
        for name in here.cv_results_:
            if "time" not in name and name != "params":
                np.testing.assert_array_equal(
                    here.cv_results_[name], there.cv_results_[name]
                )
        assert here.best_params_ == there.best_params_
        chosen = {choice.step: choice for choice in there.plan_.choices}
        assert chosen[where.STEP].chosen == "2 processes"
        assert "times as long" in str(there.plan_)
        assert where.STEP not in {choice.step for choice in here.plan_.choices}
        fits = next(c for c in there.plan_.choices if "fit" in c.ran)
        assert fits.ran == next(c for c in here.plan_.choices if "fit" in c.ran).ran


@pytest.mark.usefixtures("crowded")
@pytest.mark.parametrize("kind", ["scorer", "step", "one core"])
def test_what_may_do_more_than_it_returns_stays_here(
    rows: tuple[Any, Any], kind: str
) -> None:
    search = boosting()
    if kind == "scorer":
        search.scoring = lambda model, X, y: model.score(X, y)
    elif kind == "step":
        search.estimator = make_pipeline(Own(), search.estimator.steps[-1][1])
    else:
        search.n_jobs = 1
    plan = search.explain(*rows)
    assert where.STEP not in {choice.step for choice in plan.choices}


def test_a_short_search_starts_no_process(rows: tuple[Any, Any]) -> None:
    plan = boosting().explain(*rows)
    assert where.STEP not in {choice.step for choice in plan.choices}


@pytest.mark.usefixtures("crowded")
def test_a_plan_alone_starts_no_process(rows: tuple[Any, Any]) -> None:
    plan = boosting().explain(*rows)
    assert where.STEP in {choice.step for choice in plan.choices}
    assert not processes.are_left(2)


@pytest.mark.usefixtures("crowded")
def test_fits_that_wait_for_a_core_stay_in_threads(
    rows: tuple[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others that have the cores would have them of processes, too."""
    together = samples._side_by_side

    def busy(problem: Any, jobs: Sequence[Any], *wait: float) -> Any:
        looks, lost = together(problem, jobs, *wait)
        fit, queued = (3.0, waits) if len(jobs) > 1 else (1.0, 0.0)
        own = {"prepare": 0.0, "fit": fit, "score": 0.0, "queued": queued}
        return [one and replace(one, **own) for one in looks], lost

    monkeypatch.setattr(samples, "_side_by_side", busy)
    for waits in (0.0, 2.0, 1.8):  # a fifth more is noise of two short fits
        steps = {choice.step for choice in boosting().explain(*rows).choices}
        assert (where.STEP in steps) == (waits == 0)


def test_processes_must_save_more_than_their_start_by_what_samples_are_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 20 s, two times crowded, processes save 10 s."""
    monkeypatch.setattr(where, "may_pay", lambda *_: True)
    problem = SimpleNamespace(
        executor=SimpleNamespace(threads=2),
        splits=range(2),
        resources=mlopt.Resources.probe(),
    )
    known = Forecast(Cost(fixed=2.0, source="sampled"), crowded=2.0)
    for start, count in ((5.0, 2), (6.0, 0)):
        monkeypatch.setattr(where, "begin", lambda _, start=start: start)
        found, choice = where.chosen(
            cast("Problem", problem), {"": []}, {"": known}, 20.0, math.inf
        )
        assert found[""].processes == count
        assert (choice is not None) == (count > 0)
        assert found[""].alone is not None
        assert found[""].alone.fixed == pytest.approx(1.0 if count else 2.0)


@pytest.mark.cluster
@pytest.mark.usefixtures("crowded")
def test_a_fit_that_fails_in_a_process_says_why(rows: tuple[Any, Any]) -> None:
    X, y = rows
    model = HistGradientBoostingClassifier(max_iter=20, random_state=0)
    space = {"max_leaf_nodes": [5, 7, 9, 1]}  # the last is refused
    search = mlopt.ModelSearchCV(
        model, space, n_trials=4, n_jobs=2, sampler="grid", error_score=-1.0
    )
    with pytest.warns(FitFailedWarning, match="max_leaf_nodes"):
        search.fit(X, y)
    assert where.STEP in {choice.step for choice in search.plan_.choices}
    scores = search.cv_results_["mean_test_score"]
    assert sorted(scores)[0] == -1.0
    assert min(sorted(scores)[1:]) > 0


@pytest.mark.parametrize("longer", [1.0, 1.5, 2.0, 4.0])
@pytest.mark.parametrize("larger", [0.5, 1.0, 1.7, 5.0])
def test_samples_are_told_as_if_others_were_beside_them_all_along(
    longer: float, larger: float
) -> None:
    """Of fits that take 1 and ``larger`` seconds alone, and so much longer together."""
    beside = longer
    # The large one is slowed down until those beside it have ended, or it has.
    done = min(larger, beside / longer)
    took = done * longer + (larger - done)
    look: dict[str, Any] = {"prepare": 0.0, "score": 0.0, "rows": None}
    first, second = samples._crowded(
        samples._Look(fit=1.0, **look), samples._Look(fit=took, **look),
        [samples._Look(fit=beside, **look)],
    )  # fmt: skip
    assert (first.fit, second.fit) == pytest.approx((longer, longer * larger))
