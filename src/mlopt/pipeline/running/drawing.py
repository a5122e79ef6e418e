"""The graphs that a fit would submit, as one graph to look at: nothing is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from dask.highlevelgraph import HighLevelGraph
from dask.task_spec import TaskRef

from mlopt.cluster import Executor
from mlopt.pipeline.environment import environment
from mlopt.pipeline.fits.base import ManyPasses
from mlopt.pipeline.graph.operators import Learn
from mlopt.pipeline.planning.making import Planned
from mlopt.pipeline.running.execute import Execution
from mlopt.pipeline.running.layers import connected


def graph_of(planned: Planned) -> HighLevelGraph:
    """What is submitted for a planned fit: a layer an operator, to look at.

    A run like any other, on an executor that only writes down what it is given. A model
    that takes many passes is one task here; when it runs, each pass is calls of its own.
    """
    pen, known = _Pen(), planned.context.known
    there = {token: _Drawn(token) for token in known}
    drawing = _Drawing(
        planned.draft,
        planned.sources,
        pen,
        environment,
        dict.fromkeys(known),
        _handles=there,
    )
    drawing.run()
    return connected(pen.layers)


class _Drawn(TaskRef):
    """In place of a value: the key of the task that would give it."""


class _Drawing(Execution):
    """A run without values: models are names, and nothing is looked up or left."""

    def _recall(self) -> None:
        """Models that are there were given; no rows."""

    def _remember(self, token: str) -> None:
        """Nothing was learnt."""

    def _many_passes(self, op: Learn, way: ManyPasses) -> None:
        del way
        layers = self._layers()
        (handle,) = self._compute(layers, [[layers.model(op)]], [op.x])
        self._learnt(op.token, None, handle)


class _Pen(Executor):
    threads = 1

    def __init__(self) -> None:
        self.layers: dict[str, Any] = {}

    def run_graph(
        self, graph: Any, keys: Sequence[Any], by_itself: Any = None
    ) -> list[Any]:
        del by_itself  # nothing runs
        for name, layer in graph.layers.items():
            tasks = {k: v for k, v in layer.items() if not isinstance(v, _Drawn)}
            if not tasks:
                continue
            if name in self.layers:
                self.layers[name].mapping.update(tasks)
            else:
                layer.mapping = tasks
                self.layers[name] = layer
        return [_Drawn(key) for key in keys]

    def map(
        self, function: Callable[..., Any], items: Iterable[Any], *shared: Any
    ) -> list[Any]:
        """That rows take nothing: there is room for what is to be kept."""
        del function, shared
        return [0 for _ in items]

    def result(self, handle: Any) -> None:
        """No model."""

    def release(self, handle: Any) -> None:
        """Nothing is held."""

    def _nothing(self, *args: Any, **others: Any) -> NoReturn:
        raise NotImplementedError

    reduce = fold = put = submit = load = as_completed = abandon = close = _nothing
