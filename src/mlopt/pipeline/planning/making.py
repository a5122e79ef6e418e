"""From a pipeline and data to a plan: build, sample, profile, rewrite."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mlopt.cluster import Executor, Threads
from mlopt.errors import InputError
from mlopt.hearing import unheard
from mlopt.kernels import compiling
from mlopt.options import one_of, plans_always
from mlopt.pipeline.blocks.cut import (
    Blocks,
    check_same_rows,
    cut,
    cut_anew,
    lengths_of,
    same_rows,
    usable,
)
from mlopt.pipeline.blocks.tables import count_rows, have_order, is_sparse
from mlopt.pipeline.environment import Environment, repeatable
from mlopt.pipeline.fits.registry import ways_of
from mlopt.pipeline.graph.operators import Apply, Join, Learn, Operator, Source
from mlopt.pipeline.graph.schedule import in_turn, takes_memory
from mlopt.pipeline.graph.walking import Sinks, rebuild, walk
from mlopt.pipeline.planning.build import Builder
from mlopt.pipeline.planning.optimizer import FIRST, Applied, first_rules, optimize
from mlopt.pipeline.planning.worth import Worth, worth
from mlopt.pipeline.profiling.profile import Profile, profile
from mlopt.pipeline.profiling.samples import Samples
from mlopt.pipeline.profiling.shapes import stats_of_fit
from mlopt.pipeline.profiling.trial import Trial
from mlopt.pipeline.rules.base import Context, Draft
from mlopt.pipeline.rules.choose_ways import choose_ways
from mlopt.pipeline.rules.keep_results import KEEPERS
from mlopt.pipeline.steps.generators import generators_as_they_were
from mlopt.pipeline.tasks.functions import TooLarge, Unforeseen
from mlopt.plan import format_bytes
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.rows.source import is_dask

SMALL, TINY = 4096, 1000
"""Rows up to which a pipeline in memory runs as one block; and as scikit-learn runs it, of
whatever steps."""
BRIEF = price("fit.brief")


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be planned.

    Attributes
    ----------
    steps : tuple of (str, estimator)
    y, weight : data or None
    params : mapping of step to mapping
        Further arguments of ``fit``.
    learns_last : bool
        Whether the last step is a model of its own and not a transformer.
    layouts : mapping of path to {"dense", "sparse"}
        What unions are, where all rows have told.
    """

    steps: tuple[tuple[str, Any], ...]
    X: Any
    y: Any = None
    weight: Any = None
    params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    learns_last: bool = True
    layouts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Planned:
    """A plan that can run.

    Attributes
    ----------
    built : Builder
        Which model belongs to which step, and how columns are split.
    seconds : float
        What planning took.
    once : float
        Of these, seconds in which kernels compiled or were read: the next has none.
    plainly : str
        Why no way was looked for: all rows are one block, and scikit-learn's way is taken.
    foreseen : float or None
        Seconds of such a fit, about, where that is known.
    """

    draft: Draft
    built: Builder
    sources: Mapping[str, Blocks]
    profile: Profile | None
    log: tuple[Applied, ...]
    context: Context
    seconds: float
    plainly: str = ""
    foreseen: float | None = None
    once: float = 0.0


def make_plan(
    problem: Problem,
    executor: Executor,
    resources: Callable[[], Resources],
    environment: Environment,
    *,
    budget: Callable[[], int],
    without: frozenset[str],
    priced: bool = False,
) -> Planned:
    """Plan a fit; fits nothing but samples.

    Where more is not worth finding out, all rows run as scikit-learn would run them. They
    are profiled all the same if the plan is to be ``priced``.
    """
    begin, room = time.perf_counter(), budget()
    if not is_dask(problem.X) and not is_dask(problem.y) and not have_order(problem.y):
        raise Unforeseen("y holds values of several types, which have no order.")
    here = isinstance(executor, Threads) and not environment.remembers
    known = _not_worth_it(problem, resources, room) if here and not without else None
    whole = known is not None
    given = here and (whole or _is_tiny(problem.X))
    X, y, weight, sources = bind(
        problem, executor, environment.remembers, whole, as_given=given
    )
    samples = Samples(sources, executor)
    tiny = samples.total <= TINY
    plainly = known.why if known else f"up to {TINY} rows" if tiny else ""
    priced = priced or not plainly
    chosen: dict[str, dict[str, Any]] = {}  # which may take long, and are asked once
    with generators_as_they_were(), unheard():
        sinks, built, found, first = samples.enough_for(
            lambda: _profiled(
                problem, samples, resources, (X, y, weight), room, priced, chosen, without
            )
        )
    draft = Draft(sinks)
    same = repeatable(sinks)
    ops = [op for op in walk(sinks) if op.token in same]
    learnt = frozenset(
        op.token for op in ops if isinstance(op, Learn) and op.token in environment
    )
    keeps = "keep_results" not in without
    keep = one_of("mlopt.keep", KEEPERS) if keeps else "nothing"
    there = frozenset(
        op.token
        for op in ops
        if isinstance(executor, Threads)
        and takes_memory(op)
        and environment.has_rows(op.token)
    )
    passes = (lambda _: 1.0) if found is None else found.passes
    at_once = bool(plainly) and here and samples.blocks == 1
    # What depends on chance is drawn in the order of the steps.
    drawn = any(op.token not in same for op in walk(sinks))
    at_once = at_once and (in_turn(sinks) or not drawn)
    found_out = None if plainly else found
    context = Context(found_out, room, learnt, passes, there, keep, at_once)
    draft, log = optimize(draft, context, without={*without, *FIRST})
    foreseen = known.plainly if known else None
    brief = foreseen is not None and foreseen <= BRIEF
    draft = replace(draft, brief=draft.at_once and brief)
    took = time.perf_counter() - begin
    return Planned(
        draft, built, sources, found, (*first, *log), context, took, plainly, foreseen,
        compiling.once(begin),
    )  # fmt: skip


