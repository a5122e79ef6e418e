"""What a search decides, as a `Plan`: predicted before, measured after."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mlopt.costs import Cost
from mlopt.kernels import compiling
from mlopt.pipeline.by_split import Streamed
from mlopt.pipeline.steps.repeating import RANDOM, doubt
from mlopt.plan import Alternative, Choice, Estimate, Plan, format_bytes
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.rows import Rows
from mlopt.tuning.counting import FINAL, to_run
from mlopt.tuning.crews.chain import Parts
from mlopt.tuning.crews.families import Way
from mlopt.tuning.crews.growing import helpers
from mlopt.tuning.crews.problem import Problem
from mlopt.tuning.crews.scans import DUAL, LOCKSTEP, NEWTON
from mlopt.tuning.forecast import DOUBT, PRICES, Forecast
from mlopt.tuning.rungs import Rungs
from mlopt.tuning.samplers.samplers import sampler_of
from mlopt.tuning.space.space import Space

_BY_COLUMNS = "an L1 penalty looks at columns of all rows, but where their products do"
_TOGETHER = {
    LOCKSTEP: "configurations and splits share a scan",
    NEWTON: "each model of a scan by Newton's method",
    DUAL: "each model of a scan in its dual",
}
PROPOSALS = "proposals and storage"
"""A step of the plan beside the families."""
COMPILING = "compilation"
_ONCE = "once on this machine; `python -m mlopt.kernels` does it beforehand"
FEW = 3
"""Sizes of ensembles whose looks are told: those of a wide range differ."""


def search_plan(
    search: Any,
    problem: Problem,
    ways: Mapping[str, Sequence[Way]],
    forecasts: Mapping[str, Forecast],
    space: Space,
    rungs: Rungs,
    slots: int,
    where: Choice | None = None,
) -> Plan:
    """How each family will be trained, before anything runs.

    ``ways`` are those of configurations of each family, which the run would take too, and
    ``slots`` how many trials are in training at the same time;
    ``where`` is the choice of processes for fits, if they run in some.
    """
    sizes = [size for size in (search.n_trials, space.size) if size is not None]
    trials = min(sizes) if sizes else None
    each = None if trials is None else trials / len(ways)
    choices = [
        _family(name, own, problem, forecasts[name], each, rungs)
        for name, own in ways.items()
    ]
    alone = sum(one.batched is None for one in forecasts.values()) / len(forecasts)
    alone *= len(problem.splits)
    choices.append(Choice(
        PROPOSALS, _name(search.sampler), f"bandit: {_name(search.bandit)}",
        None if trials is None else _overhead(search, space, trials, alone),
    ))  # fmt: skip
    if where is not None:
        choices.append(where)
    if kernels := max(one.kernels for one in forecasts.values()):
        cost = Cost(python=kernels * price("kernels.compiled"))
        took = cost.seconds(problem.resources)
        choices.append(Choice(COMPILING, f"{kernels} kernels", _ONCE, took))
    if search.refit:
        seconds = _final(problem, ways, forecasts)
        choices.append(Choice(FINAL, "the best configuration", "all rows", seconds))
    estimates = _estimates(search, choices, forecasts)
    predicted = estimates[0].seconds if estimates else search.timeout
    _gather(search, problem, ways)
    notes = (*_notes(search, problem, apart=where), *_where(problem, ways))
    if alone and slots < (trials or math.inf):
        notes += _idle(search, problem, slots)
    counted = to_run(search, problem, ways, choices, each, rungs, forecasts)
    return Plan(_title(search), counted, predicted, notes=notes, estimates=estimates)


def _estimates(
    search: Any, choices: Sequence[Choice], forecasts: Mapping[str, Forecast]
) -> tuple[Estimate, ...]:
    """What is foreseen of the whole search, where it is of every step of it."""
    seconds = [choice.predicted for choice in choices if choice.predicted is not None]
    if len(seconds) < len(choices):
        return ()
    doubts = [one.doubt for one in forecasts.values()]  # their choices come first
    doubts += [DOUBT[PRICES]] * (len(choices) - len(doubts))
    looked = sum(one.looked for one in forecasts.values())
    most = math.inf if search.timeout is None else search.timeout
    total = looked + sum(seconds)
    low = looked + sum(s / d for s, d in zip(seconds, doubts, strict=True))
    high = looked + sum(s * d for s, d in zip(seconds, doubts, strict=True))
    source = "; ".join(dict.fromkeys(one.known for one in forecasts.values()))
    if search.timeout is not None and total > most:
        source += f"; more than {most:g} s, which end it"
    return (Estimate(min(total, most), min(low, most), min(high, most), source),)


def _overhead(search: Any, space: Space, trials: int, alone: float) -> float:
    """Seconds of what a search does beside training: in Python, on one thread, here.

    ``alone`` fits of a trial are made one by one.
    """
    sampler = sampler_of(search.sampler)
    names = sum(len(family.parameters) for family in space.families) / len(space.families)
    one = price("search.trial") + sampler.trial + names * sampler.parameter
    one += alone * price("search.fit")
    beside = price("search.begin") + trials * one
    return Cost(python=beside).seconds(Resources.probe())


def _final(
    problem: Problem, ways: Mapping[str, Sequence[Way]], forecasts: Mapping[str, Forecast]
) -> float | None:
    """Seconds of the final fit, of the family for which it takes longest."""
    seconds, threads = [], problem.executor.threads
    for name, expected in forecasts.items():
        if expected.final is None:
            return None
        share = threads if expected.batched is not None else 1
        took = expected.final.seconds(problem.resources, share)
        seconds.append(took / helpers(ways[name][0].parts.final, threads))
    return max(seconds)


def measured(plan: Plan, seconds: Mapping[str, float], total: float) -> Plan:
    """The plan with what every family took, the final fit and the search's own overhead.

    ``total`` seconds have passed since the search began.
    """
    since = time.perf_counter() - total
    if any(choice.step == COMPILING for choice in plan.choices):
        seconds = {**seconds, COMPILING: compiling.compiled(since)}
    news = compiling.notes(since)
    plan = replace(plan, notes=(*plan.notes, *news))
    return plan.with_measured(dict(seconds), total=total)


def _title(search: Any) -> str:
    trials = "" if search.n_trials is None else f"up to {search.n_trials} trials"
    limit = "" if search.timeout is None else f"{search.timeout:g} s"
    return "search, " + (
        ", ".join(part for part in (trials, limit) if part) or "whole space"
    )


def _notes(search: Any, problem: Problem, apart: Choice | None) -> tuple[str, ...]:
    splits, executor = len(problem.splits), problem.executor
    where = "in process" if type(executor).__name__ == "Threads" else "on the cluster"
    where += "" if apart is None else f", and {apart.chosen} for fits"
    told = (
        f"{problem.n} rows, {splits} split{'s' if splits > 1 else ''}, scored by "
        f"{_name(search.scoring) if search.scoring else 'the score of the estimators'}",
        f"{executor.threads} thread{'s' if executor.threads > 1 else ''} {where}",
    )
    open_ = problem.metrics.multiple and not isinstance(search.refit, str)
    if not open_ or (search.bandit is None and not sampler_of(search.sampler).learns):
        return told
    return (
        *told,
        f"`refit` names no metric: sampler and bandit go by the first, "
        f"`{problem.metrics.main}`; with bandit=None nothing is given up",
    )


def _idle(search: Any, problem: Problem, slots: int) -> tuple[str, ...]:
    """That threads wait for so many trials, and what to do about it; or nothing."""
    splits, threads = len(problem.splits), problem.executor.threads
    if slots * splits >= threads:
        return ()
    asked = search.batch_size != "auto"
    why = "as was asked" if asked else "for the sampler learns from them"
    return (
        f"{slots} trials train at a time, {why}: {slots * splits} fits on {threads} "
        f"threads; `batch_size={-(-threads // splits)}` keeps all threads at work",
    )


def _where(problem: Problem, ways: Mapping[str, Sequence[Way]]) -> Iterator[str]:
    """What happens to the rows of a Dask collection, and to few rows beside workers."""
    if problem.told:
        yield problem.told
    scans = (way.task and way.parts.steps for own in ways.values() for way in own)
    if problem.near is not None and any(scans):
        yield "scans of few rows behind preprocessing run in this process"
    yield from problem.gathers
    if not isinstance(problem.X, Streamed):
        return
    every = [way for own in ways.values() for way in own]
    if any(way.task and problem.streamed(way.parts) for way in every):
        yield "rows are read block by block where they are, and preprocessed there"
    for way in every:
        if way.task and way.task.by_columns and (X := problem.streamed(way.parts)):
            chain = X.chain(way.parts.key, way.parts.steps)
            size = format_bytes(problem.n * chain.row_bytes)
            yield f"rows behind preprocessing, {size} a split, are gathered: {_BY_COLUMNS}"
            break


def _gather(search: Any, problem: Problem, ways: Mapping[str, Sequence[Way]]) -> None:
    """Note why the rows of a Dask collection come to this process, where they must.

    Raises
    ------
    InputError
        When they are too many.
    """
    lazy = isinstance(problem.X, Rows) or getattr(problem.X, "lazy", False)
    if not lazy or problem.gathers:
        return
    for name, own in ways.items():
        of = f"`{name}`: " if len(ways) > 1 else ""
        for way in own:
            if why := way.reason or problem.why_gathered(way.parts):
                problem.gather(of + why, declare=not way.reason)
                return
    if search.refit and search.return_predictions:
        problem.gather("`return_predictions` fits whole models, split by split")


def _name(thing: Any) -> str:
    return (
        thing
        if isinstance(thing, str)
        else "none"
        if thing is None
        else type(thing).__name__
    )


def _family(
    name: str,
    ways: Sequence[Way],
    problem: Problem,
    expected: Forecast,
    trials: float | None,
    rungs: Rungs,
) -> Choice:
    parts = ways[0].parts
    operator = type(parts.final).__name__

    def seconds(cost: Cost | None, batched: bool = False) -> float | None:
        """Of all trials."""
        if cost is None or trials is None:
            return None
        return expected.of_trials(problem, cost, trials, batched=batched)

    notes = [*_prepared(parts)]
    if trials is None and expected.chosen is not None:
        one = expected.chosen.seconds(problem.resources)
        notes.append(
            f"one trial, all splits, on one thread: {one:.3g} s ({_source(expected)})"
        )
    if told := sorted({rungs.explained(way.parts.final) for way in ways} - {""}):
        notes += told[:FEW] + ([f"{len(told) - FEW} more sizes"] if len(told) > FEW else [])
    if expected.batched is None or expected.batch is None:
        rejected = Alternative("batched", reason=expected.reason)
        return Choice(
            name or operator, operator,
            "one fit a split, in "
            + ("processes of their own" if expected.processes else "parallel"),
            expected.paced(seconds(expected.alone)), rejected=(rejected,),
            notes=tuple(notes),
        )  # fmt: skip
    others_alone = sorted({way.reason for way in ways if way.task is None})
    if others_alone:
        why = "; ".join(others_alone)
        notes.append(f"one fit a split for the configurations that need it: {why}")
    if expected.turns:
        notes.append(f"splits take turns, prepared anew for each look: {expected.turns}")
    alone = seconds(expected.alone)
    unknown = "not sampled" if alone is None else ""
    others = (Alternative("one fit a split", alone, unknown),)
    sizes = replace(expected.batch, step="batch", rejected=_few(expected.batch.rejected))
    return Choice(
        name or operator, operator, f"batched: {_TOGETHER[expected.descends]}",
        expected.paced(seconds(expected.batched, batched=True)), rejected=others,
        notes=tuple(notes), children=(sizes,),
    )  # fmt: skip


def _prepared(parts: Parts) -> Iterator[str]:
    """Which steps trials share, and which each of them fits anew, and why."""
    if shared := parts.names[: parts.shared]:
        steps = " > ".join(shared)
        yield f"preprocessing, each step fitted once a split and shared: {steps}"
    if own := parts.names[parts.shared :]:
        steps, why = " > ".join(own), doubt(parts.steps[parts.shared][1])
        see = "" if why == RANDOM else "; see `mlopt.register`"
        yield f"preprocessing, fitted once a split for each trial: {steps} ({why}{see})"


def _source(expected: Forecast) -> str:
    return expected.chosen.source if expected.chosen is not None else ""


def _few(rejected: tuple[Alternative, ...]) -> tuple[Alternative, ...]:
    """The sizes next to the chosen one say enough, and one model a scan for comparison."""
    return rejected[:2] + rejected[-1:] if len(rejected) > 3 else rejected
