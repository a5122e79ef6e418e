"""Servers and workers change places while they run, and no step is lost or done twice."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections import Counter
from typing import Any

import cloudpickle
import numpy as np
import pytest
from tests.clusters import eventually

from mlopt.cluster import MeshDask, MeshHere, local_cluster
from mlopt.events import Event, Reconfigured
from mlopt.server import workers
from mlopt.server.elastic import Policy
from mlopt.server.layouts.rotate import Rotate
from mlopt.server.layouts.servers import Servers
from mlopt.server.metrics import Metrics
from mlopt.server.ownership import Move
from mlopt.server.program import CLOCK, Adds, Program
from mlopt.server.roll import Roll
from mlopt.server.service import ShardService
from mlopt.server.workers import Mode

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def program(strata: int, slow: set[int], seconds: float = 0.004) -> Program:
    def step(block: int, w: np.ndarray) -> np.ndarray:
        time.sleep(seconds if block in slow else 0)
        return np.ones_like(w)

    cells = [[a] for a in range(strata)]
    return Program(Adds(step, True), [{"": np.zeros((40, 8))}], cells)


def total(layout: Servers) -> Any:
    return layout.model()[0][0][""]


def test_who_is_done_takes_strata_of_who_is_not() -> None:
    with MeshHere(3) as mesh, Servers(program(8, {0, 1, 2, 3}), mesh) as layout:
        first, second = layout.homes[0], layout.homes[4]
        assert [layout.homes[a] for a in range(8)] == [first] * 4 + [second] * 4
        layout.advance(40)
        assert second in [layout.homes[a] for a in range(4)]
        np.testing.assert_array_equal(total(layout), 320)
        assert sum(one.cells for one in layout.done) == 320


def test_a_job_that_configures_itself_does_so_until_a_worker_has_finished() -> None:
    """Then what is left is taken by who is done, and the next passes begin anew."""
    never = Policy(threshold=0.99, interval=0.0, settle=0.0)
    job, seen = program(8, {0, 1, 2, 3}), list[str]()

    class Watched(Servers):
        def _settle(self, task: Any, passes: int) -> None:
            assert self.adapting is not None
            seen.append(self.adapting.controller.state)
            super()._settle(task, passes)

    with MeshHere(3) as mesh, Watched(job, mesh, policy=never) as layout:
        slow, quick = layout.homes[0], layout.homes[4]
        layout.advance(40)
        assert quick in [layout.homes[a] for a in range(4)]
        assert layout.adapting is not None
        controller = layout.adapting.controller
        assert (seen[0], controller.state, controller.history) == ("RUN", "FINISHING", [])
        seen.clear()
        layout.advance(1)
        assert seen[0] == "RUN"
        has = [*layout.homes.values()].count(slow) / 8
        assert controller.configuration.workers[slow] == has < 0.5
        np.testing.assert_array_equal(total(layout), 328)


class Moving(Servers):
    """Three strata of one worker go to another, one after the other."""

    moved = False

    def _settle(self, task: Any, passes: int) -> None:
        if not self.moved and min(self.clock()) > 0:
            self.moved = True
            self.move_strata([2, 1, 0], self.homes[7], passes)
        super()._settle(task, passes)


def test_a_member_takes_one_step_at_a_time_whichever_strata_come(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    under_way, most = Counter[str](), Counter[str]()
    step = workers._Stratum.step

    def counted(one: Any, *args: Any) -> None:
        member = one.service.site.member
        under_way[member] += 1
        most[member] = max(most[member], under_way[member])
        step(one, *args)
        under_way[member] -= 1

    monkeypatch.setattr(workers._Stratum, "step", counted)
    with MeshHere(3) as mesh, Moving(program(8, {*range(8)}), mesh) as layout:
        layout.advance(20)
        assert max(most.values()) == 1
        np.testing.assert_array_equal(total(layout), 160)
        assert sum(one.cells for one in layout.done) == 160


@pytest.mark.parametrize("mode", ["lockstep", "bounded"])
def test_who_waits_for_a_stratum_that_comes_to_it_takes_its_steps(mode: Mode) -> None:
    """The stratum that is moved is behind, and where it goes to waits for it."""
    with (
        MeshHere(3) as mesh,
        Moving(program(8, {0, 1, 2}, 0.05), mesh, mode=mode, staleness=1) as layout,
    ):
        layout.advance(8)
        np.testing.assert_array_equal(total(layout), 64)


def test_who_waits_for_others_releases_any_of_its_strata() -> None:
    """Whoever moves a stratum may be the one who would learn that the others failed."""
    stands, released, in_time = threading.Event(), threading.Event(), list[bool]()

    def step(block: int, w: np.ndarray) -> np.ndarray:
        if block == 5 and not in_time:
            stands.set()
            in_time.append(released.wait(5))
        return np.ones_like(w)

    class Releasing(Servers):
        def _settle(self, task: Any, passes: int) -> None:
            if not released.is_set() and self.clock()[:3].tolist() == [1, 1, 1]:
                assert stands.wait(5)
                self.move_strata([2], self.homes[5], passes)
                released.set()
            super()._settle(task, passes)

    job = Program(Adds(step, True), [{"": np.zeros(2)}], [[a] for a in range(6)])
    with MeshHere(3) as mesh, Releasing(job, mesh, mode="lockstep") as layout:
        layout.advance(3)
        np.testing.assert_array_equal(total(layout), 18)
    assert in_time == [True]


def test_what_is_not_pulled_is_no_part_of_a_model_that_servers_share_out() -> None:
    job = program(4, set())
    with MeshHere(3) as mesh, Servers(job, mesh, policy=Policy()) as layout:
        assert layout.adapting is not None
        clock = 1
        assert (
            layout.adapting.controller.work.model_blocks == len(job.tables.blocks) - clock
        )


@pytest.mark.parametrize("arrays", [2, 3, 4, 6])
def test_the_model_is_dealt_in_proportion_and_the_clock_goes_beside(arrays: int) -> None:
    def step(block: int, model: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: np.ones_like(array) for name, array in model.items()}

    model = {f"w{n}": np.zeros(n + 2) for n in range(arrays)}
    job = Program(Adds(step, False), [model], [[0], [1]])
    with MeshHere(4) as mesh, Servers(job, mesh, servers=2, policy=Policy()) as layout:
        (clock,) = job.tables.tables[CLOCK].blocks
        owners = layout.host.owners.all()
        held = Counter(owner.member for block, owner in owners.items() if block != clock)
        first, last = mesh.members[-2:]
        assert held == {first: -(-arrays // 2), last: arrays // 2}
        assert owners[clock].member == last
        assert layout.adapting is not None
        shares = {member: count / arrays for member, count in held.items()}
        assert layout.adapting.controller.configuration.servers == shares


def test_a_member_that_comes_takes_strata() -> None:
    with MeshHere(2) as mesh, Servers(program(4, {0, 1, 2, 3}), mesh) as layout:
        threading.Timer(0.05, mesh.add).start()
        layout.advance(60)
        assert len(mesh.members) == 3
        assert mesh.members[2] in layout.homes.values()
        np.testing.assert_array_equal(total(layout), 240)


def test_a_job_of_a_billion_passes_begins_at_once() -> None:
    def step(block: int, w: np.ndarray) -> np.ndarray:
        raise ValueError("enough")

    job = Program(Adds(step, True), [{"": np.zeros(1)}], [[0]])
    with (
        MeshHere(2) as mesh,
        Servers(job, mesh) as layout,
        pytest.raises(ValueError, match="enough"),
    ):
        layout.advance(10**9)


def test_who_has_blocks_of_its_own_tells_nothing_of_its_link() -> None:
    with MeshHere(2) as mesh, Servers(program(2, set()), mesh, servers=1) as layout:
        worker, server = mesh.members
        for held in (False, True):
            if held:
                blocks = tuple(layout.host.tables.blocks)
                layout.host.store.move([Move(blocks, server, worker)])
            layout.advance(3)
            _, (steps,) = mesh.ask(worker, "report")
            assert len(steps) == 6
            assert [pull > 0 for _, _, pull, _ in steps.tolist()] == [not held] * 6


def test_a_job_configures_itself_while_it_runs() -> None:
    seen: list[Event] = []
    job, policy = program(12, set(range(12))), Policy(interval=0.1, settle=0.2)
    with (
        MeshHere(6) as mesh,
        Servers(job, mesh, servers=5, policy=policy, observer=seen.append) as layout,
    ):
        assert len(set(layout.homes.values())) == 1
        layout.advance(100)
        changes = [one for one in seen if isinstance(one, Reconfigured)]
        assert changes
        assert len(set(layout.homes.values())) >= 4
        assert len(layout.servers()) <= 2
        assert layout.adapting is not None
        assert "change 1" in layout.adapting.controller.plan().explain()
        assert layout.servers() == layout.adapting.controller.configuration.servers.keys()
        np.testing.assert_array_equal(total(layout), 1200)
        assert eventually(lambda: layout.host.error is None)


def test_a_job_configures_itself_whose_model_has_arrays_that_do_not_change() -> None:
    """Servers that have these are sent nothing, which is no reason to wait for them."""

    def step(block: int, model: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        time.sleep(0.004)
        return {"w": np.ones(8)} | {name: 0 * model[name] for name in "abcd"}

    model = {"w": np.zeros(8)} | {name: np.ones(n) for n, name in enumerate("abcd", 300)}
    job = Program(Adds(step, False), [model], [[a] for a in range(12)])
    policy = Policy(interval=0.1, settle=0.2)
    with (
        MeshHere(6) as mesh,
        Servers(job, mesh, servers=5, policy=policy) as layout,
    ):
        assert len(layout.servers()) == 5
        layout.advance(100)
        assert layout.adapting is not None
        assert layout.adapting.controller.history
        assert len(layout.servers()) < 5


@pytest.mark.parametrize("at", [0, 2])
def test_a_job_that_loses_a_member_is_configured_anew(at: int) -> None:
    """A worker, or the server that has the model; nothing else is worth a change here."""
    forced = Policy(threshold=0.99, interval=1e9, settle=1e9)
    with (
        MeshHere(7) as mesh,
        Servers(program(12, {*range(12)}), mesh, servers=5, policy=forced) as layout,
    ):
        threading.Timer(0.3, mesh.lose, [mesh.members[at]]).start()
        layout.advance(200)
        assert layout.adapting is not None
        (change,) = layout.adapting.controller.history
        assert change.reason.endswith(" left")
        assert len(change.after.workers) >= 4
        np.testing.assert_array_equal(layout.clock(), 200)


def test_all_servers_are_asked_at_once_and_lockstep_is_priced_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    met, answer = threading.Barrier(2), ShardService.answer

    def meets(self: Any, operation: str, header: Any, arrays: Any) -> Any:
        if operation == "get" and header.block < 2:  # the third is the clock
            met.wait(10)  # for who asks the other server meanwhile
        return answer(self, operation, header, arrays)

    def step(block: int, model: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: np.ones_like(array) for name, array in model.items()}

    monkeypatch.setattr(ShardService, "answer", meets)
    model = {"v": np.zeros(5), "w": np.zeros(7)}
    job = Program(Adds(step, False), [model], [[0], [1]])
    never = Policy(interval=1e9)
    with (
        MeshHere(3) as mesh,
        Servers(job, mesh, servers=2, mode="lockstep", policy=never) as layout,
    ):
        layout.advance(3)
        np.testing.assert_array_equal(layout.model()[0][0]["w"], 6)
        assert layout.adapting is not None
        assert not layout.adapting.controller.work.in_turn


class Told(Metrics):
    """Keeps what it was told."""

    def __init__(self) -> None:
        super().__init__()
        self.pushes, self.links = Counter[str](), list[float]()

    def served(self, server: str, pushes: int, applying: float) -> None:
        self.pushes[server] += pushes
        super().served(server, pushes, applying)

    def link(self, member: str, bandwidth: float) -> None:
        self.links.append(bandwidth)
        super().link(member, bandwidth)


def test_servers_are_measured_by_the_part_that_each_step_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Parts differ in size, and a step pulls and changes one of them."""
    sizes = [10, 20, 30, 40_000]
    parts = [{"": np.zeros(size)} for size in sizes]
    job = Program(
        Adds(lambda _, w: np.ones_like(w), True), parts, [[a] * 4 for a in range(2)]
    )
    report, seconds = Roll.report, 0.5

    def reported(roll: Roll, stratum: int, took: float, pull: float, *rest: Any) -> None:
        report(roll, stratum, took, seconds, *rest)

    monkeypatch.setattr(Roll, "report", reported)
    never = Policy(interval=1e9, settle=1e9)
    with MeshHere(3) as mesh, Servers(job, mesh, servers=2, policy=never) as layout:
        assert layout.adapting is not None
        assert layout.adapting.pulled == 8 * sum(sizes) / 4
        layout.adapting.controller.metrics = told = Told()
        # no links by whole epochs
        monkeypatch.setattr(layout.adapting, "_measured", lambda *_, **__: None)
        layout.advance(5)
        assert set(told.links) == {8 * size / seconds for size in sizes}
        assert told.pushes == dict.fromkeys(layout.servers(), 2 * 4 * 5)


