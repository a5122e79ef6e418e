"""A fitted pipeline applied to rows: block by block, and lazily to a Dask collection."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from dask.task_spec import Task, TaskRef
from joblib import parallel_config
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from mlopt.cluster import Executor, Threads, executor
from mlopt.cluster.threads import threads_here
from mlopt.errors import InputError
from mlopt.gd import estimator_base
from mlopt.hearing import heard_once
from mlopt.options import plans_always
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.blocks.cut import (
    Blocks,
    ask,
    check_room,
    cut,
    lengths_of,
    usable,
)
from mlopt.pipeline.blocks.panels import InPanels
from mlopt.pipeline.environment import environment
from mlopt.pipeline.graph.operators import Apply, Given, Operator, Source
from mlopt.pipeline.graph.walking import walk
from mlopt.pipeline.planning.fitted import plan_fitted
from mlopt.pipeline.planning.making import Planned
from mlopt.pipeline.planning.optimizer import left_out
from mlopt.pipeline.planning.worth import is_light, worth_applying
from mlopt.pipeline.profiling.sampling import Sample
from mlopt.pipeline.profiling.trial import Trial
from mlopt.pipeline.running.execute import Execution
from mlopt.pipeline.running.layers import Layers, have_labels
from mlopt.pipeline.steps.by_rows import gives_lists
from mlopt.pipeline.steps.nested import is_pipeline
from mlopt.pipeline.tasks.functions import Recipe, Unforeseen
from mlopt.plan import format_bytes
from mlopt.resources.probe import memory_limit
from mlopt.rows.block import MEGABYTE, boundaries, check_unmasked
from mlopt.rows.source import collected_together, is_dask

log = logging.getLogger("mlopt")
_DECLARE = "or declare it with `mlopt.register(..., row_wise=True)` if it does so"

_MANY, _MANY_IMAGES = 4096, 256
"""Rows from which they are cut: of fewer, scikit-learn's own loop is as fast."""
_PARALLEL = 8
"""Blocks of images, of which steps make much more than they are given."""
_FEW = 4
"""Rows that tell what comes out."""
_LARGE = 8 * MEGABYTE
"""Bytes of rows that are not made more by putting blocks together."""
_TOGETHER = 4
"""Blocks that may go through the steps as one, at most: what steps make of them is held.
By `ordinary.py` forests predict 1.4 times faster than block by block, columns 1.5 times."""


def apply_pipeline(pipeline: Any, method: str, X: Any) -> Any:
    """``pipeline.<method>(X)`` by the graph of its fitted steps.

    Returns
    -------
    The result; lazily, as a Dask collection, for one where each step is known to go row by
    row. `NotImplemented` where scikit-learn's own loop does it: see `why_plain`.

    Raises
    ------
    InputError
        When a step must be given all rows of a Dask collection, and they do not fit.
    """
    check_unmasked(X, "X")
    lazy = is_dask(X)
    if not lazy and (are_few(pipeline, X) or tables.are_typed_by_missing(X)):
        return NotImplemented
    check_is_fitted(pipeline)
    if lazy:
        return _of_dask(pipeline, method, X)
    try:
        planned = plan_application(pipeline, method, X := usable(X))
        if why_plain(planned):
            return NotImplemented
        with closing(threads_here()) as where, heard_once():
            parts = _in_blocks(pipeline, planned, X, where)
    except Unforeseen:
        return NotImplemented
    return tables.stack(parts, pipeline.steps[-1][0])


def plan_application(pipeline: Any, method: str, X: Any) -> Planned:
    """The graph of ``pipeline.<method>(X)``: nothing is computed but of a few rows."""
    without = left_out(pipeline.optimize)
    if not is_dask(X):
        trial = _Few(lambda: _few(usable(X)))
        return plan_fitted(pipeline.steps, method, None, trial.value, without)
    blocks = cut(X, Threads(1))
    trial = _Few(lambda: _first_rows(blocks))
    # What is computed later must not change with the user's steps.
    steps = pipeline.export().steps
    return plan_fitted(steps, method, blocks, trial.value, without)


