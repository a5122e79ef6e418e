"""Rows behind transformers that are fitted once a split, block by block.

::

    X ──┬── rows of split 0 ── fit scale ──┐
        │                                  ├── scale 0 ── Rows of split 0
        ├──────────────────────────────────┘
        ├── rows of split 1 ── fit scale ──┐
        │                                  ├── scale 1 ── Rows of split 1
        └──────────────────────────────────┘

One pass over the blocks fits a step of all splits. What comes out is kept where the blocks
are, or made anew in every pass over it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from mlopt.cluster import Executor, Handle, Threads, Together
from mlopt.gd.estimator_base import resources_of
from mlopt.hearing import unheard
from mlopt.locking import cached_property
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.blocks.cut import Blocks, ask, check_room, cut
from mlopt.pipeline.environment import environment
from mlopt.pipeline.finishing import put_back
from mlopt.pipeline.fits.base import ManyPasses, OnePass
from mlopt.pipeline.graph.operators import Apply, Learn, Only, Operator, Outcome, Source
from mlopt.pipeline.graph.walking import Sinks, rebuild, walk
from mlopt.pipeline.planning.build import Builder
from mlopt.pipeline.planning.making import Planned, Problem, bind, graph_behind
from mlopt.pipeline.profiling.samples import Samples
from mlopt.pipeline.rules.base import Context, Draft, Rule
from mlopt.pipeline.rules.fuse_rows import fuse_rows
from mlopt.pipeline.rules.share_work import share_work
from mlopt.pipeline.running.execute import Execution
from mlopt.pipeline.running.layers import Layers
from mlopt.pipeline.running.rows_of import rows_of
from mlopt.pipeline.steps.generators import generators_as_they_were
from mlopt.plan import format_bytes
from mlopt.resources.probe import memory_limit
from mlopt.rows import Rows
from mlopt.rows.source import collected, is_dask

_NOTHING = Context(None, 0)
Steps = Sequence[tuple[str, Any]]

GATHERED = 0.5
"""Part of the memory that data of a cluster may take here."""


@dataclass(frozen=True, eq=False)
class Chain:
    """Transformers one after the other, as a graph over the data.

    Attributes
    ----------
    sink : Operator
        The rows behind the last, with everything fitted to all rows.
    built : Builder
    row_bytes : float
        What a row takes there, as numbers; about.
    row_seconds : float
        What the steps take to make a row, fitted, on one thread; about.
    """

    sink: Operator
    built: Builder
    row_bytes: float
    row_seconds: float = 0.0

    @property
    def gathers(self) -> str:
        """Which step needs all rows in one place, and why; "" if none does."""
        for op in walk([self.sink]):
            whole = isinstance(op, Outcome) or (isinstance(op, Apply) and op.scope == "all")
            if whole or (isinstance(op, Apply) and (op.random or op.pinned)):
                return f"step `{op.step}` is not declared row-wise"
            if isinstance(op, Learn) and not isinstance(op.way, OnePass | ManyPasses):
                return (
                    f"step `{op.step}` has no way of fitting that takes rows in any order"
                )
        return ""

    def of(self, marks: Operator | None) -> Operator:
        """The same rows, with everything fitted to the rows that ``marks`` counts."""
        if marks is None:
            return self.sink

        def restricted(op: Operator) -> Operator:
            if not isinstance(op, Learn):
                return op
            x, y = (i and Only(op.step, i, marks) for i in (op.x, op.y))
            assert x is not None
            return replace(op, x=x, y=y)

        return rebuild((self.sink,), restricted)[0]


_DECLARE = "or declare steps of your own with `mlopt.register`, so that rows are streamed"


def gathering(X: Any, why: str, *, declare: bool = False) -> str:
    """What a plan says where all rows come to this process; "" where they are here.

    Parameters
    ----------
    X : Dask collection, Rows, Streamed or other data
    why : str
    declare : bool
        Whether they need not, once steps are declared.

    Raises
    ------
    InputError
        When they are too many, with the reason.
    """
    data = X.data if isinstance(X, Streamed) else X
    if not (isinstance(data, Rows) or is_dask(data)):
        return ""
    size = check_room(
        data, "X", GATHERED * memory_limit(), why, _DECLARE if declare else ""
    )
    return f"X, {format_bytes(size)}, is gathered in this process: {why}"


class Streamed:
    """Data in blocks that are read where they are, and gathered only when asked for.

    Parameters
    ----------
    X : Dask collection, or data in memory
    y : data or None
        For the transformers that read it.
    executor : Executor
    without : frozenset of str
        Rules that are not to run.

    Attributes
    ----------
    data : the given X
    n : int
        How many rows there are.
    fits : Counter of str
        How often steps were fitted, by their names.

    Raises
    ------
    InputError
        When there are no rows, or X and y have not as many as each other.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        executor: Executor,
        without: frozenset[str] = frozenset(),
    ) -> None:
        self.data, self.executor, self._without = X, executor, without
        lasting = environment.remembers
        self._x, self._y, _, self._sources = bind(Problem((), X, y), executor, lasting)
        self.lengths = self._blocks.lengths
        assert self.lengths is not None  # by `bind`
        self.n = sum(self.lengths)
        self._samples = Samples(self._sources, executor)
        self._chains: dict[str, Chain] = {}
        self._marks: dict[int, tuple[Any, Operator]] = {}
        self._run: Execution | None = None
        self.fits: Counter[str] = Counter()

    @property
    def _blocks(self) -> Blocks:
        return self._sources[self._x.token]

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, columns)."""
        columns = tables.count_columns(self._samples.example(self._x))
        return self.n, columns

    @cached_property
    def row_seconds(self) -> float:
        """What it takes to read a row; about."""
        assert self.lengths is not None
        begin = time.perf_counter()
        ask(self._blocks, self.executor, "look", tables.count_rows, {0: ()})
        return (time.perf_counter() - begin) / self.lengths[0]

    def collect(self) -> Any:
        """The data in this process; see `gathering`."""
        return collected(self.data)

    @property
    def lazy(self) -> bool:
        """Whether the rows are those of a Dask collection."""
        return is_dask(self.data)

    def why_gathered(self, key: str, steps: Steps) -> str:
        """Why the rows behind ``steps`` cannot be made block by block; "" if they can."""
        try:
            return self.chain(key, steps).gathers
        except Exception as error:  # on a sample; what is fitted to all rows will tell
            return f"its preprocessing fails on a sample: {error}"

    def chain(self, key: str, steps: Steps) -> Chain:
        """The graph of ``steps``; ``key`` names their content.

        Raises
        ------
        Exception
            What a step raises on a sample of the rows.
        """
        if key not in self._chains:
            sinks, built, trial = graph_behind(
                Problem(tuple(steps), None, learns_last=False),
                (self._x, self._y, None),
                self._samples,
                lambda: resources_of(self.executor),
                without=self._without,
            )
            example = trial.value(sinks[0])
            applied = [op.token for op in walk(sinks) if op.gives_rows]
            seconds = sum(trial.seconds.get(token, 0.0) for token in applied) / trial.rows
            bytes_ = _row_bytes(example)
            (sink,) = self._ruled("share_work", share_work, sinks)
            self._chains[key] = Chain(sink, built, bytes_, seconds)
            # A plan looks again at the first, and the next may share steps with this one.
            first = next(iter(self._chains.values()))
            self._samples.keep({op.token for op in walk([first.sink, sink])})
        return self._chains[key]

    def example(self, chain: Chain) -> Any:
        """Some rows behind the steps."""
        with generators_as_they_were(), unheard():
            return self._samples.large.value(chain.sink)

    def rows(
        self, chain: Chain, splits: Sequence[NDArray[np.integer[Any]]], *, kept: bool
    ) -> list[Rows]:
        """Behind the steps, for each split fitted to its rows by number.

        Parameters
        ----------
        chain : Chain
        splits : sequence of ndarray
            Rows to fit to, each as often as it is there.
        kept : bool
            Whether the rows are held where they are; else every pass makes them anew.
        """
        sinks = tuple(chain.of(self._marked(rows)) for rows in splits)
        return self._behind(sinks, kept)

    def blocks(self, chain: Chain, fit_to: NDArray[np.integer[Any]]) -> list[Handle]:
        """Handles of the blocks behind the steps, as they come, fitted to these rows."""
        sink = chain.of(self._marked(fit_to))
        layers = self._learnt((sink,))
        keys = layers.rows(sink)
        return self.executor.run_graph(dict(layers.graph()), keys)

    def fitted(
        self, chain: Chain, steps: Steps, *, kept: bool
    ) -> tuple[dict[str, Any], Rows]:
        """(copies of the steps, fitted to all rows, by name; the rows behind them)."""
        rows = self._behind((chain.sink,), kept)[0]
        copies = [(name, clone(step)) for name, step in steps]
        sources = {t: b for t, b in self._sources.items() if t in self._given}
        draft = Draft((chain.sink,))
        assert self._run is not None
        put_back(
            copies,
            Planned(draft, chain.built, sources, None, (), _NOTHING, 0.0),
            self._run,
        )
        return dict(copies), rows

    @property
    def _given(self) -> set[str]:
        return {op.token for op in (self._x, self._y) if op is not None}

    def _behind(self, sinks: Sinks, kept: bool) -> list[Rows]:
        """One pass fits a step of all sinks."""
        layers = self._learnt(sinks)
        fused = self._ruled("fuse_rows", fuse_rows, sinks)
        keys = [layers.rows(sink) for sink in fused]
        graph = dict(layers.graph())
        if kept or len(fused) == 1 or isinstance(self.executor, Threads):
            return [rows_of(graph, own, self.executor, kept=kept) for own in keys]
        # Passes over the rows of all splits read them once.
        together = Together(self.executor, len(fused))
        pairs = zip(together.members, keys, strict=True)
        jobs = {one: partial(rows_of, graph, own, one, kept=False) for one, own in pairs}
        return together.run(jobs)

    def _ruled(self, name: str, rule: Rule, sinks: Sinks) -> Sinks:
        return sinks if name in self._without else rule(Draft(sinks), _NOTHING).sinks

    def _learnt(self, sinks: Sinks) -> Layers:
        """Everything is fitted that these need; what they are is still to be made."""
        learns = tuple(op for op in walk(sinks) if isinstance(op, Learn))
        run = Execution(Draft(learns), self._sources, self.executor, environment)
        if self._run is not None:
            run.models.update(self._run.models)
            run._handles.update(self._run._handles)
        run.run()
        for op in learns:  # a step has one for each split
            self.fits[op.step] += round(run.ran(op))
        self._run = run
        return Layers(self._sources, {}, run._handles)

    def _marked(self, rows: NDArray[np.integer[Any]]) -> Operator:
        """A source that counts how often each row is among ``rows``."""
        if id(rows) not in self._marks:
            counts = np.bincount(rows, minlength=self.n)
            counts = counts.astype(np.min_scalar_type(int(counts.max())))
            blocks = cut(
                counts,
                self.executor,
                name="split",
                lengths=self.lengths,
                lasting=environment.remembers,
            )
            source = Source("split", blocks.token)
            self._sources = {**self._sources, source.token: blocks}
            self._marks[id(rows)] = rows, source  # the number is that of living rows
        return self._marks[id(rows)][1]


def _row_bytes(example: Any) -> float:
    """Bytes of a row as numbers of eight bytes."""
    n = max(1, tables.count_rows(example))
    if tables.is_sparse(example):
        return 4.0 + 12.0 * float(example.nnz) / n
    return 8.0 * tables.count_columns(example)
