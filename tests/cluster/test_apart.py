"""A process beside this one: what it answers, and how it and its starter end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlopt.cluster import apart
from mlopt.cluster.apart import Apart
from mlopt.cluster.pool import Abandoned
from mlopt.errors import InputError, MemberLostError, TaskError

pytestmark = pytest.mark.cluster


class Refusal(Exception):
    """Pickled, it lacks an argument."""

    def __init__(self, number: int, why: str) -> None:
        super().__init__(why)
        self.number = number


class Desk:
    """Made here, and there."""

    def __init__(self, name: str) -> None:
        if not name:
            raise ValueError("a desk has a name")
        self.name = name
        self.count = 0
        self._both = threading.Barrier(2)

    def add(self, number: int) -> tuple[str, int, int]:
        self.count += number
        return self.name, self.count, os.getpid()

    def meet(self) -> int:
        return self._both.wait(20)

    def refuse(self) -> None:
        raise Refusal(3, "no")

    def slow(self, number: int) -> int:
        time.sleep(1)
        return number

    def sleep(self) -> None:
        time.sleep(60)


@pytest.fixture(autouse=True, scope="module")
def started_anew() -> Iterator[None]:
    """As for users, not forks of a process that has loaded the libraries."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(apart, "subprocess", subprocess)
        yield


@pytest.fixture(scope="module")
def desk() -> Iterator[Apart]:
    """A process with a desk, for two calls at once."""
    with Apart(Desk, "here", calls=2) as made:
        yield made


def test_an_object_there_keeps_its_state_and_says_what_it_raises(desk: Apart) -> None:
    assert desk.call("add", 2) == ("here", 2, desk.number)
    assert desk.call("add", 3)[:2] == ("here", 5)
    assert desk.number != os.getpid()
    with pytest.raises(TypeError, match="add"):
        desk.call("add")
    with pytest.raises(TaskError, match="Refusal: no"):
        desk.call("refuse")
    with pytest.raises(InputError, match="must be picklable"):
        desk.call("add", threading.Lock())
    assert desk.call("add", 1)[1] == 6
    with pytest.raises(ValueError, match="a desk has a name"):
        Apart(Desk, "")


def test_two_calls_run_at_once(desk: Apart) -> None:
    places: list[int] = []
    other = threading.Thread(target=lambda: places.append(desk.call("meet")))
    other.start()
    places.append(desk.call("meet"))
    other.join()
    assert sorted(places) == [0, 1]


def test_a_process_that_is_killed_or_given_up_is_lost_at_once() -> None:
    with Apart(Desk, "a", calls=2) as killed:
        began = time.monotonic()
        threading.Timer(0.2, os.kill, (killed.number, signal.SIGKILL)).start()
        with pytest.raises(MemberLostError, match=r"status -9"):
            killed.call("sleep")
        with pytest.raises(MemberLostError):
            killed.call("add", 1)
    with Apart(Desk, "b") as left:
        os.kill(left.number, signal.SIGINT)  # of a terminal: not its business
        os.kill(left.number, signal.SIGTERM)
        assert left.call("add", 1)[1] == 1
        with pytest.raises(MemberLostError):
            left.call("sleep", given_up=lambda: True)
    assert time.monotonic() - began < 20


def test_a_call_that_is_abandoned_leaves_no_answer_to_the_next() -> None:
    def abandoned() -> bool:
        raise Abandoned

    with Apart(Desk, "a") as there:
        with pytest.raises(Abandoned):
            there.call("slow", 1, given_up=abandoned)
        with pytest.raises(MemberLostError):
            there.call("add", 1)


@pytest.mark.parametrize("at", ["there.call('sleep', 60)", "time.sleep(60)"])
def test_it_ends_with_who_started_it_whatever_it_is_at(at: str) -> None:
    starts = (
        "import time; from mlopt.cluster.apart import Apart\n"
        "there = Apart(__import__, 'time')\n"
        f"print(there.number, flush=True)\n{at}"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", starts],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert starter.stdout is not None
    number = int(starter.stdout.readline())
    os.kill(number, 0)
    starter.kill()
    assert starter.communicate()[1] == ""  # what it says goes there, too
    ends = time.monotonic() + 20
    while _runs(number):
        assert time.monotonic() < ends
        time.sleep(0.02)


def _runs(number: int) -> bool:
    try:
        with open(f"/proc/{number}/stat") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def package() -> str:
    import mlopt

    return str(mlopt.__file__)


class Where:
    """Says where it is from."""

    def package(self) -> str:
        return package()


def test_the_package_there_is_the_one_that_is_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A path that a script has added counts for the first import, too."""
    (tmp_path / "mlopt").symlink_to(Path(package()).parent)
    monkeypatch.syspath_prepend(str(tmp_path))
    with Apart(Where) as there:
        assert there.call("package") == str(tmp_path / "mlopt" / "__init__.py")


SIGNALLED = """
import os, signal, sys
os.kill(os.getpid(), signal.SIGTERM)
sys.path.remove({folder!r})
del sys.modules["cloudpickle"]
import cloudpickle
"""


def test_a_signal_does_not_end_it_while_it_imports(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "cloudpickle.py").write_text(SIGNALLED.format(folder=str(tmp_path)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.syspath_prepend(str(tmp_path))
    with Apart(Desk, "here") as there:
        assert there.call("add", 1)[0] == "here"
