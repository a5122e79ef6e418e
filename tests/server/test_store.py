"""A store on a mesh: exactly once while blocks move, by threads and by worker processes;
what is wrong is refused by name.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

import cloudpickle
import numpy as np
import pytest
from tests.clusters import eventually

from mlopt.cluster import Mesh, MeshDask, MeshHere, Site, local_cluster
from mlopt.errors import ClusterError, InputError, TaskError
from mlopt.server.asking import drive
from mlopt.server.blocks import LARGEST, Keys
from mlopt.server.client import Client
from mlopt.server.host import Host
from mlopt.server.ownership import Move
from mlopt.server.service import ShardService
from mlopt.server.store import Store
from mlopt.server.tables import Tables

# Workers cannot import this file: what is in it travels whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@pytest.fixture
def mesh() -> Iterator[Mesh]:
    with MeshHere(4) as here:
        yield here


@pytest.mark.parametrize("hashed", [False, True])
def test_a_model_is_read_as_it_was_written(mesh: Mesh, hashed: bool) -> None:
    W = np.arange(4000.0).reshape(1000, 4)
    pair = {"P": W.copy(), "q": np.arange(1000)}
    first = {"W": W, "b": np.arange(1000), "n": np.array(7), "pair": pair}
    with Host(mesh, first, hashed=hashed) as host:
        keys = np.array([999, 0, 500, 500])
        np.testing.assert_array_equal(host.store.rows("W", keys), W[keys])
        host.store.add_rows("W", keys, np.ones((4, 4)))
        host.store.add_rows("W", keys[:0], np.ones((0, 4)))
        assert host.store.rows("W", keys[:0]).shape == (0, 4)
        host.store.push(
            {
                "W": np.zeros((1000, 4)),
                "b": np.ones(1000, int),
                "n": np.array(2),
                "pair": {"P": np.ones((1000, 4)), "q": np.zeros(1000, int)},
            }
        )
        found = host.store.pull()
        assert all(host.owners.of(member) for member in mesh.members)
    np.testing.assert_array_equal(found["pair"]["P"], W + 1)
    np.testing.assert_array_equal(found["pair"]["q"], np.arange(1000))
    np.add.at(W, keys, 1)
    np.testing.assert_array_equal(found["W"], W)
    np.testing.assert_array_equal(found["b"], np.arange(1, 1001))
    assert found["n"] == 9


@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_keys_have_one_place_each_and_neighbours_may_be_apart(count: int) -> None:
    for hashed in (False, True):
        keys = Keys.of(count, 1, least=5, hashed=hashed)
        found = np.concatenate([keys.keys(block) for block in range(keys.blocks)])
        np.testing.assert_array_equal(np.sort(found), np.arange(count))
        blocks, rows = keys.places(found)
        assert all(
            keys.keys(b)[r] == k for k, b, r in zip(found, blocks, rows, strict=True)
        )
    if count >= 1000:
        near = Keys.of(count, 1, least=5, hashed=True).places(np.arange(50))[0]
        assert len(set(near.tolist())) == 5


def test_blocks_have_at_most_2_megabytes() -> None:
    tables = Tables.of({"W": np.zeros((1001, 1000))})
    sizes = [array.nbytes for _, (array,) in tables.cut({"W": np.zeros((1001, 1000))})]
    assert max(sizes) <= LARGEST
    assert sum(sizes) == 1001 * 8000
    wide = np.arange(3 << 18).reshape(3, -1)  # rows of 2 MB are whole
    assert [len(b) for _, (b,) in Tables.of({"W": wide}).cut({"W": wide})] == [1, 1, 1]
    cut = np.arange(3 * 300_000).reshape(3, 2, -1)  # others are cut
    tables = Tables.of({"W": cut})
    model = tables.empty()
    for block, found in tables.cut({"W": cut}):
        assert found[0].nbytes <= LARGEST
        tables.put(model, block, found)
    np.testing.assert_array_equal(model["W"], cut)
    with pytest.raises(InputError, match="row of a table may have 2 MB"):
        Tables.of({"W": {"a": cut, "b": cut}})


def test_rows_larger_than_a_block_cannot_be_asked_for_one_by_one(mesh: Mesh) -> None:
    wide = np.arange(600_000.0).reshape(2, -1)
    with Host(mesh, {"W": wide}) as host:
        np.testing.assert_array_equal(host.store.pull()["W"], wide)
        host.store.push({"W": wide})
        np.testing.assert_array_equal(host.store.pull()["W"], 2 * wide)
        with pytest.raises(InputError, match="larger than a block"):
            host.store.rows("W", np.array([0]))
        with pytest.raises(InputError, match="larger than a block"):
            host.store.add_rows("W", np.array([0]), wide[:1])


def pushes(site: Site, tables: Tables, count: int, seed: int) -> tuple[int, int]:
    """A worker: adds ones, reads now and then, and finds what it has added."""
    service = site.service
    assert isinstance(service, ShardService)
    rng, unseen = np.random.default_rng(seed), 0
    with Store(site, tables, service.shard.owners) as store:
        mine = np.zeros(len(tables.blocks), int)
        (_, columns), _ = tables.tables["W"].kinds[""]
        for at in range(count):
            block = int(rng.integers(len(mine)))
            table = tables.table_of(block)
            rows = len(np.zeros(table.keys.count)[table.rows(block)])
            store.push_block(block, [np.ones((rows, columns), np.int64)])
            mine[block] += 1
            if at % 8 == 0:
                (array,) = store.get(block)
                unseen += bool(array.min() < mine[block]) + bool(array.min() != array.max())
        store.flush()
    return int(mine.sum()), unseen


def moves_while_updated(mesh: Mesh, host: Host, count: int, least: int) -> int:
    """All members update while blocks move, ``least`` times or more; the sum is exact."""
    rng = np.random.default_rng(0)
    before = total(host)
    tasks = [
        mesh.start(member, pushes, host.tables, count, seed)
        for seed, member in enumerate(mesh.members)
    ]
    moved = 0
    while moved < least or any(task.alive for task in tasks):
        block = int(rng.integers(len(host.tables.blocks)))
        owner = host.owners.get(block)
        assert owner is not None
        others = [member for member in mesh.members if member != owner.member]
        target = others[int(rng.integers(len(others)))]
        host.store.move([Move((block,), owner.member, target)])
        moved += 1
    done = [task.result() for task in tasks]
    assert not sum(unseen for _, unseen in done), "own writes unseen, or torn blocks"
    assert total(host) - before == sum(count for count, _ in done)
    return moved


def total(host: Host) -> int:
    """The sum of the blocks' updates: each adds 1 to all of a block."""
    W, table = host.model()["W"], host.tables.tables["W"]
    for block in table.blocks:
        rows = W[table.rows(block)]
        assert (rows == rows[0, 0]).all(), "a block is torn"
    return sum(int(W[table.rows(block)][0, 0]) for block in table.blocks)