def why_plain(planned: Planned) -> str:
    """Why rows in memory are better given to scikit-learn's own loop; or ""."""
    (sink,) = planned.draft.sinks
    if isinstance(sink, Source):
        return "no step does anything"
    blind = _blind(planned)
    return f"step `{blind.step}` is not known to treat each row by itself" if blind else ""


class _Few:
    """What operators give on a few rows; read when first asked for."""

    def __init__(self, read: Callable[[], Any]) -> None:
        self.read = read
        self.trial: Trial | None = None

    def value(self, op: Operator) -> Any:
        if self.trial is None:
            source = next(one for one in walk([op]) if isinstance(one, Source))
            self.trial = Trial(Sample({source.token: self.read()}, _FEW), repeats=1)
        return self.trial.value(op)


def _first_rows(blocks: Blocks) -> Any:
    """Of the first block that has any."""
    few: Any = None
    with closing(executor()) as where:
        for number in range(blocks.count):
            (few,) = ask(blocks, where, "few", _few, {number: ()})
            if tables.count_rows(few):
                break
    return few


def _few(block: Any) -> Any:
    return tables.row_range(block, 0, min(_FEW, tables.count_rows(block)))


def are_few(pipeline: Any, X: Any) -> bool:
    """Whether scikit-learn's own loop is as fast."""
    if not hasattr(X, "__len__") and not hasattr(X, "shape"):
        return True
    images = getattr(X, "ndim", 2) > 2
    if tables.count_rows(X) < (_MANY_IMAGES if images else _MANY):
        return True
    return not plans_always() and not worth_applying(pipeline.steps, X)


def _blind(planned: Planned) -> Apply | None:
    """The first step that may look at all rows."""
    ops = walk(planned.draft.sinks)
    return next((o for o in ops if isinstance(o, Apply) and o.scope == "all"), None)


