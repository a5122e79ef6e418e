"""How often a search fits and scores: as foreseen, and counted where it is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mlopt.plan import Choice, Plan
from mlopt.tuning.crews.families import Way
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.rungs import Rungs

PREPARING, FINAL = "preprocessing", "final fit"
"""Steps of a search's plan beside the families."""


def to_run(
    search: Any,
    problem: Problem,
    ways: Mapping[str, Sequence[Way]],
    choices: Sequence[Choice],
    trials: float | None,
    rungs: Rungs,
) -> tuple[Choice, ...]:
    """The ``choices``, of the families first, with what so many ``trials`` of each come to.

    Every trial is fitted on every split, once a look where it grows, as far as is known
    before a bandit has looked.
    """
    splits, counted = len(problem.splits), list(choices)
    if trials is not None:
        fits = trials * splits
        for number, own in enumerate(ways.values()):
            looked = fits * (1 if own[0].task else rungs.fits(own[0].parts.final))
            runs = {"fit": looked} | ({} if search.bandit else {"score": fits})
            counted[number] = replace(counted[number], runs=runs)
    names = dict.fromkeys(name for own in ways.values() for name in own[0].parts.names)
    if names:
        shared = Choice(PREPARING, " > ".join(names), "once a split, for all that share it")
        counted.insert(len(ways), replace(shared, runs=dict.fromkeys(names, splits)))
    fits = 1 + (splits if search.return_predictions else 0)
    final = [replace(c, runs={"fit": fits}) if c.step == FINAL else c for c in counted]
    return tuple(final)


def with_ran(plan: Plan, ran: Mapping[str, Mapping[str, int]]) -> Plan:
    """The plan with what was done, by the names of its steps."""
    choices = (
        replace(choice, ran=ran[choice.step]) if ran.get(choice.step) else choice
        for choice in plan.choices
    )
    return replace(plan, choices=tuple(choices))
