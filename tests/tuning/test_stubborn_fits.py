"""Fits that hang, leave or kill their process: the search ends in time, or goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import FitFailedWarning
from tests import forks
from tests.clusters import eventually
from tests.tuning.stubborn import BAD, Stubborn

import mlopt
from mlopt.cluster import local_cluster

ROOT = Path(__file__).parents[2]
X, Y = make_classification(300, 5, random_state=0)
HANGING = """
import sys
from mlopt.events import TrialFinished
from tests.tuning.test_stubborn_fits import X, Y, stubborn
def told(event):
    if isinstance(event, TrialFinished):
        print("found", flush=True)
search = stubborn("hang", timeout=float(sys.argv[1]) or None, observer=told)
print("begun", flush=True)
try:
    search.fit(X, Y)
finally:
    print(search.best_params_, search.best_estimator_.get_depth() > 0, flush=True)
"""


def stubborn(how: str, **settings: Any) -> mlopt.ModelSearchCV:
    space = {"max_depth": list(range(1, 13))}
    return mlopt.ModelSearchCV(
        Stubborn(how=how), space, n_trials=12, cv=2, sampler="grid", n_jobs=2, **settings
    )


@pytest.mark.parametrize("how", ["leave", "interrupt"])
def test_a_fit_that_wants_to_end_the_process_fails_alone(how: str) -> None:
    search = stubborn(how)
    with pytest.warns(FitFailedWarning, match="2 fits failed out of a total of 24"):
        search.fit(X, Y)
    states = search.cv_results_["state"].tolist()
    depths = [params["max_depth"] for params in search.cv_results_["params"]]
    assert states.pop(depths.index(BAD)) == "FAIL"
    assert states == ["COMPLETE"] * 11
    assert "must not end a run" in search.cv_results_["reason"][depths.index(BAD)]


def test_a_step_that_wants_to_end_the_process_fails_its_trial() -> None:
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    def leave(data: Any, bad: bool) -> Any:
        return sys.exit(3) if bad else data

    pipeline = make_pipeline(FunctionTransformer(leave), Stubborn(max_depth=2))
    space = {"functiontransformer__kw_args": [{"bad": False}, {"bad": True}]}
    search = mlopt.ModelSearchCV(pipeline, space, n_trials=2, cv=2, sampler="grid")
    with pytest.warns(FitFailedWarning, match="2 fits failed out of a total of 4"):
        search.fit(X, Y)
    assert sorted(search.cv_results_["state"]) == ["COMPLETE", "FAIL"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["hang", "spin"])
def test_a_fit_that_hangs_does_not_outlast_the_time_limit(how: str) -> None:
    before = time.monotonic()
    search = stubborn(how, timeout=1.0).fit(X, Y)
    assert time.monotonic() - before < 11.0
    table = dict(zip(range(1, 13), search.cv_results_["state"], strict=False))
    assert table[1] == table[2] == "COMPLETE"
    assert table[BAD] == "FAIL"
    assert search.best_estimator_.score(X, Y) > 0.8


@pytest.mark.slow
def test_python_code_that_was_given_up_ends() -> None:
    before = set(threading.enumerate())
    stubborn("spin", timeout=1.0).fit(X, Y)
    assert eventually(lambda: set(threading.enumerate()) <= before)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [2.0, 0.0])
def test_a_process_ends_although_a_fit_hangs(limit: float) -> None:
    """By its time limit, or by Ctrl-C where it has none; a model is there."""
    process = forks.Popen(
        [sys.executable, "-W", "ignore", "-c", HANGING, str(limit)], cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=_hear_interrupts,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    begun = time.monotonic()
    if not limit:  # after its samples, one of which may hang too
        assert process.stdout.readline() == "found\n"
        time.sleep(1.0)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
    out, rest = process.communicate(timeout=60)
    assert time.monotonic() - begun < (12.0 if limit else 5.0)
    assert "{'max_depth'" in out, rest
    assert "True" in out
    assert ("KeyboardInterrupt" in rest) == (not limit)


def _hear_interrupts() -> None:
    """What a shell starts in the background is told to ignore Ctrl-C, and so are we."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.cluster
@pytest.mark.slow
def test_a_trial_that_kills_its_workers_fails_by_name() -> None:
    with local_cluster(2) as client:
        search = stubborn("die", client=client)
        with pytest.warns(FitFailedWarning, match="max_depth=5"):
            search.fit(X, Y)
        assert eventually(lambda: len(client.nthreads()) == 2, 20)
    states = search.cv_results_["state"].tolist()
    assert states.pop(BAD - 1) == "FAIL"
    assert states == ["COMPLETE"] * 11, search.cv_results_["reason"]
    calm = stubborn("die")
    calm.set_params(space={"max_depth": [d for d in range(1, 13) if d != BAD]})
    scores = np.delete(search.cv_results_["mean_test_score"], BAD - 1)
    np.testing.assert_array_equal(scores, calm.fit(X, Y).cv_results_["mean_test_score"])


@pytest.mark.cluster
@pytest.mark.slow
def test_a_fit_that_hangs_on_a_worker_frees_it_when_time_is_up() -> None:
    with local_cluster(2) as client:
        before = time.monotonic()
        client.restart()
        begins = time.monotonic() - before  # workers, on this machine as busy as it is
        calm = stubborn("hang", client=client).set_params(space={"max_depth": [1, 2]})
        calm.fit(X, Y)  # imports and probes, which take longer than the search
        before = time.monotonic()
        search = stubborn("hang", client=client, timeout=3.0).fit(X, Y)
        took = time.monotonic() - before - begins
        assert took < 13.0, f"{took:.1f} s, and {begins:.1f} s in which workers begin"
        assert search.cv_results_["state"][0] == "COMPLETE"
        calls = client.map(pow, [-1, -2], [2, 2])
        assert client.gather(calls) == [1, 4]
        ended = time.monotonic()
    assert time.monotonic() - ended < 15.0