def test_updates_by_threads_are_done_once_while_blocks_move(mesh: Mesh) -> None:
    with Host(mesh, {"W": np.zeros((64, 16), np.int64)}) as host:
        assert moves_while_updated(mesh, host, 800, 100) >= 100


def test_the_operation_of_a_thread_that_asks_while_another_does_is_not_lost() -> None:
    class Between(Client):
        other: Any = None

        def _queued(self, block: int) -> object:
            turn = super()._queued(block)
            if self.other is None:
                self.other = True
                self.other = self.update(block, [np.ones(1)])
            return turn

    with MeshHere(1) as mesh, Host(mesh, {"w": np.array(0.0)}) as host:
        client = Between(7, host.owners)
        drive(client.update(0, [np.ones(1)]), mesh)
        drive(client.other, mesh)
        assert host.store.pull()["w"] == 2


def test_who_is_interrupted_keeps_nobody_waiting(mesh: Mesh) -> None:
    class Interrupted(MeshHere):
        def ask(self, *args: Any, **given: Any) -> Any:
            raise KeyboardInterrupt

    with Host(mesh, {"w": np.ones(2)}) as host:
        store = Store(mesh, host.tables, host.owners, patience=1)
        store.peers = Interrupted(1)
        try:
            store.pull()
        except KeyboardInterrupt:  # which holds all that was under way
            store.peers = mesh
            assert store.pull()["w"].tolist() == [1, 1]


