"""Files appear whole, of one generation, with the modes and links that were there."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from tests import forks

from mlopt.errors import InputError
from mlopt.writing import check_outputs, check_writable, finish_files, write_files

WRITER = """
import sys
from pathlib import Path
from mlopt.writing import write_files
folder, number = Path(sys.argv[1]), 0
names = ["model.skops", "plan.json", "trials.csv", "result.json"]
while True:
    number += 1
    content = {folder / n: f"{number:09d}".encode() * 50_000 for n in names}
    write_files(content, last=folder / "result.json")
    print(number, flush=True)
"""


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644])
def test_a_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "out.csv"
    path.touch()
    path.chmod(mode)
    write_files({path: b"new"})
    assert (path.read_bytes(), mode_of(path)) == (b"new", mode)


def test_a_new_file_has_the_mode_of_the_mask_or_the_one_asked_for(tmp_path: Path) -> None:
    plain, secret = tmp_path / "plain", tmp_path / "secret"
    before = os.umask(0o022)
    try:
        write_files({plain: b""})
        write_files({secret: b""}, mode=0o600)
    finally:
        os.umask(before)
    assert (mode_of(plain), mode_of(secret)) == (0o644, 0o600)


def test_a_symbolic_link_stays_and_what_it_points_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "real.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target)
    write_files({link: b"new"})
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_link_to_nothing_makes_what_it_points_to(tmp_path: Path) -> None:
    link = tmp_path / "link.csv"
    link.symlink_to(tmp_path / "real.csv")
    write_files({link: b"new"})
    assert link.is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new"


def test_a_device_is_written_to_and_stays(tmp_path: Path) -> None:
    null = Path("/dev/null")
    write_files({null: b"nothing"})
    assert stat.S_ISCHR(null.stat().st_mode)
    code = (
        "from pathlib import Path; from mlopt.writing import write_files; "
        "print('before', flush=True); write_files({Path('/dev/stdout'): b'new\\n'}); "
        "print('after')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"before\nnew\nafter\n"
    with (tmp_path / "redirected").open("ab") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
    assert (tmp_path / "redirected").read_bytes() == b"before\nnew\nafter\n"


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no memory for files")
def test_files_in_shared_memory_are_files_like_others() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        one, last = Path(folder) / "one.csv", Path(folder) / "result.json"
        for content in (b"old", b"new"):
            write_files({one: content, last: content}, last=last)
        assert (one.read_bytes(), last.read_bytes()) == (b"new", b"new")
        with pytest.raises(InputError, match=r"`output` must not be what is read"):
            check_outputs([one], [one])


def test_an_output_that_is_an_input_is_refused_whatever_it_is_called(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data.csv"
    data.write_text("x")
    (tmp_path / "soft.csv").symlink_to(data)
    (tmp_path / "hard.csv").hardlink_to(data)
    for name in ("data.csv", "soft.csv", "hard.csv", "../" + tmp_path.name + "/data.csv"):
        with pytest.raises(InputError, match=r"`output` must not be what is read"):
            check_outputs([tmp_path / name], [None, "sklearn:iris", str(data)])
    check_outputs([tmp_path / "new.csv", Path("/dev/null")], [data, "/dev/null"])


def test_a_folder_that_cannot_be_written_to_is_refused_at_once(tmp_path: Path) -> None:
    check_writable(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"`output` must be in a folder.*Not a directory"):
        check_writable(tmp_path / "file" / "out")
    with pytest.raises(InputError, match="`output` must be in a folder"):
        check_writable(Path("/proc/out"))


@pytest.mark.slow
def test_files_of_a_killed_writer_are_of_one_generation_and_nothing_is_left(
    tmp_path: Path,
) -> None:
    names = ["model.skops", "plan.json", "trials.csv", "result.json"]
    for number in range(12):
        command = [sys.executable, "-c", WRITER, str(tmp_path)]
        with forks.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(0.003 * number)
            process.send_signal(signal.SIGKILL)
        if (tmp_path / "result.json").exists():
            assert len({(tmp_path / name).read_bytes() for name in names}) == 1
        finish_files(tmp_path)
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names)
        assert len({(tmp_path / name).read_bytes() for name in names}) == 1


@pytest.mark.parametrize("moved", [0, 1, 2])
def test_what_was_all_written_is_finished(tmp_path: Path, moved: int) -> None:
    """As a process leaves it that died after so many of two files had moved."""
    names = ["model.skops", "plan.json"]
    for number, name in enumerate(names):
        place = name if number < moved else f".{name}.0123abcd.mlopt-part"
        (tmp_path / place).write_text("new")
    (tmp_path / ".result.json.0123abcd.mlopt-ready").write_text("new")
    (tmp_path / ".model.skops.ffffffff.mlopt-part").write_text("half")
    finish_files(tmp_path)
    found = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert found == dict.fromkeys([*names, "result.json"], "new")


def test_what_is_being_written_is_let_be(tmp_path: Path) -> None:
    path = tmp_path / "model.skops"
    seen: list[str] = []

    def content(file: object) -> None:
        finish_files(tmp_path)
        seen.extend(p.suffix for p in tmp_path.iterdir())

    write_files({path: content})
    assert seen == [".mlopt-part"]
    assert [p.name for p in tmp_path.iterdir()] == ["model.skops"]


def test_a_folder_without_locks_is_refused_before_there_is_something_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", none)
    with pytest.raises(InputError, match=r"can be written to.*No locks available"):
        check_writable(tmp_path)


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    def interrupted(file: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_files({tmp_path / "a": b"new", tmp_path / "b": interrupted})
    assert list(tmp_path.iterdir()) == []


def test_a_full_device_is_named() -> None:
    with pytest.raises(OSError, match=r"No space left.*/dev/full"):
        write_files({Path("/dev/full"): b"x"})


def test_a_full_disk_names_the_file(tmp_path: Path) -> None:
    def full(file: object) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match=r"No space left.*model\.skops"):
        write_files({tmp_path / "model.skops": full})


def test_hidden_files_of_others_are_let_be(tmp_path: Path) -> None:
    other = tmp_path / ".film.0123abcd.part"
    other.touch()
    write_files({tmp_path / "a": b""})
    assert other.exists()
