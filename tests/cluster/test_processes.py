"""Calls in processes beside this one: values, errors, warnings, ends."""

import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import PolynomialFeatures
from tests import forks
from tests.judges.stale import in_a_fork

from mlopt.cluster import Threads, processes
from mlopt.cluster.processes import Processes, are_left
from mlopt.errors import TaskKilledError

pytestmark = pytest.mark.cluster


@pytest.fixture(autouse=True)
def none_left() -> Iterator[None]:
    yield
    for hands in [*processes._left._idle]:
        processes._left._end(hands)


def held(value: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(value)
    return future


def numbers_of(rows: Any, add: int) -> tuple[int, Any]:
    return os.getpid(), rows.sum() + add


def write(rows: Any) -> Any:
    rows[0] = 1
    return rows.sum()


def number() -> int:
    return os.getpid()


def warn(message: str) -> str:
    warnings.warn(message, RuntimeWarning, stacklevel=1)
    warnings.warn(message, RuntimeWarning, stacklevel=1)
    return message


def warned(message: str) -> str | None:
    try:
        warn(message)
    except RuntimeWarning as error:
        return f"{type(error).__name__}: {error}"
    return None


def divide(a: int, b: int) -> float:
    return a / b


def end() -> None:
    os._exit(3)


def hang(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    threading.Event().wait()


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def gone(pid: int) -> bool:
    for _ in range(200):
        if not is_alive(pid):
            return True
        time.sleep(0.02)
    return False


def test_a_value_is_read_and_not_copied_by_all_calls() -> None:
    beside = Processes(2)
    try:
        rows = held(np.arange(100_000.0))
        pid, total = beside.call(numbers_of, [rows, 1])
        assert pid != os.getpid()
        assert total == np.arange(100_000.0).sum() + 1
        (path,) = beside._files.paths()
        beside.call(numbers_of, [rows, 2])
        assert beside._files.paths() == {path}
        del rows
        assert beside._files.paths() == set()
        assert not Path(path).exists()
    finally:
        beside.close()


def test_what_a_call_writes_to_a_value_stays_with_its_process() -> None:
    beside = Processes(1)
    try:
        rows = held(np.zeros(1000))
        assert beside.call(write, [rows]) == 1
        (path,) = beside._files.paths()
        assert joblib.load(path).sum() == 0
        assert rows.result().sum() == 0
    finally:
        beside.close()


def test_compiled_code_that_wants_to_write_takes_what_is_mapped() -> None:
    rows = sparse.random(20, 3, 0.5, "csr", rng=0)
    made = PolynomialFeatures()
    beside = Processes(1)
    try:  # its compiled part refuses what is read-only
        there = beside.call(PolynomialFeatures.fit_transform, [made, held(rows)])
        assert (there != made.fit_transform(rows)).nnz == 0
    finally:
        beside.close()


def test_a_folder_that_is_not_ours_is_left_for_the_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    make = tempfile.mkdtemp

    def refused(prefix: str, dir: Path) -> str:
        if dir == tmp_path:
            raise PermissionError(f"{dir}: read-only")
        return make(prefix=prefix, dir=dir)

    monkeypatch.setattr(processes, "_SHARED", tmp_path)
    monkeypatch.setattr("tempfile.mkdtemp", refused)
    beside = Processes(1)
    try:
        assert beside.call(numbers_of, [held(np.ones(10)), 0])[1] == 10
    finally:
        beside.close()


def test_files_of_who_was_killed_are_dropped_by_the_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(processes, "_SHARED", tmp_path)
    code = """
import sys
from concurrent.futures import Future
from pathlib import Path
from mlopt.cluster import processes
processes._SHARED = Path(sys.argv[1])
rows = Future()
rows.set_result([1, 2, 3])
files = processes._Files()
print(files.of(rows).path, flush=True)
sys.stdin.read()
"""
    other = forks.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert other.stdout is not None
    path = Path(other.stdout.readline().strip())
    for alive in (True, False):
        if not alive:
            other.kill()
            other.communicate()
        beside = Processes(1)
        try:
            assert beside.call(numbers_of, [held(np.ones(10)), 0])[1] == 10
            assert path.exists() == alive
        finally:
            beside.close()
    assert not [*tmp_path.iterdir()]


def test_no_folder_on_disk_is_looked_for_while_memory_has_room(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def none() -> str:
        raise FileNotFoundError("No usable temporary directory found")

    monkeypatch.setattr(processes, "_SHARED", tmp_path)
    monkeypatch.setattr(tempfile, "gettempdir", none)
    files, rows = processes._Files(), held(np.ones(10))
    try:
        assert Path(files.of(rows).path).is_relative_to(tmp_path)
    finally:
        files.close()


def test_filters_of_warnings_hold_in_processes() -> None:
    beside = Processes(1)
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.resetwarnings()
            warnings.filterwarnings("ignore", module=__name__)
            assert beside.call(warn, ["so it is"]) == "so it is"
            warnings.simplefilter("ignore")
            warnings.filterwarnings("always", module=__name__)
            assert beside.call(warn, ["and so"]) == "and so"
            warnings.simplefilter("error")
            assert beside.call(warned, ["an error"]) == "RuntimeWarning: an error"
        assert [str(one.message) for one in heard] == ["and so", "and so"]
    finally:
        beside.close()


def test_what_numpy_does_about_errors_holds_in_processes() -> None:
    beside = Processes(1)
    try:
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
            beside.call(np.divide, [np.ones(1), np.zeros(1)])
        with np.errstate(divide="ignore"):
            assert beside.call(np.divide, [np.ones(1), np.zeros(1)]) == np.inf
        # What it would call is here, and not there.
        with np.errstate(divide="call", call=print), pytest.warns(RuntimeWarning):
            assert beside.call(np.divide, [np.ones(1), np.zeros(1)]) == np.inf
    finally:
        beside.close()


def test_errors_and_warnings_are_raised_here() -> None:
    beside = Processes(2)
    try:
        with pytest.raises(ZeroDivisionError):
            beside.call(divide, [1, 0])
        with pytest.warns(RuntimeWarning, match="so it is") as heard:
            assert beside.call(warn, ["so it is"]) == "so it is"
        assert {one.filename for one in heard} == {__file__}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeWarning, match="so it is"):
                beside.call(warn, ["so it is"])
    finally:
        beside.close()


def test_what_cannot_travel_is_called_here() -> None:
    beside = Processes(2)
    try:
        assert beside.call(lambda lock: os.getpid(), [threading.Lock()]) == os.getpid()
        assert beside._hands is None  # and none was started for it
    finally:
        beside.close()


def test_where_no_process_can_be_started_calls_run_here(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr("mlopt.cluster.apart.subprocess.Popen", refuse)
    beside = Processes(2)
    assert beside.call(number, []) == os.getpid()
    beside.close()
    assert not are_left(2)


def test_a_process_that_ends_fails_its_call_alone() -> None:
    beside = Processes(2)
    try:
        with pytest.raises(TaskKilledError):
            beside.call(end, [])
        assert beside.call(number, []) != os.getpid()
    finally:
        beside.close()


def test_idle_processes_are_left_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    first = Processes(1)
    pid = first.call(number, [])
    assert not are_left(1)
    first.close()
    assert are_left(1)
    assert not are_left(2)
    monkeypatch.setattr(processes, "price", lambda name: 0.05)
    again = Processes(1)
    assert again.call(number, []) == pid
    again.close()
    assert gone(pid)
    assert not are_left(1)


def test_idle_processes_do_not_outlive_what_they_began_in(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def environment() -> str | None:
        return os.environ.get("SAID_LATER")

    def folder() -> str:
        return str(Path.cwd())

    def paths() -> list[str]:
        return sys.path

    for function in (environment, folder, paths):
        beside = Processes(1)
        beside.call(function, [])
        beside.close()
        assert are_left(1)
        if function is environment:
            monkeypatch.setenv("SAID_LATER", "yes")
        elif function is folder:
            monkeypatch.chdir(tmp_path)
        else:
            monkeypatch.syspath_prepend(str(tmp_path))
        assert not are_left(1)
        again = Processes(1)
        assert again.call(function, []) == function()
        again.close()


def test_forks_leave_processes_and_files_to_their_parent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A fork cannot ask for forks of a process that is its parent's.
    monkeypatch.setattr("mlopt.cluster.apart.subprocess", subprocess)

    def child() -> tuple[bool, list[int]]:
        left = are_left(1)
        other = Processes(1)
        numbers = [other.call(number, []), os.getpid()]
        other.close()
        processes._left._idle.popitem()[0].close()
        second._files.close()  # as where it ends by `sys.exit`
        return left, numbers

    first, second = Processes(1), Processes(1)
    pid = first.call(number, [])
    first.close()
    try:
        rows = held(np.ones(10))
        kept = second._files.of(rows)
        left, numbers = in_a_fork(child)
        assert not left
        assert pid not in numbers
        assert Path(kept.path).exists()
        assert second.call(numbers_of, [rows, 0]) == (pid, 10)
    finally:
        second.close()


def test_threads_hand_calls_on_and_give_them_up(tmp_path: Path) -> None:
    threads = Threads(2)
    assert threads.result(threads.beside(number)) == os.getpid()
    assert threads.apart() == 2
    rows = threads.submit(np.arange, 10.0)
    pid, total = threads.result(threads.beside(numbers_of, rows, 0))
    assert (pid == os.getpid(), total) == (False, 45.0)
    told = tmp_path / "told"
    hanging = threads.beside(hang, str(told))
    while not (told.exists() and told.read_text()):
        time.sleep(0.01)
    threads.abandon([hanging])
    assert gone(int(told.read_text()))
    assert threads.result(threads.beside(number)) not in (os.getpid(), pid)
    threads.close()


def test_one_thread_has_no_process_beside_it() -> None:
    threads = Threads(1)
    assert threads.apart() == 0
    assert threads.result(threads.beside(number)) == os.getpid()
    threads.close()
