"""The disk tier: whole values or none, across processes, within a limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

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
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
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
    old, new = tmp_path / ".a.kept.0000", tmp_path / ".b.kept.0000"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (0, 0))
    assert Disk(tmp_path).tokens == ()
    assert list(tmp_path.iterdir()) == [new]


@pytest.mark.parametrize("token", ["", "../a", ".hidden", "a/b", "a" * 201])
def test_a_token_that_is_no_file_name_is_refused(tmp_path: Path, token: str) -> None:
    with pytest.raises(InputError, match="`token`"):
        Disk(tmp_path).write(token, 1)


def test_a_negative_limit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="`limit`"):
        Disk(tmp_path, -1)
