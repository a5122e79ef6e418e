"""What a search's plan says was fitted and scored is what was: here and on workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import distributed
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.recording import Recording, recording, unseen, write

import mlopt
from mlopt.cluster.connect import connect
from mlopt.pipeline.by_split import Streamed
from mlopt.tuning.crews import batching, scan
from mlopt.tuning.scheduler import Scheduler
from mlopt.tuning.search import ModelSearchCV  # before anything is patched

N = 900
_RANDOM = np.random.default_rng(3)
X = _RANDOM.normal(size=(N, 5))
Y = (X[:, 0] + X[:, 1] ** 2 > 0.5).astype(int)


class Scorer:
    """Accuracy; writes down that it was asked."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, model: Any, rows: Any, labels: Any) -> float:
        write(self.path, "score", "callable", len(rows))
        return float(np.mean(model.predict(rows) == labels))


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Recording]:
    yield from _recorded(monkeypatch, tmp_path, None)


@pytest.fixture
def ran_on_workers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shared_workers: str
) -> Iterator[Recording]:
    with connect(shared_workers) as client:
        yield from _recorded(monkeypatch, tmp_path, client)


def _recorded(
    monkeypatch: pytest.MonkeyPatch, folder: Path, client: Any
) -> Iterator[Recording]:
    """From when the trials begin, without what samples tell."""
    kinds = [StandardScaler(), LogisticRegression(), DecisionTreeClassifier(),
             KNeighborsClassifier(), PCA()]  # fmt: skip
    with recording(folder / "search", kinds, client) as found:
        search, path = Scheduler.run, str(found.path)

        def from_here(self: Scheduler, *args: Any) -> None:
            found.clear()
            search(self, *args)

        monkeypatch.setattr(Scheduler, "run", from_here)
        trained, scored = scan.training_of, scan.scan_scores

        def training_of(problem: Any, view: Any, owners: Any, *args: Any, **on: Any) -> Any:
            for _ in owners:
                write(path, "fit", "column", 0)
            return trained(problem, view, owners, *args, **on)

        def scan_scores(problem: Any, one: Any) -> Any:
            found = scored(problem, one)
            for value in next(iter(found.values())):
                write(path, "score", "column", int(np.isfinite(value)))
            return found

        chain = Streamed.chain

        def on_a_sample(self: Streamed, *args: Any) -> Any:
            with unseen():
                return chain(self, *args)

        monkeypatch.setattr(Streamed, "chain", on_a_sample)
        monkeypatch.setattr(scan, "training_of", training_of)
        monkeypatch.setattr(batching, "scan_scores", scan_scores)
        yield found


def searched(estimator: Any, space: Any, **settings: Any) -> ModelSearchCV:
    given = {"n_trials": 6, "cv": 3, "random_state": 0, "bandit": None} | settings
    return ModelSearchCV(estimator, space, **given)


def said(search: ModelSearchCV) -> dict[str, dict[str, float]]:
    return {choice.step: dict(choice.ran) for choice in search.plan_.choices if choice.ran}


def foreseen(search: ModelSearchCV) -> dict[str, dict[str, float]]:
    plan = search.explain(X, Y)
    return {choice.step: dict(choice.runs) for choice in plan.choices if choice.runs}


def check_black_box(ran: Recording) -> None:
    search = searched(DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2, 3]},
                      n_trials=3, scoring=Scorer(str(ran.path)))  # fmt: skip
    expected = foreseen(search)
    search.fit(X, Y)
    calls = ran.calls()
    assert said(search) == expected
    family = said(search)["DecisionTreeClassifier"]
    assert calls["fit", "DecisionTreeClassifier"] == family["fit"] + 1 == 10
    assert calls["score", "callable"] == family["score"] == 9


def check_steps(ran: Recording) -> None:
    chain = make_pipeline(StandardScaler(), KNeighborsClassifier())
    search = searched(
        chain, {"kneighborsclassifier__n_neighbors": [1, 3, 5, 7]}, n_trials=4
    )
    expected = foreseen(search)
    search.fit(X, Y)
    calls = ran.calls()
    assert said(search) == expected
    assert (
        calls["fit", "StandardScaler"]
        == said(search)["preprocessing"]["standardscaler"] + 1
    )
    assert calls["fit", "KNeighborsClassifier"] == 4 * 3 + 1


def check_own_pipeline(ran: Recording) -> None:
    chain = mlopt.Pipeline([("scale", StandardScaler()), ("near", KNeighborsClassifier())])
    search = searched(chain, {"near__n_neighbors": [1, 3, 5, 7]}, n_trials=4)
    expected = foreseen(search)
    search.fit(X, Y)
    assert said(search) == expected
    assert ran.calls()["fit", "StandardScaler"] == 3 + 1
    assert ran.calls()["fit", "KNeighborsClassifier"] == 4 * 3 + 1


def check_batched(ran: Recording) -> None:
    search = searched(LogisticRegression(), {"C": [0.1, 1.0, 10.0, 100.0]}, n_trials=4)
    expected = foreseen(search)
    search.fit(X, Y)
    calls = ran.calls()
    assert said(search) == expected
    family = said(search)["LogisticRegression"]
    assert calls["fit", "column"] == family["fit"] == 12
    assert calls["score", "column"] == family["score"] == 12


def check_fit_parameters(ran: Recording) -> None:
    search = searched(LogisticRegression(), {"C": [0.1, 1.0]}, n_trials=2)
    search.fit(X, Y, sample_weight=np.ones(N))
    batched = said(search)["LogisticRegression"]["fit"]
    assert ran.calls()["fit", "column"] == batched == 6
    tree = searched(
        DecisionTreeClassifier(random_state=0), {"max_depth": [1, 2]}, n_trials=2
    )
    tree.fit(X, Y, check_input=True)
    assert ran.calls()["fit", "DecisionTreeClassifier"] == 2 * 3 + 1
    assert said(tree)["DecisionTreeClassifier"]["fit"] == 6


