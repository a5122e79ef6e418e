"""The plan of a stream: what was chosen, what it should give, what it gave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from mlopt.plan import Alternative, Choice, Plan, format_bytes, format_seconds
from mlopt.prices import price
from mlopt.streaming.credits import BARRIER
from mlopt.streaming.running import SOURCE, Running
from mlopt.streaming.spread import Spread
from mlopt.streaming.stage import Measured, Stage
from mlopt.streaming.tune import Room, Tuned, made_of


def plan_of(
    stages: Sequence[Stage], gather: Stage | None, room: Room, state: Running | None
) -> Plan:
    """The plan of a stream; with what was measured if it has run.

    Parameters
    ----------
    stages : sequence of Stage
    gather : Stage or None
    room : Room
    state : Running or None
    """
    title = f"stream of {len(stages)} stage{'s' * (len(stages) > 1)}"
    if state is None:
        choices = [_unmeasured(stage) for stage in stages]
        note = "nothing is measured yet: give `explain` a request, or run some"
        return Plan(title, tuple(choices), notes=(note,), memory_budget=room.memory)
    state.choose()
    tuned, measured = state.tuned, state.measured
    everything = [Stage(iter, SOURCE), *state.stages]
    choices = [
        _choice(at, stage, measured[at], tuned) for at, stage in enumerate(everything)
    ]
    unit, notes = "feeds", []
    if isinstance(state, Spread):
        unit = f"partitions of {state.partition}"
        title += f" on {len(state.places)} workers"
        choices = [choices[0], *_phases(state, choices[1:])]
        notes = [f"{format_bytes(state.moved)} were sent to workers and back"]
        if 0 < state.first < len(stages):
            fused = f"{state.fused} requests went to one worker whole"
            notes = [f"{fused}, {state.apart} were cut; {notes[0]}"]
    if gather is not None:
        choices.append(Choice("gather", gather.name, "one thread for each open request"))
    predicted = memory = None
    if tuned is not None:
        predicted, memory = tuned.latency, int(tuned.memory)
        notes += [
            f"{tuned.open} requests open, {tuned.feeds} {unit} under way",
            f"predicted: {tuned.throughput:.3g} {unit} a second, a request of "
            f"{state.usual_arity:.3g} in {format_seconds(tuned.latency)}, feeds of "
            f"{format_bytes(tuned.memory)} at most",
        ]
    latency = None
    if state.latency.count:
        latency = state.latency.usual()[0]
        done = state.measured[0].count
        each = max(
            one.usual()[2] / made
            for one, made in zip(
                measured, made_of(state.timed(), state.usual_arity), strict=True
            )
        )
        notes.append(
            f"measured: {done / max(state.busy, 1e-9):.3g} {unit} a second, a request in "
            f"{format_seconds(latency)}, feeds of {format_bytes(state.peak * each)} at most"
        )
    return Plan(
        title, tuple(choices), predicted, latency, memory, room.memory, tuple(notes)
    )


def _unmeasured(stage: Stage) -> Choice:
    many = "as measured" if stage.replicas is None else _replicas(stage.replicas)
    return Choice(stage.name, _operator(stage), many)


def _choice(at: int, stage: Stage, measured: Measured, tuned: Tuned | None) -> Choice:
    seconds = measured.usual()[0] if measured.count else None
    mean = measured.total / measured.count if measured.count else None
    if tuned is None:
        return Choice(
            stage.name, _operator(stage), _replicas(stage.replicas or 1), seconds, mean
        )
    if at and tuned.fused[at - 1]:
        handed = format_seconds(price("stream.handover"))
        rejected = (Alternative("a gate in between", None, f"{handed} of CPU a feed"),)
        return Choice(
            stage.name, _operator(stage), "fused with the stage before", seconds, mean,
            rejected,
        )  # fmt: skip
    return Choice(
        stage.name, _operator(stage), _replicas(tuned.replicas[at]), seconds, mean
    )


def _phases(state: Spread, choices: Sequence[Choice]) -> Iterator[Choice]:
    """Where each phase runs, and in it its stages as workers have seen them."""
    where = f"{len(state.places)} workers, {state.places.each} at once on each"
    borders = sorted({0, state.first, len(state.inner)})
    for choice, (first, last) in zip(choices, pairwise(borders), strict=True):
        takes, other = f"partitions of {state.partition} feeds", list[Alternative]()
        if first == state.first:
            takes = "all feeds of a request"
        if first > 0:
            work, crossing = map(format_seconds, state.times_of(state.usual_feeds))
            named = "a phase of its own" if state.fused > state.apart else "fused"
            said = f"{crossing} a request for what crosses, {work} of work"
            other = [Alternative(named, None, said)]
        inner = tuple(_inner(state, at) for at in range(first, last))
        yield replace(
            choice, operator=takes, chosen=where, rejected=tuple(other), children=inner
        )


def _inner(state: Spread, at: int) -> Choice:
    seen, stage = state.seen_of(at), state.inner[at]
    threads = max((one.threads for one in seen), default=stage.replicas or 1)
    each = _replicas(threads) if threads else "fused with the stage before"
    count = sum(one.count for one in seen)
    mean = sum(one.total for one in seen) / count if count else None
    seconds = state.inner_timed()[at].seconds or None
    return Choice(stage.name, _operator(stage), each, seconds, mean)


def _replicas(count: int) -> str:
    return f"{count} thread{'s' * (count > 1)}"


def _operator(stage: Stage) -> str:
    if stage.size is None:
        return "one feed at a time"
    return "all feeds of a request" if stage.size == BARRIER else f"{stage.size} feeds"
