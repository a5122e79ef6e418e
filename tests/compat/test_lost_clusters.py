"""A cluster that goes away during a search is named within a minute."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import cloudpickle
import distributed
import pytest
from sklearn.datasets import make_classification
from sklearn.tree import DecisionTreeClassifier

import mlopt
from mlopt.errors import ClusterError

cloudpickle.register_pickle_by_value(sys.modules[__name__])

X, Y = make_classification(300, 5, random_state=0)
BEGUN = 3.0
"""Seconds after which a search of slow trees is in the middle."""
FOUND = 40
"""Seconds in which Dask finds a scheduler, and looks for one that it has lost."""


class SlowTree(DecisionTreeClassifier):
    """A tree that takes a second."""

    def __init__(self, max_depth: int | None = None) -> None:
        super().__init__(max_depth=max_depth, random_state=0)

    def fit(self, X: Any, y: Any, **given: Any) -> SlowTree:
        time.sleep(1.0)
        super().fit(X, y, **given)
        return self


def search(client: Any) -> mlopt.ModelSearchCV:
    space = {"max_depth": list(range(1, 13))}
    return mlopt.ModelSearchCV(
        SlowTree(), space, n_trials=12, cv=2, sampler="grid", client=client
    )


@pytest.fixture
def port() -> str:
    """One that nobody listens on: tests run beside each other."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


@pytest.fixture
def processes(port: str) -> Iterator[dict[str, list[subprocess.Popen[bytes]]]]:
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--no-dashboard"]
    scheduler = subprocess.Popen([*command, "--host", "127.0.0.1", "--port", port])
    address = f"tcp://127.0.0.1:{port}"
    command = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny"]
    workers = [
        subprocess.Popen([*command, "--nthreads", "1", "--no-dashboard"]) for _ in range(2)
    ]
    yield {"scheduler": [scheduler], "workers": workers}
    for process in (scheduler, *workers):
        process.kill()
        process.wait()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("lost", ["scheduler", "workers"])
def test_what_is_lost_is_named_within_a_minute(
    lost: str, port: str, processes: dict[str, list[subprocess.Popen[bytes]]]
) -> None:
    with distributed.Client(f"tcp://127.0.0.1:{port}", timeout=FOUND) as client:
        client.wait_for_workers(2, timeout=60)
        for process in processes[lost]:
            threading.Timer(BEGUN, process.kill).start()
        begin = time.monotonic()
        with pytest.raises(ClusterError, match=lost[:-1]):
            search(client).fit(X, Y)
        assert time.monotonic() - begin < BEGUN + 60.0