def check_steps_of_several_families(ran: Recording) -> None:
    near, tree = KNeighborsClassifier(), DecisionTreeClassifier(random_state=0)
    scaled = [
        Pipeline([("scale", StandardScaler(with_mean=mean)), ("model", model)])
        for mean, model in [(True, near), (False, tree), (True, LogisticRegression())]
    ]
    families: dict[str, Any] = {
        name: (model, {}) for name, model in zip("abc", scaled, strict=True)
    }
    search = searched(families, None, n_trials=3)
    expected = foreseen(search)
    search.fit(X, Y)
    assert said(search)["preprocessing"] == expected["preprocessing"] == {"scale": 6}
    assert ran.calls()["fit", "StandardScaler"] == 6 + 1


def check_searched_steps(ran: Recording) -> None:
    chain = Pipeline([("scale", StandardScaler()), ("near", KNeighborsClassifier())])
    search = searched(chain, {"scale__with_mean": [True, False]}, n_trials=2)
    assert "scale" not in foreseen(search).get("preprocessing", {})
    search.fit(X, Y)
    assert ran.calls()["fit", "StandardScaler"] == 6 + 1
    assert said(search)["preprocessing"] == {"scale": 6}


def check_streamed(ran: Recording) -> None:
    chain = Pipeline([("scale", StandardScaler()), ("model", LogisticRegression())])
    for own in (chain, mlopt.Pipeline(chain.steps)):
        rows = da.from_array(X, chunks=(300, 5)) if own is chain else X
        search = searched(own, {"model__C": [0.1, 1.0]}, n_trials=2, cv=4)
        search.fit(rows, Y)
        assert said(search)["preprocessing"] == {"scale": 4}
        assert ran.calls()["fit", "StandardScaler"] == 4 + 1


def check_several_streamed_steps(ran: Recording) -> None:
    chain = Pipeline([("pca", PCA()), ("model", LogisticRegression())])
    space = {"pca__n_components": [2, 3]}
    search = searched(chain, space, n_trials=2, sampler="grid")
    search.fit(da.from_array(X, chunks=(300, 5)), Y)
    assert said(search)["preprocessing"] == {"pca": 6}
    assert ran.calls()["fit", "PCA"] == 6 + 1


CHECKS = [
    check_black_box,
    check_steps,
    check_own_pipeline,
    check_batched,
    check_fit_parameters,
    check_streamed,
    check_several_streamed_steps,
]
HERE = [*CHECKS, check_steps_of_several_families, check_searched_steps]  # fmt: skip


@pytest.mark.parametrize("check", HERE, ids=lambda check: check.__name__[6:])
def test_a_search_does_what_its_plan_says(check: Any, ran: Recording) -> None:
    check(ran)


@pytest.mark.cluster
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])
def test_workers_do_what_the_plan_says(check: Any, ran_on_workers: Recording) -> None:
    check(ran_on_workers)


def test_few_rows_behind_steps_are_scanned_alike_beside_a_client() -> None:
    """They are brought here, where models of a scan may train by themselves."""
    X, y = make_classification(800, 60, random_state=0)
    chain = make_pipeline(PCA(whiten=True), LogisticRegression())
    search = searched(chain, {"logisticregression__C": [1.0, 10.0]}, n_trials=2)
    alone = search.explain(X, y).choices[0]
    assert alone.runs["newton"] == alone.runs["fit"]
    with (
        dask.config.set({"mlopt.plan": "where it pays"}),
        distributed.Client(processes=False, n_workers=1, dashboard_address=None),
    ):
        beside = search.fit(X, y).plan_.choices[0]
    assert beside.chosen == alone.chosen
    assert beside.runs == beside.ran == alone.runs


def test_models_that_are_pruned_are_scored_as_often_as_said(ran: Recording) -> None:
    search = searched(LogisticRegression(), {"C": list(np.logspace(-4, 4, 12))},
                      n_trials=12, bandit="successive-halving")  # fmt: skip
    search.fit(X, Y)
    family, calls = said(search)["LogisticRegression"], ran.calls()
    assert calls["fit", "column"] == family["fit"] == 36
    assert calls["score", "column"] == family["score"]


class OfAnother(StandardScaler):
    """A transformer that nobody has declared."""


@pytest.mark.parametrize("model", [DecisionTreeClassifier(), LogisticRegression()])
@pytest.mark.parametrize("first", [True, False])
def test_a_step_that_no_trials_share_is_said_to_be_fitted_for_each(
    model: Any, first: bool
) -> None:
    steps = [OfAnother(), StandardScaler()]
    search = mlopt.ModelSearchCV(
        make_pipeline(*(steps if first else steps[::-1]), model),
        {"max_depth": [1, 2, 3]} if hasattr(model, "max_depth") else {"C": [0.1, 1.0, 9.0]},
        cv=4, sampler="grid", n_trials=None, bandit=None,
    )  # fmt: skip
    told = search.explain(X, Y).explain()
    plan = search.fit(X, Y).plan_
    prepared = next(one for one in plan.choices if one.step == "preprocessing")
    assert prepared.ran == prepared.runs
    assert prepared.ran["ofanother"] == 3 * 4
    assert prepared.ran["standardscaler"] == (12 if first else 4)
    for text in (told, plan.explain()):
        own = "ofanother > standardscaler" if first else "ofanother"
        assert f"fitted once a split for each trial: {own} (`OfAnother` is not d" in text
        assert ("shared: standardscaler" in text) is not first
        assert ("once a split, for each trial" in text) is first
