"""From a pipeline and data to a plan: build, sample, profile, rewrite."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import dask

from mlopt.cluster import Executor, Threads
from mlopt.errors import InputError
from mlopt.pipeline.blocks import Blocks, cut, is_dask
from mlopt.pipeline.build import Builder
from mlopt.pipeline.environment import Environment, repeatable
from mlopt.pipeline.fits.registry import ways_of
from mlopt.pipeline.graph import Sinks, rebuild, walk
from mlopt.pipeline.operators import Learn, Operator, Source
from mlopt.pipeline.optimizer import Applied, optimize
from mlopt.pipeline.profile import Profile, profile
from mlopt.pipeline.rules.base import Context, Draft
from mlopt.pipeline.sampling import take_sample
from mlopt.pipeline.schedule import takes_memory
from mlopt.pipeline.settling import settle
from mlopt.pipeline.tables import count_rows
from mlopt.pipeline.trial import Trial
from mlopt.resources import Resources

SMALL = 4096
"""Rows up to which a pipeline in memory runs as one block, without a profile."""
SAMPLES = (512, 1024)
"""Rows of two samples of the profile (KeystoneML, V-D)."""
SHARE, LARGEST = 40, 8192
"""A third takes this share of all rows, and so many at most."""


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
    """

    steps: tuple[tuple[str, Any], ...]
    X: Any
    y: Any = None
    weight: Any = None
    params: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    learns_last: bool = True


@dataclass(frozen=True, eq=False)
class Planned:
    """A plan that can run.

    Attributes
    ----------
    built : Builder
        Which model belongs to which step, and how columns are split.
    seconds : float
        What planning took.
    """

    draft: Draft
    built: Builder
    sources: Mapping[str, Blocks]
    profile: Profile | None
    log: tuple[Applied, ...]
    context: Context
    seconds: float


def make_plan(
    problem: Problem,
    executor: Executor,
    resources: Callable[[], Resources],
    environment: Environment,
    *,
    budget: Callable[[], int],
    without: frozenset[str],
) -> Planned:
    """Plan a fit; fits nothing but samples."""
    begin = time.perf_counter()
    X, y, weight, sources = _bind(problem, executor)
    trial = _Samples(sources, executor)
    built = Builder(y, trial.example, weight, problem.params)
    sinks = _build(problem, built, X)
    found = None
    if not trial.small:
        sinks = settle(sinks, trial.large)
        sinks = _first_ways(sinks)
        built.models.update(_renewed(built.models, sinks))
        found = profile(sinks, trial.all, _count(sources), resources())
    else:
        sinks = _as_scikit_learn(sinks)
    draft = Draft(sinks)
    same = repeatable(sinks)
    ops = [op for op in walk(sinks) if op.token in same]
    known = frozenset(
        op.token for op in ops if isinstance(op, Learn) and op.token in environment
    )
    there = frozenset(
        op.token
        for op in ops
        if isinstance(executor, Threads)
        and takes_memory(op)
        and environment.has_rows(op.token)
    )
    keep = str(dask.config.get("mlopt.keep", "best"))
    context = Context(found, budget(), known, _passes(found), there, keep)
    draft, log = optimize(draft, context, without=without)
    took = time.perf_counter() - begin
    return Planned(draft, built, sources, found, log, context, took)


def _bind(
    problem: Problem, executor: Executor
) -> tuple[Operator, Operator | None, Operator | None, dict[str, Blocks]]:
    """Sources for the data, with what is behind them."""
    small = not is_dask(problem.X) and count_rows_or_zero(problem.X) <= SMALL
    lengths = [count_rows_or_zero(problem.X)] if small else None
    blocks = cut(problem.X, executor, lengths=lengths)
    y = None if problem.y is None else _beside(problem.y, "y", blocks, executor)
    weight = problem.weight
    weights = None if weight is None else _beside(weight, "sample_weight", blocks, executor)
    sources: dict[str, Blocks] = {}
    ops: list[Operator | None] = []
    for name, one in (("X", blocks), ("y", y), ("sample_weight", weights)):
        if one is None:
            ops.append(None)
            continue
        op = Source(name, one.token, lazy=one.lazy)
        sources[op.token] = one
        ops.append(op)
    X = ops[0]
    assert X is not None
    return X, ops[1], ops[2], sources


