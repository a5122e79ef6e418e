"""Whether fits run on threads of this process or in processes of their own, by price.

Threads share all they read, and wait for one interpreter: where fits are Python's work for
the most part, as of boosting with its small trees, two of them take as long as one after
the other. Samples tell how much longer a fit takes so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mlopt.plan import Alternative, Choice
from mlopt.tuning.crews.families import Way
from mlopt.tuning.crews.plain import begin, may_pay
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.forecast import DOUBT, Forecast

STEP = "processes"
"""The step of a search's plan that says where fits run."""


def chosen(
    problem: Problem,
    ways: Mapping[str, Sequence[Way]],
    forecasts: Mapping[str, Forecast],
    trials: float,
    limit: float,
) -> tuple[dict[str, Forecast], Choice | None]:
    """The forecasts by where fits run, and that choice where there was one.

    Parameters
    ----------
    problem : Problem
    ways : mapping of family to sequence of Way
    forecasts : mapping of family to Forecast
        Of threads.
    trials : float
        Of each family.
    limit : float
        Seconds after which the search ends.
    """
    found, threads = dict(forecasts), problem.executor.threads
    crowded = {
        name: one
        for name, one in found.items()
        if one.alone is not None
        and one.batched is None
        and one.crowded > 1
        and all(may_pay(problem, way.parts, math.inf) for way in ways[name])
    }
    here = there = 0.0
    for one in crowded.values():
        assert one.alone is not None
        took = one.of_trials(problem, one.alone, trials, batched=False)
        here, there = here + took, there + took / one.crowded
    if here > limit:
        here, there = limit, there * limit / here
    started = begin(threads)
    # By more than samples are off as a rule: processes that come for nothing take seconds.
    if not crowded or here - there <= DOUBT["sampled"] * started:
        return found, None
    for name, one in crowded.items():
        assert one.alone is not None
        faster = (1 / one.crowded) * one.alone
        found[name] = replace(one, alone=faster, processes=threads)
    slower = max(one.crowded for one in crowded.values())
    why = f"beside others a fit takes {slower:.1f} times as long: they wait for Python"
    others = (Alternative(f"{threads} threads", here - there, why),)
    many = f"{threads} processes"
    return found, Choice(STEP, "fits", many, started, rejected=others)
