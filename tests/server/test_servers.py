"""Servers and workers change places while they run, and no step is lost or done twice."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest
from tests.clusters import eventually

from mlopt.cluster import MeshHere
from mlopt.events import Event, Reconfigured
from mlopt.server.elastic import Policy
from mlopt.server.layouts.servers import Servers
from mlopt.server.ownership import Move
from mlopt.server.program import Adds, Program


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
            assert [pull > 0 for _, _, pull in steps.tolist()] == [not held] * 6


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
        np.testing.assert_array_equal(total(layout), 1200)
        assert eventually(lambda: layout.host.error is None)
