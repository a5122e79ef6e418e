"""The disk tier: whole values or none, across processes, within a limit."""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tests import forks

from mlopt.caching import Disk
from mlopt.errors import InputError

WRITER = """
import sys, numpy as np
from mlopt.caching import Disk
disk = Disk(sys.argv[1])
print("ready", flush=True)
for i in range(int(sys.argv[2])):
    disk.write("shared", np.full(200_000, i))
"""


def writer(folder: Path, times: int) -> subprocess.Popen[str]:
    """Another process that writes one token again and again."""
    command = [sys.executable, "-c", WRITER, str(folder), str(times)]
    process = forks.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def test_what_one_process_wrote_another_reads(tmp_path: Path) -> None:
    with writer(tmp_path, 1) as process:
        assert process.wait(60) == 0
    np.testing.assert_array_equal(Disk(tmp_path).read("shared"), np.zeros(200_000))


def test_a_process_that_dies_while_writing_leaves_a_whole_value(tmp_path: Path) -> None:
    with writer(tmp_path, 10**9) as process:
        while not (tmp_path / "shared.kept").exists():
            time.sleep(0.01)
        time.sleep(0.1)
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    value = Disk(tmp_path).read("shared")
    assert value.shape == (200_000,)
    assert (value == value[0]).all()


@pytest.mark.parametrize("keep", [0, 10, 900])
def test_a_cut_file_counts_as_missing_and_is_removed(tmp_path: Path, keep: int) -> None:
    disk = Disk(tmp_path)
    disk.write("a", np.arange(100))
    path = tmp_path / "a.kept"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(KeyError):
        disk.read("a")
    assert not path.exists()


def test_one_changed_bit_counts_as_missing(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.write("a", np.arange(100))
    path = tmp_path / "a.kept"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(KeyError):
        disk.read("a")
    assert "a" not in disk


def test_beyond_the_limit_the_least_recently_used_goes(tmp_path: Path) -> None:
    size = Disk(tmp_path).write("a", np.zeros(1000))
    disk = Disk(tmp_path, limit=2.5 * size)
    disk.write("b", np.zeros(1000))
    for token, age in (("a", 20), ("b", 10)):
        os.utime(tmp_path / f"{token}.kept", (time.time() - age,) * 2)
    disk.read("a")
    disk.write("c", np.zeros(1000))
    assert disk.tokens == ("a", "c")
    assert disk.bytes == 2 * size


def test_a_value_larger_than_the_limit_is_not_stored(tmp_path: Path) -> None:
    disk = Disk(tmp_path, limit=100)
    disk.write("small", 1)
    assert disk.write("large", np.zeros(1000)) == 0
    assert disk.tokens == ("small",)


def test_a_value_that_cannot_be_pickled_leaves_nothing(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    with pytest.raises(Exception, match="pickle"):
        disk.write("a", lambda: None)
    assert not list(tmp_path.iterdir())


def test_what_a_dead_process_left_half_written_is_removed(tmp_path: Path) -> None:
    dead, live = (
        tmp_path / ".a.kept.00000000.mlopt-part",
        tmp_path / ".b.kept.00000001.mlopt-part",
    )
    for path in (dead, live):
        path.write_bytes(b"half")
    with live.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert Disk(tmp_path).tokens == ()
    assert list(tmp_path.iterdir()) == [live]


class Planted:
    """Runs code of its writer when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.mark,)


def test_folder_and_files_are_for_the_user_alone(tmp_path: Path) -> None:
    disk = Disk(tmp_path / "deep" / "kept")
    disk.write("a", 1)
    assert stat.S_IMODE(disk.folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((disk.folder / "a.kept").stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770])
def test_a_folder_that_others_may_write_to_is_refused(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "kept"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(InputError, match=f"belong to the user.*{mode:o}.*chmod go-w"):
        Disk(folder)


def test_a_file_that_others_may_write_to_is_not_run(tmp_path: Path) -> None:
    disk, mark = Disk(tmp_path), tmp_path / "mark"
    disk.write("a", Planted(mark))
    (tmp_path / "a.kept").chmod(0o666)
    with pytest.raises(InputError, match="belong to the user"):
        disk.read("a")
    assert not mark.exists()


def test_a_file_of_another_user_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, mark = Disk(tmp_path), tmp_path / "mark"
    disk.write("a", Planted(mark))
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(InputError, match="belong to the user"):
        disk.read("a")
    assert not mark.exists()
    with pytest.raises(InputError, match="belong to the user"):
        Disk(tmp_path)


@pytest.mark.parametrize("token", ["", "../a", ".hidden", "a/b", "a" * 201])
def test_a_token_that_is_no_file_name_is_refused(tmp_path: Path, token: str) -> None:
    with pytest.raises(InputError, match="`token`"):
        Disk(tmp_path).write(token, 1)


def test_a_negative_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`limit`"):
        Disk(tmp_path, -1)
