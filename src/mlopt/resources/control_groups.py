"""Memory of the control groups of a process, those around them included (Linux)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath

LIMITS = {"cgroup2": "memory.max", "cgroup": "memory.limit_in_bytes"}
"""The file with the limit, by the type of the file system: version 2, and version 1."""
_TAKEN = {
    "memory.max": ("memory.current", "inactive_file"),
    "memory.limit_in_bytes": ("memory.usage_in_bytes", "total_inactive_file"),
}
"""The file with what is taken, and in `memory.stat` what of it are files without a user."""


def group_limits(process: Path = Path("/proc/self")) -> list[int]:
    """Bytes that each group allows; a group of version 1 without a limit says 2**63.

    Parameters
    ----------
    process : path
        What the system tells of the process: the files ``cgroup`` and ``mountinfo``.
    """
    limits = [_read(file) for file in _found(process)]
    return [limit for limit in limits if limit is not None]


def group_rooms(machine: float, process: Path = Path("/proc/self")) -> list[int]:
    """Bytes that each group has left whose limit is less than those of the ``machine``."""
    rooms = []
    for file in _found(process):
        name, dropped = _TAKEN[file.name]
        if (limit := _read(file)) is None or limit >= machine:
            continue
        if (taken := _read(file.with_name(name))) is not None:
            rooms.append(limit - taken + told(file.with_name("memory.stat"), dropped))
    return rooms


def told(file: Path, name: str) -> int:
    """The first number of the line of ``file`` that begins with ``name``; 0 of none."""
    try:
        lines = [line.split() for line in file.read_text("utf-8").splitlines()]
        return next((int(line[1]) for line in lines if line[:1] == [name]), 0)
    except (OSError, ValueError, IndexError):
        return 0


def _found(process: Path) -> tuple[Path, ...]:
    try:
        return _files(
            (process / "cgroup").read_text("utf-8"),
            (process / "mountinfo").read_text("utf-8"),
        )
    except OSError:  # not Linux, or hidden
        return ()


@lru_cache(maxsize=1)
def _files(cgroup: str, mountinfo: str) -> tuple[Path, ...]:
    """Where the limits are, which stays as it is while a process is in its groups."""
    groups = _groups(cgroup)
    return tuple(
        folder / LIMITS[kind]
        for kind, root, mount in _mounts(mountinfo.splitlines())
        if kind in groups
        for folder in _upwards(groups[kind], root, mount)
    )


def _groups(text: str) -> dict[str, PurePosixPath]:
    """The group that counts memory, by the type of its file system."""
    found = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            found["cgroup2"] = PurePosixPath(path)
        elif "memory" in controllers.split(","):
            found["cgroup"] = PurePosixPath(path)
    return found


def _mounts(lines: list[str]) -> Iterator[tuple[str, PurePosixPath, Path]]:
    """Type, root and place of the mounted hierarchies that may count memory."""
    for line in lines:
        mounted, _, about = line.partition(" - ")
        root, place = mounted.split(" ")[3:5]
        kind, _, options = about.split(" ")[:3]
        if kind == "cgroup2" or (kind == "cgroup" and "memory" in options.split(",")):
            yield kind, PurePosixPath(root), Path(place.replace("\\040", " "))


def _upwards(group: PurePosixPath, root: PurePosixPath, mount: Path) -> Iterator[Path]:
    """The folders of a group and of those around it, as far as a container sees them."""
    # A container may see its own group as the root, and be told its name outside.
    inner = group.relative_to(root) if group.is_relative_to(root) else PurePosixPath()
    parts = [part for part in inner.parts if part != ".."]
    for depth in range(len(parts), -1, -1):
        yield mount.joinpath(*parts[:depth])


def _read(file: Path) -> int | None:
    try:
        return int(file.read_text("utf-8"))
    except (OSError, ValueError):  # absent, as in the root, or the word "max"
        return None
