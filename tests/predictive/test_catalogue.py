"""Models are kept whole, found by their content, shown, dropped and pruned."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import mlopt
from mlopt.cli import main
from mlopt.errors import InputError
from mlopt.predictive import catalogue
from mlopt.predictive.catalogue import ENTRY, Catalogue
from mlopt.sweep.models import MODEL
from mlopt.sweep.outputs import RESULT

QUERY = """
    SELECT PREDICT(tag, light) GIVEN labelled AS tag, count(*) AS n FROM photos GROUP BY ALL
"""


@pytest.fixture
def models(
    tmp_path: Path, photos: pd.DataFrame, labelled: pd.DataFrame, quick: dict[str, Any]
) -> Catalogue:
    """A catalogue of one model, and the tables as files in the working folder."""
    photos.to_csv(tmp_path / "photos.csv", index=False)
    labelled.to_csv(tmp_path / "labelled.csv", index=False)
    mlopt.sql(QUERY, {"photos": photos, "labelled": labelled}, **quick)
    return Catalogue(quick["catalogue"])


def test_a_model_is_the_output_of_its_sweep(
    models: Catalogue, photos: pd.DataFrame
) -> None:
    (entry,) = models.entries()
    assert entry.clause == "PREDICT(tag, light) GIVEN labelled"
    assert entry.current
    assert models.result(entry)["n_trials"] == 2
    folder = models.path(entry.name[:5])
    assert len(mlopt.load(folder).predict(photos[["light"]])) == len(photos)


def test_a_model_is_found_by_its_name_alone(models: Catalogue) -> None:
    with pytest.raises(InputError, match="has no model 'tga'"):
        models.path("tga")
    with pytest.raises(InputError, match="has no model ''"):
        models.path("")
    (entry,) = models.entries()
    other = models.folder / f"{entry.name}2"
    (models.folder / entry.name).rename(other)
    models.keep(other, entry.clause)
    other.rename(models.folder / "tag-other")
    models.keep(models.folder / "tag-other", entry.clause)
    assert [one.name for one in models.entries()] == ["tag-other"]
    models.drop("tag-o")
    assert models.entries() == []


def test_what_was_never_finished_is_no_model(
    models: Catalogue, quick: dict[str, Any]
) -> None:
    (entry,) = models.entries()
    (models.folder / entry.name / ENTRY).unlink()
    assert models.entries() == []
    assert models.prune() == [entry.name]
    assert list(models.folder.glob("tag-*")) == []


def test_damaged_entries_are_none_and_damaged_models_are_told_how_to_drop(
    models: Catalogue, quick: dict[str, Any], photos: Any, labelled: Any
) -> None:
    (entry,) = models.entries()
    folder = models.folder / entry.name
    whole = (folder / MODEL).read_bytes()
    (folder / MODEL).write_bytes(whole[:100])
    with pytest.raises(InputError, match=f"`mlopt catalogue drop {entry.name}`"):
        mlopt.sql(QUERY, {"photos": photos, "labelled": labelled}, **quick)
    record = json.loads((folder / ENTRY).read_text())
    (folder / ENTRY).write_text(json.dumps({**record, "created": None}))
    assert models.entries() == []


@pytest.mark.parametrize("word", ["mlopt", "scikit-learn"])
def test_models_of_other_versions_are_pruned(models: Catalogue, word: str) -> None:
    (entry,) = models.entries()
    path = models.folder / entry.name / ENTRY
    record = json.loads(path.read_text())
    record["versions"][word] = "0.0.1"
    path.write_text(json.dumps(record))
    assert not models.entries()[0].current
    assert models.prune() == [entry.name]
    assert models.entries() == []


def test_a_model_that_is_whole_by_now_is_kept(
    models: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else may end a sweep at any moment; what counts is what is there then."""
    (entry,) = models.entries()
    monkeypatch.setattr(Catalogue, "entries", lambda self: [])
    assert models.prune() == []
    assert (models.folder / entry.name).is_dir()


def test_models_that_are_used_are_kept(models: Catalogue) -> None:
    (entry,) = models.entries()
    path = models.folder / entry.name
    assert models.prune() == []
    long_ago = time.time() - 1000
    os.utime(path / ENTRY, (long_ago, long_ago))
    assert models.prune(unused=2000) == []
    assert models.use(path)
    assert models.prune(unused=500) == []
    os.utime(path / ENTRY, (long_ago, long_ago))
    with models.filling(path):  # somebody plans it anew
        assert models.prune(unused=500) == []
    assert models.prune(unused=500) == [entry.name]


