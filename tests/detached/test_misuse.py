"""What people do wrong with jobs is refused in words, and costs nobody a file."""

from __future__ import annotations

import dataclasses
import threading
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from tests.detached.test_records import one_more, record

import mlopt
from mlopt.caching.disk import Disk
from mlopt.cluster import pack, unpack
from mlopt.cluster.connect import reached
from mlopt.detached import job as jobs
from mlopt.detached.calls import call_of, work_given
from mlopt.detached.job import Job, job_of
from mlopt.detached.kinds import Call, Fit, Query, Sweep, Train
from mlopt.detached.records import DONE, Failed, Folder, make
from mlopt.detached.work import GIVEN, RETURNED, Outcome, Place
from mlopt.errors import ClusterError, ConfigError, InputError, InputWarning
from mlopt.server import Job as Training
from mlopt.sweep.config import Config, Data, Search

X, Y = np.arange(8.0).reshape(4, 2), np.arange(4) % 2


def done(folder: Path, output: Path) -> Job:
    """A job that left something in ``output``."""
    made = make(folder, replace(record(), status=DONE, outcome=Outcome(output=str(output))))
    return Job(made, None)


def test_results_are_fetched_to_where_nothing_is_lost(tmp_path: Path) -> None:
    model = tmp_path / "model.skops"
    model.write_bytes(b"model")
    job, mine = done(tmp_path / "one", model), tmp_path / "people.csv"
    mine.write_text("mine")
    with pytest.raises(InputError, match=r"` is there already"):
        job.fetch(mine)
    assert mine.read_text() == "mine"
    assert job.fetch(tmp_path / "new.skops").read_bytes() == b"model"
    (tmp_path / "got").mkdir()
    assert job.fetch(tmp_path / "got") == tmp_path / "got" / "model.skops"
    with pytest.raises(InputError, match=r"` is there already"):
        job.fetch(tmp_path / "got")


def test_a_folder_of_results_replaces_no_file(tmp_path: Path) -> None:
    results, place = tmp_path / "results", tmp_path / "got"
    (results / "deep").mkdir(parents=True)
    (results / "deep" / "report.html").write_text("theirs")
    job = done(tmp_path / "one", results)
    (place / "deep").mkdir(parents=True)
    (place / "other.txt").write_text("mine")
    assert job.fetch(place) == place
    assert (place / "deep" / "report.html").read_text() == "theirs"
    assert (place / "other.txt").read_text() == "mine"
    for taken in (place, place / "other.txt", results):
        with pytest.raises(InputError, match="is there already"):
            job.fetch(taken)


def makes() -> Any:
    return Training(one_more, np.zeros(2), [[0.0]], layout="threads", passes=2)


@pytest.mark.parametrize(
    "what", [makes, makes(), Query(text="RUN classification ON a.csv;")]
)
def test_what_has_its_data_is_given_no_others(what: Any, tmp_path: Path) -> None:
    for data in ({"X": np.ones((2, 2))}, {"y": np.ones(2)}, {"sample_weight": [1, 2]}):
        with pytest.raises(InputError, match="leave X, y and parameters of `fit` out"):
            mlopt.submit(what, scheduler="127.0.0.1:1", storage=tmp_path, **data)


@pytest.mark.parametrize("what", [lambda needed: None, partial(one_more, 1)])
def test_a_function_that_makes_a_job_takes_no_arguments(what: Any) -> None:
    with pytest.raises(InputError, match="called without arguments"):
        work_given(what, None, None, {})


def test_a_step_that_cannot_be_pickled_is_named() -> None:
    steps = make_pipeline(FunctionTransformer(kw_args={"lock": threading.Lock()}), Ridge())
    with pytest.raises(InputError, match="Step `Pipeline/functiontransformer` cannot go"):
        work_given(steps, np.ones((2, 2)), np.ones(2), {})


