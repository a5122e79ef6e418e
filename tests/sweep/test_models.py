"""Model files load what was saved, and refuse what nobody reviewed."""

from __future__ import annotations

import pickle
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.cluster import DBSCAN, KMeans

import mlopt
from mlopt.errors import ConfigError, InputError
from mlopt.sweep import models
from mlopt.sweep.config import Family
from mlopt.sweep.families import DEFAULTS, Case
from mlopt.sweep.models import dump_model, load
from mlopt.sweep.predict import predict_file, predictions
from mlopt.sweep.registry import ESTIMATORS, families_of
from mlopt.sweep.roles import roles_of
from mlopt.sweep.target import target_of


class Unreviewed(KMeans):
    """A class that is on no list."""


def case_of(table: pd.DataFrame, target: str) -> tuple[Case, pd.DataFrame, np.ndarray]:
    X = table.drop(columns=target)
    found, y = target_of(table[target])
    return Case(roles_of(X), found, len(X), X.shape[1], 0), X, y


@pytest.mark.slow
@pytest.mark.parametrize("target", ["buys", "wage"])
@pytest.mark.parametrize("family", DEFAULTS)
def test_every_default_family_survives_a_file(
    table: pd.DataFrame, tmp_path: Path, family: str, target: str
) -> None:
    case, X, y = case_of(table.dropna(), target)
    model = DEFAULTS[family](case)[0]
    if family == "hist_gradient_boosting":
        model.set_params(model__max_iter=5)
    model.fit(X, y)
    path = tmp_path / "model.skops"
    path.write_bytes(dump_model(model))
    assert np.array_equal(load(path).predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("SVC", {}),
        ("KNeighborsClassifier", {}),
        ("LinearSVC", {}),
        ("MLPClassifier", {"max_iter": 500, "tol": 0.01}),
        ("MLPClassifier", {"max_iter": 500, "tol": 0.01, "solver": "sgd"}),
        ("KNeighborsClassifier", {"p": 1}),
        ("KNeighborsClassifier", {"p": 3, "algorithm": "ball_tree"}),
        *(
            ("KNeighborsClassifier", {"metric": metric, "algorithm": "ball_tree"})
            for metric in ("canberra", "braycurtis", "chebyshev", "hamming")
        ),
    ],
)
def test_estimators_of_the_registry_survive_a_file(
    table: pd.DataFrame, tmp_path: Path, name: str, params: dict[str, Any]
) -> None:
    case, X, y = case_of(table, "buys")
    built = families_of(case, {"m": Family(estimator=name, params=params)})
    model = built["m"][0].fit(X, y)
    path = tmp_path / "model.skops"
    path.write_bytes(dump_model(model))
    assert np.array_equal(load(path).predict(X), model.predict(X))


@pytest.mark.parametrize("name", ["model", "model.bin"])
def test_a_model_is_told_by_its_content_whatever_its_name_is(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(dump_model(KMeans(2).fit([[0.0], [1.0]])))
    assert load(tmp_path / name).n_clusters == 2


def test_a_type_that_nobody_reviewed_is_neither_written_nor_read(tmp_path: Path) -> None:
    import skops.io

    model = Unreviewed(2).fit(np.eye(4))
    with pytest.raises(InputError, match=r"reviewed types only.*Unreviewed"):
        dump_model(model)
    path = tmp_path / "model.skops"
    path.write_bytes(skops.io.dumps(model))
    with pytest.raises(InputError, match="Unreviewed"):
        load(path)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("model.skops", b"no archive", "not a model"),
        ("model.joblib", b"", "must be a .skops file"),
        ("none.skops", None, "cannot be read"),
        ("none", None, "none cannot be read: No such file"),
    ],
)
def test_what_is_no_model_is_refused(
    tmp_path: Path, name: str, content: bytes | None, says: str
) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=says):
        load(path)


