"""Runs a planned graph: models in the order of the schedule, rows kept as planned."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mlopt.cluster import Executor
from mlopt.pipeline.blocks import Blocks
from mlopt.pipeline.environment import Environment
from mlopt.pipeline.fits.base import ManyPasses
from mlopt.pipeline.functions import naming
from mlopt.pipeline.graph import walk
from mlopt.pipeline.layers import Layers
from mlopt.pipeline.operators import Learn, Operator, Outcome
from mlopt.pipeline.rows_of import rows_of
from mlopt.pipeline.rules.base import Draft
from mlopt.pipeline.schedule import Job, schedule
from mlopt.pipeline.tables import stack
from mlopt.pipeline.timing import watching


@dataclass
class Execution:
    """One run of a draft.

    Attributes
    ----------
    sources : mapping of token to Blocks
    environment : Environment
        Where models are looked up and left.
    models : dict of token to fitted model
    seconds : dict of token to float
        What operators took: of one slot, where blocks are worked on beside each other. What
        happens on workers is not measured, but for fits of many passes.
    """

    draft: Draft
    sources: Mapping[str, Blocks]
    executor: Executor
    environment: Environment
    models: dict[str, Any] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    peak: int = 0
    _held: dict[str, list[Any]] = field(default_factory=dict)
    _handles: dict[str, Any] = field(default_factory=dict)

    def run(self) -> list[Any]:
        """Learn every model; returns the handles of the blocks of rows that are wanted."""
        with watching() as clock:
            wanted = self._run()
        # Beside each other on all slots; a fit of many passes was timed as a whole.
        for token, seconds in clock.seconds.items():
            self.seconds.setdefault(token, seconds / self.executor.threads)
        return wanted

    def _run(self) -> list[Any]:
        self._recall()
        jobs = schedule(self.draft.sinks, lambda _: 1.0, self.models)
        wanted: list[Any] = []
        try:
            for number, job in enumerate(jobs):
                wanted = self._do(job)
                self._release(jobs[number + 1 :])
        finally:
            for token in list(self._held):
                self._drop(token, wanted)
        return wanted

    def _recall(self) -> None:
        """Take the models that were learnt before."""
        for op in walk(self.draft.sinks):
            known = isinstance(op, Learn) and op.seeded and not op.transforms
            if known and (model := self.environment.get(op.token)) is not None:
                self._learnt(op.token, model)

    def _do(self, job: Job) -> list[Any]:
        first = job.ends[0]
        if isinstance(first, Learn) and isinstance(first.way, ManyPasses):
            self._many_passes(first, first.way)
            return []
        layers = Layers(self.sources, self._held, self._handles)
        if first.gives_rows:
            return self._compute(layers, [layers.rows(op) for op in job.ends], job)
        outcomes = self._outcomes(job.ends)
        keys = [layers.model(op) for op in job.ends]
        handles = self._compute(layers, [keys, *(layers.rows(op) for op in outcomes)], job)
        for op, handle in zip(job.ends, handles, strict=False):
            self._learnt(op.token, self.executor.result(handle), handle)
            if isinstance(op, Learn) and op.seeded:
                self.environment.put(op.token, self.models[op.token])
        rest = handles[len(keys) :]
        for op in outcomes:
            count = len(layers.rows(op))
            self._held[op.token], rest = rest[:count], rest[count:]
        return []

    def _outcomes(self, ends: Sequence[Operator]) -> list[Operator]:
        """What `fit_transform` of these returned and somebody reads."""
        tokens = {op.token for op in ends}
        ops = walk(self.draft.sinks)
        return [op for op in ops if isinstance(op, Outcome) and op.learn.token in tokens]

    def _compute(self, layers: Layers, groups: Sequence[list[Any]], job: Job) -> list[Any]:
        """Handles of all keys; rows to keep that are made on the way are held."""
        kept = self._to_keep(job)
        kept_keys = [layers.rows(op) for op in kept]
        keys = [key for group in [*groups, *kept_keys] for key in group]
        if not keys:
            return []
        handles = self.executor.run_graph(layers.merged(keys), keys)
        count = sum(map(len, groups))
        rest = handles[count:]
        for op, part in zip(kept, kept_keys, strict=True):
            self._held[op.token], rest = rest[: len(part)], rest[len(part) :]
        return handles[:count]

    def _to_keep(self, job: Job) -> list[Operator]:
        """Rows that are to be kept, not there yet, and computed by this job anyway."""
        ops = walk(job.reads, stop=lambda n: n.token in self._held or not n.gives_rows)
        return [
            op
            for op in ops
            if op.token in self.draft.kept
            and op.token not in self._held
            and op.gives_rows
            and not isinstance(op, Outcome)
            and not (op.token in self.sources and not self.sources[op.token].lazy)
        ]

    def _many_passes(self, op: Learn, way: ManyPasses) -> None:
        layers = Layers(self.sources, self._held, self._handles)
        y, weight = (self._gathered(layers, i) for i in (op.y, op.weight))
        self._compute(layers, [], Job((op.x,)))
        layers = Layers(self.sources, self._held, self._handles)
        with naming(op.step):
            rows = rows_of(op.x, layers, self.executor, kept=op.x.token in self._held)
        begin = time.perf_counter()
        with naming(op.step):
            model = way.fit(op.estimator, rows, y, weight)
        if op.names:
            model.feature_names_in_ = np.asarray(op.names, dtype=object)
        self.seconds[op.token] = time.perf_counter() - begin
        self._learnt(op.token, model)
        if op.seeded:
            self.environment.put(op.token, model)

    def _gathered(self, layers: Layers, op: Operator | None) -> Any:
        """Targets or weights of all rows, here."""
        if op is None:
            return None
        handles = self.executor.run_graph(layers.graph_of(op), layers.rows(op))
        return stack([self.executor.result(handle) for handle in handles], op.step)

    def _learnt(self, token: str, model: Any, handle: Any = None) -> None:
        self.models[token] = model
        self._handles[token] = self.executor.put(model) if handle is None else handle

    def _release(self, jobs: Sequence[Job]) -> None:
        """Let go of rows that no later job reads."""
        needed: set[str] = set()
        for job in jobs:
            for op in walk(job.ends, stop=lambda n: n.token in self._held):
                needed.add(op.token)
        for token in [token for token in self._held if token not in needed]:
            self._drop(token, ())

    def _drop(self, token: str, wanted: Sequence[Any]) -> None:
        for handle in self._held.pop(token):
            if not any(handle is one for one in wanted):
                self.executor.release(handle)
