"""Executors and rows on worker processes: the same answers, and deaths change nothing."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from tests.clusters import eventually, task_keys

from mlopt.cluster import Cluster, Threads, executor, inside_task, local_cluster
from mlopt.cluster.connect import connect
from mlopt.errors import ClusterError, ConfigError, InputError, TaskError, TaskKilledError
from mlopt.rows import Block, Rows
from mlopt.rows.source import collected

pytestmark = [pytest.mark.cluster, pytest.mark.slow]

# Workers cannot import this file: its functions travel whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

SEED = np.random.default_rng(0)
X = SEED.normal(size=(20_000, 30))
Y = SEED.normal(size=20_000)


@pytest.fixture(scope="module")
def workers() -> Iterator[Cluster]:
    # One death of a task's worker is forgiven, two are not: four would take long.
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        local_cluster(2, 1) as client,
    ):
        yield Cluster(client)


@pytest.fixture
def pool() -> Iterator[Threads]:
    threads = Threads(2)
    yield threads
    threads.close()


def added_up_by_others(numbers: list[int]) -> int:
    where = executor(distributed.get_client())
    found: int = sum([*where.map(int.__add__, numbers, 1), *where.map(abs, numbers)])
    return found


@pytest.mark.timeout(60)
def test_tasks_leave_their_threads_to_what_they_submit(workers: Cluster) -> None:
    tasks = workers.client.map(added_up_by_others, [[1, 2], [3, 4], [5, 6]], pure=False)
    assert workers.client.gather(tasks) == [8, 16, 24]


def test_calls_of_a_client_that_is_closed_are_given_up_at_once(workers: Cluster) -> None:
    with distributed.Client(
        workers.client.scheduler.address, set_as_default=False
    ) as client:
        cluster = Cluster(client)
        call = cluster.submit(time.sleep, 0.1)
        client.close()
        with pytest.raises(ClusterError):
            cluster.result(call)
        cluster.abandon([call])


def once(flag: Path) -> bool:
    """Whether nobody was here before."""
    try:
        flag.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def die_once(flag: Path, index: int) -> None:
    if index == 3 and once(flag):
        os.kill(os.getpid(), signal.SIGKILL)


def gram(block: Block, scale: np.ndarray, flag: Path | None = None) -> np.ndarray:
    if flag is not None:
        die_once(flag, block.index)
    weighted: np.ndarray = block.X * block.extra["y"][:, None]
    product: np.ndarray = weighted.T @ (block.X * scale)
    return product


def visit(block: Block, state: np.ndarray, flag: Path | None = None) -> np.ndarray:
    if flag is not None:
        die_once(flag, block.index)
    error = block.extra["y"] - block.X @ state / 1e5
    new: np.ndarray = 0.9 * state + block.X.T @ error
    return new


def test_threads_and_workers_agree_to_the_last_bit(workers: Cluster, pool: Threads) -> None:
    scale = SEED.normal(size=30)
    for make in (np.array, sp.csr_array):
        here = Rows.of(make(X), executor=pool).attach(y=Y)
        there = Rows.of(make(X), executor=workers).attach(y=Y)
        assert here.lengths == there.lengths
        if make is np.array:
            expected = here.map_reduce(gram, np.add, scale)
            assert np.array_equal(there.map_reduce(gram, np.add, scale), expected)
        states = [np.zeros(30), np.ones(30)]
        assert np.array_equal(here.fold(visit, states), there.fold(visit, states))
        few = [19_999, 0, 7, 7]
        assert abs(here.take(few) - there.take(few)).max() == 0


def test_many_partials_are_combined_in_the_same_order(workers: Cluster) -> None:
    parts = [SEED.normal(size=5) * 10.0**power for power in range(21)]
    expected = Threads(1).reduce(np.negative, np.add, parts)
    assert np.array_equal(workers.reduce(np.negative, np.add, parts), expected)


def test_a_worker_killed_in_map_reduce_changes_nothing(
    workers: Cluster, pool: Threads, tmp_path: Path
) -> None:
    scale = np.ones(30)
    expected = Rows.of(X, executor=pool).attach(y=Y).map_reduce(gram, np.add, scale)
    rows = Rows.of(X, executor=workers).attach(y=Y)
    flag = tmp_path / "killed"
    assert np.array_equal(rows.map_reduce(gram, np.add, scale, flag), expected)
    assert flag.exists()
    # What the dead worker held is there again.
    assert np.array_equal(rows.map_reduce(gram, np.add, scale), expected)
    assert np.array_equal(rows.collect(), X)


def test_a_worker_killed_in_a_fold_changes_nothing(
    workers: Cluster, pool: Threads, tmp_path: Path
) -> None:
    states = [np.zeros(30), np.ones(30), np.full(30, 2.0)]
    expected = Rows.of(X, executor=pool).attach(y=Y).fold(visit, states)
    source = da.from_array(X, chunks=(2_500, 10))
    rows = Rows.of(source, executor=workers).attach(y=Y)
    flag = tmp_path / "killed"
    assert np.array_equal(rows.fold(visit, states, flag), expected)
    assert flag.exists()


def test_a_value_that_was_put_survives_all_workers(workers: Cluster) -> None:
    handle = workers.put(X)
    first = workers.map(np.sum, [handle])
    for pid in workers.client.run(os.getpid).values():
        os.kill(pid, signal.SIGKILL)
    assert workers.map(np.sum, [handle]) == first


def test_a_call_that_kills_its_workers_is_named(workers: Cluster) -> None:
    def poison(_: int) -> None:
        os._exit(1)

    with pytest.raises(TaskError, match="poison"):
        workers.map(poison, [0])
    assert workers.map(abs, [-1]) == [1]


def test_a_killer_among_blocks_is_named_too(workers: Cluster) -> None:
    def poison(block: Block) -> None:
        if block.index == 1:
            os._exit(1)

    with pytest.raises(TaskError, match="`poison-"):
        Rows.of(X, executor=workers).map_reduce(poison, max)


def test_errors_come_back_as_they_are_the_first_in_order(workers: Cluster) -> None:
    def fail(item: int) -> None:
        time.sleep(0.1 if item == 1 else 0)
        raise KeyError(item)

    with pytest.raises(KeyError, match="1"):
        workers.map(fail, [1, 2])
    handle = workers.submit(fail, 3)
    assert list(workers.as_completed([handle])) == [handle]
    with pytest.raises(KeyError, match="3"):
        workers.result(handle)
    workers.release(handle)


def test_handles_stand_for_values_everywhere(workers: Cluster) -> None:
    one, two = workers.put(1), workers.submit(int, "2")
    assert workers.map(pow, [one, two], workers.put(3)) == [1, 8]
    nested = workers.submit(lambda value: value, {"a": [one, (two, 5)]})
    assert workers.result(nested) == {"a": [1, (2, 5)]}
    assert workers.map(lambda item, pair: item + pair[0], [1], [two]) == [3]
    assert workers.fold(max, [], [5]) == [5]
    assert workers.map(abs, []) == []


def test_equal_calls_run_each_time(workers: Cluster) -> None:
    first, second = (workers.result(workers.submit(time.time_ns)) for _ in range(2))
    assert first != second


def test_arrays_arrive_aligned_and_writeable(workers: Cluster) -> None:
    def flags(item: Any, odd: bytes, shared: np.ndarray) -> list[bool]:
        arrays = [item.X, item.extra["y"], shared] if isinstance(item, Block) else [item]
        return [flag for a in arrays for flag in (a.flags.aligned, a.flags.writeable)]

    frozen = np.arange(300_001.0)
    frozen.flags.writeable = False
    handle = workers.put(frozen)
    rows = Rows.of(X, executor=workers, block_rows=777).attach(y=Y)
    for odd in (b"", b"1", b"22"):
        assert all(all(found) for found in rows.map(flags, odd, handle))
        assert all(all(found) for found in workers.map(flags, [handle] * 4, odd, frozen))


def test_large_values_travel_without_a_warning(workers: Cluster) -> None:
    large = np.zeros(3_000_000)
    assert workers.map(lambda item, shared: shared.size + item, [1], large) == [3_000_001]
    assert workers.result(workers.submit(np.size, large)) == 3_000_000
    assert workers.map(lambda _: large.size, [1]) == [3_000_000]


def test_what_cannot_be_pickled_is_named(workers: Cluster, tmp_path: Path) -> None:
    with (
        (tmp_path / "file").open("w") as file,
        pytest.raises(InputError, match="picklable; `TextIOWrapper` is not"),
    ):
        workers.put(file)


def test_inside_a_call_everything_runs_in_its_thread(workers: Cluster) -> None:
    def look() -> tuple[bool, int]:
        return inside_task(), executor(n_jobs=4).threads

    assert workers.result(workers.submit(look)) == (True, 1)
    # Also in a task that somebody else has started.
    assert workers.client.submit(lambda: executor(n_jobs=4).threads).result() == 1


def test_an_active_client_is_found(workers: Cluster) -> None:
    workers.client.wait_for_workers(2, timeout=30)
    found = executor()
    assert isinstance(found, Cluster)
    assert found.client is workers.client
    assert found.threads == 2
    assert found.memory is not None


def test_every_kind_of_dask_input_gives_the_same_rows(
    workers: Cluster, pool: Threads
) -> None:
    array = da.from_array(X, chunks=(3_000, 7))
    frame = dd.from_pandas(pd.DataFrame(X).rename(columns=str), npartitions=5)
    inputs = [
        (array, X),
        (array[array[:, 0] > 1.5], X[X[:, 0] > 1.5]),
        (frame, X),
        (frame[frame["0"] > 3.0], X[X[:, 0] > 3.0]),
        (frame.values, X),
        (array.rechunk((3_000, 30)).map_blocks(sp.csr_array, dtype=float), X),
    ]
    for source, expected in inputs:
        for where in (workers, pool):
            rows = Rows.of(source, executor=where)
            found = rows.collect()
            assert np.array_equal(found.toarray() if rows.sparse else found, expected)
            assert rows.n == len(expected)
            assert min(rows.lengths) > 0


def test_y_in_other_chunks_than_X_is_attached(workers: Cluster) -> None:
    y = da.from_array(Y, chunks=700)
    rows = Rows.of(da.from_array(X, chunks=(3_000, 30)), executor=workers).attach(y=y)
    parts = rows.map(lambda block: block.extra["y"])
    assert np.array_equal(np.concatenate(parts), Y)


def test_a_chunk_larger_than_a_worker_is_refused(workers: Cluster) -> None:
    small = Cluster(workers.client)
    small.memory = 1_000_000
    with pytest.raises(InputError, match="One block of X needs"):
        Rows.of(da.zeros((20_000, 30), chunks=(10_000, 30)), executor=small)


def test_groups_keep_slots_busy_and_stay_small(workers: Cluster) -> None:
    assert workers.group(64, 10**6) == 16
    assert workers.group(4, 10**6) == 1
    assert workers.group(64, 64 * 2**28) <= 4


def test_the_preset_stays_on_loopback_and_ends_its_processes() -> None:
    before = dask.config.get("distributed.deploy.lost-worker-timeout")
    with local_cluster(1) as client:
        assert client.scheduler.address.startswith("tcp://127.0.0.1:")
        assert dask.config.get("distributed.deploy.lost-worker-timeout") == "600 s"
        (pid,) = client.run(os.getpid).values()
        assert client.nthreads() == dict.fromkeys(client.nthreads(), 1)
    assert dask.config.get("distributed.deploy.lost-worker-timeout") == before
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_without_workers_an_error_comes_in_time() -> None:
    with local_cluster(0) as client, pytest.raises(ClusterError, match="No Dask worker"):
        Cluster(client, patience=0.6).map(abs, [1])


def test_rows_of_dask_are_not_waited_for_without_workers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert Cluster.__init__.__kwdefaults__ is not None
    monkeypatch.setitem(Cluster.__init__.__kwdefaults__, "patience", 0.6)
    with local_cluster(0), pytest.raises(ClusterError, match="No Dask worker"):
        collected(da.ones((4, 2), chunks=(2, 1)))


def test_a_call_that_no_worker_is_given_is_an_error_not_a_hang(workers: Cluster) -> None:
    hasty = Cluster(workers.client, patience=0.6)
    nowhere = hasty.client.submit(abs, 1, workers="tcp://127.0.0.1:1", pure=False)
    with pytest.raises(ClusterError, match=r"had any work .*annotate"):
        hasty.result(nowhere)
    assert hasty.result(hasty.submit(time.sleep, 1.5)) is None  # which is work


def test_a_call_whose_input_dask_has_lost_is_run_after_all(workers: Cluster) -> None:
    hasty, flag = Cluster(workers.client, patience=6.0), distributed.Event()
    value = hasty.put(3)
    lost = hasty.submit(abs, value)
    assert hasty.result(lost) == 3
    held = hasty.submit(lambda: distributed.Event(flag.name).wait())
    both = hasty.submit(lambda left, right: (left, right), lost, held)
    assert eventually(lambda: both.key in task_keys(hasty.client))
    hasty.client.run_on_scheduler(lose, value.key, lost.key)
    flag.set()
    assert hasty.result(both) == (3, True)


def test_a_result_that_was_lost_and_kills_who_makes_it_again_is_told_in_our_words(
    workers: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, address = workers.submit(abs, -3), "tcp://127.0.0.1:1"
    assert workers.result(call) == 3
    dead = types.SimpleNamespace(address=address)

    async def lost(handles: Any, asynchronous: bool) -> Any:
        assert asynchronous
        raise distributed.KilledWorker(handles[0].key, dead, 3)

    monkeypatch.setattr(workers.client, "gather", lost)
    with pytest.raises(TaskKilledError, match=f"`{call.key}` ended 4 workers.*{address}"):
        workers.result(call)


def lose(failed: str, lost: str, dask_scheduler: Any) -> None:
    """As when the last worker with both dies, and one has been on too many that did."""
    dask_scheduler.transitions({failed: "released"}, "lost")
    dead = next(iter(dask_scheduler.workers.values())).clean()
    error = pickle.dumps(distributed.KilledWorker(failed, dead, 1))
    dask_scheduler.transition(
        failed, "erred", cause=failed, exception=error, stimulus_id=""
    )
    dask_scheduler.transitions({lost: "released"}, "lost")
    assert dask_scheduler.tasks[lost].state == "released"


class Loaded:
    """Whoever loads it says so, and takes a while when told to."""

    def __init__(self, told: Path, seconds: float) -> None:
        self.told, self.seconds = told, seconds

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        with self.told.open("a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(self.seconds)


def test_a_value_on_its_way_to_workers_that_die_is_not_to_blame(
    workers: Cluster, tmp_path: Path
) -> None:
    value = workers.put(Loaded(tmp_path / "told", 1.0))
    assert eventually((tmp_path / "told").exists)
    workers.client.run_on_scheduler(suspect, value.key)
    os.kill(int((tmp_path / "told").read_text().split()[-1]), signal.SIGKILL)
    assert eventually(lambda: value.status == "error")
    assert workers.result(workers.submit(type, value)).__name__ == "Loaded"


def suspect(key: str, dask_scheduler: Any) -> None:
    dask_scheduler.tasks[key].suspicious = 1


def test_a_paused_worker_without_room_is_named_with_its_bytes_not_waited_for() -> None:
    with local_cluster(1, memory_limit="600MB") as client:
        hasty = Cluster(client, patience=3.0)
        assert [one.limit for one in hasty.memories(nothing)] == [600_000_000]
        # What Dask keeps of a profile would take a fifth of that.
        kept = client.run(lambda dask_worker: dask_worker.profile_history.maxlen)
        assert list(kept.values()) == [100]
        hasty.result(hasty.submit(fill, 530_000_000))
        (address,) = client.nthreads()
        told = rf"{address} uses 5\d\d MB of 600 MB.*`memory_limit`.*repartition"
        with pytest.raises(ClusterError, match=told):
            hasty.map(abs, range(3))


def nothing() -> None:
    """What calls need is loaded."""


def fill(nbytes: int) -> None:
    """Take memory that Dask knows nothing of, until the process has so much."""
    import builtins

    import psutil  # type: ignore[import-untyped]

    taken = psutil.Process().memory_info().rss
    builtins.held = b"1" * (nbytes - taken)  # type: ignore[attr-defined]
    time.sleep(0.5)  # in which Dask notices


def test_what_a_worker_uses_counts_what_it_loads(workers: Cluster) -> None:
    def load() -> None:
        import builtins

        builtins.held = b"1" * 2**27  # type: ignore[attr-defined]

    workers.client.wait_for_workers(2, timeout=60)  # another test may have ended one
    before, after = workers.memories(nothing), workers.memories(load)
    assert [one.threads for one in after] == [1, 1]
    for one, other in zip(before, after, strict=True):
        # what was garbage before may have gone
        assert 0.9 * 2**27 < other.used - one.used < 2**28
        assert other.below(0.5) == 0.5 * other.limit - other.used


def test_a_lost_scheduler_is_an_error_not_a_hang() -> None:
    before = dask.config.get("scheduler", None)
    with local_cluster(0) as client:
        lone = Cluster(client)
        handle = lone.submit(abs, 1)
        client.close()
        with pytest.raises(ClusterError, match="scheduler"):
            lone.result(handle)
        with pytest.raises(ClusterError, match="scheduler"):
            lone.submit(abs, 1)
        with pytest.raises(ClusterError, match="scheduler"):
            Cluster(client)
    assert dask.config.get("scheduler", None) == before


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "no:address:at:all"])
def test_without_a_scheduler_dask_goes_on_as_before(address: str) -> None:
    before = dask.config.get("scheduler", None)
    with (
        local_cluster(0),
        pytest.raises(ConfigError, match="does not answer"),
        connect(address, patience=1),
    ):
        pass
    gc.collect()  # a client that was not closed is closed then
    assert dask.config.get("scheduler", None) == before


def test_what_was_waited_for_long_is_let_go_of_at_once(workers: Cluster) -> None:
    hasty = Cluster(workers.client, patience=1.0)  # looks whether workers live every 1/12 s

    gc.disable()
    try:
        handle = hasty.submit(time.sleep, 0.5)
        hasty.result(handle)
        key, count = str(handle.key), sys.getrefcount(handle)
        del handle
        assert eventually(lambda: key not in task_keys(workers.client))
    finally:
        gc.enable()
    assert count == 2
