"""A planned pipeline as a `Plan`: each step with what was chosen, rejected and kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sklearn.utils.validation import check_is_fitted

from mlopt.errors import InputError
from mlopt.identity import is_known
from mlopt.pipeline.fits.base import ManyPasses
from mlopt.pipeline.graph.operators import (
    Apply,
    Convert,
    Given,
    Join,
    Learn,
    Operator,
    Outcome,
    Select,
    Source,
    one_line,
)
from mlopt.pipeline.graph.schedule import Job, Timetable, executions, members, schedule
from mlopt.pipeline.graph.walking import walk
from mlopt.pipeline.planning.making import Planned
from mlopt.pipeline.planning.optimizer import history
from mlopt.pipeline.profiling.profile import Option, Profile
from mlopt.pipeline.rules.choose_ways import TRIFLE
from mlopt.pipeline.running.applying import (
    are_few,
    note_gathered,
    plan_application,
    why_plain,
)
from mlopt.pipeline.running.execute import Execution
from mlopt.plan import Alternative, Choice, Plan, format_bytes, format_seconds
from mlopt.rows.source import is_dask


def to_plan(
    pipeline: Any,
    planned: Planned,
    run: Execution | None = None,
    total: float | None = None,
    method: str = "fit",
    once: float = 0.0,
) -> Plan:
    """The plan as users see it; with what a run measured when there was one.

    Of its ``total`` seconds, kernels took ``once`` to compile and to be read.
    """
    draft, profile = planned.draft, planned.profile
    ops = _logical(draft.sinks)
    context, at_once = planned.context, draft.at_once
    jobs = schedule(draft.sinks, context.passes, context.known, at_once=at_once)
    counts = executions(jobs, draft.kept, context.there, draft.partly)
    own = _of_steps(ops)
    choices = [
        _choice(op, own[id(op)], planned, counts, run)
        for op in ops
        if isinstance(op, Learn | Join | Outcome) or _is_stateless(op)
    ]
    trips = len(jobs) * profile.resources.round_trip if profile is not None else None
    # A fit is planned first, which takes what it took now.
    predicted = None if trips is None else _total(choices) + planned.seconds + trips
    if planned.foreseen is not None:
        predicted = planned.foreseen + planned.seconds
    kept = _kept_bytes(planned, jobs) if profile is not None else None
    changed = ", ".join(one.rule for one in planned.log if one.changed) or "none"
    planning = planned.seconds - planned.once
    notes = [f"rules that changed the plan: {changed}; planning took {planning:.2f} s"]
    notes += [
        f"rule `{one.rule}` was left out, since it would have changed what is computed: an "
        "error of mlopt, please report it"
        for one in planned.log
        if one.broken
    ]
    if planned.plainly:
        notes.append(f"run as scikit-learn runs it, not planned: {planned.plainly}")
    notes += _beside(len(jobs), trips, choices, planning + once, total)
    notes += _kept_in_all(kept, run) if run is not None else []
    return Plan(
        f"{method} {type(pipeline).__name__}",
        tuple(choices),
        predicted,
        total,
        kept,
        context.budget if method == "fit" else None,
        tuple(notes),
        tuple(history(planned.log)),
    )


def explain_application(pipeline: Any, method: str, X: Any) -> Plan:
    """The plan of a method of a fitted pipeline; nothing is run but a few rows.

    Bytes of a Dask frame that would be gathered are counted, as the method counts them.

    Raises
    ------
    InputError
        When the pipeline has no such method for all rows, or has not been fitted; or when
        rows that the method would gather do not fit.
    """
    if method not in _METHODS or not hasattr(pipeline, method):
        known = [name for name in _METHODS if hasattr(pipeline, name)]
        raise InputError(f"`method` must be 'fit' or one of {known}, got {method!r}.")
    check_is_fitted(pipeline)
    if not is_dask(X) and are_few(pipeline, X):
        return plain_plan(pipeline, None, "few rows", method)
    planned = plan_application(pipeline, method, X)
    if not is_dask(X) and (why := why_plain(planned)):
        return plain_plan(pipeline, None, why, method)
    plan = to_plan(pipeline, planned, method=method)
    if is_dask(X) and (note := note_gathered(pipeline, method, X, planned)):
        return replace(plan, notes=(*plan.notes, note))
    return plan


_METHODS = (
    "transform", "predict", "predict_proba", "predict_log_proba", "decision_function",
    "score_samples",
)  # fmt: skip


def plain_plan(
    pipeline: Any, seconds: float | None, reason: str, method: str = "fit"
) -> Plan:
    """What is run where no plan holds: scikit-learn's own loop."""
    choices = tuple(
        Choice(name, one_line(step), "scikit-learn, on all rows at once")
        for name, step in pipeline.steps
    )
    note = f"run as scikit-learn runs it: {reason}"
    return Plan(
        f"{method} {type(pipeline).__name__}", choices, measured=seconds, notes=(note,)
    )


