"""Records, logs, turns and command lines of jobs, without a cluster."""

from __future__ import annotations

import io
import json
import math
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from mlopt import events
from mlopt.caching.disk import Disk
from mlopt.cluster import pack, turns, unpack
from mlopt.detached.commands import _asked, work_of
from mlopt.detached.driver import drive
from mlopt.detached.job import Job, error_of
from mlopt.detached.kinds import Call, Fit, Predict, Query, Sweep, Train
from mlopt.detached.records import (
    FAILED,
    WAITING,
    Failed,
    Folder,
    Record,
    folders_in,
    make,
    now,
)
from mlopt.detached.work import GIVEN, RETURNED, STATE, Place, Work, check_storage
from mlopt.errors import ConfigError, InputError, TaskKilledError
from mlopt.query.places import anywhere, files_read
from mlopt.report.progress import Lines, event_of
from mlopt.server.job import Job as Training
from mlopt.settings import SETTINGS, Settings


def record(name: str = "one", **named: Any) -> Record:
    work = Query(text="RUN classification ON a.csv;")
    return Record(name=name, work=work, key="key", created=now(), **named)


def typed(source: str, *files: str, settings: Settings = SETTINGS, **given: Any) -> Work:
    options = {"family": None, "output": None, "proba": False, "memory": None} | given
    return work_of(source, files, settings, **options)


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    work = typed(
        "people.csv", settings=Settings(target="y", timeout="1h", families="linear")
    )
    folder = make(tmp_path / "jobs", replace(record(), work=work))
    assert folder.read().work == work
    assert folder.path.stat().st_mode & 0o077 == 0
    assert [one.name for one in folders_in(tmp_path / "jobs")] == ["one"]
    with pytest.raises(InputError, match="has a job 'one' already"):
        make(tmp_path / "jobs", record())


@pytest.mark.parametrize("name", ["", "../out", "a/b", ".hidden", "x" * 101])
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="name of a job must be"):
        make(tmp_path, record(name))


def test_a_damaged_record_is_named(tmp_path: Path) -> None:
    folder = make(tmp_path, record())
    (folder.path / "job.json").write_text('{"name": "one"}')
    with pytest.raises(InputError, match="must be the record of a job"):
        folder.read()


def test_changes_of_many_at_once_are_all_made(tmp_path: Path) -> None:
    folder = make(tmp_path, record())

    def add() -> None:
        for _ in range(5):
            folder.change(lambda old: replace(old, attempt=old.attempt + 1))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert folder.read().attempt == 20


def test_time_of_earlier_attempts_is_spent_and_a_torn_line_is_none(tmp_path: Path) -> None:
    folder = make(tmp_path, record())
    folder.log(1).write_text('{"at": 2.5, "event": "Message", "text": ""}\n{"at": 7')
    failed = '{"at": 0.0, "event": "Message", "text": "failed: no more"}\n'
    folder.log(2).write_text('{"at": 4.0, "event": "TrialFinished"}\n' + failed)
    assert folder.spent(3) == 6.5
    assert [folder.got_ahead(attempt) for attempt in (1, 2, 3)] == [False, True, False]


def test_events_come_back_from_their_lines() -> None:
    told: list[events.Event] = [
        events.TrialScored(1.25, 3, "linear", 17, 0.5, 0.1, replayed=True),
        events.TrialPruned(2.0, 3, 17, math.nan, "hopeless"),
        events.FileDone(3.0, "a.csv", 10, 1, 2),
    ]
    stream = io.StringIO()
    for event in told:
        Lines(stream, quiet=())(event)
    found = [event_of(line) for line in stream.getvalue().splitlines()]
    assert repr(found) == repr(told)  # not a number is not itself
    started = events.TrialStarted(0.0, 1, "linear", {"C": 1.0})
    stream = io.StringIO()
    Lines(stream, quiet=())(started)
    assert event_of(stream.getvalue()) == events.TrialStarted(0.0, 1, "linear")


def test_a_fit_is_given_no_option_of_a_search() -> None:
    settings = Settings(target="y", timeout="1h")
    with pytest.raises(ConfigError, match="`--timeout` is an option of a search"):
        typed("people.csv", settings=settings, family="linear")
    assert isinstance(typed("people.csv", settings=settings), Sweep)


def test_a_fit_does_not_write_over_its_configuration(tmp_path: Path) -> None:
    source = tmp_path / "c.toml"
    source.write_text('[data]\npath = "people.csv"\ntarget = "y"\n')
    with pytest.raises(InputError, match=r"must not be what is read, but .*c\.toml"):
        typed(str(source), family="linear", output=str(source))
    made = typed(str(source), family="linear", output=str(tmp_path / "m.skops"))
    assert isinstance(made, Fit)


def test_what_is_typed_says_what_the_work_is(tmp_path: Path) -> None:
    sweep = typed("people.csv", settings=Settings(target="y"))
    assert isinstance(sweep, Sweep)
    assert sweep.config.data.path == str(Path.cwd() / "people.csv")
    assert sweep.title == "people"
    assert isinstance(typed("sklearn:iris", family="linear"), Fit)
    predict = typed("model.skops", "a*.csv", "b.csv", output="out")
    assert isinstance(predict, Predict)
    assert predict.paths == (str(Path.cwd() / "a*.csv"), str(Path.cwd() / "b.csv"))
    assert isinstance(typed("RUN regression ON a.csv"), Query)
    with pytest.raises(ConfigError, match="a folder for predictions"):
        typed("model.skops", "a.csv")
    with pytest.raises(ConfigError, match="A query"):
        typed("RUN regression ON a.csv", settings=Settings(target="y"))
    with pytest.raises(ConfigError, match="for predictions"):
        typed("a.csv", proba=True)


