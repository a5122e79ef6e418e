"""What every test shares: how much is tried, real data when it is there."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import dask
import pytest
from hypothesis import settings
from tests import forks

from mlopt.cluster import apart
from mlopt.rows import block

ROOT = Path(__file__).parent.parent


# A rule that changes what a pipeline computes is left out for users, and fails here.
dask.config.set({"mlopt.strict": True})

# Few rows stand for many here: they are planned though it does not pay.
dask.config.set({"mlopt.plan": "always"})

# And are cut into blocks of which each is next to nothing.
vars(block)["_LEAST"] = 1

# What is chosen must not depend on the fits that tests have run before.
os.environ.setdefault("DASK_MLOPT__REMEMBER", "false")  # of the processes that they start
dask.config.set({"mlopt.remember": False})

# Worker processes are forks of one that has loaded the libraries already, as in Dask's own
# tests: to load them takes longer than most tests on workers.
if forks.ON:
    dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"})

# Else workers and schedulers that wait take a fifth of a core for each process of tests:
# they look at their event loops fifty times a second, at their stacks a hundred times.
dask.config.set({
    "distributed.admin.tick.interval": "500ms",
    "distributed.worker.profile.enabled": False,
})  # fmt: skip

# The first call of a kernel compiles it, which is no news about the code.
settings.register_profile("here", deadline=None, max_examples=40)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("quick", deadline=None, derandomize=True, max_examples=8)
usual = "ci" if os.environ.get("CI") else "here"
settings.load_profile(os.environ.get("MLOPT_TESTS", usual))


def pytest_collection_finish() -> None:
    """The tests are known: what they have loaded so far stays to the end."""
    # Else the collector looks through all of it again and again, half a second each time.
    gc.freeze()
    if forks.ON:
        multiprocessing.get_context("forkserver").set_forkserver_preload(forks.LOADED)


@pytest.fixture(autouse=True, scope="session")
def _processes_are_forks() -> None:
    """Those beside this one, too; tests/cluster/test_apart.py has true ones."""
    vars(apart)["subprocess"] = forks


@pytest.fixture(scope="session")
def shared_workers() -> Iterator[str]:
    """The address of two worker processes that many modules connect to, one at a time.

    They take longer to start than most tests on them. Whoever kills workers, or sets how a
    scheduler forgives, starts some of its own.
    """
    # loads `distributed`, which most tests do without
    from tests.clusters import running_workers

    with running_workers() as address:
        yield address


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Ctrl-C is heard: what a shell starts in its background is told to ignore it."""
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, earlier)


@pytest.fixture
def data() -> Path:
    """The folder of real data beside the project; tests that need it skip without it."""
    folder = Path(os.environ.get("MLOPT_DATA", ROOT.parent / "shared/data"))
    if not folder.is_dir():
        pytest.skip("the real data sets are not beside this checkout")
    return folder


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Writes a file that a test reads, and tells its path."""

    def written(content: bytes | str, name: str = "table.csv") -> str:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return str(path)

    return written