def _kept_bytes(planned: Planned, jobs: Sequence[Job]) -> int:
    """Bytes that kept rows take at most at any one time, as predicted."""
    profile, draft = planned.profile, planned.draft
    assert profile is not None
    table = Timetable(jobs, planned.context.there, profile.bytes)
    return round(table.follow_tokens(draft.kept, draft.partly).peak)


def _beside(
    graphs: int,
    predicted: float | None,
    choices: Sequence[Choice],
    others: float,
    total: float | None,
) -> list[str]:
    """What a run takes beside its steps, planning and kernels: with these, all of it."""
    found = [f"{format_seconds(predicted)} predicted"] if predicted is not None else []
    if total is not None:
        steps = sum(choice.measured or 0.0 for choice in choices)
        found.append(f"{format_seconds(max(0.0, total - others - steps))} measured")
    text = f"beside the steps, {graphs} graphs sent and waited for: {', '.join(found)}"
    return [text] if found and graphs else []


def _kept_in_all(predicted: int | None, run: Execution) -> list[str]:
    """What became of the rows to be kept."""
    found = run.shelf.statistics
    expected = "" if predicted is None else f"{format_bytes(predicted)} predicted, "
    text = f"rows kept: {expected}{format_bytes(found.peak)} at most"
    if found.evictions or found.refused:
        text += f"; {found.evictions} blocks evicted, {found.refused} without room"
    if run.reused:
        text += f"; rows of {len(run.reused)} operators were there from before"
    return [text]


def _logical(sinks: Any) -> list[Operator]:
    """Every operator once, those within fused ones too."""
    found = {one.token: one for op in walk(sinks) for one in members(op)}
    return list(found.values())


def _is_stateless(op: Operator) -> bool:
    return isinstance(op, Apply) and isinstance(op.model, Given)


def _choice(
    op: Operator,
    own: Sequence[Operator],
    planned: Planned,
    counts: dict[str, float],
    run: Execution | None,
) -> Choice:
    """``own`` are those of the step of ``op``: they count with it."""
    profile = planned.profile
    rejected: tuple[Alternative, ...] = ()
    chosen = "block by block"
    if isinstance(op, Apply) and op.scope == "all":
        chosen = "on all rows at once"
    made: float | None = None
    if profile is not None:
        rows = [one for one in own if one.gives_rows]
        made = sum(profile.seconds(one) * counts.get(one.token, 0.0) for one in rows)
    predicted = made
    if isinstance(op, Learn):
        chosen, predicted, rejected = _way(op, made or 0.0, planned)
    notes = [text for token, text in planned.draft.notes if token == op.token]
    notes += _input_notes(op, profile, planned)
    notes += _doubt_notes(op, profile)
    notes += [*_gathered_notes(op, planned), *_kept_notes(op, own, planned)]
    measured, ran = None, {}
    if run is not None:
        found = [took for one in own if (took := run.took(one)) is not None]
        measured = sum(found) if found else None
        ran = _often(own, run.ran)
        notes += run.told.get(op.token, ())
    known = planned.context.known
    runs = _often(own, lambda one: counts.get(one.token, float(one.token not in known)))
    return Choice(
        op.step, op.describe(), chosen, predicted, measured, rejected, tuple(notes),
        runs=runs, ran=ran,
    )  # fmt: skip


def _often(own: Sequence[Operator], count: Callable[[Operator], float]) -> dict[str, float]:
    """How often a step's model is fitted, and its rows are made."""
    found: dict[str, float] = {}
    for one in own:
        name = "fit" if isinstance(one, Learn) else "apply"
        if isinstance(one, Learn | Apply | Join) and not isinstance(one, Outcome):
            found[name] = found.get(name, 0.0) + count(one)
    return found


def _of_steps(ops: Sequence[Operator]) -> dict[int, list[Operator]]:
    """By `id` of an operator: what its columns are cut from, it, and what applies it."""
    same = {id(op): [op] for op in ops}
    for op in ops:
        if isinstance(op, Apply) and id(op.model) in same:
            same[id(op.model)].append(op)
    for key, found in same.items():
        inputs = [i for one in found for i in one.inputs if isinstance(i, Select | Convert)]
        same[key] = [*dict.fromkeys([*inputs, *found])]
    return same