def _in_blocks(pipeline: Any, planned: Planned, X: Any, where: Executor) -> list[Any]:
    """What the blocks give: beside each other, where that gains more than it may wait for.

    Two threads may save half of what is left after the first block, and one of them waits
    for the other to let go of the interpreter. Where steps are light, a call for a block
    more takes long beside its rows: each thread has one, unless they are large. A model
    that is told to use several cores uses them for all rows, or for as many as are large.
    """
    n, images = tables.count_rows(X), getattr(X, "ndim", 2) > 2
    # Text is not read through to be cut.
    some = tables.row_range(X, 0, min(n, _MANY))
    nbytes = tables.count_bytes(some) * n // tables.count_rows(some)
    pieces = _PARALLEL if images else 0
    if light := is_light(pipeline.steps, X):
        pieces = max(where.threads, -(-nbytes // _LARGE))
    edges = boundaries(n, nbytes, -(-n // pieces) if pieces else None)
    blocks = list(pairwise(edges))
    (sink,) = planned.draft.sinks
    given = [op for op in walk([sink]) if isinstance(op, Given)]
    reads = [op for op in walk([sink]) if isinstance(op, Source)] + given
    cut_ones = (True, *(False for _ in given))
    function = InPanels(Recipe.of(sink, reads), cut_ones)
    models = [op.model for op in given]

    def made(edge: tuple[int, int]) -> Any:
        return function(tables.row_range(X, *edge), *models)

    def beside(edge: tuple[int, int]) -> Any:
        # A step's own `n_jobs` would start threads for each block.
        with parallel_config("sequential"):
            return made(edge)

    def run(edges: list[tuple[int, int]]) -> list[Any]:
        return where.map(beside if min(len(blocks), where.threads) > 1 else made, edges)

    if light:
        return run(blocks)
    if not images and getattr(pipeline.steps[-1][1], "n_jobs", None) not in (None, 1):
        rows = -(-n // max(1, -(-nbytes // (_TOGETHER * _LARGE))))
        return [made(edge) for edge in pairwise(boundaries(n, nbytes, rows))]
    begin = time.perf_counter()
    first = run(blocks[:1])
    left = (time.perf_counter() - begin) * (len(blocks) - 1)
    if not left / 2 > sys.getswitchinterval():
        return [*first, *run([(edges[1], n)][: len(blocks) - 1])]
    # Beside its rows a call takes long where steps are many: not more than threads need.
    each = nbytes // len(blocks)
    together = min(_TOGETHER, -(-(len(blocks) - 1) // where.threads))
    together = max(1, min(together, _LARGE // max(each, 1)))
    return [*first, *run(list(pairwise([*edges[1:-1:together], n])))]


def _run(pipeline: Any, planned: Planned, where: Executor) -> Any:
    """All rows of a Dask collection, as a plan says."""
    run = Execution(planned.draft, planned.sources, where, environment)
    parts = [where.result(handle) for handle in run.run()]
    labelled = have_labels(planned.draft.sinks[0], planned.sources)
    return tables.stack(parts, pipeline.steps[-1][0], labelled=labelled)


def _of_dask(pipeline: Any, method: str, X: Any) -> Any:
    if reason := _of_lists(pipeline, method):
        return getattr(pipeline.export(), method)(*gathered_rows(X, method, reason))
    planned = plan_application(pipeline, method, X)
    if isinstance(planned.draft.sinks[0], Source):
        return NotImplemented
    if (blind := _blind(planned)) is not None:
        with closing(executor()) as where:
            check_gathered(X, method, blind.step, _room_of(where))
            return _run(pipeline, _counted(planned, where), where)
    if (found := _lazily(planned, method, getattr(X, "divisions", ()))) is None:
        reason = f"Step `{pipeline.steps[-1][0]}` gives frames that Dask does not have"
        return getattr(pipeline, method)(*gathered_rows(X, method, reason))
    return found


def _of_lists(pipeline: Any, method: str) -> str:
    """Why no lazy rows come out, where the last step gives several arrays; or ""."""
    name, last = pipeline.steps[-1]
    return f"Step `{name}` gives a list of arrays" if gives_lists(last, method) else ""


def _room_of(where: Executor) -> float:
    return where.memory or memory_limit()


def note_gathered(pipeline: Any, method: str, X: Any, planned: Planned) -> str:
    """What ``<method>`` of a Dask collection says of rows that it gathers; or "".

    Raises
    ------
    InputError
        When they do not fit, as the method does.
    """
    if reason := _of_lists(pipeline, method):
        room, advice = float(memory_limit()), ""
    elif (blind := _blind(planned)) is not None:
        reason, advice = _unknown(blind.step), _DECLARE
        with closing(executor()) as where:
            room = _room_of(where)
    else:
        return ""
    return _said(reason, method, format_bytes(_size(X, reason, room, advice)))


def _counted(planned: Planned, where: Executor) -> Planned:
    """The same without blocks that have no rows: most steps take none."""
    counted = {}
    for token, blocks in planned.sources.items():
        counted[token] = blocks.without(lengths_of(blocks, where))
    return replace(planned, sources=counted)


def _lazily(planned: Planned, method: str, divisions: tuple[Any, ...]) -> Any:
    """The last layer as a Dask collection; None for rows of a type that Dask has not.

    ``divisions`` are those of the rows, which steps keep if they keep the index.
    """
    example = planned.built.example
    (sink,), (blocks,) = planned.draft.sinks, planned.sources.values()
    made = [op for op in walk([sink]) if op.gives_rows and not isinstance(op, Source)]
    of_none = {op.token: tables.row_range(example(op), 0, 0) for op in made}
    none = of_none[sink.token]
    frames = hasattr(none, "columns")
    if frames and not hasattr(none, "iloc"):  # of polars
        return None
    layers = Layers(planned.sources, of_none=of_none)
    keys, name = layers.rows(sink), f"{method}-{sink.token[:16]}"
    lengths = blocks.lengths or (np.nan,) * blocks.count
    starts = np.cumsum([0, *lengths[:-1]])
    if blocks.labelled or not frames or blocks.lengths is None:
        starts = np.zeros(len(lengths), int)
    rest = np.shape(none)[1:]
    zeros = (0,) * len(rest)
    ends = [f"{name}-{i}" if frames else (name, i, *zeros) for i in range(len(keys))]
    layers.tasks[name] = {
        end: Task(end, _numbered_from, TaskRef(key), int(start))
        for end, key, start in zip(ends, keys, starts, strict=True)
    }
    graph, _ = layers.submitted(dict(layers.graph()), ends, named=True)
    if frames:
        import dask.dataframe as dd
        from dask.dataframe.utils import clear_known_categories

        (source,) = (op for op in walk([sink]) if isinstance(op, Source))
        index: Any = example(sink).index
        same = index.equals(getattr(example(source), "index", None))
        kept = same and len(divisions) == len(ends) + 1
        divisions = divisions if kept else (None,) * (len(ends) + 1)
        none = clear_known_categories(none)  # these are of few rows
        # `from_delayed` makes text of objects, and frames that are no arrays to Dask.
        return dd.from_graph(_Named(name, graph), none, divisions, ends, method)
    import dask.array as da

    chunks = (lengths, *((width,) for width in rest))
    return da.Array(graph, name, chunks, meta=none)


class _Named(Mapping[Any, Any]):
    """A graph that is told by its name: Dask would read all that its tasks hold."""

    def __init__(self, name: str, graph: Mapping[Any, Any]) -> None:
        self.name, self.graph = name, graph

    def __getitem__(self, key: Any) -> Any:
        return self.graph[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.graph)

    def __len__(self) -> int:
        return len(self.graph)

    def __dask_tokenize__(self) -> str:
        return self.name


def _numbered_from(rows: Any, start: int) -> Any:
    """Frames made of rows of an array are numbered on, block after block."""
    return rows.set_axis(rows.index + start) if start else rows


def gathered_rows(X: Any, what: str, reason: str, *beside: Any) -> list[Any]:
    """All rows of a Dask collection, and what goes with them, here; which is said.

    Raises
    ------
    InputError
        When they do not fit: with ``reason`` and bytes.
    """
    _check_room(X, what, reason, memory_limit())
    return collected_together(X, *beside)


def check_gathered(X: Any, what: str, step: str, room: float) -> None:
    """Say that a step is given all rows of a Dask collection at once.

    Raises
    ------
    InputError
        When they do not fit into ``room`` bytes.
    """
    _check_room(X, what, _unknown(step), room, _DECLARE)


def _unknown(step: str) -> str:
    return f"Step `{step}` is not known to treat each row by itself"


def _size(X: Any, reason: str, room: float, advice: str = "") -> float:
    try:
        return check_room(X, "X", room, advice=advice)
    except InputError as error:
        raise InputError(f"{reason}. {error}") from error


def _said(reason: str, what: str, size: str) -> str:
    return f"{reason}: all rows of X are gathered for `{what}`, {size}"


def _check_room(X: Any, what: str, reason: str, room: float, advice: str = "") -> None:
    size = _size(X, reason, room, advice)
    log.warning("%s.", _said(reason, what, format_bytes(size)))


def score(pipeline: Any, X: Any, y: Any, weight: Any) -> Any:
    """``pipeline.score`` of what it predicts block by block.

    Returns
    -------
    float, or `NotImplemented` for rows in memory and a last step with a score of its own.
    """
    check_is_fitted(pipeline)
    name, last = pipeline.steps[-1]
    while is_pipeline(last):
        name, last = last.steps[-1]
    own = getattr(type(last), "score", None)
    if own is estimator_base.score:
        return estimator_base.score(pipeline, X, y, weight)
    if own in _USUAL:
        return estimator_base.scored(pipeline, _USUAL[own], X, y, weight)
    if not is_dask(X):
        return NotImplemented
    reason = f"Step `{name}` has a score of its own"
    rows, y, weight = gathered_rows(X, "score", reason, y, weight)
    return float(pipeline.export().score(rows, y, sample_weight=weight))


_USUAL = {ClassifierMixin.score: accuracy_score, RegressorMixin.score: r2_score}
"""What scores by what is predicted, and how: tags of a step may say something else."""
