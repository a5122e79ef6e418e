"""`mlopt.sweep` takes a table and gives a model that says how it was found."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_wine

import mlopt
from mlopt.errors import ConfigError, InputError
from mlopt.sweep.config import load
from mlopt.sweep.loading import from_frame
from mlopt.sweep.models import dump_model

WINE: pd.DataFrame = load_wine(as_frame=True).frame


def test_a_table_becomes_a_model_that_says_how_it_was_found(tmp_path: Path) -> None:
    import mlopt.sweep.models  # sets the name of the room

    model = mlopt.sweep(
        WINE, target="target", families=["linear"], n_trials=3, output=tmp_path
    )
    board = model.leaderboard_
    assert board["score"].is_monotonic_decreasing
    assert sorted(board["number"]) == [0, 1, 2]
    assert model.report_.startswith("<!doctype html>")
    assert model.plan_.choices[0].step == "read"
    assert model.test_scores_["accuracy"] > 0.8
    assert len(dump_model(model)) == len((tmp_path / "model.skops").read_bytes())
    found = model.predict(WINE)
    for other in (
        pickle.loads(pickle.dumps(model)),
        mlopt.load(str(tmp_path / "model.skops")),
        clone(model).fit(WINE.drop(columns="target"), WINE["target"]),
    ):
        assert np.mean(other.predict(WINE) == found) > 0.95


def test_a_plan_is_of_the_trials_asked_for_and_not_of_the_limit() -> None:
    model = mlopt.sweep(
        WINE, target="target", families=["linear"], n_trials=2, timeout="1h"
    )
    assert model.plan_.predicted < 60.0


def test_settings_of_a_configuration_say_where_it_runs_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    @contextmanager
    def connected(address: str) -> Iterator[None]:
        asked.append(address)
        yield

    monkeypatch.setattr("mlopt.cluster.connect.connect", connected)
    where = {"scheduler": "tcp://127.0.0.1:1", "directory": str(tmp_path / "out")}
    mlopt.sweep(WINE, target="target", families=["linear"], n_trials=1, **where)
    assert asked == ["tcp://127.0.0.1:1"]
    assert (tmp_path / "out" / "model.skops").is_file()
    with pytest.raises(ConfigError, match="leave one of them out"):
        mlopt.sweep(WINE, target="target", client="a client", **where)


def test_columns_may_be_numbered() -> None:
    frame = WINE.set_axis(range(WINE.shape[1]), axis=1)
    model = mlopt.sweep(frame, target=13, families=["linear"], n_trials=1)
    assert np.mean(model.predict(frame) == WINE["target"]) > 0.9


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_a_model_takes_tables_like_those_it_was_made_of(kind: str) -> None:
    pytest.importorskip(kind)
    frame = nw.from_native(WINE)
    other = frame.to_arrow() if kind == "pyarrow" else frame.to_polars()
    model = mlopt.sweep(other, target="target", families=["linear"], n_trials=1)
    found = model.predict(other)
    np.testing.assert_array_equal(found, model.predict(WINE))
    again = clone(model).fit(other, WINE["target"])
    np.testing.assert_array_equal(found, again.predict(other))


def test_without_an_end_nothing_is_searched() -> None:
    with pytest.raises(InputError, match=r"needs an end: give `n_trials`, `timeout`"):
        mlopt.sweep(WINE, target="target", families=["linear"], timeout=None)


def test_what_is_no_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"`n_trals`\. Did you mean `n_trials`"):
        mlopt.sweep(WINE, target="target", n_trals=1)
    with pytest.raises(InputError, match="nowhere"):
        mlopt.sweep(WINE, target="nowhere", n_trials=1)


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(InputError, match=r"must be a data frame in memory .* got dict"):
        mlopt.sweep({"a": [1]}, "a")


def test_its_parameters_are_those_of_the_function() -> None:
    assert [*inspect.signature(mlopt.sweep).parameters] == ["data", "target", "given"]


def test_a_target_is_a_number_of_frames_and_of_toml_too(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4], "c": ["x", "y"]})
    for target, name in (("last", "c"), ("1", "b"), ("-3", "a")):
        assert from_frame(frame, target, "X").y.name == name
    with pytest.raises(InputError, match="none named `7`"):
        from_frame(frame, "7", "X")
    path = tmp_path / "sweep.toml"
    path.write_text('[data]\npath = "a.csv"\ntarget = 2\n')
    assert load(path).data.target == "2"


def test_the_last_column_to_test_on_is_that_to_search_on() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"id": range(200), "a": rng.normal(size=200)})
    table["price"] = 3.0 * table["a"] + 0.1 * rng.normal(size=200)
    test = table[["price", "a", "id"]]
    model = mlopt.sweep(
        table, "last", test=test, drop=("id",), families=["linear"], n_trials=2,
        timeout=None,
    )  # fmt: skip
    assert model.test_scores_["r2"] > 0.9


def test_a_model_of_another_study_is_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(80, 3)), columns=list("abc"))
    settings: dict[str, Any] = {
        "families": ["linear"], "n_trials": 2, "timeout": None, "output": tmp_path,
    }  # fmt: skip
    mlopt.sweep(table, "c", **settings)
    before = (tmp_path / "model.skops").read_bytes()
    mlopt.sweep(table, "c", **settings)
    assert not (tmp_path / "earlier-model.skops").exists()
    mlopt.sweep(table, "b", **settings)
    kept = mlopt.load(tmp_path / "earlier-model.skops")
    assert [*kept.feature_names_in_] == ["a", "b"]
    assert [*mlopt.load(tmp_path).feature_names_in_] == ["a", "c"]
    assert len((tmp_path / "earlier-model.skops").read_bytes()) > len(before) // 2