def test_a_password_does_not_go_into_a_record() -> None:
    check_storage("sqlite:///study.db")
    check_storage(None)
    for storage in ("postgresql://me:secret@host/db", object()):
        with pytest.raises(ConfigError, match="OPTUNA_STORAGE") as refused:
            check_storage(storage)
        assert "secret" not in str(refused.value)


def test_a_query_is_the_same_from_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    text = (
        "RUN classification ON a.csv:2, /b/a.csv:4-20 HAVING EPSILON 0.01; "
        "PERSIST Q1 ON m.txt; r = PREDICT ON t.csv WITH m.txt; PREDICT ON t.csv WITH Q1;"
    )
    placed = anywhere(text)
    assert placed == (
        "RUN classification ON /a.csv:2, /b/a.csv:4-20 HAVING EPSILON 0.01;\n"
        "PERSIST Q1 ON /m.txt;\nr = PREDICT ON /t.csv WITH /m.txt;\n"
        "PREDICT ON /t.csv WITH Q1;"
    )
    assert files_read(placed) == ["/a.csv", "/b/a.csv", "/t.csv"]
    assert anywhere(placed) == placed


@pytest.mark.parametrize(
    ("words", "asked"),
    [((), ("list", "")), (("x",), ("follow", "x")), (("cancel", "x"), ("cancel", "x"))],
)
def test_words_of_the_command_line(words: tuple[str, ...], asked: tuple[str, str]) -> None:
    assert _asked(words) == asked


def test_words_that_say_too_little_or_too_much_are_refused() -> None:
    for words in (("cancel",), ("list", "x"), ("x", "y")):
        with pytest.raises(ConfigError, match="takes a name"):
            _asked(words)


def test_an_error_is_of_the_class_that_the_local_call_raises() -> None:
    ended = record(status=FAILED, failed=Failed("TaskKilledError", "it crashed"))
    assert isinstance(error_of(ended, "failed"), TaskKilledError)
    foreign = replace(ended, failed=Failed("ZeroDivisionError", "by zero", "where"))
    assert "ZeroDivisionError: by zero" in str(error_of(foreign, "failed"))
    assert "mlopt jobs resume one" in str(error_of(record(), "lost"))


def test_a_job_is_shown_by_its_name(tmp_path: Path) -> None:
    assert repr(Job(make(tmp_path, record()), None)) == "Job('one', waiting)"


def test_who_has_sent_more_waits_and_who_comes_late_saves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    running = [0]
    monkeypatch.setattr(turns, "ask", lambda client, what: running[0])
    monkeypatch.setattr(turns, "_EVERY", 0.0)
    large, small = turns.Turns(), turns.Turns()
    assert [large.next(None, 100) for _ in range(3)] == [1, 101, 201]
    running[0] = 150  # what runs when the other comes
    assert [small.next(None, 1) for _ in range(3)] == [150, 151, 152]
    assert large.next(None, 1) == 301


def one_more(block: Any, model: Any) -> Any:
    return np.ones_like(model)


class Gives:
    """An estimator whose job is given to another task while it fits."""

    def fit(self, X: Any, y: Any) -> Any:
        Folder(Path(X)).change(lambda old: replace(old, key="another", status=WAITING))
        return self


def test_a_driver_that_has_lost_its_job_leaves_it_what_it_needs(tmp_path: Path) -> None:
    folder = make(tmp_path, replace(record(), work=Call(what="Gives")))
    folder.kept().write(GIVEN, pack((Gives(), str(folder.path), None, {})))
    where: Any = SimpleNamespace(worker="here", threads=1, client=None)
    drive(where, str(folder.path), "key")
    assert folder.read().status == WAITING
    assert GIVEN in folder.kept()


def test_a_training_goes_on_from_its_last_state(tmp_path: Path) -> None:
    job = Training(one_more, np.zeros(2), [[0.0]], layout="threads", passes=5)
    kept, told = Disk(tmp_path / "kept"), list[Any]()
    kept.write(GIVEN, pack(job))
    kept.write(STATE, pack({"model": np.full(2, 3.0), "passes": 3}))
    place = Place(None, 1, tmp_path, "", kept, 0.0, told.append)
    assert Train(what="one_more").run(place).result["passes"] == 5
    np.testing.assert_array_equal(unpack(kept.read(RETURNED)).model, [5.0, 5.0])
    assert told[0].text == "pass 4 of 5"


def test_lines_of_a_log_are_json(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with folder.log(1).open("w") as stream:
        Lines(stream, quiet=())(events.TrialFinished(1.0, 2, 3, math.inf))
    assert json.loads(folder.log(1).read_text())["score"] is None


def test_folders_of_others_hide_nobodys_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abcdef":
        work = Query(text="RUN classification ON a.csv;")
        make(tmp_path, Record(name=name, work=work, key="k", created=now()))
    is_file = Path.is_file

    def closed(path: Path) -> bool:
        if path.parent.name in "bd":
            raise PermissionError(13, "Permission denied")
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", closed)
    assert sorted(folder.name for folder in folders_in(tmp_path)) == ["a", "c", "e", "f"]


def test_a_file_that_a_query_writes_is_one_however_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "RUN svm ON d.npz; PERSIST Q1 ON ./new.txt; PREDICT ON d.npz WITH {};"
    for name in ("new.txt", "./new.txt", str(tmp_path / "new.txt")):
        assert files_read(text.format(name)) == ["d.npz"]
