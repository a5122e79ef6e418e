"""Resources given by hand, probed, remembered, and set by the user."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask.config
import numpy as np
import pytest

from mlopt import Resources
from mlopt.errors import ClusterError, InputError
from mlopt.pipeline.budget import budget_bytes
from mlopt.resources import cache, probe
from mlopt.resources.measure import measure, read_rate

RATES = {"gemm_f64": 4e10, "gemm_f32": 9e10, "bandwidth": 1.5e10, "disk": 6e8, "task": 1e-5}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of its own, with nothing remembered in this process."""
    monkeypatch.setattr(cache, "directory", lambda: tmp_path / "cache")
    monkeypatch.setattr(probe, "_known", {})
    return tmp_path / "cache"


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Replaces measuring; the list grows by one with every measurement."""
    calls: list[int] = []

    def record(threads: int) -> dict[str, float]:
        calls.append(threads)
        return dict(RATES)

    monkeypatch.setattr(probe, "measure", record)
    return calls


@pytest.fixture(autouse=True)
def no_settings() -> Iterator[None]:
    with dask.config.set({"mlopt.resources": {}}):
        yield


def test_resources_need_no_machine() -> None:
    hand = Resources(workers=4, threads=2, memory=2**34)
    assert hand.slots == 8
    assert all(value > 0 for value in hand.to_dict().values())


@pytest.mark.parametrize(
    "wrong",
    [{"workers": 0}, {"threads": 1.5}, {"memory": True}, {"disk": 0.0}, {"task": -1.0}],
)
def test_resources_that_cannot_be_are_refused(wrong: dict[str, Any]) -> None:
    name, value = next(iter(wrong.items()))
    with pytest.raises(InputError, match=f"`{name}` must be .*, got {value!r}"):
        Resources(**wrong)
    with pytest.raises(InputError, match="`bandwidth` must be finite"):
        Resources(bandwidth=float("inf"))


def test_memory_rate_grows_with_threads_until_the_bus_is_full() -> None:
    machine = Resources(bandwidth=10.0, bandwidth_all=25.0)
    assert [machine.memory_rate(k) for k in (1, 2, 3, 64)] == [10, 20, 25, 25]
    assert Resources(bandwidth=30.0, bandwidth_all=25.0).memory_rate(4) == 30


@pytest.mark.slow
def test_a_probe_takes_at_most_two_seconds_and_is_remembered(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    took = []
    for _ in range(3):  # other tests run beside it
        start = time.perf_counter()
        first = Resources.probe(refresh=True)
        took.append(time.perf_counter() - start)
    assert min(took) < 2.0
    monkeypatch.setattr("mlopt.resources.probe.measure", None)  # none is made again
    assert Resources.probe() == first
    assert first.gemm_f32 > first.gemm_f64 > 1e8
    assert first.bandwidth_all >= first.bandwidth > 1e8
    assert len(list(folder.iterdir())) == 1


@pytest.mark.slow
def test_measured_rates_are_finite_and_positive() -> None:
    rates = measure(2)
    assert set(rates) <= set(Resources.names())
    assert all(np.isfinite(rate) and rate > 0 for rate in rates.values())


def test_threads_read_at_least_part_of_their_sum() -> None:
    data = np.ones(8 * 2**21)
    one = read_rate(data, 1, budget=0.02)
    assert 0 < read_rate(data, 2, budget=0.02) < 10 * one


def test_a_probe_measures_once_in_a_process(folder: Path, measured: list[int]) -> None:
    assert Resources.probe() == Resources.probe()
    assert len(measured) == 1
    Resources.probe(refresh=True)
    assert len(measured) == 2


def test_another_process_reads_what_was_measured(
    folder: Path, measured: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Resources.probe()
    monkeypatch.setattr(probe, "_known", {})
    assert Resources.probe() == first
    assert len(measured) == 1
    assert first.gemm_f64 == RATES["gemm_f64"]


def test_what_others_disturbed_is_soon_measured_again_and_the_best_is_kept(
    folder: Path, measured: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    now, load = [time.time()], [4.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    monkeypatch.setattr(os, "getloadavg", lambda: (load[0], 0.0, 0.0))
    monkeypatch.setattr(os, "cpu_count", lambda: 2)

    def later(seconds: float, **rates: float) -> Resources:
        monkeypatch.setattr(probe, "_known", {})
        monkeypatch.setattr(probe, "measure", lambda _: {**RATES, **rates})
        now[0] += seconds
        return Resources.probe()

    slow = later(0, gemm_f64=1e9, task=1e-3)
    assert later(cache.SOON / 2).gemm_f64 == slow.gemm_f64
    assert Resources.remembered() == slow
    now[0] += cache.SOON  # what is remembered meanwhile is not taken for measured
    monkeypatch.setattr(probe, "_known", {})
    assert Resources.remembered() == slow
    assert not probe._known
    load[0] = 0.0
    again = later(cache.SOON, gemm_f64=3e10, task=1e-4, bandwidth=RATES["bandwidth"] / 2)
    assert (again.gemm_f64, again.task) == (3e10, 1e-4)
    assert again.bandwidth == RATES["bandwidth"]
    assert later(cache.WEEK / 2, gemm_f64=5e10) == again
    monkeypatch.setattr(probe, "_known", {})
    now[0] += cache.WEEK
    assert Resources.remembered().gemm_f64 == Resources().gemm_f64


def test_no_part_of_a_file_is_ever_seen(
    folder: Path, measured: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    Resources.probe()
    (file,) = folder.iterdir()
    before = file.read_text()

    def interrupted(*args: Any, **kwargs: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", interrupted)
    Resources.probe(refresh=True)
    assert [path.name for path in folder.iterdir()] == [file.name]
    assert file.read_text() == before


@pytest.mark.parametrize(
    "content",
    [
        "", "{", "[]", '{"time": 0}',
        json.dumps({"probe": cache.PROBE, "time": 0, "rates": {"gemm_f64": 1}}),
    ],
)  # fmt: skip
def test_a_damaged_or_old_file_is_measured_anew(
    folder: Path, measured: list[int], monkeypatch: pytest.MonkeyPatch, content: str
) -> None:
    Resources.probe()
    (file,) = folder.iterdir()
    file.write_text(content)
    monkeypatch.setattr(probe, "_known", {})
    Resources.probe()
    assert len(measured) == 2
    assert json.loads(file.read_text())["rates"] == RATES


@pytest.mark.parametrize(
    "rates", [{"colour": 1.0}, {"gemm_f64": -1.0}, {"gemm_f64": "x"}, {}]
)
def test_rates_that_cannot_be_are_not_believed(folder: Path, rates: dict[str, Any]) -> None:
    key = cache.identity(2)
    folder.mkdir()
    record = {"probe": cache.PROBE, "time": time.time(), "rates": rates}
    cache.path(key).write_text(json.dumps(record))
    assert cache.load(key) is None
    cache.path(key).write_text(json.dumps(record | {"rates": RATES}))
    assert cache.load(key) == RATES
    older = record | {"rates": RATES, "probe": cache.PROBE - 1}
    cache.path(key).write_text(json.dumps(older))
    assert cache.load(key) is None


def test_a_cache_that_cannot_be_written_only_costs_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured: list[int]
) -> None:
    (tmp_path / "file").write_text("no directory")
    monkeypatch.setattr(cache, "directory", lambda: tmp_path / "file/cache")
    monkeypatch.setattr(probe, "_known", {})
    assert Resources.probe().gemm_f64 == RATES["gemm_f64"]
    assert cache.store(cache.identity(1), RATES) is False


@pytest.mark.slow
def test_a_probe_needs_no_place_for_temporary_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    assert "disk" not in measure(1)


def test_the_rates_of_another_machine_are_not_used(folder: Path) -> None:
    here = cache.identity(2)
    assert cache.store(here, RATES)
    assert cache.load(here) == RATES
    for name in here:
        assert cache.load({**here, name: "other"}) is None


def test_the_users_cache_directory_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache.directory() == Path("/somewhere/mlopt")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/ada")
    assert cache.directory() == Path("/home/ada/.cache/mlopt")


def test_settings_replace_what_was_measured(folder: Path, measured: list[int]) -> None:
    with dask.config.set({"mlopt.resources": {"gemm-f64": 1e9, "memory": "2GiB"}}):
        found = Resources.probe()
    assert (found.gemm_f64, found.memory) == (1e9, 2 * 2**30)
    assert found.gemm_f32 == RATES["gemm_f32"]


def test_a_setting_that_is_no_field_is_refused(folder: Path, measured: list[int]) -> None:
    with (
        dask.config.set({"mlopt.resources": {"gpu": 1}}),
        pytest.raises(InputError, match=r"no field of Resources: \['gpu'\]"),
    ):
        Resources.probe()


def test_memory_is_at_most_that_of_the_machine() -> None:
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < probe.memory_limit() <= physical


class Future:
    def __init__(self, value: Any) -> None:
        self.value = value


class Scheduler:
    """Names as many workers as it is asked for."""

    def __init__(self, client: Client) -> None:
        self.client = client

    def identity(self, n_workers: int = 5) -> dict[str, Any]:
        shown = list(self.client.workers.items())[: n_workers if n_workers >= 0 else None]
        return {"id": self.client.identity, "workers": dict(shown)}


class Client:
    """Says what a client says of two hosts with three workers; runs tasks at once."""

    def __init__(self, identity: str = "Scheduler-1", workers: int = 3) -> None:
        self.identity = identity
        self.workers: dict[str, dict[str, Any]] = {
            f"tcp://10.0.0.{i // 2}:{i}": {
                "host": f"10.0.0.{i // 2}",
                "nthreads": 2 + i,
                "memory_limit": 2**30,
            }
            for i in range(workers)
        }
        self.scheduler = Scheduler(self)
        self.places: list[str] = []
        self.late = False

    def sync(self, function: Any, *, callback_timeout: float = 0.0, **kwargs: Any) -> Any:
        return function(**kwargs)

    def wait_for_workers(self, n_workers: int, timeout: float) -> None:
        if self.late:
            self.workers |= Client().workers
        if len(self.workers) < n_workers:
            raise TimeoutError(f"not {n_workers} workers after {timeout} s")

    def submit(self, function: Any, *args: Any, pure: bool, workers: Any = ()) -> Future:
        self.places += [place for place in workers if function is measure_alike]
        return Future(function(*(a.value if isinstance(a, Future) else a for a in args)))

    def map(self, function: Any, items: Any, pure: bool) -> list[Future]:
        return [Future(function(item)) for item in items]

    def gather(self, futures: Any, *, asynchronous: bool) -> Any:
        return [future.value for future in futures]


def measure_alike(threads: int) -> dict[str, float]:
    return dict(RATES)


@pytest.fixture
def alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mlopt.resources.cluster_probe.measure", measure_alike)


@pytest.mark.usefixtures("alike", "folder")
def test_no_worker_is_taken_to_have_more_than_the_least() -> None:
    """What a worker must hold is planned by its share of the memory of all."""
    client = Client()
    first, second, _ = client.workers.values()
    first["memory_limit"], second["memory_limit"] = 14 * 2**30, None  # nobody set one
    found = Resources.probe(client)
    assert found.memory / found.workers == 2**30


@pytest.mark.usefixtures("alike", "folder")
def test_a_cluster_is_counted_and_measured_on_one_worker_a_host() -> None:
    client = Client()
    found = Resources.probe(client)
    assert (found.workers, found.threads, found.memory) == (3, 2, 3 * 2**30)
    assert found.gemm_f64 == RATES["gemm_f64"]
    assert (
        len(client.places) == len({place.rsplit(":", 1)[0] for place in client.places}) == 2
    )
    assert min(found.network, found.task, found.round_trip) > 0


@pytest.mark.usefixtures("alike", "folder")
def test_a_cluster_is_measured_once_for_each_scheduler() -> None:
    client, other = Client(), Client("Scheduler-2", workers=1)
    first = Resources.probe(client)
    client.workers.popitem()
    again = Resources.probe(client)
    assert dataclasses.replace(again, workers=3, memory=first.memory) == first
    assert len(client.places) == 2
    Resources.probe(other)
    assert len(other.places) == 1
    Resources.probe(client, refresh=True)
    assert len(client.places) > 2


@pytest.mark.usefixtures("alike", "folder")
def test_a_cluster_without_workers_says_what_to_do() -> None:
    with pytest.raises(ClusterError, match="wait_for_workers"):
        Resources.probe(Client(workers=0))


@pytest.mark.usefixtures("alike", "folder")
def test_workers_that_are_on_their_way_are_waited_for_and_all_are_counted() -> None:
    client = Client(workers=0)
    client.late = True
    assert Resources.probe(client).workers == 3
    assert Resources.probe(Client("Scheduler-9", workers=9)).workers == 9


@pytest.mark.cluster
@pytest.mark.usefixtures("folder")
def test_real_workers_are_probed() -> None:
    distributed = pytest.importorskip("distributed")
    options: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1"}
    with (
        distributed.LocalCluster(dashboard_address="127.0.0.1:0", **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        found = Resources.probe(client)
    assert (found.workers, found.threads) == (2, 1)
    assert found.gemm_f64 > 1e8
    assert found.network > 1e6
    assert 0 < found.task < found.round_trip < 1


def test_memory_of_this_process_is_at_most_what_the_user_set() -> None:
    whole = probe.memory_limit()
    with dask.config.set({"mlopt.resources": {"memory": "1MiB"}}):
        assert probe.memory_limit() == 2**20
        assert probe.memory_free() <= 2**20
        assert budget_bytes("auto", None) <= 0.75 * 2**20
    with dask.config.set({"mlopt.resources": {"memory": 2 * whole}}):
        assert probe.memory_limit() == whole


def test_what_a_process_has_taken_is_not_free() -> None:
    code = (
        "import resource\n"
        "import numpy as np\n"
        "from mlopt.pipeline.budget import budget_bytes\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (2**31, 2**31))\n"
        "before = budget_bytes('auto', None)\n"
        "taken = np.ones(2**27)\n"
        "print(before, budget_bytes('auto', None))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    before, after = map(int, done.stdout.split())
    assert before <= 0.75 * 2**31
    assert before - after >= 0.75 * 2**30


def test_a_limit_on_the_process_limits_its_memory() -> None:
    code = (
        "import resource\n"
        "from mlopt.resources.probe import memory_limit\n"
        "before = memory_limit()\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (2**29, 2**29))\n"
        "print(before, memory_limit())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    before, after = map(int, done.stdout.split())
    assert after == 2**29 < before
