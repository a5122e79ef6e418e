"""A plan travels by pickle: it reads as before, and runs where its rows came along."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import dask.array as da
import numpy as np
import pytest
from scipy import sparse

from mlopt.cluster import Threads, executor
from mlopt.cluster.connect import connect
from mlopt.errors import InputError
from mlopt.gd import Task, plan
from mlopt.rows import Rows

X = np.random.default_rng(0).normal(size=(2000, 8))
y = (X[:, 0] > 0.1).astype(int)
TASKS = [
    Task("logistic", l2=0.01),
    Task("logistic", l1=0.01),
    Task("multinomial", l2=0.1),
    Task("squared", l2=0.1),
    Task("hinge", l2=0.1),
]


def travelled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("task", TASKS, ids=lambda task: f"{task.loss} {task.l1}")
@pytest.mark.parametrize("make", [np.asarray, sparse.csr_array, da.from_array])
def test_a_plan_that_travelled_reads_and_runs_as_before(task: Task, make: Any) -> None:
    before = plan(task, make(X), y, speculation=False, n_jobs=1)
    after = travelled(before)
    assert after.explain(verbose=True) == before.explain(verbose=True)
    # Which method is left for another when depends on the clock, the minimum does not.
    ours, theirs = after.run(), before.run()
    assert ours.converged
    assert ours.objective == pytest.approx(theirs.objective, rel=2e-3)
    assert after.explain() == travelled(after).explain()


def test_what_was_speculated_travels() -> None:
    before = plan(
        TASKS[0], X, y, speculation=0.5, methods=["barzilai-borwein/eager", "bgd/eager"]
    )
    assert travelled(before).explain() == before.explain()


@pytest.mark.cluster
def test_rows_of_a_cluster_stay_there(shared_workers: str) -> None:
    with connect(shared_workers) as client:
        before = plan(TASKS[0], da.from_array(X), y, client=client)
        after = travelled(travelled(before))
    assert after.explain() == before.explain()
    with pytest.raises(InputError, match="Rows that lie on a cluster"):
        after.run()


@pytest.mark.cluster
def test_copies_of_rows_are_the_rows_and_other_rows_are_others(shared_workers: str) -> None:
    with connect(shared_workers) as client:
        one, other = (Rows.of(A, executor=executor(client)) for A in (X, X + 1.0))
        assert copy.copy(one) is one
        assert copy.deepcopy(one) is one
        assert pickle.dumps(one) != pickle.dumps(other)


def test_what_failed_says_why_when_it_travels() -> None:
    def fails(*_: Any) -> Any:
        raise ValueError("no such rows")

    failed = Rows.of(X, executor=Threads(1)).compute_beside(fails)
    with pytest.raises(ValueError, match="no such rows"):
        pickle.dumps(failed)
