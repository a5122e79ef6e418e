"""Jobs on a pool do what the local call does, in turn, and leave nothing behind."""

from __future__ import annotations

import io
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import dask.array as da
import numpy as np
import pandas as pd
import pytest
from scipy.stats import loguniform
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
from tests.clusters import eventually, task_keys
from tests.interrupted import write_people

import mlopt
from mlopt import server
from mlopt.cli import run_arguments
from mlopt.cluster import Threads
from mlopt.cluster.connect import connect
from mlopt.detached.job import Job
from mlopt.detached.kinds import Fit, Predict, Sweep
from mlopt.detached.records import folders_in
from mlopt.errors import InputError
from mlopt.report.progress import Lines
from mlopt.rows import Rows
from mlopt.sweep.config import Config, Data, Search
from mlopt.sweep.outputs import summary
from mlopt.sweep.run import sweep

pytestmark = [pytest.mark.cluster, pytest.mark.slow]
cloudpickle.register_pickle_by_value(sys.modules[__name__])
X, Y = make_classification(200, 4, n_informative=3, n_redundant=0, random_state=0)
TIMES = ("seconds", "passes", "study")


class SlowTree(DecisionTreeClassifier):
    """A tree that takes .1 s to fit."""

    def fit(self, *args: Any, **named: Any) -> Any:
        time.sleep(0.1)
        return super().fit(*args, **named)


@pytest.fixture(scope="module")
def pool(shared_workers: str) -> Iterator[Any]:
    with connect(shared_workers) as client:
        yield client


def people(folder: Path, sampler: str = "random") -> Config:
    """A sweep of two trials that no clock ends."""
    search = Search(timeout=None, n_trials=2, sampler=sampler)  # type: ignore[arg-type]
    return Config(data=Data(path=str(write_people(folder)), target="buys"), search=search)


def slow_search(trials: int) -> Any:
    depths = {"max_depth": list(range(1, trials + 1))}
    return mlopt.ModelSearchCV(
        SlowTree(random_state=0), depths, n_trials=trials, sampler="grid", bandit=None, cv=2
    )


def submitted(what: Any, pool: Any, storage: Path, *data: Any, **named: Any) -> Job:
    return mlopt.submit(what, *data, scheduler=pool, storage=storage, **named)


@pytest.mark.parametrize("sampler", ["random", "grid"])
def test_a_sweep_gives_what_the_local_one_gives(
    pool: Any, tmp_path: Path, sampler: str
) -> None:
    config, told = people(tmp_path, sampler), io.StringIO()
    families = ("extra_trees",)
    job = submitted(Sweep(config=config, families=families), pool, tmp_path / "jobs")
    assert job.follow(told) == "done"
    said = io.StringIO()
    here = summary(
        sweep(config=config, families=families, observer=Lines(said), output=tmp_path / "o")
    )
    found = job.result()
    assert {**found, **dict.fromkeys(TIMES)} == {**here, **dict.fromkeys(TIMES)}
    assert [texts(told)[0], *texts(told)[2:5]] == [texts(said)[0], *texts(said)[2:5]]
    rows = pd.read_csv(config.data.path).drop(columns="buys")
    assert job.output is not None
    both = [mlopt.load(folder).predict(rows) for folder in (job.output, tmp_path / "o")]
    np.testing.assert_array_equal(*both)
    fetched = job.fetch(tmp_path / "fetched")
    assert (fetched / "report.html").is_file()


def texts(stream: io.StringIO) -> list[str]:
    records = [json.loads(line) for line in stream.getvalue().splitlines()]
    return [record["text"] for record in records if record["event"] == "Message"]


def test_a_search_from_python_comes_back_fitted(pool: Any, tmp_path: Path) -> None:
    search = mlopt.ModelSearchCV(
        LogisticRegression(), {"C": loguniform(0.01, 100)}, n_trials=6, sampler="random"
    )
    rows, labels = da.from_array(X, chunks=(50, 4)), da.from_array(Y, chunks=50)
    job = submitted(search, pool, tmp_path, rows, labels)
    found, here = job.result(120), search.fit(X, Y)
    assert found.best_params_ == here.best_params_
    assert found.best_score_ == pytest.approx(here.best_score_)
    assert found.storage is None
    left = job.folder.path / "kept"
    assert eventually(lambda: [path.name for path in left.iterdir()] == ["returned.kept"])
    np.testing.assert_array_equal(found.predict(X), here.predict(X))


def test_a_fit_a_query_and_predictions_are_jobs_too(pool: Any, tmp_path: Path) -> None:
    config, jobs = people(tmp_path), tmp_path / "jobs"
    fit = submitted(Fit(config=config, family="linear"), pool, jobs)
    assert fit.result(120)["test_score"] > 0.8
    assert fit.output is not None
    for i in range(3):
        (tmp_path / f"rows-{i}.csv").write_bytes(Path(config.data.path).read_bytes())
    predict = Predict(
        model=str(fit.output), paths=(f"{tmp_path}/rows-*.csv",), output=str(tmp_path / "p")
    )
    scored = submitted(predict, pool, jobs)
    assert scored.follow(io.StringIO()) == "done"
    assert (scored.result()["files"], scored.result()["rows"]) == (3, 1200)
    assert len(list((tmp_path / "p").glob("rows-*.csv"))) == 3
    np.savetxt(tmp_path / "table.csv", np.column_stack([Y, X]), delimiter=",")
    data = f"{tmp_path}/table.csv"  # by one method: others stop elsewhere within the gap
    query = f"RUN classification ON {data} HAVING EPSILON 0.01 USING ALGORITHM lbfgs"
    asked = submitted(query, pool, jobs)
    np.testing.assert_allclose(asked.result(120).coef, mlopt.run(query).coef, rtol=1e-6)
    known = {job.name: job.status for job in mlopt.jobs(pool, jobs)}
    assert known == dict.fromkeys([fit.name, scored.name, asked.name], "done")