def _not_worth_it(
    problem: Problem, resources: Callable[[], Resources], room: int
) -> Worth | None:
    """What planning and the fit take, where it cannot pay; None where it can, or nobody
    knows."""
    shape = getattr(problem.X, "shape", ())
    if plans_always() or is_dask(problem.X) or is_dask(problem.y) or not shape:
        return None
    if shape[0] <= TINY:  # as scikit-learn runs it, whatever it takes
        return None
    found = worth(problem.steps, problem.X, problem.y, problem.params, resources())
    return None if found is None or found.planned or found.bytes > room else found


def _profiled(
    problem: Problem,
    samples: Samples,
    resources: Callable[[], Resources],
    sources: tuple[Operator, Operator | None, Operator | None],
    room: float,
    priced: bool,
    chosen: dict[str, dict[str, Any]],
    without: frozenset[str],
) -> tuple[Sinks, Builder, Profile | None, tuple[Applied, ...]]:
    """The graph with everything that only data can tell; what it costs; the first rules."""
    X, y, weight = sources
    one = samples.blocks == 1

    def example(op: Operator) -> Any:
        found = _example(samples, op, without)
        return usable(found) if op is X else found  # it may be a list, as it was given

    def rows(op: Operator) -> Any:
        return usable(problem.X) if op is X and not is_dask(problem.X) else None

    built = Builder(y, example, weight, problem.params, whole=one, rows=rows, chosen=chosen)
    sinks, log = first_rules(_build(problem, built, X), without)
    built.models.update(_renewed(built.models, sinks))
    if not one:
        sinks = _settled(sinks, samples.large, problem.layouts)
        sinks = _first_ways(sinks, samples.large, samples.blocks)
        built.models.update(_renewed(built.models, sinks))
    if not priced:
        return sinks, built, None, log
    found = profile(sinks, samples.all, samples.blocks, resources(), room)
    _check_gathered(sinks, found)
    return sinks, built, found, log


def _check_gathered(sinks: Sinks, found: Profile) -> None:
    """Raise where rows that a step must have all at once are too many for one worker."""
    room = found.resources.memory / max(1, found.resources.workers)
    for op in walk(sinks):
        if isinstance(op, Apply) and op.scope == "all" and found.bytes(op.x) > room:
            raise TooLarge(
                f"Step `{op.step}` is not declared row-wise, so it must be given all rows "
                f"at once: {format_bytes(found.bytes(op.x))}, and one worker has "
                f"{format_bytes(room)}. Declare it with `mlopt.register(..., "
                "row_wise=True)` if each row is treated by itself, or give more memory."
            )


def _is_tiny(X: Any) -> bool:
    """Whether rows are as many as run as scikit-learn runs them."""
    counted = bool(getattr(X, "shape", ())) or isinstance(X, list | tuple)
    return not is_dask(X) and counted and count_rows(X) <= TINY


def bind(
    problem: Problem,
    executor: Executor,
    lasting: bool,
    whole: bool = False,
    *,
    as_given: bool = False,
) -> tuple[Operator, Operator | None, Operator | None, dict[str, Blocks]]:
    """Sources for the data, with what is behind them; rows in one block if ``whole``, and
    then in the user's own objects if ``as_given``."""
    data, small = problem.X, float("inf") if whole else SMALL
    blocks = cut(data, executor, lasting=lasting, small=small, as_given=as_given)
    # Chunks of unknown length may be empty, and most steps work on no empty block.
    sizes = blocks.lengths or lengths_of(blocks, executor)
    blocks = blocks.without(sizes)
    if not blocks.count:
        raise InputError("X must have at least one row: all of its chunks are empty.")
    sources: dict[str, Blocks] = {}
    ops: list[Operator | None] = []
    for name, given in (("X", data), ("y", problem.y), ("sample_weight", problem.weight)):
        if given is None:
            ops.append(None)
            continue
        one = blocks
        if name != "X":
            one = _beside(
                given, name, data, blocks, sizes, executor, lasting, as_given=as_given
            )
        op = Source(name, one.token, lazy=one.lazy)
        sources[op.token] = one
        ops.append(op)
    X = ops[0]
    assert X is not None
    return X, ops[1], ops[2], sources