@pytest.mark.parametrize("left", [1, 0])
def test_sums_are_exact_when_servers_retire(left: int) -> None:
    """Those that stay take their blocks as they are; without others, workers do."""
    steps, all_of_them = itertools.count(1), [4, 5]

    def step(block: int, w: np.ndarray) -> np.ndarray:
        if next(steps) == 100:
            retiring.start()
        time.sleep(0.001)
        return np.ones_like(w)

    def retire() -> None:
        for at in all_of_them[left:]:
            mesh.retire(names[at])

    retiring = threading.Thread(target=retire)
    with MeshHere(6) as mesh:
        names = mesh.members
        job = Program(Adds(step, True), [{"": np.zeros((40, 8))}], [[a] for a in range(8)])
        with Servers(job, mesh, servers=2) as layout:
            layout.advance(60)
            retiring.join()
            assert len(mesh.members) == 4 + left
            assert mesh.staying == mesh.members
            np.testing.assert_array_equal(total(layout), 480)
            np.testing.assert_array_equal(layout.clock(), 60)
            assert layout.host.restored == []


@pytest.mark.parametrize("mode", ["lockstep", "bounded", "async"])
def test_a_job_ends_whose_clock_went_back_with_a_server_that_was_killed(mode: Mode) -> None:
    """Also where some strata had done all their steps by then, and the others wait."""
    steps = itertools.count(1)

    def step(block: int, w: np.ndarray) -> np.ndarray:
        time.sleep(0.02 if block == 3 else 0.002)
        if next(steps) in (10, 30):
            mesh.lose(mesh.members[-1])
        return np.ones_like(w)

    with MeshHere(5) as mesh:
        job = Program(Adds(step, True), [{"": np.zeros((40, 8))}], [[a] for a in range(4)])
        with Servers(job, mesh, servers=1, mode=mode, staleness=3) as layout:
            watch = threading.Timer(20, lambda: [*map(mesh.lose, mesh.members)])
            watch.start()
            layout.advance(9)
            watch.cancel()
            np.testing.assert_array_equal(layout.clock(), 9)
            assert layout.passes == 9