def loses_a_member(mesh: Mesh, host: Host, kill: Callable[[str], Any]) -> None:
    """Its blocks go back to their copies, those of others stay; then all is exact again."""
    stays, lost, *_ = mesh.members
    for block, target in enumerate((stays, lost)):
        host.store.move([Move((block,), "", target)])
    host.copy_all()
    copied, theirs = total(host), host.owners.of(lost)
    for block in (0, 1):
        table = host.tables.table_of(block)
        one = np.ones_like(table.empty()[table.rows(block)])
        host.store.update(block, [one])
    kill(lost)
    assert eventually(lambda: set(host.restored) == set(theirs), 30)
    assert total(host) == copied + 1
    moves_while_updated(mesh, host, 40, 10)


def test_blocks_of_a_lost_member_are_those_that_were_copied() -> None:
    with MeshHere(4) as here, Host(here, {"W": np.zeros((64, 16), int)}) as host:
        moves_while_updated(here, host, 50, 10)
        loses_a_member(here, host, here.lose)


def test_who_waits_where_no_member_is_left_is_told_at_once() -> None:
    with MeshHere(2) as mesh, Host(mesh, {"w": np.zeros(3)}, mends=False) as host:
        for member in mesh.members:
            mesh.lose(member)
        with pytest.raises(ClusterError, match="shrunk to nothing"):
            host.store.pull()


def test_a_pool_that_shrinks_to_nothing_keeps_the_last_copies() -> None:
    with MeshHere(2) as here, Host(here, {"W": np.zeros((4, 2))}) as host:
        host.store.push({"W": np.ones((4, 2))})
        host.store.flush()
        host.copy_all()
        for member in here.members:
            here.lose(member)
        assert eventually(lambda: host.error is not None)
        assert "shrunk to nothing" in str(host.error)
        np.testing.assert_array_equal(host.model()["W"], np.ones((4, 2)))


@pytest.mark.parametrize(
    ("delta", "said"),
    [
        ({"W": np.ones(3)}, r"shapes of the model; `W` has \(4, 2\), got \(3,\)"),
        ({"V": np.ones(3)}, r"arrays of the model, \['W'\]; got \['V'\]"),
        ({"W": np.ones((4, 2), complex)}, "added to float64, got complex128"),
    ],
)
def test_a_delta_that_is_not_like_the_model_is_refused(
    mesh: Mesh, delta: Any, said: str
) -> None:
    with Host(mesh, {"W": np.zeros((4, 2))}) as host:
        with pytest.raises(InputError, match=said):
            host.store.push(delta)
        with pytest.raises(TaskError, match="must have the shape"):
            host.store.update(0, [np.ones(7)])
        assert not host.model()["W"].any()


@pytest.mark.cluster
@pytest.mark.slow
def test_updates_on_four_workers_are_done_once_over_200_moves_and_a_loss() -> None:
    def kill(member: str) -> None:
        os.kill(client.run(os.getpid, workers=[member])[member], signal.SIGKILL)

    with local_cluster(4) as client, MeshDask(client) as mesh:
        model = {"W": np.zeros((4 * 1024, 128), np.int64)}  # four blocks of 1 MB
        with Host(mesh, model, every=None) as host:
            assert moves_while_updated(mesh, host, 60, 200) >= 200
            loses_a_member(mesh, host, kill)
