"""The memory that control groups leave to a process: the least of all around it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mlopt.cluster import memory
from mlopt.resources import probe
from mlopt.resources.control_groups import group_limits, group_rooms

GIB = 2**30
V2 = "36 25 0:31 {root} {mount} rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = "41 32 0:36 {root} {mount} rw,nosuid shared:14 - cgroup cgroup rw,memory\n"
OTHER = "40 32 0:35 / {mount}-cpu rw shared:13 - cgroup cgroup rw,cpu,cpuacct\n"
UNLIMITED = 9223372036854771712


def machine(
    folder: Path, groups: str, mounts: str, limits: Mapping[str, object], root: str = "/"
) -> Path:
    """What a process would be told whose groups have ``limits``, by their files."""
    mount = folder / "groups"
    (folder / "cgroup").write_text(groups)
    (folder / "mountinfo").write_text(mounts.format(root=root, mount=mount))
    for name, limit in limits.items():
        file = mount / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{limit}\n")
    return folder


def test_groups_around_the_own_one_count(tmp_path: Path) -> None:
    process = machine(tmp_path, "0::/jobs/mine/step\n", V2, {
        "jobs/mine/step/memory.max": "max", "jobs/mine/memory.max": 3 * GIB,
        "jobs/memory.max": 8 * GIB,
    })  # fmt: skip
    assert min(group_limits(process)) == 3 * GIB


def test_the_first_version_is_understood(tmp_path: Path) -> None:
    groups = "4:cpu,cpuacct:/else\n3:memory:/slurm/job_7\n0::/unified\n"
    process = machine(tmp_path, groups, OTHER + V1, {
        "slurm/job_7/memory.limit_in_bytes": UNLIMITED,
        "slurm/memory.limit_in_bytes": 2 * GIB, "memory.limit_in_bytes": UNLIMITED,
    })  # fmt: skip
    assert min(group_limits(process)) == 2 * GIB


@pytest.mark.parametrize("group", ["/docker/abc/inner", "/inner"])
def test_a_container_that_sees_its_group_as_the_root(tmp_path: Path, group: str) -> None:
    root = "/docker/abc" if group.startswith("/docker") else "/"
    limits = {"memory.max": 4 * GIB, "inner/memory.max": 1 * GIB}
    process = machine(tmp_path, f"0::{group}\n", V2, limits, root)
    assert sorted(group_limits(process)) == [1 * GIB, 4 * GIB]


def test_a_group_outside_of_what_is_mounted(tmp_path: Path) -> None:
    limits = {"memory.max": 4 * GIB}
    process = machine(tmp_path, "0::/elsewhere\n", V2, limits, "/docker/abc")
    assert group_limits(process) == [4 * GIB]


@pytest.mark.parametrize(
    ("groups", "mounts", "limit", "taken", "dropped"),
    [("0::/mine\n", V2, "memory.max", "memory.current", "inactive_file"),
     ("3:memory:/mine\n", V1, "memory.limit_in_bytes", "memory.usage_in_bytes",
      "total_inactive_file")],
)  # fmt: skip
def test_what_a_group_has_taken_is_not_left(
    tmp_path: Path, groups: str, mounts: str, limit: str, taken: str, dropped: str
) -> None:
    """But files that nobody uses are: the system drops them before it has no more."""
    process = machine(tmp_path, groups, mounts, {
        f"mine/{limit}": 4 * GIB, f"mine/{taken}": 3 * GIB,
        "mine/memory.stat": f"anon {2 * GIB}\n{dropped} {GIB // 2}", limit: UNLIMITED,
    })  # fmt: skip
    assert group_rooms(8 * GIB, process) == [3 * GIB // 2]
    assert group_rooms(4 * GIB, process) == []


def test_where_nothing_is_told_nothing_is_limited(tmp_path: Path) -> None:
    assert group_limits(tmp_path) == []


def test_the_least_limit_is_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "group_limits", lambda: [UNLIMITED, 10**6])
    assert probe.memory_limit() == 10**6


@pytest.mark.parametrize(
    ("limit", "groups", "least"),
    [(4 * GIB, [3 * GIB, UNLIMITED], 3 * GIB), (GIB, [3 * GIB], GIB),
     (None, [3 * GIB], 3 * GIB), (None, [UNLIMITED], None), (0, [], None)],
)  # fmt: skip
def test_a_worker_has_no_more_than_the_groups_around_it(
    monkeypatch: pytest.MonkeyPatch, limit: int | None, groups: list[int], least: int | None
) -> None:
    monkeypatch.setattr(memory, "group_limits", lambda: groups)
    monkeypatch.setattr(memory, "machine_memory", lambda: 16 * GIB)
    assert memory.least(limit) == least
