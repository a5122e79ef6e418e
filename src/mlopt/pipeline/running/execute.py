"""Runs a planned graph: models in the order of the schedule, rows kept as planned."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from dask.task_spec import Task, TaskRef

from mlopt.cluster import Executor, alone, calls_of
from mlopt.errors import InputError
from mlopt.kernels.compiling import worked
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.blocks.cut import Blocks
from mlopt.pipeline.blocks.tables import stack
from mlopt.pipeline.environment import Environment, repeatable
from mlopt.pipeline.fits.base import ManyPasses
from mlopt.pipeline.fits.telling import listening
from mlopt.pipeline.graph.operators import Join, Learn, Operator, Outcome
from mlopt.pipeline.graph.schedule import Job, below, must_stay, schedule, takes_memory
from mlopt.pipeline.graph.walking import walk
from mlopt.pipeline.rules.base import Draft
from mlopt.pipeline.running.keeping import Shelf
from mlopt.pipeline.running.layers import Layers
from mlopt.pipeline.running.rows_of import rows_of
from mlopt.pipeline.tasks.functions import naming
from mlopt.pipeline.tasks.timing import Clock, watching
from mlopt.plan import format_bytes


@dataclass
class Execution:
    """One run of a draft.

    Attributes
    ----------
    sources : mapping of token to Blocks
    environment : Environment
        Where models, and rows if it has room for them, are looked up and left.
    models : dict of token to fitted model
    seconds : dict of token to float
        What fits of many passes took, less what re-made the rows that they read.
    shelf : Shelf
        The rows that are kept, and what happened to them.
    reused : list of token
        Rows that an earlier run left.
    told : dict of token to list of str
        What fits of many passes have to say of how they went.
    """

    draft: Draft
    sources: Mapping[str, Blocks]
    executor: Executor
    environment: Environment
    models: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    shelf: Shelf = field(init=False)
    reused: list[str] = field(default_factory=list)
    told: dict[str, list[str]] = field(default_factory=dict)
    _held: dict[str, list[Any]] = field(default_factory=dict)
    _handles: dict[str, Any] = field(default_factory=dict)
    _same: set[str] = field(default_factory=set)
    _clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        modest = self.draft.partly[0] if self.draft.partly else ""
        self.shelf = Shelf(self.draft.budget, self.executor, modest)

    def run(self) -> list[Any]:
        """Learn every model; returns the handles of the blocks of rows that are wanted."""
        # What nobody planned is run as scikit-learn runs it: by who waits for it.
        here = alone(briefly=self.draft.brief) if self.draft.at_once else nullcontext()
        with here, self.watching():
            return self._run()

    def watching(self) -> AbstractContextManager[None]:
        """What operators do within the block counts for this run."""
        return watching(self._clock, self.executor)

    def took(self, op: Operator) -> float | None:
        """Seconds of the run that an operator took, measured where it was at work."""
        self._clock.share()
        return self.seconds.get(op.token, self._clock.seconds.get(op.token))

    def ran(self, op: Operator) -> float:
        """How often an operator ran: fitted its model, or made all of its rows."""
        done = self._clock.done.get(op.token, 0)
        rows = sum(next(iter(self.sources.values())).lengths or ())
        return done / rows if op.gives_rows and rows else float(done)

    def density(self, join: Join) -> float | None:
        """Share of stored entries in the parts of all rows; None where not all of them
        were put side by side, or some more often than others."""
        ran = self.ran(join)
        if not ran or not ran.is_integer():
            return None
        return self._clock.stored[join.token] / max(1, self._clock.entries[join.token])

    def _run(self) -> list[Any]:
        self._recall()
        draft = self.draft
        jobs = schedule(draft.sinks, lambda _: 1.0, self.models, at_once=draft.at_once)
        wanted: list[Any] = []
        try:
            for number, job in enumerate(jobs):
                wanted = self._do(job)
                self._release(jobs[number + 1 :])
        finally:
            for token in [*self._held, *self.shelf.tokens()]:
                self._drop(token, wanted)
        return wanted

    def _recall(self) -> None:
        """Take the models and the rows that are there from before."""
        self._same = repeatable(self.draft.sinks)
        for op in walk(self.draft.sinks):
            if op.token not in self._same:
                continue
            known = isinstance(op, Learn) and not op.transforms
            if known and (model := self.environment.get(op.token)) is not None:
                self._learnt(op.token, model)
            if self._reuses(op) and (blocks := self.environment.get_rows(op.token)):
                if any(op is sink for sink in self.draft.sinks):  # the user's from now on
                    blocks = [tables.copied(block) for block in blocks]
                self._held[op.token] = [self.executor.put(block) for block in blocks]
                self.reused.append(op.token)

    def _reuses(self, op: Operator) -> bool:
        """Whether the operator's rows may be taken from another run, and left for one."""
        return self.shelf.here and op.token in self.draft.kept and takes_memory(op)

    @property
    def _count(self) -> int:
        """How many blocks rows have."""
        return next(iter(self.sources.values())).count

    def _do(self, job: Job) -> list[Any]:
        first = job.ends[0]
        if isinstance(first, Learn) and isinstance(first.way, ManyPasses):
            self._many_passes(first, first.way)
            return []
        layers = self._layers()
        learns = [op for op in job.ends if not op.gives_rows]
        outcomes, wanted = self._outcomes(learns), job.ends[len(learns) :]
        keys = [layers.model(op) for op in learns]
        groups = [keys, *(layers.rows(op) for op in (*outcomes, *wanted))]
        by_itself = layers.whole(first) if len(learns) == 1 else None
        handles = self._compute(layers, groups, job.reads, by_itself)
        for op, handle in zip(learns, handles, strict=False):
            self._learnt(op.token, self.executor.result(handle), handle)
            self._remember(op.token)
        self._stay(outcomes, layers, handles[len(keys) :])
        return handles[sum(map(len, groups[: 1 + len(outcomes)])) :]

    def _outcomes(self, ends: Sequence[Operator]) -> list[Operator]:
        """What `fit_transform` of these returned and somebody reads."""
        tokens = {op.token for op in ends}
        ops = walk(self.draft.sinks)
        return [op for op in ops if isinstance(op, Outcome) and op.learn.token in tokens]

    def _layers(self) -> Layers:
        return Layers(self.sources, self._held, self._handles)

    def _compute(
        self,
        layers: Layers,
        groups: Sequence[list[Any]],
        reads: Sequence[Operator],
        by_itself: Any = None,
    ) -> list[Any]:
        """Handles of all keys; rows to keep that are made on the way are held."""
        stay = [op for op in below(reads, self._held) if self._stays(op)]
        keys = [key for group in groups for key in group]
        stay_keys = [key for op in stay for key in layers.rows(op)]
        graph = self._woven(layers, reads)
        missing = self._missing(layers, reads)
        if self.shelf.here:
            marks = [("kept", key) for _, _, key in missing]
            graph |= {mark: Task(mark, _nothing, TaskRef(mark[1])) for mark in marks}
        else:
            marks = [key for _, _, key in missing]
        if not (wanted := [*keys, *stay_keys, *marks]):
            return []
        submitted = layers.submitted(graph, wanted)
        by_itself = layers.renamed.get(by_itself, by_itself)
        handles = self.executor.run_graph(*submitted, by_itself)
        rest = handles[len(keys) :]
        self._stay(stay, layers, rest[: len(stay_keys)])
        if not self.shelf.here:
            self._shelve(missing, rest[len(stay_keys) :])
        return handles[: len(keys)]

    def _woven(
        self, layers: Layers, reads: Sequence[Operator], *, again: bool = False
    ) -> dict[Any, Any]:
        """The graph, with what is kept in the place of what would make it."""
        kept = self._kept(reads)
        keys = [layers.rows(op) for op in kept]
        graph = dict(layers.graph())
        for op, blocks in zip(kept, keys, strict=True):
            self.shelf.weave(graph, op.token, blocks, again=again)
        return graph

    def _kept(self, reads: Sequence[Operator]) -> list[Operator]:
        """Rows that are to be kept, or are, among those below ``reads``."""
        return [
            op
            for op in below(reads, self._held)
            if op.token in self.draft.kept
            and not (op.token in self._held or must_stay(op))
            and takes_memory(op)
        ]

    def _missing(
        self, layers: Layers, reads: Sequence[Operator]
    ) -> list[tuple[str, int, Any]]:
        """Token, number and key of the blocks that this job makes and that are to stay."""
        whole = {op.token for op in self._kept(reads) if self._is_whole(op, layers)}
        return [
            (op.token, number, key)
            for op in self._kept(reads)
            if op.token in {one.token for one in below(reads, {*self._held, *whole})}
            for number, key in enumerate(layers.rows(op))
            if number not in self.shelf.held(op.token)
        ]

    def _is_whole(self, op: Operator, layers: Layers) -> bool:
        return len(self.shelf.held(op.token)) == len(layers.rows(op))

    def _shelve(
        self, blocks: Sequence[tuple[str, int, Any]], handles: Sequence[Any]
    ) -> None:
        """Hold handles of blocks on workers, by what they take there."""
        sizes = self.executor.map(tables.count_bytes, handles)
        for (token, number, _), handle, size in zip(blocks, handles, sizes, strict=True):
            self.shelf.keep(token, number, handle, size)

    def _stays(self, op: Operator) -> bool:
        return must_stay(op) and not isinstance(op, Outcome) and op.token not in self._held

    def _stay(self, ops: Sequence[Operator], layers: Layers, handles: list[Any]) -> None:
        """Hold rows that are kept in any case.

        Raises
        ------
        InputError
            When they take more than may be kept.
        """
        for op in ops:
            count = len(layers.rows(op))
            self._held[op.token], handles = handles[:count], handles[count:]
            size = sum(self.executor.map(tables.count_bytes, self._held[op.token]))
            if not self.shelf.reserve(size):
                raise InputError(
                    f"Rows of `{op.step}` may not be the same a second time, or are pinned "
                    f"by a `Cacher`, so they must be kept, and take {format_bytes(size)}, "
                    "more than `memory_budget` leaves. It is "
                    f"{format_bytes(self.draft.budget)} in all. Give more, or declare the "
                    "step with `mlopt.register`."
                )

    def _many_passes(self, op: Learn, way: ManyPasses) -> None:
        y, weight = (self._gathered(i) for i in (op.y, op.weight))
        self._compute(self._layers(), [], [op.x])
        layers = self._layers()
        keys, graph = layers.rows(op.x), self._woven(layers, [op.x], again=True)
        kept = op.x.token in self._held or self._is_whole(op.x, layers)
        self._clock.share()
        begin = time.perf_counter()
        with naming(op.step), calls_of(layers.named(op), op.step), listening() as told:
            rows = rows_of(graph, keys, self.executor, kept=kept, flat=way.flattens)
            model = way.fit(op.estimator, rows, y, weight)
        self.told[op.token] = told
        if rows.names is not None:
            model.feature_names_in_ = np.asarray(rows.names, dtype=object)
        # What re-makes the rows in its passes counts for the steps before.
        below = self._clock.split(self.executor.threads)
        self.seconds[op.token] = max(0.0, worked(begin) - below)
        self._clock.done[op.token] += 1
        self._learnt(op.token, model)
        self._remember(op.token)

    def _gathered(self, op: Operator | None) -> Any:
        """Targets or weights of all rows, here."""
        if op is None:
            return None
        layers = self._layers()
        handles = self._compute(layers, [layers.rows(op)], [op])
        return stack([self.executor.result(handle) for handle in handles], op.step)

    def _learnt(self, token: str, model: Any, handle: Any = None) -> None:
        self.models[token] = model
        self._handles[token] = self.executor.put(model) if handle is None else handle

    def _remember(self, token: str) -> None:
        """Leave a model to later runs."""
        if token in self._same:
            self.environment.put(token, self.models[token])

    def _release(self, jobs: Sequence[Job]) -> None:
        """Let go of rows that no later job reads."""
        layers = self._layers()
        kept = self._kept([op for job in jobs for op in job.reads])
        whole = {op.token for op in kept if self._is_whole(op, layers)}
        there = {*self._held, *whole}
        needed = {op.token for job in jobs for op in below(job.reads, there)}
        # What cannot be made again outlives what is made of it: that may be forgotten.
        under = {op.token for job in jobs for op in below(job.reads, self._held)}
        needed |= under & self._held.keys()
        for token in {*self._held, *self.shelf.tokens()} - needed:
            self._drop(token, ())

    def _drop(self, token: str, wanted: Sequence[Any]) -> None:
        blocks = self.shelf.blocks(token) if self.environment.takes_rows else []
        if token in self._same and blocks and len(blocks) == self._count:
            # The user has rows that are wanted, or given and only passed on.
            self.environment.put_rows(token, [tables.copied(one) for one in blocks])
        self.shelf.drop(token)
        for handle in self._held.pop(token, ()):
            if not any(handle is one for one in wanted):
                self.executor.release(handle)


def _nothing(block: Any) -> None:
    """That the block was made."""
    del block