def _way(
    op: Learn, made: float, planned: Planned
) -> tuple[str, float | None, tuple[Alternative, ...]]:
    """With the step's rows, ``made`` in any way; others by how much longer the run took."""
    profile = planned.profile
    if op.token in planned.context.known:
        return "learnt before: not fitted again", made, ()
    name = op.way.name if op.way is not None else "scikit-learn"
    if profile is None:
        return name, None, ()
    options = profile.options.get(op.token, ())
    prices = dict(planned.draft.prices).get(op.token, [o.seconds for o in options])
    both = [(o.seconds, p) for o, p in zip(options, prices, strict=True) if o.way is op.way]
    alone, price = both[0] if both else (0.0, 0.0)
    beside = made + (alone or 0.0) - (price or 0.0)
    rejected = tuple(
        Alternative(o.name, None if p is None else p + beside, _reason(o, p))
        for o, p in zip(options, prices, strict=True)
        if o.way is not op.way
    )
    return name, made + (alone or 0.0), rejected


def _reason(option: Option, seconds: float | None) -> str:
    """Why a way is none, where it has a price of its own and none within the plan."""
    if seconds is None and not option.reason:
        return f"gathers {format_bytes(option.memory)}, more than `memory_budget`"
    return option.reason


def _input_notes(op: Operator, profile: Profile | None, planned: Planned) -> list[str]:
    """What learning adds to the run beside the fit itself, as prices of ways count it."""
    options = profile.options.get(op.token, ()) if profile is not None else ()
    prices = dict(planned.draft.prices).get(op.token, ())
    for option, seconds in zip(options, prices, strict=False):
        making = (seconds or 0.0) - (option.seconds or 0.0)
        if isinstance(op, Learn) and option.way is op.way and making > TRIFLE:
            return [f"with what makes its input: {format_seconds(seconds or 0.0)}"]
    return []


def _doubt_notes(op: Operator, profile: Profile | None) -> list[str]:
    """How far off seconds may be, where passes were guessed: those of fits like it."""
    if profile is None or not isinstance(op, Learn):
        return []
    for one in profile.options.get(op.token, ()):
        if one.way is op.way and one.seconds and one.doubt > 1.0:
            ends = one.seconds / one.doubt, one.seconds * one.doubt
            low, high = map(format_seconds, ends)
            return [f"alone {low} to {high}, by what like fits took"]
    return []


def _gathered_notes(op: Operator, planned: Planned) -> list[str]:
    """Whether a step is given all rows in one place, and why one of the user is."""
    found = []
    if isinstance(op, Apply) and op.scope == "all" and isinstance(op.model, Given):
        name = _name(op.model.model)
        found = [f"{name} is not declared row-wise: run on all rows at once"]
    if isinstance(op, Learn) and op.transforms and not is_known(type(op.estimator)):
        name = type(op.estimator).__name__
        found = [f"{name} is not declared row-wise: fitted and run on all rows at once"]
    if isinstance(op, Learn | Apply) and _gathers(op, planned):
        profile = planned.profile
        size = f": {format_bytes(profile.bytes(op.x))}" if profile is not None else ""
        found.append(f"all rows gathered in one place{size}")
    return found


def _gathers(op: Learn | Apply, planned: Planned) -> bool:
    """Whether rows that Dask has in several blocks come together for a step."""
    if op.token in planned.context.known:
        return False
    if isinstance(op, Apply):
        whole = op.scope == "all"
    else:
        whole = op.way is None or (isinstance(op.way, ManyPasses) and op.way.gathers)
    sources = (one for one in walk([op.x]) if isinstance(one, Source) and one.lazy)
    return whole and any(planned.sources[one.token].count > 1 for one in sources)


def _name(transformer: Any) -> str:
    """Of the function that a step calls, or of its class."""
    function = getattr(transformer, "func", None)
    return str(getattr(function, "__name__", type(transformer).__name__))


def _kept_notes(op: Operator, own: Sequence[Operator], planned: Planned) -> list[str]:
    """Which rows of this step are kept, and how large they are."""
    profile, draft = planned.profile, planned.draft
    if profile is None:
        return []
    found = []
    for one in own:
        if one.step == op.step and one.gives_rows and one.token in draft.kept:
            size, partly = format_bytes(profile.bytes(one)), draft.partly
            share = partly[1] if partly and partly[0] == one.token else 1.0
            part = f"{share:.0%} of " if share < 1.0 else ""
            found.append(f"kept in memory: {part}output ({size})")
    return found


def _total(choices: list[Choice]) -> float:
    return sum(choice.predicted or 0.0 for choice in choices)