def bomb(path: Path, name: str, size: int) -> None:
    """A small archive of ``size`` bytes of blanks."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open(name, "w") as file:
            file.write(b'{"content": ' if name == "schema.json" else b"")
            for _ in range(size >> 20):
                file.write(b" " * (1 << 20))
        if name != "schema.json":
            archive.writestr("schema.json", "{}")


@pytest.mark.parametrize("name", ["schema.json", "1.npy"])
def test_a_file_that_unpacks_to_more_than_memory_is_refused_before_it_is_read(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import skops.io

    monkeypatch.setattr(models, "memory_limit", lambda: 64 << 20)
    monkeypatch.setattr(skops.io, "get_untrusted_types", None)
    path = tmp_path / "model.skops"
    bomb(path, name, 80 << 20)
    assert path.stat().st_size < 1 << 20
    with pytest.raises(InputError, match=r"model\.skops.*unpacks to 0\.1 GB"):
        load(path)


@pytest.mark.slow
def test_a_description_of_more_than_models_have_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.skops"
    bomb(path, "schema.json", models.SCHEMA_BYTES + (1 << 20))
    with pytest.raises(InputError, match=r"describes itself in more than"):
        load(path)


def test_the_registry_names_estimators_that_exist() -> None:
    import importlib

    kinds = {
        name: is_classifier(getattr(importlib.import_module(module), name)())
        for name, (module, _) in ESTIMATORS.items()
    }
    assert {name for name, kind in kinds.items() if kind} >= {"LogisticRegression", "SVC"}


PAIRS = pd.DataFrame({"user": [*"aabbccdd"], "item": [1, 2, 1, 3, 2, 3, 1, 2]})
WORDS = pd.DataFrame(np.random.default_rng(0).integers(0, 4, (30, 5)), columns=[*"vwxyz"])


@pytest.mark.parametrize("way", ["file", "pickle"])
@pytest.mark.parametrize(
    ("model", "given", "what"),
    [
        (mlopt.MatrixFactorization(2, random_state=0), (PAIRS, range(8)), "predict"),
        (
            mlopt.MatrixFactorization(2, solver="als", implicit=True, random_state=0),
            (PAIRS, range(8)),
            "predict",
        ),
        (mlopt.LatentDirichletAllocation(3, random_state=0), (WORDS,), "transform"),
    ],
)
def test_factors_and_topics_come_back_and_go_on(
    tmp_path: Path, model: Any, given: Any, what: str, way: str
) -> None:
    model = clone(model).set_params(max_iter=5).fit(*given)
    path = tmp_path / "model.skops"
    if way == "file":
        path.write_bytes(dump_model(model))
    other = load(path) if way == "file" else pickle.loads(pickle.dumps(model))
    fits = [one.set_params(warm_start=True, max_iter=9).fit for one in (model, other)]
    for more in (False, True):  # a warm start goes on from where it was
        if more:
            _ = [fit(*given) for fit in fits]
        found, wanted = (getattr(one, what)(given[0]) for one in (other, model))
        assert np.array_equal(found, wanted)
    assert other.plan_ is not None


@pytest.mark.parametrize("files", [False, True])
def test_commands_predict_ratings_and_write_topics(tmp_path: Path, files: bool) -> None:
    for model, rows, columns in (
        (mlopt.MatrixFactorization(2, random_state=0).fit(PAIRS, range(8)), PAIRS, 1),
        (mlopt.LatentDirichletAllocation(3, random_state=0).fit(WORDS), WORDS, 3),
    ):
        path, data = tmp_path / "model.skops", tmp_path / "rows.csv"
        path.write_bytes(dump_model(model))
        rows.to_csv(data, index=False)
        if files:
            mlopt.predict(path, data, output=tmp_path / "out")
            found = pd.read_csv(next((tmp_path / "out").rglob("*.csv")))
            shutil.rmtree(tmp_path / "out")
        else:
            found = predict_file(path, str(data))
        values = model.predict(rows) if columns == 1 else model.transform(rows)
        np.testing.assert_allclose(found.to_numpy(), values.reshape(-1, columns), 1e-6)
        names = ["prediction"] if columns == 1 else [*model.get_feature_names_out()]
        assert [*found.columns] == names


def test_a_model_that_neither_predicts_nor_transforms_is_refused() -> None:
    with pytest.raises(InputError, match="must predict or transform"):
        predictions(DBSCAN(), WORDS)


def test_a_family_that_is_not_enabled_is_left_out(table: pd.DataFrame) -> None:
    case, _, _ = case_of(table, "buys")
    off, on = Family(enabled=False), Family()
    assert list(families_of(case, {"linear": on, "extra_trees": off})) == ["linear"]
    others = families_of(case, {"linear": off})
    assert list(others) == [name for name in DEFAULTS if name != "linear"]
    assert list(families_of(case, {"linear": off}, ["linear"])) == ["linear"]
    with pytest.raises(ConfigError, match="must leave one enabled"):
        families_of(case, dict.fromkeys(DEFAULTS, off))


def test_what_a_configuration_sets_is_not_varied(table: pd.DataFrame) -> None:
    case, _, _ = case_of(table, "buys")
    fixed, varied = {"learning_rate": 0.2}, {"learning_rate": [0.1, 0.3]}
    name = "hist_gradient_boosting"
    model, space = families_of(case, {name: Family(params=fixed)})[name]
    assert model.get_params()["model__learning_rate"] == 0.2
    assert "model__learning_rate" not in space
    assert "model__max_iter" in space
    _, space = families_of(case, {name: Family(params=fixed, space=varied)})[name]
    assert space == {"model__learning_rate": [0.1, 0.3]}
