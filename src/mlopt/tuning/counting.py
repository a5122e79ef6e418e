"""How often a search fits and scores: as foreseen, and counted where it is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mlopt.plan import Choice, Plan
from mlopt.tuning.crews.families import Way
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.crews.scans import LOCKSTEP
from mlopt.tuning.forecast import Forecast
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
    forecasts: Mapping[str, Forecast],
) -> tuple[Choice, ...]:
    """The ``choices``, of the families first, with what so many ``trials`` of each come to.

    Every trial is fitted on every split, once a look where it grows, as far as is known
    before a bandit has looked; by itself where models of a scan are foreseen so.
    """
    splits, counted = len(problem.splits), list(choices)
    if trials is not None:
        fits = trials * splits
        for number, (name, own) in enumerate(ways.items()):
            looked = fits * (1 if own[0].task else rungs.fits(own[0].parts.final))
            runs = {"fit": looked} | ({} if search.bandit else {"score": fits})
            if (descends := forecasts[name].descends) != LOCKSTEP:
                runs[descends] = fits
            counted[number] = replace(counted[number], runs=runs)
    if fitted := _distinct(ways, trials):
        steps = " > ".join(fitted)
        some = any(way.parts.shared for own in ways.values() for way in own)
        readers = "for all that share it" if some else "for each trial"
        shared = Choice(PREPARING, steps, f"once a split, {readers}")
        runs = {name: count * splits for name, count in fitted.items() if count}
        counted.insert(len(ways), replace(shared, runs=runs))
    fits = 1 + (splits if search.return_predictions else 0)
    final = [replace(c, runs={"fit": fits}) if c.step == FINAL else c for c in counted]
    return tuple(final)


def _distinct(ways: Mapping[str, Sequence[Way]], trials: float | None) -> dict[str, float]:
    """How many steps of a name differ, by content and by what is before them.

    As many as there are ``trials`` of each family that share none. 0 where the
    configurations of one family differ: trials tell how many there are.
    """
    found: dict[str, set[str]] = {}
    searched: set[str] = set()
    alone: dict[str, float] = {}
    for family in ways.values():
        own: dict[str, set[str]] = {}
        unshared = [set(way.parts.names[way.parts.shared :]) for way in family]
        every = set.intersection(*unshared)
        for way in family:
            for name, token in zip(way.parts.names, way.parts.tokens[1:], strict=True):
                own.setdefault(name, set()).add(token)
        for name, tokens in own.items():
            kept = found.setdefault(name, set())
            if name in every:
                alone[name] = alone.get(name, 0) + (trials or 0)
                continue
            kept.update(tokens)
            if len(tokens) > 1:
                searched.add(name)
        if trials is None:
            searched |= every
    return {
        name: 0 if name in searched else len(tokens) + alone.get(name, 0)
        for name, tokens in found.items()
    }


def with_ran(plan: Plan, ran: Mapping[str, Mapping[str, int]]) -> Plan:
    """The plan with what was done, by the names of its steps."""
    choices = (
        replace(choice, ran=ran[choice.step]) if ran.get(choice.step) else choice
        for choice in plan.choices
    )
    return replace(plan, choices=tuple(choices))