def toward_mean(block: Any, model: Any) -> Any:
    return 0.1 * (block.X.mean(axis=0) - model)


def test_a_training_of_ones_own_steps_is_made_where_its_rows_are(
    pool: Any, tmp_path: Path
) -> None:
    def make() -> Any:
        rows = da.from_array(X, chunks=(50, 4))
        return server.Job(toward_mean, np.zeros(4), rows, layout="rounds", passes=40)

    job = submitted(make, pool, tmp_path)
    told = io.StringIO()
    assert job.follow(told) == "done"
    assert texts(told)[-1] == "pass 40 of 40"
    np.testing.assert_allclose(job.result().model, X.mean(axis=0), atol=1e-5)
    with pytest.raises(InputError, match="held by its client: submit a function"):
        submitted(server.Job(toward_mean, np.zeros(4), X), pool, tmp_path)
    blocks = [Rows.of(part, executor=Threads(1)).map(lambda block: block)[0]
              for part in np.split(X, 4)]  # fmt: skip
    here = server.Job(toward_mean, np.zeros(4), blocks, layout="threads", passes=3)
    assert submitted(here, pool, tmp_path).result(60).passes == 3


def test_what_workers_cannot_read_is_refused(pool: Any, tmp_path: Path) -> None:
    config = Config(data=Data(path=str(tmp_path / "none.csv"), target="y"))
    with pytest.raises(InputError, match=r"2 of 2 cannot.*none.csv` does not exist"):
        submitted(Sweep(config=config), pool, tmp_path / "jobs")
    (tmp_path / "some.csv").write_text("a,b\n1,2\n")
    config = Config(data=Data(path=str(tmp_path / "some.csv"), target="y"))
    with pytest.raises(InputError, match=r"2 of 2 cannot.*there is none named `y`"):
        submitted(Sweep(config=config), pool, tmp_path / "jobs")
    held = pool.persist(da.from_array(X, chunks=(50, 4)))
    with pytest.raises(InputError, match="`X` must outlive this process"):
        submitted(slow_search(2), pool, tmp_path / "jobs", held, Y)
    assert list(folders_in(tmp_path / "jobs")) == []


def test_a_job_that_fails_says_why_and_ends_as_the_local_command(
    pool: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "one.csv"
    table.write_text("a,y\n" + "".join(f"{i},1\n" for i in range(50)))
    config = Config(data=Data(path=str(table), target="y"))
    job = submitted(Sweep(config=config), pool, tmp_path / "jobs")
    with pytest.raises(InputError) as there:
        job.result(60)
    with pytest.raises(InputError) as here:
        sweep(config=config)
    assert str(there.value) == str(here.value)
    listed = ["jobs", "--scheduler", pool.scheduler.address, "--storage", tmp_path / "jobs"]
    assert run_arguments([str(word) for word in listed]) == 0
    (line,) = capsys.readouterr().out.splitlines()[1:]
    assert line.split()[:3] == [job.name, "sweep", "failed"]
    assert run_arguments([*map(str, listed), "--json"]) == 0
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["name"], told["work"], told["status"]) == (job.name, "sweep", "failed")
    assert told["failed"] == str(here.value)


def test_a_cancelled_job_leaves_nothing_behind(pool: Any, tmp_path: Path) -> None:
    before = task_keys(pool)  # of values that another test has not let go of
    job = submitted(slow_search(80), pool, tmp_path, X, Y)
    assert eventually(lambda: any("train" in key for key in task_keys(pool) - before), 60)
    job.cancel()
    assert job.status == "cancelled"
    assert {path.name for path in job.folder.path.iterdir()} == {"job.json", "log-1.jsonl"}
    assert eventually(lambda: task_keys(pool) <= before)
    assert eventually(lambda: set().union(*pool.run(_tasks).values()) <= before)
    with pytest.raises(InputError, match="only a job that is lost or failed"):
        job.resume()


def _tasks(dask_worker: Any) -> set[str]:
    return {str(key) for key in dask_worker.state.tasks}


def test_a_small_job_does_not_wait_for_all_calls_of_a_large_one(
    pool: Any, tmp_path: Path
) -> None:
    large = submitted(slow_search(80), pool, tmp_path, X, Y)
    assert eventually(lambda: large.record.status == "running", 60)
    small = submitted(slow_search(8), pool, tmp_path, X, Y)
    third = submitted(slow_search(2), pool, tmp_path, X, Y)
    assert small.result(120).best_score_ == slow_search(8).fit(X, Y).best_score_
    assert large.status == "running"
    large.cancel()
    third.result(60)
    began, ended = third.record.began, small.record.ended
    assert began is not None
    assert ended is not None
    assert began >= ended  # two workers: two jobs at a time
