"""The contract of all layouts, by jobs of users; what cannot be had is refused by name."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections import Counter
from typing import Any

import cloudpickle
import numpy as np
import pytest
from tests.clusters import eventually

from mlopt.cluster import MeshDask, MeshHere, inside_task, local_cluster
from mlopt.cluster.wire import may_be_sent
from mlopt.errors import ClusterError, InputError, TaskKilledError
from mlopt.server import Job
from mlopt.server.resident import cell_message

cloudpickle.register_pickle_by_value(sys.modules[__name__])

ALL = ["threads", "rounds", "rotate", "servers"]
MODES = ["async", "bounded", "lockstep"]
KINDS = [(one, "async") for one in ALL[:3]] + [("servers", mode) for mode in MODES]


def adds_one(block: Any, model: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.ones_like(array) for name, array in model.items()}


@pytest.mark.parametrize(("layout", "mode"), KINDS)
def test_every_block_adds_once_a_pass(layout: Any, mode: Any) -> None:
    model = {"W": np.zeros((40, 3)), "n": np.array(5)}
    job = Job(
        adds_one, model, list(range(7)), layout=layout, mode=mode, passes=4, members=4
    )
    result = job.run()
    np.testing.assert_array_equal(result.model["W"], 28)
    assert result.model["n"] == 33
    assert (result.passes, result.layout, result.lost) == (4, layout, 0)
    assert not model["W"].any()


def adds_what_it_is(block: int, part: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"w": np.full_like(part["w"], block)}


@pytest.mark.parametrize(("layout", "mode"), KINDS)
def test_a_part_of_a_model_meets_its_blocks_alone(layout: Any, mode: Any) -> None:
    rows = [[10 * a + b for b in range(4)] for a in range(3)]
    parts = [{"w": np.zeros(b + 1)} for b in range(4)]
    job = Job(
        adds_what_it_is,
        parts,
        rows,
        layout=layout,
        mode=mode,
        passes=2,
        members=3,
        n_jobs=2,
    )
    found = job.run().model
    wanted = 2 * np.sum(rows, axis=0)
    for part, total, rows_of in zip(found, wanted, range(1, 5), strict=True):
        np.testing.assert_array_equal(part["w"], np.full(rows_of, total))


def descends(block: Any, w: np.ndarray) -> np.ndarray:
    """A step of least squares."""
    step: np.ndarray = 0.02 * block.X.T @ (block.extra["y"] - block.X @ w) / len(block.X)
    return step


@pytest.mark.parametrize(("layout", "mode"), KINDS)
def test_every_layout_comes_to_the_solution(layout: Any, mode: Any) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    y = X @ [1.0, -2.0, 0.5]
    found = Job(
        descends, np.zeros(3), X, y=y, layout=layout, mode=mode, passes=400, members=3
    ).run()
    np.testing.assert_allclose(found.model, [1, -2, 0.5], atol=0.02)


@pytest.mark.parametrize("layout", ALL)
def test_a_job_goes_on_from_a_checkpoint(layout: Any) -> None:
    def job() -> Job:
        where: Any = {"layout": layout, "members": 2}
        return Job(adds_one, {"w": np.zeros(3)}, [1, 2, 3], passes=6, **where)

    first = job()
    first.advance(2)
    state = first.state()
    first.close()
    second = job()
    second.restore(state)
    assert (second.passes, second.done) == (2, False)
    np.testing.assert_array_equal(second.run().model["w"], 18)
    assert second.done


@pytest.mark.parametrize("behind", [0, 2])
def test_nobody_is_further_ahead_than_may_be(behind: int) -> None:
    counts: Counter[int] = Counter(dict.fromkeys(range(4), 0))
    gaps: list[int] = []
    changing = threading.Condition()

    def step(block: int, w: np.ndarray) -> np.ndarray:
        with changing:
            gaps.append(counts[block] - min(counts.values()))
            changing.notify_all()
            if block == 0:  # the others go as far ahead as they may
                changing.wait_for(lambda: max(gaps) >= behind, timeout=30)
        time.sleep(0.004 if block == 0 else 0)
        with changing:
            counts[block] += 1
        return np.ones(1)

    mode: Any = "bounded" if behind else "lockstep"
    job = Job(
        step, np.zeros(1), list(range(4)), layout="servers", mode=mode, staleness=behind,
        passes=12, members=4,
    )  # fmt: skip
    assert job.run().model == 48
    assert max(gaps) == behind


def keeps_its_shape(block: int, w: np.ndarray) -> np.ndarray:
    return np.ones(3) if w.max() < 2 else np.ones(2)


@pytest.mark.parametrize("layout", ALL)
def test_a_step_that_returns_another_shape_is_named_and_weights_are_kept(
    layout: Any,
) -> None:
    job = Job(
        keeps_its_shape, np.zeros(3), [0], layout=layout, passes=9, members=2, n_jobs=1
    )
    with pytest.raises(InputError, match=r"should have \(3,\), and has \(2,\)"):
        job.run()
    np.testing.assert_array_equal(job.model, [2, 2, 2])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"layout": "servers"}, "servers: needs 2 members, has 1"),
        ({"layout": "servers", "members": 3, "servers": 3}, "1 to 2 can be servers, got 3"),
        ({"layout": "ring"}, "`layout` must be one of .* got 'ring'"),
        ({"mode": "sync"}, "`mode` must be one of .* got 'sync'"),
        ({"rows": []}, "`rows` must hold a block"),
        ({"model": {"w": np.array(["a"])}}, "must hold numbers"),
        ({"model": [{"w": np.ones(1)}] * 2}, "a cell for each of the 2 parts"),
        (
            {"model": [{"w": np.ones(1)}] * 2, "rows": [[1, 2]] * 3, "layout": "rotate"},
            "rotate: needs as many parts of the model as strata, 3",
        ),
    ],
)
def test_what_cannot_be_had_is_refused(given: dict[str, Any], said: str) -> None:
    given = {"model": np.zeros(1), "rows": [[1]], **given}
    model, rows = given.pop("model"), given.pop("rows")
    with pytest.raises(InputError, match=said):
        Job(adds_one, model, rows, **given).run()


def test_a_step_cannot_change_the_model_but_by_what_it_returns() -> None:
    def step(block: int, w: np.ndarray) -> np.ndarray:
        w += 1
        return w

    with pytest.raises(ValueError, match="read-only"):
        Job(step, np.zeros(2), [0]).run()


def slowly(block: int, w: np.ndarray) -> np.ndarray:
    time.sleep(0.002)
    return np.ones_like(w)


@pytest.mark.parametrize("when", [0, 1, 10])
def test_a_worker_that_is_lost_is_made_up_for_exactly(when: int) -> None:
    steps = Counter[int]()

    def step(block: int, w: np.ndarray) -> np.ndarray:
        steps[block] += 1
        if block == 0 and steps[0] == when:
            threading.Thread(target=mesh.lose, args=[victim]).start()
        return slowly(block, w)

    with MeshHere(4) as mesh:
        victim, *_ = mesh.members  # servers are the last
        job = Job(
            step, np.zeros(3), list(range(6)), layout="servers", where=mesh, passes=20
        )
        if not when:
            job.advance(0)
            mesh.lose(victim)
        result = job.run()
    assert result.lost == 1
    np.testing.assert_array_equal(result.model, 120)


class Kills:
    """Adds one; of block 2 it ends its member, once a pass or always. Another one comes."""

    def __init__(self, mesh: MeshHere, always: bool) -> None:
        self.mesh, self.always, self.deaths = mesh, always, Counter[int]()

    def __call__(self, block: int, w: np.ndarray) -> np.ndarray:
        passes = int(w[0]) // 4
        if block == 2 and (self.always or not self.deaths[passes]):
            self.deaths[passes] += 1
            here = "-".join(threading.current_thread().name.split("-")[1:3])
            if sum(self.deaths.values()) < 30:
                self.mesh.add()
            self.mesh.lose(here)
        time.sleep(0.02)
        return np.ones_like(w)


def killed(layout: Any, mesh: MeshHere, always: bool) -> tuple[Kills, Job]:
    step = Kills(mesh, always)
    return step, Job(
        step, np.zeros(3), [0, 1, 2, 3], layout=layout, where=mesh, mode="lockstep",
        n_jobs=1, passes=6,
    )  # fmt: skip


@pytest.mark.parametrize("layout", ["rotate", "servers"])
@pytest.mark.parametrize("members", [2, 4])
def test_a_step_that_ends_its_process_ends_the_job_and_not_all_members(
    layout: Any, members: int
) -> None:
    with MeshHere(members) as mesh:
        step, job = killed(layout, mesh, always=True)
        with pytest.raises(TaskKilledError, match=r"3 members .* block.*\b2\b"):
            job.run()
        assert step.deaths == {0: 3}
        assert len(mesh.members) == members
        assert job.model.shape == (3,)


def test_a_step_that_ends_all_processes_there_are_is_what_is_named() -> None:
    """Before others have come: that nobody is left is not why."""

    def step(block: int, w: np.ndarray) -> np.ndarray:
        if block == 2:
            mesh.lose("-".join(threading.current_thread().name.split("-")[1:3]))
        time.sleep(0.02)
        return np.ones_like(w)

    with MeshHere(3) as mesh:
        job = Job(step, np.zeros(3), [0, 1, 2, 3], layout="servers", where=mesh)
        with pytest.raises(TaskKilledError, match=r"3 members .* block.*\b2\b"):
            job.run()
        assert not mesh.members
        assert job.model.shape == (3,)


@pytest.mark.parametrize("layout", ["rotate", "servers"])
def test_a_block_that_has_its_step_on_another_member_is_not_blamed(layout: Any) -> None:
    with MeshHere(4) as mesh:
        step, job = killed(layout, mesh, always=False)
        result = job.run()
    np.testing.assert_array_equal(result.model, 24)
    assert result.lost == len(step.deaths) == 6


@pytest.mark.parametrize("layout", ["rotate", "servers"])
def test_a_pool_that_shrinks_to_nothing_is_an_error_and_the_model_is_kept(
    layout: Any,
) -> None:
    def lose_all() -> None:
        for member in mesh.members:
            mesh.lose(member)

    with MeshHere(2) as mesh:
        job = Job(slowly, np.zeros(3), [1, 2], layout=layout, where=mesh, passes=10**6)
        threading.Timer(0.05, lose_all).start()
        with pytest.raises(ClusterError, match="shrunk to nothing"):
            job.run()
        assert job.model.shape == (3,)


@pytest.mark.parametrize("layout", ["auto", "threads", "rounds"])
def test_what_needs_no_members_does_without(layout: Any) -> None:
    with MeshHere(0) as mesh:
        result = Job(slowly, np.zeros(3), [1, 2], layout=layout, where=mesh).run()
    assert result.model.shape == (3,)


@pytest.mark.cluster
@pytest.mark.slow
def test_jobs_on_workers_outlive_one_of_them() -> None:
    with local_cluster(3) as client, MeshDask(client) as mesh:
        X = np.random.default_rng(0).normal(size=(4000, 2))
        held = Job(adds_one, {"w": np.zeros(2)}, X, layout="rotate", where=client, passes=3)
        blocks = len(held.program.cells)
        np.testing.assert_array_equal(held.run().model["w"], 3 * blocks)
        for layout in ("rotate", "servers"):
            victim = mesh.members[0]
            where: dict[str, Any] = {"layout": layout, "where": mesh}
            pid = client.run(os.getpid, workers=[victim])[victim]
            job = Job(slowly, np.zeros(3), list(range(6)), passes=40, **where)
            threading.Timer(0.2, os.kill, [pid, signal.SIGKILL]).start()
            result = job.run()
            np.testing.assert_array_equal(result.model, 240)
            assert result.lost == 1
            assert eventually(lambda: len(mesh.members) == 3, 30)
        with pytest.raises(InputError, match=r"has \(2,\)"):
            Job(keeps_its_shape, np.zeros(3), [0], passes=9, **where).run()


@pytest.mark.parametrize(("layout", "mode"), KINDS)
@pytest.mark.parametrize("shape", [(2, 300_000), (1, 4, 150_000)])
def test_a_row_of_a_model_may_be_larger_than_a_block(
    layout: Any, mode: Any, shape: Any
) -> None:
    model = {"W": np.asfortranarray(np.zeros(shape)), "b": np.zeros((*shape[:1], 3))}
    model["V"] = np.arange(600_000.0).reshape(shape)
    model |= {name: np.zeros((shape[0], 100_000)) for name in "pqr"}  # large together
    job = Job(
        adds_one, model, list(range(3)), layout=layout, mode=mode, passes=2, members=3
    )
    found = job.run().model
    for name, array in model.items():
        np.testing.assert_array_equal(found[name], array + 6)


def test_threads_end_with_the_last_step_and_not_with_their_next_look() -> None:
    job = Job(adds_one, {"w": np.zeros(2)}, list(range(4)), layout="threads", n_jobs=3)
    began = time.monotonic()
    for _ in range(20):
        job.advance(1)
    job.close()
    assert time.monotonic() - began < 2  # looks are .2 s apart
    np.testing.assert_array_equal(job.model["w"], 80)


@pytest.mark.parametrize("layout", ALL)
def test_what_was_learnt_stays_when_members_are_let_go_of(layout: Any) -> None:
    job = Job(adds_one, {"w": np.zeros(2)}, [1, 2, 3], layout=layout, members=2, passes=4)
    job.advance(3)
    job.close()
    assert job.passes == 3
    np.testing.assert_array_equal(job.model["w"], 9)
    np.testing.assert_array_equal(job.run().model["w"], 12)


@pytest.mark.parametrize("n_jobs", [None, 2, -1])
def test_each_core_has_a_thread_that_has_no_other(
    n_jobs: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlopt.cluster.mesh_here.count_threads", lambda n_jobs: 2)
    both, inside = threading.Barrier(2), list[bool]()

    def step(block: int, part: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        both.wait(20)  # for the other thread
        inside.append(inside_task())
        return {"w": np.ones(1)}

    parts = [{"w": np.zeros(1)} for _ in range(2)]
    Job(step, parts, [[0, 0], [0, 0]], layout="threads", n_jobs=n_jobs, passes=3).run()
    assert inside == [True] * 12


@pytest.mark.parametrize("layout", ["rounds", "threads", "rotate", "servers"])
def test_a_step_has_the_context_of_who_runs_the_job(layout: Any) -> None:
    seen = set()

    def step(_: Any, __: Any) -> Any:
        seen.add(np.geterr()["divide"])
        return np.zeros(2)

    with np.errstate(divide="raise"):
        Job(step, np.zeros(2), [0, 1, 2], layout=layout, members=3).run()
    assert seen == {"raise"}


@pytest.mark.parametrize("layout", ["rotate", "servers"])
def test_a_member_that_leaves_as_the_model_comes_is_one_that_is_lost(layout: Any) -> None:
    class Unlucky(MeshHere):
        def serve(self, *given: Any) -> None:
            super().serve(*given)
            if len(self.members) == 3:
                self.lose(self.members[-1])

    with Unlucky(3) as mesh:
        job = Job(
            lambda _, __: np.ones(1), np.zeros(1), [0, 1, 2],
            layout=layout, where=mesh, passes=2,
        )  # fmt: skip
        np.testing.assert_array_equal(job.run().model, [6.0])


@pytest.mark.parametrize(
    "cell",
    [
        tuple(np.ones(3) for _ in range(300)),
        (np.zeros(3, [("a", "i4")]),),
        (np.zeros((1,) * 7),),
        (np.zeros(2, "M8[25us]"),),
    ],
    ids=["many", "records", "dimensions", "dates"],
)
def test_cells_that_no_message_has_as_they_are_are_packed(cell: Any) -> None:
    plain, arrays = cell_message(cell)
    assert not plain
    assert may_be_sent(arrays)


def test_rounds_on_a_mesh_here_are_done_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any) -> Any:
        raise AssertionError("it is known where")

    monkeypatch.setattr("mlopt.server.job.executor", none)
    with MeshHere(2) as mesh:
        job = Job(
            lambda b, _: np.ones(1) * b, np.zeros(1), [1, 2], layout="rounds", where=mesh
        )
        np.testing.assert_array_equal(job.run().model, [3.0])


def test_a_job_that_cannot_be_laid_out_lets_go_of_its_members(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    closed: list[MeshHere] = []

    class Told(MeshHere):
        def close(self) -> None:
            closed.append(self)
            super().close()

    def refuses(*_: Any, **__: Any) -> Any:
        raise InputError("no")

    monkeypatch.setattr("mlopt.server.job.MeshHere", Told)
    monkeypatch.setattr("mlopt.server.job.Rotate", refuses)
    job = Job(adds_one, {"w": np.zeros(2)}, [0, 1], layout="threads", passes=2)
    for _ in range(2):
        with pytest.raises(InputError, match="no"):
            job.advance(1)
    assert len(closed) == len({*map(id, closed)}) == 2