def _beside(data: Any, name: str, blocks: Blocks, executor: Executor) -> Blocks:
    """Targets or weights in blocks that go with those of X."""
    if is_dask(data):
        found = cut(data, executor, name=name)
        if found.count != blocks.count:
            raise InputError(
                f"X and `{name}` must be cut into the same blocks, got {blocks.count} and "
                f"{found.count}: rechunk or repartition one of them."
            )
        return found
    lengths = blocks.lengths
    if lengths is None:
        lengths = tuple(_counted(blocks, executor))
    return cut(data, executor, name=name, lengths=lengths)


def _counted(blocks: Blocks, executor: Executor) -> list[int]:
    from dask.task_spec import Task, TaskRef

    graph, keys = dict(blocks.tasks), []
    for number, key in enumerate(blocks.keys):
        counted = (f"rows-{blocks.token}", number)
        graph[counted] = Task(counted, count_rows, TaskRef(key))
        keys.append(counted)
    return [executor.result(handle) for handle in executor.run_graph(graph, keys)]


def count_rows_or_zero(data: Any) -> int:
    """Rows of what has rows; 0 for what has none."""
    try:
        return count_rows(data)
    except TypeError:
        return 0


def _build(problem: Problem, built: Builder, X: Operator) -> Sinks:
    rows = X
    last = problem.steps[-1][0] if problem.learns_last else None
    for name, step in problem.steps:
        if name == last:
            return (built.last(name, step, rows),)
        rows = built.transformed(name, step, rows)
    return (rows,)


class _Samples:
    """Trials on two samples of the sources, taken when they are first needed."""

    def __init__(self, sources: Mapping[str, Blocks], executor: Executor) -> None:
        self.sources, self.executor = sources, executor
        self.small = next(iter(sources.values())).count == 1
        self._trials: tuple[Trial, ...] = ()

    @property
    def all(self) -> tuple[Trial, ...]:
        """By size; the largest sample is drawn once, the others are some of its rows."""
        if not self._trials:
            rows = take_sample(self.sources, self.executor, self._largest())
            smaller = [rows.part(size) for size in SAMPLES if size < rows.size]
            self._trials = (*map(Trial, smaller), Trial(rows))
        return self._trials

    @property
    def large(self) -> Trial:
        return self.all[-1]

    def _largest(self) -> int:
        """Where rows are many, a third sample: what is short is told from noise by it."""
        lengths = next(iter(self.sources.values())).lengths
        share = sum(lengths) // SHARE if lengths else 0
        return max(SAMPLES[-1], min(share, LARGEST))

    def example(self, op: Operator) -> Any:
        """Some rows of an operator's value."""
        return self.large.value(op)


def _first_ways(sinks: Sinks) -> Sinks:
    """Every model by the first way of the table, as when no rule chooses."""

    def first(op: Operator) -> Operator:
        if isinstance(op, Learn) and not op.params and not op.transforms:
            ways = ways_of(op.estimator)
            return replace(op, way=ways[0]) if ways else op
        return op

    return rebuild(sinks, first)


def _as_scikit_learn(sinks: Sinks) -> Sinks:
    """Small data: one block, as scikit-learn would do it."""
    return rebuild(sinks, lambda op: op)


def _renewed(models: Mapping[str, Operator], sinks: Sinks) -> dict[str, Operator]:
    """The operators behind the models, as they are in the rewritten graph."""
    by_token = {op.token: op for op in walk(sinks)}
    return {path: by_token.get(op.token, op) for path, op in models.items()}


def _count(sources: Mapping[str, Blocks]) -> int:
    return next(iter(sources.values())).count


def _passes(found: Profile | None) -> Callable[[Learn], float]:
    def passes(op: Learn) -> float:
        if found is None or op.way is None:
            return 1.0
        for option in found.options.get(op.token, ()):
            if option.way is op.way:
                return option.passes
        return 1.0

    return passes