def _beside(
    data: Any,
    name: str,
    X: Any,
    blocks: Blocks,
    sizes: Sequence[int],
    executor: Executor,
    lasting: bool,
    *,
    as_given: bool,
) -> Blocks:
    """Targets or weights in blocks that go with those of X, of which some were empty."""
    if is_dask(data):
        data = _in_rows_of(data, name, sizes)
        found = cut(data, executor, name=name, lasting=lasting)
        # Few columns of a Parquet file may be read in fewer parts.
        same = same_rows(X, data) and found.count == len(sizes)
        if found.lengths != tuple(sizes) and not same:
            found = cut_anew(found, name, sizes, executor)
        return found.without(sizes)
    return cut(
        data,
        executor,
        name=name,
        lengths=blocks.lengths,
        lasting=lasting,
        as_given=as_given,
    )


def _in_rows_of(data: Any, name: str, sizes: Sequence[int]) -> Any:
    """A Dask array in chunks of ``sizes`` rows, where it says how many rows it has.

    Raises
    ------
    InputError
        When it has not as many as X.
    """
    known = getattr(data, "chunks", None)
    if known is None or any(np.isnan(size) for size in (*known[0], *sizes)):
        return data
    check_same_rows(name, sum(sizes), sum(known[0]))
    return data.rechunk({0: tuple(sizes)})


def graph_behind(
    problem: Problem,
    sources: tuple[Operator, Operator | None, Operator | None],
    samples: Samples,
    resources: Callable[[], Resources],
    *,
    without: frozenset[str] = frozenset(),
) -> tuple[Sinks, Builder, Trial]:
    """The graph of transformers, each in the cheapest way that reads blocks of rows.

    And what a sample gives. Prices are asked for only where there is a choice, and some
    rule may choose: not ``without`` it.
    """

    def made() -> tuple[Sinks, Builder, Trial]:
        def example(op: Operator) -> Any:
            return _example(samples, op, without)

        built = Builder(sources[1], example, sources[2], problem.params)
        trial = samples.large
        sinks, _ = first_rules(_build(problem, built, sources[0]), without)
        sinks = _settled(sinks, trial, problem.layouts)
        sinks = _first_ways(sinks, trial, samples.blocks)
        learns = [op for op in walk(sinks) if isinstance(op, Learn)]
        choice = any(op.way and len(ways_of(op.estimator)) > 1 for op in learns)
        if choice and "choose_ways" not in without:
            found = profile(sinks, samples.all, samples.blocks, resources())
            context = Context(found, 0, passes=found.passes)
            first = {op.token: op for op in learns}

            def by_blocks(op: Operator) -> Operator:
                gathers = isinstance(op, Learn) and op.way is None
                return first[op.token] if gathers else op

            sinks = choose_ways(Draft(sinks), context).sinks
            sinks = rebuild(sinks, by_blocks)
        built.models.update(_renewed(built.models, sinks))
        return sinks, built, samples.large

    with generators_as_they_were(), unheard():
        return samples.enough_for(made)


def _example(samples: Samples, op: Operator, without: frozenset[str]) -> Any:
    """What an operator gives on some rows, by the graph that the first rules make."""
    (sink,), _ = first_rules((op,), without)
    return samples.example(sink)


def _settled(sinks: Sinks, trial: Trial, known: Mapping[str, str]) -> Sinks:
    """Unions come out dense or sparse as scikit-learn would have it, in every block.

    That is by the density of all rows where it is ``known``, by the path of a union, and
    else by that of a sample: whoever runs the plan must see whether that holds
    (`mlopt.pipeline.finishing.misjudged`).
    """

    def look(op: Operator) -> Operator:
        if not isinstance(op, Join) or op.layout != "auto":
            return op
        if op.step in known:
            return replace(op, layout=known[op.step])
        value = trial.value(op)
        if not any(is_sparse(trial.value(part)) for part in op.parts):
            return op
        return replace(op, layout="sparse" if is_sparse(value) else "dense")

    return rebuild(sinks, look)


def _build(problem: Problem, built: Builder, X: Operator) -> Sinks:
    rows = X
    last = problem.steps[-1][0] if problem.learns_last else None
    for name, step in problem.steps:
        if name == last:
            return built.last(name, step, rows)
        rows = built.transformed(name, step, rows)
    return (rows,)


def _first_ways(sinks: Sinks, trial: Trial, blocks: int) -> Sinks:
    """Every model by the first way of the table that solves the same problem, as when no
    rule chooses; by scikit-learn's own where none does."""

    def first(op: Operator) -> Operator:
        if not isinstance(op, Learn) or op.params or op.transforms:
            return op
        if not (ways := ways_of(op.estimator)):
            return op
        stats = stats_of_fit(op, trial, trial.sample.total, blocks)
        weighted = op.weight is not None
        fit = (w for w in ways if not w.refusal(op.estimator, stats, weighted=weighted))
        return replace(op, way=next(fit, None))

    return rebuild(sinks, first)


def _renewed(models: Mapping[str, Operator], sinks: Sinks) -> dict[str, Operator]:
    """The operators behind the models, as they are in the rewritten graph."""
    by_token = {op.token: op for op in walk(sinks)}
    return {path: by_token.get(op.token, op) for path, op in models.items()}
