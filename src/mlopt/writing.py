"""Files that are complete or not there: an old one stays until the new one is.

::

    .NAME.<id>.mlopt-part     being written; its writer holds a lock on it
    .NAME.<id>.mlopt-ready    all files of <id> are written: whoever comes next may finish

The lock of a dead process is free, which tells what it left from what is being written.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from mlopt.errors import InputError

Write = Callable[[BinaryIO], Any]

_PART, _READY = ".mlopt-part", ".mlopt-ready"
_STAGED = re.compile(r"\.(?P<name>.+)\.(?P<id>[0-9a-f]{8})\.mlopt-(part|ready)")
_OPEN = re.compile(r"/dev/(stdin|stdout|stderr|fd/\d+)|/proc/.+/fd/\d+")
"""Names for what is open, which goes on where it is at, whatever it is."""
_TRIAL_BYTES = 1 << 20
"""Bytes that a folder must take before hours of work are begun: more than a file system
keeps within its own tables, so that a full disk shows."""


@dataclass(frozen=True)
class _Staged:
    place: Path
    part: Path


def name_of(path: str) -> str:
    """The name of a file as text that can be written: to the system it is any bytes."""
    return os.fsencode(Path(path).name).decode("utf-8", "replace")


def write_files(
    files: Mapping[Path, bytes | Write],
    *,
    last: Path | None = None,
    mode: int | None = None,
) -> None:
    """Write each file beside its place, then move all of them there.

    A file keeps the mode of the one that it replaces; a symbolic link stays, and what it
    points to is replaced; what is no file, such as ``/dev/stdout``, is written to as it is.

    Parameters
    ----------
    files : mapping of Path to bytes or callable
        What is in the file, or what writes it into the open file: nothing of a large one
        need be in memory twice.
    last : Path, optional
        One of them, in the folder of the others, that is only there when all of them are of
        one call: it is removed before they move, and comes last. A process that dies in
        between leaves it to `finish_files`.
    mode : int, optional
        Of new files; by default what the process' mask leaves of 0666.

    Raises
    ------
    OSError
        When the disk is full or the folder read-only; old files are then as they were.
    """
    regular = [path for path in files if not _is_device(path)]
    folders = {_real(path).parent for path in regular}
    name = uuid4().hex[:8]
    for folder in folders:
        finish_files(folder)
    try:
        with ExitStack() as stack:
            staged = {
                path: _stage(path, files[path], name, mode, stack) for path in regular
            }
            for path in files.keys() - staged.keys():
                with _named(path), path.open("ab") as device:  # no file is cut off
                    _fill(device, files[path])
            _move(staged, last, stack)
    except BaseException:
        for folder in folders:
            finish_files(folder)
        raise


def write_or_print(content: bytes, output: Path | None) -> None:
    """Write text to a file, or to stdout where none is named."""
    if output is None:
        sys.stdout.write(content.decode())
    else:
        write_files({output: content})


def write_file(path: Path, content: bytes | Write) -> None:
    """Write one file as `write_files` does, without a look at what else is in its folder:
    for whoever writes thousands there, and has called `finish_files` first.

    Raises
    ------
    OSError
    """
    name = uuid4().hex[:8]
    try:
        with ExitStack() as stack:
            _move({path: _stage(path, content, name, None, stack)}, None, stack)
    except BaseException:
        _part_of(_real(path), name).unlink(missing_ok=True)
        raise


def finish_files(folder: Path) -> None:
    """End what dead processes began in ``folder``: files that were all written move to
    their places, those that were not are removed.
    """
    if not folder.is_dir():
        return
    found = {path: match for path in folder.iterdir() if (match := _staged(path))}
    for ready in (path for path in found if path.suffix == _READY):
        with ExitStack() as stack:
            if _seized(ready, stack):
                for path, match in found.items():
                    if match["id"] == found[ready]["id"] and path != ready:
                        with suppress(FileNotFoundError):
                            path.replace(folder / match["name"])
                with suppress(FileNotFoundError):
                    ready.replace(folder / found[ready]["name"])
    for part in (path for path in found if path.suffix == _PART):
        with ExitStack() as stack:
            if _seized(part, stack):
                part.unlink(missing_ok=True)


def check_file(path: Path, inputs: Iterable[Path | str | None] = ()) -> None:
    """Refuse a file that could not be written, before there is something to write.

    Parameters
    ----------
    path : Path
    inputs : iterable of path
        What is read, which must not be written over.

    Raises
    ------
    InputError
    """
    check_outputs([path], inputs)
    if _is_device(path):
        return
    if path.is_dir():
        raise InputError(f"`{path}` must be a file, but is a folder: name a file in it.")
    if path.parent.exists() and not path.parent.is_dir():
        check_writable(path.parent)
    if not path.parent.is_dir():
        raise InputError(f"`{path}` must be in a folder that is there: make it first.")
    check_writable(_real(path).parent)


def expanded(path: Path | str) -> str:
    """A path from a home directory in full; where there is no such home, as it stands."""
    return os.path.expanduser(path)  # noqa: PTH111  (which raises there)


def check_outputs(outputs: Iterable[Path], inputs: Iterable[Path | str | None]) -> None:
    """Refuse to write over what is read, under whatever name or link.

    Raises
    ------
    InputError
    """
    for output in outputs:
        for source in inputs:
            with suppress(OSError):  # what is not there cannot be written over
                if source is not None and _same(output, Path(expanded(source))):
                    raise InputError(
                        f"`output` must not be what is read, but `{output}` is the file "
                        f"`{source}`: name another."
                    )


def check_free(places: Iterable[Path]) -> None:
    """Refuse to write over what is there.

    Raises
    ------
    InputError
    """
    for place in places:
        if os.path.lexists(place):
            raise InputError(f"`{place}` is there already: name another place, or move it.")


def copied(found: Path, place: Path) -> Path:
    """Copy a file, or a folder, to a place, or into a folder that is there.

    Raises
    ------
    InputError
        Something that is there would be replaced.
    """
    if not found.is_dir():
        target = place / found.name if place.is_dir() else place
        check_free([target])
        return Path(shutil.copyfile(found, target))
    finish_files(found)
    files = (one for one in found.rglob("*") if not one.is_dir())
    check_free([] if place.is_dir() else [place])
    check_free(place / one.relative_to(found) for one in files)
    return Path(shutil.copytree(found, place, dirs_exist_ok=True))


def check_writable(folder: Path, what: str = "output") -> None:
    """Refuse a folder, there or yet to be made, that files cannot be written to.

    Leaves nothing behind.

    Parameters
    ----------
    folder : Path
    what : str
        The parameter that names it.

    Raises
    ------
    InputError
        It is a file, read-only, on a full disk, or the process has too many open files.
    """
    reason = why_unwritable(folder)
    if reason:
        raise InputError(
            f"`{what}` must be in a folder that can be written to; `{folder}`: {reason}. "
            "Name another."
        )


def why_unwritable(folder: Path) -> str:
    """Why no file could be written to a folder, there or yet to be made; "" if one can."""
    nearest = folder.absolute()
    while not os.path.lexists(nearest) and nearest != nearest.parent:
        nearest = nearest.parent
    try:
        with tempfile.TemporaryFile(dir=nearest, prefix=".mlopt-") as file:
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)  # some network disks have no locks
            file.write(b"\0" * _TRIAL_BYTES)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return str(error.strerror or error)
    return ""


def _same(output: Path, source: Path) -> bool:
    return not _is_device(output) and output.samefile(source)


def _is_device(path: Path) -> bool:
    """Whether it is there, and neither file nor folder; or is a name for an open one."""
    if _OPEN.fullmatch(str(path)):
        return path.exists()
    return path.exists() and not (path.is_file() or path.is_dir())


def _real(path: Path) -> Path:
    return path.resolve() if path.is_symlink() else path


def _stage(
    path: Path, content: bytes | Write, name: str, mode: int | None, stack: ExitStack
) -> _Staged:
    place = _real(path)
    if place.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    part = _part_of(place, name)
    kept = stat.S_IMODE(place.stat().st_mode) if place.exists() else mode
    with _named(path):
        file = stack.enter_context(_created(part, kept))
        _fill(file, content)
        os.fsync(file.fileno())
    return _Staged(place, part)


def _part_of(place: Path, name: str) -> Path:
    return place.with_name(f".{place.name}.{name}{_PART}")


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Errors name the file that was asked for."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def _created(part: Path, mode: int | None) -> BinaryIO:
    """A new file that is locked: nobody takes it for one that was left behind."""
    while True:
        number = os.open(
            part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666 if mode is None else 0o600
        )
        if mode is not None:
            os.fchmod(number, mode)
        fcntl.flock(number, fcntl.LOCK_EX)
        if os.fstat(number).st_nlink:
            return os.fdopen(number, "wb")
        os.close(number)  # removed between its making and its lock


def _fill(file: BinaryIO, content: bytes | Write) -> None:
    if callable(content):
        content(file)
    else:
        file.write(content)
    file.flush()


def _move(staged: Mapping[Path, _Staged], last: Path | None, stack: ExitStack) -> None:
    for one in staged.values():
        # The space of an old file is freed when all are in place: that takes long.
        with suppress(OSError):
            stack.enter_context(one.place.open("rb"))
    final = None if last is None else staged[last]
    if final is None:
        for one in staged.values():
            one.part.replace(one.place)
        return
    ready = final.part.with_suffix(_READY)
    final.part.replace(ready)
    final.place.unlink(missing_ok=True)
    for one in staged.values():
        if one is not final:
            one.part.replace(one.place)
    ready.replace(final.place)


def _staged(path: Path) -> re.Match[str] | None:
    return _STAGED.fullmatch(path.name)


def _seized(path: Path, stack: ExitStack) -> bool:
    """Whether its writer is dead; nobody else has it then until the stack closes."""
    try:
        file = stack.enter_context(path.open("rb"))
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # gone, of another user, or in use
        return False
    return os.fstat(file.fileno()).st_nlink > 0
