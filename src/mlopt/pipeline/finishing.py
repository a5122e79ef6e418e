"""A plan is run, and its models put into the user's steps as scikit-learn does it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dask.task_spec import Task, TaskRef

from mlopt.cluster import Executor, alone, single_threaded
from mlopt.hearing import unheard
from mlopt.identity import class_of, is_known
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.environment import Environment
from mlopt.pipeline.graph.operators import Given, Join, Learn, Operator, Outcome
from mlopt.pipeline.graph.schedule import members
from mlopt.pipeline.graph.walking import walk
from mlopt.pipeline.planning.making import SMALL, Planned
from mlopt.pipeline.profiling.sampling import take_sample
from mlopt.pipeline.profiling.trial import Trial
from mlopt.pipeline.rules.base import Draft
from mlopt.pipeline.running.execute import Execution
from mlopt.pipeline.running.layers import Layers
from mlopt.pipeline.steps.assemble import Assembly
from mlopt.pipeline.steps.copies import private_copy
from mlopt.pipeline.steps.generators import generators_as_they_were, remembered
from mlopt.pipeline.tasks.functions import Unforeseen

_FEW = 64
"""Rows, as a rule, from which names and numbers of columns are learnt."""
_NEAR = 4.0
"""A density within this factor of the threshold is counted over all rows."""


def carry_out(
    plan: Callable[[Mapping[str, str]], Planned],
    steps: Iterable[tuple[str, Any]],
    executor: Executor,
    environment: Environment,
) -> tuple[Planned, Execution, list[Any], list[str]]:
    """Run a plan, and put what was learnt into the steps.

    What a sample told of unions is seen by all rows; where that was wrong, all is planned
    anew.

    Parameters
    ----------
    plan : callable
        Plans, given what unions are, dense or sparse, by their paths.
    steps : iterable of (str, estimator)
    executor : Executor
    environment : Environment

    Returns
    -------
    planned : Planned
    run : Execution
    rows : list of blocks
        That are wanted.
    notes : list of str
        What there is to say of it.
    """
    steps = list(steps)
    known, notes = dict[str, str](), list[str]()
    draw_again = remembered(step for _, step in steps)
    while True:
        planned = plan(known)
        run = Execution(planned.draft, planned.sources, executor, environment)
        try:
            rows = [executor.result(handle) for handle in run.run()]
            _learn_missing(planned, run)
            # Before they have learnt: a warm start goes on from what a step has.
            if not (wrong := misjudged(planned, run)).keys() - known.keys():
                put_back(steps, planned, run)
        except Exception as error:
            # A step that refuses sparse rows may never be given any.
            wrong = _misjudged_at_last(planned, run)
            if wrong.keys() <= known.keys():
                if isinstance(error, Unforeseen):  # the caller fits them all again
                    draw_again()
                raise
        if wrong.keys() <= known.keys():
            return planned, run, rows, notes
        known |= wrong
        draw_again()
        notes += [
            f"`{path}` is {layout} by all rows and was not by a sample: fitted again"
            for path, layout in wrong.items()
        ]


def _misjudged_at_last(planned: Planned, run: Execution) -> dict[str, str]:
    """As `misjudged`, of a run that failed: as far as models were fitted before."""
    try:
        return misjudged(planned, run)
    except Exception:  # whatever is missing: the first error is the one to raise
        return {}


def put_back(steps: Iterable[tuple[str, Any]], planned: Planned, run: Execution) -> None:
    """Put what was learnt into the steps, as scikit-learn's `fit` does."""
    _learn_missing(planned, run)
    built = planned.built
    fitted = _Fitted(planned, run)
    models = {
        path: fitted.given(path, op) if isinstance(op, Given) else run.models[op.token]
        for path, op in built.models.items()
    }
    assembly = Assembly(
        models,
        lambda path: fitted.value(built.inputs[path]),
        fitted.sparse,
        built.chosen,
    )
    # On a few rows threads would only wait for each other.
    draft = planned.draft
    here = alone(briefly=draft.brief) if draft.at_once else single_threaded()
    with here, generators_as_they_were():
        for name, step in steps:
            assembly.put_back(name, step)


def misjudged(planned: Planned, run: Execution) -> dict[str, str]:
    """Unions whose blocks are made dense, as a sample has it, and sparse of all rows, or
    the other way.

    Values are the same, but not what later steps do with them: some refuse sparse rows, and
    of those that are not declared nobody knows.

    Returns
    -------
    dict of path to {"dense", "sparse"}
        What they are to be.
    """
    fitted, made = _Fitted(planned, run), _layouts(planned.draft)
    wrong: dict[str, str] = {}
    for path, join in planned.built.joins.items():
        if not isinstance(join, Join) or join.token not in made:
            continue
        found = run.density(join)
        sparse = fitted.sparse(path) if found is None else found < join.sparse_below
        layout = "sparse" if sparse else "dense"
        if sparse is not None and made[join.token] != layout:
            wrong[path] = layout
    return wrong


