"""What an epoch took, by the steps that members tell of: on a clock of the test."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mlopt.cluster.wire import Header
from mlopt.events import ignore
from mlopt.server import Policy
from mlopt.server.layouts import adapting
from mlopt.server.layouts.adapting import EVERY, Adapting
from mlopt.server.ownership import Owner
from mlopt.server.program import CLOCK

STRATA, STEP = 12, 0.05
BLOCKS = {"part0": range(4), CLOCK: range(4, 5)}


class Members:
    """Six members and a clock: who works does a step after the other."""

    def __init__(self) -> None:
        self.now = 0.0
        self.members = [f"m{number}" for number in range(6)]
        self.homes = dict.fromkeys(range(STRATA), "m0")
        self.told: dict[str, int] = {}
        self.layout: Any = SimpleNamespace(
            mesh=self,
            homes=self.homes,
            servers=lambda: {"m5"},
            program=SimpleNamespace(
                parts=[{"w": np.zeros(4)}],
                states=[],
                cells=list(range(STRATA)),
                plan=SimpleNamespace(
                    of=lambda name: {name: SimpleNamespace(blocks=BLOCKS[name])}
                ),
            ),
            host=SimpleNamespace(
                owners=SimpleNamespace(
                    all=lambda: dict.fromkeys(range(5), Owner("m5", 1)),
                    get=lambda block: Owner("m5", 1),
                ),
                store=SimpleNamespace(move=lambda moves: None),
            ),
            move_strata=self.move,
        )

    def move(self, strata: Any, target: str, passes: int) -> None:
        self.homes.update(dict.fromkeys(strata, target))

    def after(self, seconds: float) -> None:
        """Time goes by, and those that have strata do steps."""
        self.now += seconds
        for member in set(self.homes.values()):
            self.told[member] = self.told.get(member, 0) + round(seconds / STEP)

    def ask(self, member: str, operation: str) -> tuple[Header, list[np.ndarray]]:
        assert operation == "report"
        steps = np.tile([0.0, STEP, 0.0, 32.0], (self.told.pop(member, 0), 1))
        return Header(more={"applying": 1e-6 if member == "m5" else 0.0}), [steps]


@pytest.fixture
def members(monkeypatch: pytest.MonkeyPatch) -> Members:
    made = Members()
    monkeypatch.setattr(adapting, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def started(members: Members, policy: Policy) -> Adapting:
    made = Adapting(members.layout, "async", 0, policy, ignore)
    made.begin()
    return made


def test_an_epoch_before_a_change_is_what_its_steps_took(members: Members) -> None:
    adapts = started(members, Policy(interval=0.0, settle=100.0))
    members.after(EVERY)  # 10 steps: less than an epoch
    assert EVERY / STEP < STRATA
    adapts.look(1)
    first, *changes = adapts.controller.plan().choices
    assert len(changes) == 1
    assert first.measured == pytest.approx(STRATA * STEP)


def test_whole_epochs_are_not_replaced_by_the_part_of_one(members: Members) -> None:
    members.members = ["m0", "m5"]  # there is nothing to change
    adapts = started(members, Policy())
    for _ in range(2):
        members.after(1.5 * EVERY)
        adapts.look(1)
    members.now += 1.0  # nobody worked: the part of an epoch that began would be long
    members.told["m0"] = 1
    adapts.end()
    (first,) = adapts.controller.plan().choices
    assert first.measured == pytest.approx(STRATA * STEP)


def test_steps_before_a_change_are_not_of_the_epochs_after_it(members: Members) -> None:
    adapts = started(members, Policy(interval=0.0, settle=100.0))
    members.after(2 * EVERY)
    adapts.look(1)
    workers = len(adapts.controller.configuration.workers)
    assert workers > 1
    for _ in range(2):  # none is of the first steps, which all begin at once
        members.after(6 * EVERY)
        adapts.look(1)
    _, change = adapts.controller.plan().choices
    assert change.measured == pytest.approx(STRATA * STEP / workers)


def test_a_job_that_ends_within_its_first_epoch_says_what_it_saw(members: Members) -> None:
    adapts = started(members, Policy())
    members.after(0.2)
    adapts.end()
    (first,) = adapts.controller.plan().choices
    assert first.measured == pytest.approx(STRATA * STEP)


def test_who_made_no_step_has_measured_nothing(members: Members) -> None:
    adapts = started(members, Policy())
    members.now += 1.0
    adapts.end()
    (first,) = adapts.controller.plan().choices
    assert first.measured is None
