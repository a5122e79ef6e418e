"""A model may be larger than its members' memory: blocks go to a file, and come back."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import numpy as np
import pytest
from tests.server.interleaving import Run
from tests.server.test_interleavings import RUNS
from tests.server.test_store import moves_while_updated

from mlopt.cluster import MeshDask, MeshHere, local_cluster
from mlopt.cluster.memory import Spare
from mlopt.cluster.wire import Answer, Header
from mlopt.server import Job
from mlopt.server.blocks import Array, Block
from mlopt.server.host import Host
from mlopt.server.room import Room
from mlopt.server.shard import Shard

cloudpickle.register_pickle_by_value(sys.modules[__name__])

KINDS = [("rotate", "async"), ("servers", "async"), ("servers", "lockstep")]


def cramped(members: int, folder: Path) -> MeshHere:
    """Members that never have memory for a block that nobody uses."""
    mesh = MeshHere(members)
    for member in mesh.members:
        mesh.local(member).spare = Spare(lambda: -1e12, str(folder))
    return mesh


def adds_its_number(block: int, part: Mapping[str, Array]) -> dict[str, Array]:
    return {name: np.full_like(array, block) for name, array in part.items()}


@pytest.mark.parametrize(("layout", "mode"), KINDS)
def test_a_model_for_which_there_is_no_memory_is_trained_exactly(
    layout: Any, mode: Any, tmp_path: Path
) -> None:
    parts = [{"a": np.zeros((40, 3)), "n": np.zeros(40, np.int32)} for _ in range(4)]
    rows = [[10 * a + b for b in range(4)] for a in range(3)]
    with cramped(3, tmp_path) as mesh:
        job = Job(
            adds_its_number, parts, rows, layout=layout, mode=mode, where=mesh, passes=5
        )
        found = job.run().model
    for part, total in zip(found, 5 * np.sum(rows, axis=0), strict=True):
        np.testing.assert_array_equal(part["a"], total)
        np.testing.assert_array_equal(part["n"], total)


def test_updates_are_done_once_while_blocks_move_and_go_to_the_file(tmp_path: Path) -> None:
    model = np.zeros((64, 16), int)
    with cramped(4, tmp_path) as mesh, Host(mesh, {"W": model}) as host:
        moves_while_updated(mesh, host, 260, 65)
        services: list[Any] = [mesh.local(m).service(mesh.epoch) for m in mesh.members]
        assert sum(one.room.written for one in services) > 100 * model.nbytes
    assert not list(tmp_path.iterdir())


class PutsAway(Shard):
    """Whatever nobody uses is away between any two messages."""

    def answer(
        self, operation: str, header: Header, arrays: Sequence[Array]
    ) -> Answer | None:
        said = super().answer(operation, header, arrays)
        for block in self.blocks().values():
            block.put_away(lambda mine: [array.copy() for array in mine].copy)
        return said


@pytest.mark.parametrize("kill", [False, True])
def test_updates_of_blocks_that_were_away_happen_exactly_once(kill: bool) -> None:
    for seed in range(RUNS // 2):
        Run(seed, shard=PutsAway, kill=kill).go()


def test_blocks_that_were_used_the_longest_ago_go_first(tmp_path: Path) -> None:
    blocks = {n: Block([np.full((3, 2), n), np.arange(n)], 1) for n in range(4)}
    for number in (2, 0, 3, 1):
        assert blocks[number].arrays
    room = Room(Spare(lambda: -60.0, str(tmp_path)))
    with blocks[2].lock:
        room.make(lambda: blocks)
    away = [number for number, one in blocks.items() if not one._arrays]
    assert away == [0, 3]  # the one in use stays, and two are enough
    blocks[0].leaving = True
    room.make(lambda: blocks)
    for number, block in blocks.items():
        np.testing.assert_array_equal(block.arrays[0], np.full((3, 2), number))
        np.testing.assert_array_equal(block.arrays[1], np.arange(number))
    room.close()


def test_a_disk_that_is_full_leaves_blocks_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    block = Block([np.arange(5)], 1)
    room = Room(Spare(lambda: -1.0, str(tmp_path / "none")))
    with caplog.at_level(logging.WARNING, "mlopt"):
        room.make(lambda: {0: block})
    assert "blocks could not be put away, and stay in memory" in caplog.text
    np.testing.assert_array_equal(block.arrays[0], np.arange(5))


def adds_ones(block: int, part: Mapping[str, Array]) -> dict[str, Array]:
    return {name: np.ones_like(array) for name, array in part.items()}


def resident_bytes(dask_worker: Any) -> int:
    return int(dask_worker.monitor.get_process_memory())


@pytest.mark.cluster
def test_a_worker_trains_a_model_that_is_larger_than_its_memory() -> None:
    parts = [{"w": np.zeros(1 << 20, np.float32)} for _ in range(48)]
    # A fork would hold what the process that it comes from has loaded for other tests.
    alone = {"distributed.worker.multiprocessing-method": "spawn"}
    with dask.config.set(alone), local_cluster(1, memory_limit="250MB") as client:
        (before,) = client.run(resident_bytes).items()
        with MeshDask(client) as mesh:
            job = Job(adds_ones, parts, [[0] * 48] * 2, layout="rotate", where=mesh)
            result = job.run()
        assert before[1] + 48 * parts[0]["w"].nbytes > 250e6
        assert result.lost == 0
        assert client.run(resident_bytes).keys() == {before[0]}
    assert all((part["w"] == 2).all() for part in result.model)