def _layouts(draft: Draft) -> dict[str, str]:
    """Of unions that a sample was asked about, what their blocks are made, by token."""
    ops = (op for whole in walk(draft.sinks) for op in members(whole))
    joins = (op for op in ops if isinstance(op, Join) and op.layout != "auto")
    return {op.token: op.layout for op in joins}


def _learn_missing(planned: Planned, run: Execution) -> None:
    """Fit the steps that a model learnt before had no need of: they are the user's too."""
    wanted = {op.token: op for op in planned.built.models.values() if isinstance(op, Learn)}
    missing = {t: op for t, op in wanted.items() if t not in run.models}
    if not missing:
        return
    planned_ops = {op.token: op for op in walk(planned.draft.sinks)}
    sinks = tuple(planned_ops.get(token, op) for token, op in missing.items())
    more = Execution(
        Draft(sinks), planned.sources, run.executor, run.environment, _clock=run._clock
    )
    more.run()
    run.seconds.update(more.seconds)
    run.models.update(more.models)
    run._handles.update(more._handles)


def _looks_at_all(op: Operator) -> bool:
    """Whether what columns come out may depend on all rows that go in."""
    learn = op.learn if isinstance(op, Outcome) else None
    unknown = isinstance(learn, Learn) and not is_known(class_of(learn.estimator))
    return unknown or getattr(op, "scope", "") == "all"


class _Fitted:
    """Some rows taken through the fitted models; taken when they are first needed."""

    def __init__(self, planned: Planned, run: Execution) -> None:
        self.planned, self.run = planned, run
        first = next(iter(planned.sources.values()))
        self.whole = first.count == 1 and sum(first.lengths or ()) <= SMALL
        self._trial: Trial | None = None

    def value(self, op: Operator) -> Any:
        """What an operator gives on these rows."""
        if self._trial is None:
            size = SMALL if self.whole else self._rows()
            sources = self.planned.sources
            sample = take_sample(sources, self.run.executor, size, everywhere=size != _FEW)
            self._trial = Trial(sample, values=dict(self.run.models), repeats=1)
        with unheard():  # all rows have warned before
            for node in walk([op], stop=lambda n: n.token in self._values):
                if isinstance(node, Outcome) and node.token not in self._values:
                    model = self.run.models[node.learn.token]
                    looked = private_copy(model, apart=True)
                    self._values[node.token] = looked.transform(self._values[node.x.token])
                else:
                    self._trial.value(node)
        return self._values[op.token]

    def _rows(self) -> int:
        """A few; all where a step looks at all: of a few it may make other columns.

        They were gathered in this process before, unless workers did it.
        """
        looks = any(map(_looks_at_all, walk(self._ops())))
        if not looks or getattr(self.run.executor, "client", None) is not None:
            return _FEW
        sizes = next(iter(self.planned.sources.values())).lengths or (_FEW,)
        return sum(sizes)

    def _ops(self) -> tuple[Operator, ...]:
        built = self.planned.built
        return (*built.models.values(), *built.inputs.values(), *built.joins.values())

    @property
    def _values(self) -> dict[str, Any]:
        assert self._trial is not None
        return self._trial.values

    def given(self, path: str, op: Given) -> Any:
        """A model that was there before the run; of a stateless step, one that knows the
        columns of all rows, which may be more than those of the sample."""
        x = self.planned.built.inputs.get(path)
        if x is None:
            return op.model
        with single_threaded():
            return private_copy(op.model).fit(self.value(x))

    def sparse(self, path: str, some: bool = False) -> bool | None:
        """Whether a `ColumnTransformer` gives sparse rows, by the density of all.

        That ``some`` part gives them may be known; else a sample tells.
        """
        join = self.planned.built.joins.get(path)
        if self.whole or not isinstance(join, Join):
            return None
        below, found = join.sparse_below, self.run.density(join)
        if some and found is not None:
            return found < below
        parts = [self.value(part) for part in join.parts]
        if not any(map(tables.is_sparse, parts)):
            return False
        if found is not None:
            return found < below
        stored, size = tables.count_entries(*parts)
        near = stored / max(1, size)
        if near * _NEAR < below or near > below * _NEAR or _has_outcome(join):
            return near < below
        return self._counted(join) < below

    def _counted(self, join: Join) -> float:
        """The density over all rows: one more pass over the parts."""
        layers = Layers(self.planned.sources, {}, self.run._handles)
        columns = [layers.rows(part) for part in join.parts]
        graph: dict[Any, Any] = dict(layers.graph())
        keys = [(f"density-{join.token}", i) for i in range(len(columns[0]))]
        for key, blocks in zip(keys, zip(*columns, strict=True), strict=True):
            graph[key] = Task(key, tables.count_entries, *map(TaskRef, blocks))
        executor: Executor = self.run.executor
        with self.run.watching():
            handles = executor.run_graph(*layers.submitted(graph, keys))
            counts = [executor.result(handle) for handle in handles]
        stored, size = (sum(column) for column in zip(*counts, strict=True))
        return float(stored / max(1, size))


def _has_outcome(op: Operator) -> bool:
    return any(isinstance(node, Outcome) for node in walk([op]))