def test_the_model_of_the_last_member_that_retires_is_as_it_was() -> None:
    with MeshHere(2) as mesh, Servers(program(2, set()), mesh) as layout:
        layout.advance(7)
        for member in mesh.members:
            mesh.retire(member)
        np.testing.assert_array_equal(total(layout), 14)


@pytest.mark.parametrize("kind", [Servers, Rotate])
def test_tasks_that_end_as_their_member_goes_are_not_taken_for_done(kind: Any) -> None:
    """A worker that closes tells its tasks to stop before anybody hears that it is gone."""
    steps, going = itertools.count(1), list[threading.Thread]()

    def step(block: int, w: np.ndarray) -> np.ndarray:
        if next(steps) == 30:
            mesh.local(mesh.members[0]).end()
            going.append(threading.Timer(0.3, mesh.lose, [mesh.members[0]]))
            going[0].start()
        time.sleep(0.001)
        return np.ones_like(w)

    cells = [[a] * 4 for a in range(4)]
    parts = [{"": np.zeros((4, 2))} for _ in range(4)]
    with MeshHere(3) as mesh, kind(Program(Adds(step, True), parts, cells), mesh) as layout:
        layout.advance(20)
        assert [part[""].max() for part in layout.model()[0]] == [80] * 4
        assert [part[""].min() for part in layout.model()[0]] == [80] * 4
        going[0].join()


@pytest.mark.cluster
@pytest.mark.slow
def test_a_server_that_dask_retires_hands_on_its_blocks() -> None:
    with local_cluster(3) as client, MeshDask(client) as mesh:
        victim = mesh.members[-1]
        with Servers(program(4, {0, 1, 2, 3}), mesh, servers=1) as layout:
            assert layout.servers() == {victim}
            threading.Timer(0.3, client.retire_workers, [[victim]]).start()
            layout.advance(120)
            assert eventually(lambda: victim not in mesh.members)
            assert victim not in layout.servers()
            np.testing.assert_array_equal(total(layout), 480)
            assert layout.host.restored == []