def test_two_jobs_of_a_name_are_both_listed_and_neither_is_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = (make(tmp_path / where, record()) for where in ("here", "there"))
    monkeypatch.setenv("MLOPT_JOBS_STORAGE", str(tmp_path / "here"))
    monkeypatch.setattr(jobs, "reached", lambda scheduler: nullcontext("client"))
    told = [str(there.path)]
    monkeypatch.setattr("mlopt.detached.job.detached.remembered", lambda client: told)
    assert {job.folder.path for job in mlopt.jobs()} == {here.path, there.path}
    with pytest.raises(InputError, match=r"2 jobs are .* name the `storage`"):
        job_of("one")
    assert job_of("one", storage=tmp_path / "there").folder.path == there.path
    told[:] = [str(here.path)]
    assert job_of("one").folder.path == here.path


def test_what_came_of_a_job_needs_no_scheduler(tmp_path: Path) -> None:
    made = make(tmp_path, record(status=DONE, outcome=Outcome()))
    made.kept().write(RETURNED, pack("it"))
    assert Job(made, "127.0.0.1:1").result() == "it"


def test_a_result_that_is_gone_is_said(tmp_path: Path) -> None:
    made = make(tmp_path, record(status=DONE, outcome=Outcome()))
    with pytest.raises(InputError, match="result of one is gone"):
        Job(made, None).result()


def test_a_training_that_comes_to_nothing_says_so(tmp_path: Path) -> None:
    told = list[Any]()

    def spoils() -> Any:
        return Training(lambda b, w: w * np.nan, np.ones(2), [0], layout="threads")

    with pytest.warns(InputWarning, match="NaN"):
        Train(what="it").run(
            dataclasses.replace(place(tmp_path, spoils), observer=told.append)
        )
    assert "NaN or infinity" in told[-1].text


def test_the_name_of_a_column_is_for_a_path() -> None:
    with pytest.raises(InputError, match="`y` can name a column where `X` is a path"):
        call_of(LogisticRegression(), np.ones((3, 2)), "buys", {})


def place(folder: Path, given: Any) -> Place:
    kept = Disk(folder / "kept")
    kept.write(GIVEN, pack(given))
    return Place(None, 1, folder, "", kept, 4.0, lambda event: None)


@pytest.mark.parametrize("made", [None, LogisticRegression()])
def test_a_function_that_makes_no_job_is_named(made: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"`make_it` must make a `mlopt.server.Job`, got"):
        Train(what="make_it").run(place(tmp_path, lambda: made))


def test_a_training_says_how_long_all_its_attempts_took(tmp_path: Path) -> None:
    where = place(tmp_path, makes)
    Train(what="makes").run(where)
    found = unpack(where.kept.read(RETURNED))
    assert (found.passes, found.lost) == (2, 0)
    assert 4.0 < found.seconds < 60.0


def test_a_training_that_has_begun_is_sent_as_far_as_it_is(tmp_path: Path) -> None:
    begun = makes()
    begun.advance(1)
    where = place(tmp_path, begun)
    begun.close()
    assert Train(what="makes").run(where).result["passes"] == 2
    np.testing.assert_array_equal(unpack(where.kept.read(RETURNED)).model, [2.0, 2.0])


def test_a_storage_that_cannot_be_is_called_that(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"`storage` must be .* Not a directory"):
        make(tmp_path / "file", record())
    with pytest.raises(InputError, match=r"name of a job must be .* got 5"):
        make(tmp_path, record(5))  # type: ignore[arg-type]


@pytest.mark.parametrize("what", [object(), 5, Path("x")])
def test_what_is_no_scheduler_is_refused(what: Any) -> None:
    with pytest.raises(ConfigError, match="address of a Dask scheduler, or a client"):
        reached(what)


def test_a_family_that_is_none_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,y\n1,2\n")
    config = Config(data=Data(path=str(tmp_path / "a.csv"), target="y"), search=Search())
    Fit(config=config, family="linear").check()
    for work in (
        Fit(config=config, family="lineal"),
        Sweep(config=config, families=("linear", "lineal")),
    ):
        with pytest.raises(ConfigError, match="Did you mean `linear`"):
            work.check()


