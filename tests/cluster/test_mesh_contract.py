"""What every mesh must do, in process and on Dask workers; and what Dask's does besides."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import cloudpickle
import numpy as np
import pytest
from tests.cluster.desk import LARGEST, Desk, total, work
from tests.clusters import eventually, in_thread

from mlopt.cluster import Header, Mesh, MeshDask, MeshHere, Service, Site, local_cluster
from mlopt.cluster.lines import Line
from mlopt.cluster.mesh import Local
from mlopt.cluster.wire import ASK, Message
from mlopt.errors import (
    ClusterError,
    InputError,
    MemberLostError,
    StaleEpochError,
    TaskError,
    WireError,
)

# Workers cannot import this file: what is in it travels whole.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

ON_WORKERS = [pytest.mark.cluster, pytest.mark.slow]


class Ground:
    """Members, and a way to make them come and go."""

    def __init__(self, mesh: Mesh, kill: Callable[[str], Any], come: Callable[[], Any]):
        self.mesh, self.kill, self.come = mesh, kill, come


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    with local_cluster(4) as one:
        yield one


@pytest.fixture(params=["here", pytest.param("dask", marks=ON_WORKERS)])
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    if request.param == "here":
        with MeshHere(4, largest=LARGEST) as here:
            yield Ground(here, here.lose, here.add)
    else:
        yield from on_workers(request.getfixturevalue("client"))


def on_workers(client: Any) -> Iterator[Ground]:
    def kill(member: str) -> None:
        os.kill(client.run(os.getpid, workers=[member])[member], signal.SIGKILL)

    def come() -> None:
        client.cluster.scale(len(client.scheduler_info(n_workers=-1)["workers"]) + 1)

    client.wait_for_workers(4, timeout=30)  # those that were killed come again
    with MeshDask(client, largest=LARGEST) as mesh:
        yield Ground(mesh, kill, come)


@pytest.fixture
def mesh(ground: Ground) -> Mesh:
    ground.mesh.serve(Desk)
    return ground.mesh


def test_each_member_has_a_service_of_its_own(mesh: Mesh) -> None:
    first, second, *_ = members = mesh.members
    mesh.ask(first, "add", arrays=[np.ones(2)])
    assert len(members) >= 4
    assert (total(mesh, first), total(mesh, second)) == (1, 0)
    for member in members:
        assert mesh.ask(member, "where")[0].more["member"] == member
    assert eventually(lambda: known(mesh, members) == len(members))


def known(mesh: Mesh, members: Sequence[str]) -> int:
    """How many of the members know of all."""
    return sum(
        mesh.ask(member, "where")[0].more["members"] == list(members) for member in members
    )


def test_what_is_asked_comes_back_as_it_went(mesh: Mesh) -> None:
    header = Header(1, -2, 3, 2**62, {"a": [1, None, "ä"]})
    arrays = [
        np.arange(6.0).reshape(2, 3).T, np.array(5, "i4"), np.zeros((0, 3), "f4"),
        np.array(["ab", "ä"]), np.array(["2020-01-01"], "M8[D]"), np.arange(9)[::2],
    ]  # fmt: skip
    answer, came = mesh.ask(mesh.members[0], "echo", header, arrays)
    assert answer == header
    for array, sent in zip(came, arrays, strict=True):
        assert (array.dtype, array.shape) == (sent.dtype, sent.shape)
        np.testing.assert_array_equal(array, sent)
        assert array.flags.c_contiguous
        assert array.flags.aligned
        assert array.flags.writeable


def test_an_answer_is_put_where_the_asker_has_room(mesh: Mesh) -> None:
    first, place = mesh.members[0], np.full(2, 9.0)
    _, (came,) = mesh.ask(first, "get", into=[place])
    assert came is place
    np.testing.assert_array_equal(place, np.zeros(2))
    with pytest.raises(InputError, match="`into`"):
        mesh.ask(first, "get", into=[np.zeros(3)])
    assert total(mesh, first) == 0


def test_askers_and_services_keep_what_is_theirs(mesh: Mesh) -> None:
    first, mine = mesh.members[0], np.ones(2)
    mesh.ask(first, "put", arrays=[mine])
    mine += 1
    _, (came,) = mesh.ask(first, "get")
    came += 1
    assert total(mesh, first) == 1


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        ("fail", "no such block"),
        ("leave", "SystemExit"),
        ("odd", "numbers"),
        ("much", "in pieces"),
        ("nothing", "nothing"),
    ],
)
def test_a_service_that_fails_fails_that_ask_alone(
    mesh: Mesh, operation: str, words: str
) -> None:
    first = mesh.members[0]
    thread, ended = in_thread(lambda: mesh.ask(first, operation))
    thread.join(60)
    (error,) = ended
    assert isinstance(error, TaskError)
    assert all(word in str(error) for word in (first, operation, words))
    assert total(mesh, first) == 0


def test_what_cannot_be_sent_is_named(mesh: Mesh) -> None:
    first = mesh.members[0]
    for arrays, words in (([np.zeros(LARGEST)], "in pieces"), ([np.array(["a", 1], object)],
                                                              "numbers")):  # fmt: skip
        with pytest.raises(InputError, match=words):
            mesh.ask(first, "echo", arrays=arrays)
    with pytest.raises(InputError, match="16 letters"):
        mesh.ask(first, "an operation with a long name")
    with pytest.raises(InputError, match="JSON"):
        mesh.ask(first, "echo", Header(more={"a": {1}}))
    assert total(mesh, first) == 0


def test_a_member_without_a_service_says_so(ground: Ground) -> None:
    with pytest.raises(ClusterError, match="serve"):
        ground.mesh.ask(ground.mesh.members[0], "get")
    with pytest.raises(TaskError, match="below zero"):
        ground.mesh.serve(Desk, -1.0)
    with pytest.raises(ClusterError, match="serve"):
        ground.mesh.ask(ground.mesh.members[0], "get")


def test_resident_tasks_run_where_they_are_told_and_ask_others(mesh: Mesh) -> None:
    first, second, *_ = mesh.members
    other = mesh.start(second, work, first, 3)
    assert other.result(60) == (second, 0)
    assert not other.alive
    own = mesh.start(first, work, first, 2)
    assert own.result(60) == (first, 5)
    assert own.member == first
    failing = mesh.start(first, lambda site: site.ask(second, "fail"))
    with pytest.raises(TaskError, match="no such block"):
        failing.result(60)
    odd = mesh.start(first, lambda site: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        odd.result(60)


def begin_and_wait(site: Site) -> bool:
    site.ask(site.member, "add", arrays=[np.ones(2)])
    return site.stop.wait(60)


def test_resident_tasks_share_a_member_and_stop_when_told(mesh: Mesh) -> None:
    first = mesh.members[0]
    both = [mesh.start(first, begin_and_wait) for _ in range(2)]
    assert eventually(lambda: total(mesh, first) == 2)
    assert mesh.start(first, lambda site: site.member).result(60) == first
    with pytest.raises(TimeoutError):
        both[0].result(0)
    both[1].stop()
    assert both[1].result(60) is True
    assert both[0].alive
    mesh.close()
    assert both[0].result(60) is True


def add_until_refused(site: Site, first: str) -> str:
    site.ask(first, "add", arrays=[np.ones(2)])
    while True:
        try:
            site.ask(first, "add", arrays=[np.zeros(2)])
        except StaleEpochError as error:
            return str(error)


def test_what_began_before_serve_is_refused(mesh: Mesh) -> None:
    first, second, *_ = mesh.members
    old = mesh.start(second, add_until_refused, first)
    assert eventually(lambda: total(mesh, first) == 1)
    mesh.serve(Desk, 5.0)
    assert mesh.epoch == 2
    assert "epoch 1" in old.result(60)
    assert [total(mesh, member) for member in (first, second)] == [5, 5]


def test_a_service_that_is_replaced_lets_go_of_who_waits(mesh: Mesh) -> None:
    first = mesh.members[0]
    thread, ended = in_thread(lambda: mesh.ask(first, "wait", Header(block=4)))
    assert eventually(lambda: mesh.ask(first, "waits")[0].block == 1)
    # who waits there keeps nobody else waiting
    assert total(mesh, first) == 0
    mesh.serve(Desk)
    thread.join(60)
    assert ended == [(Header(block=4), [])]


def test_asks_of_many_at_once_all_count(mesh: Mesh) -> None:
    first, second, third, *_ = mesh.members
    tasks = [mesh.start(member, work, first, 50) for member in (first, second, third)]
    threads = [
        in_thread(lambda: [mesh.ask(first, "add", arrays=[np.ones(2)]) for _ in range(50)])
        for _ in range(4)
    ]
    for thread, _ in threads:
        thread.join(60)
    assert [task.result(60)[0] for task in tasks] == [first, second, third]
    assert total(mesh, first) == 350


def test_a_member_that_comes_late_serves(ground: Ground) -> None:
    mesh, came = ground.mesh, []
    mesh.serve(Desk, 2.0)
    before = mesh.members
    end = mesh.watch(lambda member, here: came.append((member, here, total(mesh, member))))
    ground.come()
    assert eventually(lambda: bool(came), 30)
    ((member, here, served),) = came
    assert (here, served) == (True, 2)
    assert mesh.members == (*before, member)
    # and the others know it
    assert mesh.start(before[0], work, member, 1).result(60) == (before[0], 2)
    assert total(mesh, member) == 3
    end()


def test_a_lost_member_is_seen_within_a_second(ground: Ground) -> None:
    mesh, gone, seen = ground.mesh, [], []
    mesh.serve(Desk)
    first, second, *_ = mesh.members

    def told(member: str, here: bool) -> None:
        if not here:
            seen.append(time.monotonic())
            gone.append((member, member in mesh.members))

    mesh.watch(told)
    task = mesh.start(first, begin_and_wait)
    other = mesh.start(second, lambda site: site.ask(first, "wait"))
    thread, ended = in_thread(lambda: mesh.ask(first, "wait"))
    assert eventually(lambda: mesh.ask(first, "waits")[0].block == 1)
    assert other.alive
    began = time.monotonic()
    ground.kill(first)
    assert eventually(lambda: bool(gone))
    assert seen[0] - began < 1
    assert gone == [(first, False)]
    thread.join(60)
    assert [type(error) for error in ended] == [MemberLostError]
    for waiting in (task, other):
        with pytest.raises(MemberLostError):
            waiting.result(60)
    for call in (lambda: mesh.ask(first, "get"), lambda: mesh.start(first, print)):
        with pytest.raises(MemberLostError, match="no member"):
            call()
    # the others go on
    assert mesh.start(second, work, second, 1).result(60) == (second, 1)
    assert eventually(lambda: first not in mesh.ask(second, "where")[0].more["members"])


@pytest.mark.cluster
@pytest.mark.slow
def test_a_worker_that_is_killed_while_it_is_given_a_service_is_no_error(
    client: Any,
) -> None:
    client.wait_for_workers(4, timeout=30)
    with MeshDask(client) as mesh:
        victim = mesh.members[0]

        def make(site: Any) -> Any:
            if site.member == victim:
                os.kill(os.getpid(), signal.SIGKILL)
            return Desk(site)

        mesh.serve(make)
        assert eventually(lambda: victim not in mesh.members)
        where = [mesh.ask(member, "where")[0].more["member"] for member in mesh.members]
        assert where == list(mesh.members)


@pytest.mark.cluster
@pytest.mark.slow
def test_a_worker_that_is_killed_while_it_becomes_a_member_is_no_error(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.wait_for_workers(4, timeout=30)
    processes = client.run(os.getpid)
    victim, guard = next(iter(processes)), MeshDask._guard

    def broken(mesh: MeshDask, member: str, address: Any) -> Any:
        if member == victim:
            os.kill(processes[victim], signal.SIGKILL)
            raise ConnectionResetError(104, "Connection reset by peer")
        return guard(mesh, member, address)

    monkeypatch.setattr(MeshDask, "_guard", broken)
    with MeshDask(client) as mesh:
        assert len(mesh.members) >= 3
        assert victim not in mesh.members


class Alone(Local):
    """A member whose mesh is not told that it has ended: Dask's hears of it later."""

    members, cores = ("alone",), 1

    def reach(self, *_: Any) -> Any:
        raise NotImplementedError