def test_a_model_is_there_for_who_may_only_read(
    models: Catalogue,
    photos: pd.DataFrame,
    labelled: pd.DataFrame,
    quick: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(catalogue, "check_writable", None)
    monkeypatch.setattr(catalogue, "FileLock", None)
    for query in (QUERY, f"EXPLAIN {QUERY}"):
        mlopt.sql(query, {"photos": photos, "labelled": labelled}, **quick)


def test_a_model_without_a_result_is_none(models: Catalogue) -> None:
    (entry,) = models.entries()
    (models.folder / entry.name / RESULT).write_text("{")
    assert models.entries() == []


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    def run(*arguments: Any) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main([str(one) for one in arguments])
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err

    return run


Run = Callable[..., tuple[int, str, str]]
QUICK = ("--families", "linear", "--n-trials", "2", "--cv", "3")


def test_the_command_line_answers_and_lists(
    models: Catalogue, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(models.folder.parent)
    folder = ("--catalogue", models.folder)
    status, out, _ = run("sql", QUERY, *QUICK, *folder, "--table", "photos=photos.csv")
    assert status == 0
    assert out.startswith("tag,n\n")
    assert len(models.entries()) == 1  # of the same rows, though they come from a file
    status, again, _ = run("sql", QUERY, *QUICK, *folder, "--output", "rows.csv")
    assert (status, again) == (0, "")
    assert sorted(Path("rows.csv").read_text().splitlines()) == sorted(out.splitlines())
    status, out, _ = run("explain", QUERY, *QUICK)
    assert status == 0
    assert "PREDICT(tag, light)" in out

    where = ("--folder", models.folder)
    (entry,) = models.entries()
    status, out, _ = run("catalogue", *where)
    assert status == 0
    assert entry.name in out
    assert "linear, accuracy" in out
    assert (
        json.loads(run("catalogue", "list", "--json", *where)[1])[0]["name"] == entry.name
    )
    assert "accuracy" in run("catalogue", "show", "tag", *where)[1]
    assert run("catalogue", "prune", "--unused", "30d", *where)[:2] == (0, "")
    assert "is gone" in run("catalogue", "drop", entry.name, *where)[1]
    assert "no models" in run("catalogue", *where)[1]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM people",
        "SELECT * FROM 'people.csv'",
        "SELECT * FROM '*e.csv'",
        "SELECT * FROM read_csv('people.csv')",
        "SELECT * FROM read_csv('*le.csv')",
        "SELECT * FROM read_csv(['people.csv'])",
        "SELECT PREDICT(b) GIVEN 'people.csv' FROM (SELECT 1 AS a)",
    ],
)
def test_the_command_line_writes_over_nothing_that_it_reads(
    query: str, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("a,b\n1,2\n")
    status, _, said = run("sql", query, "--output", "people.csv")
    assert status == 2
    assert "`people.csv`: name another" in said
    assert (tmp_path / "people.csv").read_text() == "a,b\n1,2\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("sql", "SELECT 1", "--table", "x"), "must be NAME=FILE"),
        (("sql", "SELECT 1", "--table", "x=none.csv"), "there is no file none.csv"),
        (("sql", "SELECT 1", "--target", "x"), "leave out `target`"),
        (("sql", "SELECT PREDICT(a)"), "must be followed by GIVEN"),
        (("explain", "SELECT 1", "--storage", "sqlite:///x.db"), "leave out `--storage`"),
        (("catalogue", "shw"), "takes list, show NAME"),
        (("catalogue", "show"), "takes list, show NAME"),
        (("catalogue", "prune", "--unused", "long"), "such as 30d"),
        (("catalogue", "drop", "none"), "has no model 'none'"),
    ],
)
def test_the_command_line_refuses_in_a_line(
    arguments: tuple[str, ...],
    said: str,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLOPT_CATALOGUE", str(tmp_path / "models"))
    status, out, err = run(*arguments)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_text_of_a_query_is_no_pattern_of_files(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("name,n\nx,2\n")
    query = "SELECT name, repeat('*', n) AS bar, '~x' AS y FROM read_csv('people.csv')"
    for _ in range(2):
        assert run("sql", query, "--output", "out.csv")[0] == 0
    assert (tmp_path / "out.csv").read_text() == "name,bar,y\nx,**,~x\n"