def test_a_resume_that_is_refused_leaves_the_reason_why_it_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = Failed("InputError", "no such column")
    made = make(tmp_path, replace(record(), status="failed", failed=failed, ended=1.0))

    def refuse(client: Any, folder: Folder, key: str) -> None:
        raise InputError("All workers must be able to run the job")

    monkeypatch.setattr(jobs, "_check", refuse)
    monkeypatch.setattr(jobs, "reached", lambda scheduler: nullcontext(None))
    before = made.read()
    with pytest.raises(InputError, match="All workers"):
        Job(made, None).resume()
    assert made.read() == before


def test_a_cancel_that_did_not_come_through_can_be_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make(tmp_path, record())
    made.kept().write(GIVEN, pack("rows"))
    stuck = [ClusterError("a worker is still at it"), None]

    def cancel(client: Any, key: str) -> None:
        if error := stuck.pop(0):
            raise error

    monkeypatch.setattr(jobs, "reached", lambda scheduler: nullcontext(None))
    monkeypatch.setattr("mlopt.detached.job.detached.cancel", cancel)
    monkeypatch.setattr("mlopt.detached.job.detached.forget", lambda client, name: None)
    with pytest.raises(ClusterError, match="still at it"):
        Job(made, None).cancel()
    Job(made, None).cancel()
    assert GIVEN not in made.kept()


class _Größe(LogisticRegression):
    """A class whose name is none of a job."""


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """All jobs are, by no workers."""
    monkeypatch.setattr(jobs, "reached", lambda scheduler: nullcontext(None))
    monkeypatch.setattr(jobs, "_check", lambda *given: None)
    monkeypatch.setattr(jobs, "_send", lambda *given: None)


@pytest.mark.usefixtures("taken")
def test_names_that_nobody_gave_are_not_refused(tmp_path: Path) -> None:
    made = mlopt.submit(_Größe(), X, Y, storage=tmp_path)
    assert made.name.startswith("Gr-e-")
    config = Config(data=Data(path="x" * 200 + ".csv", target="y"))
    assert len(mlopt.submit(Sweep(config=config), storage=tmp_path).name) == 100


@pytest.mark.usefixtures("taken")
def test_limits_of_a_search_may_be_numbers_of_numpy(tmp_path: Path) -> None:
    limits: dict[str, Any] = {"n_trials": np.int64(8), "timeout": np.float32(2)}
    search = mlopt.ModelSearchCV(LogisticRegression(), {"C": [1.0]}, **limits)
    made = mlopt.submit(search, X, Y, storage=tmp_path)
    assert made.record.work.limits == (2.0, 8)


def test_a_record_that_cannot_be_written_leaves_no_folder(tmp_path: Path) -> None:
    work = Train(what=object())  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        make(tmp_path, replace(record(), work=work))
    assert not list(tmp_path.iterdir())


def test_the_best_parameters_of_a_search_may_be_arrays(tmp_path: Path) -> None:
    space = {"priors": [np.array([0.5, 0.5])]}
    search = GridSearchCV(GaussianNB(), space, cv=2)
    found = Call(what="it").run(place(tmp_path, (search, X, Y, {}))).result
    assert found["best_params"] == {"priors": [0.5, 0.5]}


@pytest.mark.parametrize("kind", [Sweep, partial(Fit, family="linear")])
def test_a_table_without_a_target_is_refused_before_it_is_sent(
    kind: Any, tmp_path: Path
) -> None:
    table = tmp_path / "train.csv"
    table.write_text("a,b\n1,2\n3,4\n")
    work = kind(config=Config(data=Data(path=str(table))))
    with pytest.raises(ConfigError, match=r"`target` must name the column of train.csv"):
        work.check()