class Waits(Service):
    """Fails who waits when it is closed."""

    def __init__(self, site: Site) -> None:
        self.asked, self.closed = threading.Event(), threading.Event()

    def answer(self, *_: Any) -> Any:
        self.asked.set()
        self.closed.wait(20)
        raise ClusterError("There is nothing to wait for.")

    def close(self) -> None:
        self.closed.set()


def test_a_member_that_has_ended_is_lost_to_who_asks_and_who_waits() -> None:
    local = Alone("alone", LARGEST)
    local.serve(1, Waits, ())
    service, asked = local.service(1), Message(ASK, "get", 1, Header())
    assert isinstance(service, Waits)
    waiting, said = in_thread(lambda: local.answer(asked))
    assert service.asked.wait(20)
    local.end()
    waiting.join(20)
    assert [type(error) for error in said] == [MemberLostError]
    with pytest.raises(MemberLostError, match="alone was lost"):
        local.answer(asked)


def test_a_closed_mesh_leaves_nothing_running(ground: Ground) -> None:
    mesh = ground.mesh
    mesh.serve(Desk)
    first = mesh.members[0]
    thread, ended = in_thread(lambda: mesh.ask(first, "wait"))
    assert eventually(lambda: mesh.ask(first, "waits")[0].block == 1)
    task = mesh.start(first, begin_and_wait)
    assert eventually(lambda: total(mesh, first) == 1)
    mesh.close()
    mesh.close()
    assert task.result(60) is True
    thread.join(60)
    assert isinstance(ended[0], ClusterError)
    assert mesh.members == ()
    for call in (
        lambda: mesh.ask(first, "get"), lambda: mesh.serve(Desk),
        lambda: mesh.start(first, print),
    ):  # fmt: skip
        with pytest.raises(ClusterError, match="closed"):
            call()


