"""Preprocessing on worker processes: fitted as often as here, and it stays there."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import distributed
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.clusters import eventually, task_keys

import mlopt
from mlopt.cluster.connect import connect
from mlopt.cluster.workers import Cluster

pytestmark = pytest.mark.cluster

X, y = make_classification(3000, 10, n_informative=6, random_state=0)
FINALS: dict[str, tuple[Any, str, list[Any]]] = {
    "batched": (LogisticRegression(), "C", [0.01, 0.1, 1.0, 10.0]),
    "one by one": (DecisionTreeClassifier(random_state=0), "max_depth", [1, 2, 3, 4]),
}


@pytest.fixture(scope="module")
def client(shared_workers: str) -> Iterator[distributed.Client]:
    with connect(shared_workers) as client:
        yield client


def noted(base: type, name: str, path: Path) -> Any:
    """A transformer that notes its fits; a local class travels to the workers whole."""
    file = str(path)

    class Noted(base):
        def fit_transform(self, X: Any, y: Any = None) -> Any:
            with open(file, "a") as notes:  # noqa: PTH123
                notes.write(f"{name} {len(X)}\n")
            return super().fit_transform(X, y)

    return mlopt.register(Noted, row_wise=True)


def run(final: str, notes: Path, **settings: Any) -> tuple[Any, dict[str, int]]:
    """The fitted search, and how often each step was fitted on training rows."""
    notes.write_text("")
    model, name, values = FINALS[final]
    steps = [
        ("scale", noted(StandardScaler, "scale", notes)()),
        ("pca", noted(PCA, "pca", notes)()),
        ("model", model),
    ]
    found = mlopt.ModelSearchCV(
        Pipeline(steps), {"pca__n_components": [2, 4], f"model__{name}": values},
        sampler="grid", n_trials=None, bandit=None, cv=3, **settings,
    ).fit(X, y)  # fmt: skip
    lines = [line.split() for line in notes.read_text().splitlines()]
    return found, dict(Counter(name for name, n in lines if int(n) == 2 * len(X) // 3))


@pytest.mark.parametrize("final", FINALS)
def test_workers_fit_as_often_and_score_the_same(
    final: str, client: distributed.Client, tmp_path: Path
) -> None:
    here, fits_here = run(final, tmp_path / "here", n_jobs=2)
    there, fits_there = run(final, tmp_path / "there", client=client)

    assert fits_here == fits_there == {"scale": 3, "pca": 6}
    np.testing.assert_array_equal(
        here.cv_results_["mean_test_score"], there.cv_results_["mean_test_score"]
    )


@pytest.mark.parametrize("final", FINALS)
def test_rows_never_come_to_the_driver(
    final: str, client: distributed.Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    largest = [0]
    gather = Cluster.results

    def watched(self: Cluster, handles: Any) -> list[Any]:
        values = gather(self, handles)
        # The solver looks at a sample of the rows it picks; nothing else may come.
        asked = [not str(handle.key).startswith("pick") for handle in handles]
        arrays = [
            v
            for value, own in zip(values, asked, strict=True)
            if own
            for v in _arrays(value)
        ]
        largest[0] = max([largest[0], *(array.size for array in arrays)])
        return values

    monkeypatch.setattr(Cluster, "results", watched)
    run(final, tmp_path / "notes", client=client, refit=False)

    assert largest[0] < len(X)


@pytest.mark.parametrize("final", FINALS)
def test_workers_hold_nothing_afterwards(
    final: str, client: distributed.Client, tmp_path: Path
) -> None:
    before = task_keys(client)
    gc.disable()
    try:
        run(final, tmp_path / "notes", client=client, refit=False)
        eventually(lambda: task_keys(client) <= before)
    finally:
        gc.enable()
    assert task_keys(client) - before == set()


def _arrays(value: Any) -> list[np.ndarray]:
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, tuple | list):
        return [array for item in value for array in _arrays(item)]
    return []
