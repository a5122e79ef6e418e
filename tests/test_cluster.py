"""Executors in this process: order, errors, nesting, and one BLAS thread inside."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import scipy.linalg  # noqa: F401  (a second BLAS, to be limited too)
from dask.task_spec import Task, TaskRef
from hypothesis import given
from hypothesis import strategies as st
from tests.clusters import eventually
from threadpoolctl import threadpool_info, threadpool_limits

from mlopt.cluster import (
    Executor,
    Threads,
    Tree,
    added,
    between_passes,
    count_threads,
    executor,
    inside_task,
    single_threaded,
    tree_reduce,
)
from mlopt.cluster.pool import Abandoned, Pool
from mlopt.errors import InputError, TaskError


@pytest.fixture(params=[1, 2, 5])
def threads(request: pytest.FixtureRequest) -> Iterator[Threads]:
    pool = Threads(request.param)
    yield pool
    pool.close()


def bracket(left: str, right: str) -> str:
    return f"({left}{right})"


def libraries(api: str) -> list[int]:
    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == api]


@given(st.permutations(range(11)), st.integers(1, 11))
def test_the_tree_does_not_depend_on_who_is_ready_first(
    order: list[int], leaves: int
) -> None:
    tree = Tree(bracket, leaves)
    for leaf in (leaf for leaf in order if leaf < leaves):
        tree.add(leaf, str(leaf))
    assert tree.root == tree_reduce(bracket, [str(leaf) for leaf in range(leaves)])


def test_the_tree_pairs_neighbours_and_lets_the_odd_one_wait() -> None:
    assert tree_reduce(bracket, "abcde") == "(((ab)(cd))e)"
    assert tree_reduce(bracket, "a") == "a"


@given(st.text("abcdefgh", min_size=1), st.sampled_from([2, 4, 8]))
def test_a_group_of_a_power_of_two_is_a_subtree(leaves: str, size: int) -> None:
    groups = [leaves[first : first + size] for first in range(0, len(leaves), size)]
    roots = [tree_reduce(bracket, group) for group in groups]
    assert tree_reduce(bracket, roots) == tree_reduce(bracket, leaves)


@pytest.mark.parametrize("leaves", [1, 2, 5, 8])
def test_a_sum_takes_the_place_of_partials_that_are_its_own_and_of_no_others(
    leaves: int,
) -> None:
    held = [np.full(3, 2.0**leaf) for leaf in range(leaves)]
    before = [array.copy() for array in held]
    np.testing.assert_array_equal(tree_reduce(added, held), sum(before))
    np.testing.assert_array_equal(held, before)
    tree = Tree(added, leaves)
    for leaf, array in enumerate(held):
        tree.add(leaf, array)
    assert tree.root is held[0]
    np.testing.assert_array_equal(tree.root, sum(before))


def test_a_tree_keeps_few_partials_alive() -> None:
    tree = Tree(bracket, 64)
    most = 0
    for leaf in range(64):
        tree.add(leaf, "x")
        most = max(most, len(tree._waiting))
    assert most <= 7


def test_results_come_in_the_order_of_items(threads: Threads) -> None:
    def slow_first(item: int, factor: int) -> int:
        time.sleep(0.02 if item == 0 else 0)
        return item * factor

    assert threads.map(slow_first, range(20), 3) == [3 * item for item in range(20)]
    assert threads.map(slow_first, [], 3) == []


def test_handles_stand_for_values_everywhere(threads: Threads) -> None:
    one, two = threads.put(1), threads.submit(int, "2")
    assert threads.map(pow, [one, two], threads.put(3)) == [1, 8]
    nested = threads.submit(lambda value: value, {"a": [one, (two, 5)]})
    assert threads.result(nested) == {"a": [1, (2, 5)]}
    assert threads.reduce(pow, bracket_sum, [two, two], two) == 8


def bracket_sum(left: Any, right: Any) -> Any:
    return left + right


def test_calls_may_wait_for_calls_before_them(threads: Threads) -> None:
    handle = threads.put(0)
    for _ in range(20):
        handle = threads.submit(lambda value: value + 1, handle)
    assert threads.result(handle) == 20


def test_a_call_that_waits_holds_no_thread() -> None:
    pool, go = Threads(2), threading.Event()
    first = pool.submit(go.wait)
    waiting = [pool.submit(lambda _: 1, first) for _ in range(4)]
    free = pool.submit(lambda: 2)

    assert free.result(timeout=10) == 2
    go.set()
    assert [pool.result(handle) for handle in waiting] == [1, 1, 1, 1]
    pool.close()


def test_who_waits_for_an_error_gets_it(threads: Threads) -> None:
    def fail() -> None:
        time.sleep(0.01)
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        threads.result(threads.submit(str, threads.submit(fail)))


def test_of_several_errors_the_first_in_order_is_raised(threads: Threads) -> None:
    def fail(item: int) -> None:
        time.sleep(0.02 if item == 1 else 0)
        if item:
            raise ValueError(str(item))

    with pytest.raises(ValueError, match="1"):
        threads.map(fail, range(6))
    handle = threads.submit(fail, 7)
    assert list(threads.as_completed([handle])) == [handle]
    with pytest.raises(ValueError, match="7"):
        threads.result(handle)


def test_an_error_stops_what_has_not_begun() -> None:
    seen: list[int] = []

    def fail(item: int) -> None:
        seen.append(item)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        Threads(2).map(fail, range(1000))
    assert len(seen) <= 2


def test_a_fold_visits_items_in_order_with_every_state(threads: Threads) -> None:
    def visit(item: str, state: str, mark: str) -> str:
        return state + item + mark

    assert threads.fold(visit, ["x", "y"], ["a", "b", ""], ".") == [
        "ax.y.",
        "bx.y.",
        "x.y.",
    ]
    assert threads.fold(visit, [], ["a"], ".") == ["a"]


@pytest.mark.timeout(20)
def test_nested_work_does_not_deadlock(threads: Threads) -> None:
    def outer(item: int) -> int:
        inner = threads.submit(sum, threads.map(abs, [item, item]))
        return int(threads.result(inner))

    assert threads.map(outer, range(10)) == [2 * item for item in range(10)]
    handles = [threads.submit(outer, item) for item in range(10)]
    assert [threads.result(handle) for handle in handles] == list(range(0, 20, 2))


@pytest.mark.timeout(20)
def test_a_failed_nested_call_fails_where_it_is_asked_for() -> None:
    pool = Threads(2)

    def outer(item: str) -> str:
        handle = pool.submit(int, item)
        try:
            return str(pool.result(handle))
        except ValueError:
            return "no number"

    assert pool.map(outer, ["1", "x"]) == ["1", "no number"]


def test_libraries_have_one_thread_inside_and_theirs_back_outside(
    threads: Threads,
) -> None:
    before = libraries("blas"), libraries("openmp")
    inside = threads.map(lambda _: libraries("blas") + libraries("openmp"), range(4))
    assert {count for counts in inside for count in counts} == {1}
    counts = threads.result(threads.submit(libraries, "blas"))
    assert set(counts) == {1}
    assert (libraries("blas"), libraries("openmp")) == before


def test_the_limit_lasts_until_the_last_of_two_maps_ends() -> None:
    begun, go_on = threading.Event(), threading.Event()
    counts: list[int] = []

    def long(_: int) -> None:
        begun.set()
        assert go_on.wait(10)
        counts.extend(libraries("blas"))

    before = libraries("blas")
    other = threading.Thread(target=Threads(1).map, args=(long, [0]))
    other.start()
    assert begun.wait(10)
    Threads(1).map(abs, [1])
    go_on.set()
    other.join()
    assert set(counts) == {1}
    assert libraries("blas") == before


def test_between_passes_blas_has_one_thread_and_calls_stay_parallel() -> None:
    before = libraries("blas")
    with between_passes():
        assert set(libraries("blas")) == {1}
        assert not inside_task()
        Threads(2).map(abs, [1, 2])
        assert set(libraries("blas")) == {1}
    assert libraries("blas") == before


@pytest.mark.parametrize("lone", [None, "both", "unknown"])
def test_a_task_by_itself_may_start_threads_and_all_tasks_run_once(
    lone: str | None,
) -> None:
    blas: list[tuple[str, set[int]]] = []

    def done(key: str, *values: str) -> str:
        blas.append((key, set(libraries("blas"))))
        return f"{key}({', '.join(values)})"

    def task(key: str, *reads: str) -> Task:
        return Task(key, done, key, *map(TaskRef, reads))

    reads = {
        "one": (),
        "two": (),
        "beside": ("one",),
        "both": ("one", "two"),
        "last": ("both", "beside", "two"),
    }
    pool = Threads(2)
    with threadpool_limits(2, user_api="blas"):
        graph = {key: task(key, *names) for key, names in reads.items()}
        handles = pool.run_graph(graph, ["last", "one", "both"], lone)
    both = "both(one(), two())"
    values = [pool.result(handle) for handle in handles]
    assert values == [f"last({both}, beside(one()), two())", "one()", both]
    assert sorted(key for key, _ in blas) == sorted(reads)
    assert dict(blas) == {key: {2 if key == lone else 1} for key in reads}
    pool.close()


class Value:
    """Of a task: something that can be watched."""


def test_what_a_task_by_itself_read_is_let_go_before_the_tasks_after_it() -> None:
    made: list[weakref.ref[Value]] = []
    there: list[list[bool]] = []

    def make() -> Value:
        value = Value()
        made.append(weakref.ref(value))
        return value

    def read(*values: Any) -> int:
        gc.collect()
        there.append([one() is not None for one in made])
        return len(values)

    graph = {
        "one": Task("one", make),
        "kept": Task("kept", make),
        "lone": Task("lone", read, TaskRef("one"), TaskRef("kept")),
        "last": Task("last", read, TaskRef("lone"), TaskRef("kept")),
    }
    pool = Threads(2)
    assert pool.result(pool.run_graph(graph, ["last"], "lone")[0]) == 2
    assert [sum(one) for one in there] == [2, 1]
    pool.close()


@pytest.mark.parametrize("limited", [False, True], ids=["first", "beside another call"])
def test_the_limit_holds_although_another_thread_has_set_one(limited: bool) -> None:
    ready, done = threading.Event(), threading.Event()

    def other() -> None:
        with threadpool_limits(2, user_api="blas"):
            ready.set()
            assert done.wait(10)

    before = libraries("blas")
    thread = threading.Thread(target=other)
    with between_passes() if limited else nullcontext():
        thread.start()
        assert ready.wait(10)
        (counts,) = Threads(1).map(lambda _: libraries("blas"), [0])
        done.set()
        thread.join()
    assert set(counts) == {1}
    assert libraries("blas") == before


@pytest.mark.parametrize("held", [single_threaded, between_passes])
def test_a_call_that_nobody_waits_for_keeps_no_limit(held: Any) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def hang() -> None:
        with held():
            begun.set()
            go_on.wait(10)

    before = libraries("blas")
    pool = Pool(1, "left", lambda: None)
    pool.submit(hang)
    assert begun.wait(10)
    pool.abandon()
    assert libraries("blas") == before
    go_on.set()


def test_sums_are_the_same_to_the_last_bit_whatever_the_threads() -> None:
    parts = [np.random.default_rng(seed).normal(size=(300, 40)) for seed in range(37)]
    sums = [
        Threads(count).reduce(lambda part: part.T @ part, np.add, parts)
        for count in (1, 2, 3, 8)
    ]
    assert all(np.array_equal(sums[0], one) for one in sums[1:])


def test_an_interrupt_ends_the_map_and_the_pool_goes_on() -> None:
    pool = Threads(2)

    def interrupted(item: int) -> None:
        if item == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pool.map(interrupted, range(100))
    assert pool.map(abs, [-1]) == [1]


@pytest.mark.slow
def test_a_dropped_executor_leaves_no_threads() -> None:
    before = set(threading.enumerate())
    pool = Threads(3)
    pool.map(abs, range(10))
    del pool
    gc.collect()
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
    assert set(threading.enumerate()) <= before


@pytest.mark.timeout(20)
def test_calls_that_hang_are_left_and_new_ones_run() -> None:
    pool, go, before = Threads(2), threading.Event(), libraries("blas")
    hanging = [pool.submit(go.wait) for _ in range(2)]
    begun = pool.submit(abs, -1)
    awaiting = [pool.submit(lambda *_: 1, handle) for handle in (*hanging, begun)]
    with pytest.raises(TimeoutError):
        next(pool.as_completed(hanging, timeout=0.1))

    pool.abandon([*hanging, *awaiting])
    assert begun.cancelled()
    assert pool.result(pool.submit(abs, -2)) == 2
    pool.close()
    assert not any(handle.done() for handle in hanging)
    assert libraries("blas") == before
    go.set()
    assert eventually(lambda: all(handle.done() for handle in hanging))
    assert libraries("blas") == before


@pytest.mark.timeout(20)
def test_python_code_that_nobody_waits_for_ends() -> None:
    before, pool = set(threading.enumerate()), Threads(1)

    def spin() -> None:
        while True:
            time.sleep(0.01)

    handle = pool.submit(spin)
    time.sleep(0.1)
    pool.abandon([handle])
    pool.close()
    assert eventually(lambda: set(threading.enumerate()) <= before)
    assert isinstance(handle.exception(), Abandoned)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_a_call_cannot_end_the_process(error: type[BaseException]) -> None:
    pool = Threads(1)

    def leave() -> None:
        raise error

    with pytest.raises(TaskError, match=error.__name__):
        pool.result(pool.submit(leave))
    pool.close()


def test_n_jobs_means_what_it_means_in_joblib() -> None:
    from joblib import cpu_count, effective_n_jobs

    assert count_threads(None) == count_threads(-1) == cpu_count()
    assert count_threads(7) == 7
    assert count_threads(-2) == effective_n_jobs(-2)
    with pytest.raises(InputError, match="n_jobs"):
        count_threads(0)


def test_inside_a_call_the_default_is_one_thread() -> None:
    counts = Threads(2).map(lambda _: executor(n_jobs=2).threads, range(2))
    assert counts == [1, 1]


def test_dask_values_are_loaded_in_order() -> None:
    import dask

    pool = Threads(2)
    handles = pool.load([dask.delayed(pow)(item, 2) for item in range(5)])
    assert [pool.result(handle) for handle in handles] == [0, 1, 4, 9, 16]


def test_distributed_is_not_imported_to_look_for_a_client() -> None:
    code = (
        "import sys, mlopt.rows; from mlopt.cluster import executor; executor();"
        "assert not {'distributed', 'dask', 'optuna', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_an_executor_is_abstract() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Executor()  # type: ignore[abstract]


def test_an_executor_closes_while_calls_wait_for_others() -> None:
    threads = Threads(1)
    begun, go = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        go.wait(10)

    threads.submit(wait)
    begun.wait(10)
    first = threads.submit(int)
    later = [threads.submit(str, first) for _ in range(3)]
    closing = threading.Thread(target=threads.close, daemon=True)
    closing.start()
    go.set()
    closing.join(10)
    assert not closing.is_alive()
    assert all(handle.cancelled() or handle.done() for handle in later)