def plugins(dask_worker: Any = None, dask_scheduler: Any = None) -> list[str]:
    names = (dask_worker or dask_scheduler).plugins
    return [name for name in names if "mlopt-mesh" in name]


def left(client: Any) -> list[str]:
    """What meshes have put on workers and scheduler."""
    on_workers = client.run(plugins).values()
    return [
        *client.run_on_scheduler(plugins),
        *(name for one in on_workers for name in one),
    ]


@pytest.mark.cluster
@pytest.mark.slow
def test_workers_keep_nothing_of_a_mesh_that_is_closed_or_whose_driver_died(
    client: Any,
) -> None:
    with MeshDask(client) as one, MeshDask(client) as other:
        one.serve(Desk, 1.0)
        other.serve(Desk, 2.0)
        first = one.members[0]
        assert (total(one, first), total(other, first)) == (1, 2)
        assert len(left(client)) == 2 * (1 + len(one.members))
        task = other.start(first, begin_and_wait)
        assert eventually(lambda: total(other, first) == 3)
        for joined in other._joined.values():  # what the end of a process does
            joined.guard.end()
        assert task.result(60) is True
        with pytest.raises(MemberLostError):
            total(other, first)
    assert eventually(lambda: not left(client))


@pytest.mark.cluster
@pytest.mark.slow
def test_a_member_that_is_given_up_is_so_for_all(client: Any) -> None:
    """A worker that hangs has not closed its lines."""
    with MeshDask(client) as mesh:
        mesh.serve(Desk)
        first, second, *_ = mesh.members
        assert eventually(lambda: known(mesh, mesh.members) == len(mesh.members))
        mesh._lose(first)
        assert first not in mesh.members
        assert eventually(lambda: first not in mesh.ask(second, "where")[0].more["members"])


@pytest.mark.cluster
@pytest.mark.slow
def test_whoever_does_not_know_the_secret_is_refused_by_workers(client: Any) -> None:
    with MeshDask(client) as mesh:
        member, joined = next(iter(mesh._joined.items()))
        assert joined.address[0] == "127.0.0.1"
        with pytest.raises(WireError, match="secret"):
            Line(member, joined.address, b"a guess")
