"""Layouts of one job: each cell has its step once a pass; exact ones agree to the bit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.clusters import eventually

from mlopt.cluster import MeshHere
from mlopt.errors import InputError
from mlopt.server.layouts.rotate import Rotate
from mlopt.server.layouts.servers import Servers
from mlopt.server.program import Part, Program, Step


class Mixes(Step):
    """Changes a part and a state by what each other is: the order of steps matters."""

    def visit(self, cell: int, part: Part, state: Part, passes: int) -> float:
        part["q"][...] = 0.9 * part["q"] + np.sin(cell + state["p"].sum() + passes)
        part["n"] += 1
        state["p"] += 0.1 * part["q"].sum()
        return 1.0


def mixing(strata: int = 4, parts: int = 4) -> Program:
    return Program(
        Mixes(),
        [
            {"q": np.full((3, 2), float(b)), "n": np.zeros(3, np.int64)}
            for b in range(parts)
        ],
        [[10 * a + b for b in range(parts)] for a in range(strata)],
        [{"p": np.array([float(a)])} for a in range(strata)],
        turns=lambda parts, passes: np.roll(range(parts), passes)[::-1].tolist(),
    )


def alone(program: Program, passes: int) -> tuple[list[dict], list[dict]]:
    """The judge: rounds, one cell after the other."""
    parts = [{k: v.copy() for k, v in part.items()} for part in program.parts]
    states = [{k: v.copy() for k, v in state.items()} for state in program.states]
    for done in range(passes):
        for turn in program.turns(len(parts), done):
            for a, row in enumerate(program.cells):
                b = (a + turn) % len(parts)
                program.step.visit(row[b], parts[b], states[a], done)
    return parts, states


def test_members_that_come_are_given_strata() -> None:
    program = mixing()
    with MeshHere(1) as mesh, Rotate(program, mesh) as layout:
        layout.advance(2)
        mesh.add()
        layout.advance(3)
        assert set(layout.homes) == set(mesh.members)
        parts, _ = layout.model()
    for mine, judged in zip(parts, alone(program, 5)[0], strict=True):
        np.testing.assert_array_equal(mine["q"], judged["q"])


class Refuses(MeshHere):
    """Takes nothing, and counts who watches it."""

    watching = 0

    def watch(self, *told: Any) -> Callable[[], None]:
        end = super().watch(*told)
        self.watching += 1

        def ends() -> None:
            end()
            self.watching -= 1

        return ends

    def start(self, *given: Any) -> Any:
        raise InputError("no")


@pytest.mark.parametrize("kind", [Rotate, Servers])
def test_a_layout_that_cannot_begin_leaves_nothing_behind(kind: Any) -> None:
    before = set(threading.enumerate())
    with Refuses(2) as mesh:
        with pytest.raises(InputError, match="no"):
            kind(mixing(), mesh).advance(1)
        assert mesh.watching == 0
        assert eventually(lambda: set(threading.enumerate()) <= before, 5)


@pytest.mark.parametrize("members", [1, 2, 3, 5])
@pytest.mark.parametrize(("strata", "parts"), [(4, 4), (3, 5), (3, 1)])
def test_rotating_parts_give_what_one_process_does(
    members: int, strata: int, parts: int
) -> None:
    program = mixing(strata, parts)
    with MeshHere(members) as mesh, Rotate(program, mesh, threads=2) as layout:
        layout.advance(1)
        layout.advance(4)
        found = layout.model()
        assert layout.loss == strata * parts
    for one, other in zip(found, alone(program, 5), strict=True):
        for mine, judged in zip(one, other, strict=True):
            for name in judged:
                np.testing.assert_array_equal(mine[name], judged[name])
