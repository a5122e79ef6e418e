"""A graph of operators as a Dask `HighLevelGraph`: one named layer an operator.

Layers carry the user's names of the steps, so that the dashboard, ``visualize`` and
``performance_report`` show them. Keys are made of content tokens: what is held under a key
is what this key always gives.

Steps whose tasks of a block are one task are one layer, that of all their names::

    X ── scale-apply ── pca-fit           X+scale+pca-fit ── pca-fit
                 (parts, merges)               (parts)      (merges)
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dask.core import toposort
from dask.highlevelgraph import HighLevelGraph, MaterializedLayer
from dask.optimization import cull
from dask.task_spec import GraphNode, List, Task, TaskRef

from mlopt.identity import join
from mlopt.pipeline.blocks.cut import Blocks
from mlopt.pipeline.fits.base import OnePass, PartialFit
from mlopt.pipeline.fits.registry import by_vectors
from mlopt.pipeline.graph.operators import Given, Learn, Operator, Outcome, Source
from mlopt.pipeline.graph.schedule import members
from mlopt.pipeline.graph.walking import walk
from mlopt.pipeline.running.merging import linked, merged, together
from mlopt.pipeline.tasks import fitting
from mlopt.pipeline.tasks.functions import block_function
from mlopt.pipeline.tasks.timing import Timed, a_model, on_the_way, quietly

_MARK = 12
"""Digits that tell a task from others of its operators and its block."""


def have_labels(op: Operator, sources: Mapping[str, Blocks]) -> bool:
    """Whether rows have labels of their own in each block: see `tables.stack`.

    A step that was given all rows at once either gave them labels that go on from block to
    block, or none.
    """

    def is_end(one: Operator) -> bool:
        whole = isinstance(one, Outcome) or getattr(one, "scope", "rows") == "all"
        return whole or not one.gives_rows

    ends = walk([op], stop=is_end)
    return any(sources[end.token].labelled for end in ends if isinstance(end, Source))


@dataclass
class Layers:
    """Turns operators into layers, each when it is first asked for.

    Attributes
    ----------
    sources : mapping of token to Blocks
        The data behind each `Source`.
    held : mapping of token to list of handles
        Rows that are kept: one handle a block.
    models : mapping of token to handle
        What was learnt already.
    of_none : mapping of token to rows
        What operators give of no rows, where blocks may be empty: most steps take none.
    """

    sources: Mapping[str, Blocks]
    held: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    models: Mapping[str, Any] = field(default_factory=dict)
    of_none: Mapping[str, Any] = field(default_factory=dict)
    tasks: dict[str, dict[Any, Any]] = field(default_factory=dict)
    reads: dict[str, set[str]] = field(default_factory=dict)
    by_block: set[Any] = field(default_factory=set)
    ops: dict[str, Operator] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    taken: dict[str, int] = field(default_factory=dict)
    places: dict[tuple[str, ...], str] = field(default_factory=dict)
    members: dict[str, tuple[str, ...]] = field(default_factory=dict)
    renamed: dict[Any, Any] = field(default_factory=dict)

    def rows(self, op: Operator) -> list[Any]:
        """The keys of an operator's blocks."""
        name = self._layer(op)
        if isinstance(op, Source) and op.token not in self.held:
            return list(self.sources[op.token].keys)
        return [key for key in self.tasks[name] if type(key[1]) is int]

    def model(self, op: Operator) -> Any:
        """The key of a model."""
        return (self._layer(op), 0)

    def whole(self, op: Operator) -> Any:
        """The key of the task in which a model learns from all rows, if there is one."""
        both = (self._layer(op), "both")
        return both if both in self.tasks[both[0]] else None

    def graph(self) -> HighLevelGraph:
        """All layers so far."""
        layers = {name: self._annotated(name, own) for name, own in self.tasks.items()}
        return HighLevelGraph(layers, self.reads)

    def submitted(
        self, graph: Mapping[Any, Any], keys: Sequence[Any], *, named: bool = False
    ) -> tuple[HighLevelGraph, list[Any]]:
        """What is given to the executor for these keys, and the keys to ask it for.

        The tasks that they need, those of one block together where they can be, and what
        is held under the key that it has.

        Parameters
        ----------
        graph : mapping of key to task, value or handle
            That of all layers, in which keys may lead elsewhere.
        named : bool
            Whether the keys are to stay: those of a collection, whose name nobody else has.
        """
        tasks, _ = cull(graph, list(keys))
        fixed = linked(tasks, [blocks.keys for blocks in self.sources.values()])
        inside = together(tasks, self.by_block, fixed | {*keys})
        owners = {key: name for name, own in self.tasks.items() for key in own}
        places: dict[Any, str] = {}
        for key, those in inside.items():
            places[key] = self._place(
                tuple(dict.fromkeys(_owner(o, owners) for o in those))
            )
        for key, value in tasks.items():
            if not isinstance(value, GraphNode):
                places[key] = _owner(key, owners)
        names = self.renamed = _names(tasks, inside, places, set(keys) if named else ())
        found: dict[str, dict[Any, Any]] = {}
        where = {names.get(key, key): place for key, place in places.items()}
        for key, task in merged(tasks, inside, names).items():
            found.setdefault(where[key], {})[key] = task
        layers = {name: self._annotated(name, own) for name, own in found.items()}
        return connected(layers), [names.get(key, key) for key in keys]

    def _place(self, names: tuple[str, ...]) -> str:
        """The name of the layer whose tasks are those of several operators in one."""
        if len(names) == 1 or isinstance(self.ops.get(names[-1]), Source):
            return names[-1]  # parts of one collection may be those of another
        if names not in self.places:
            ops = [self.ops[name] for name in names]
            steps = "+".join(dict.fromkeys(_label(op) for op in ops))
            self.places[names] = self._unused(f"{steps}-{_verb(ops[-1])}", ops[-1])
            self.members[self.places[names]] = names
        return self.places[names]

    def _annotated(self, name: str, tasks: dict[Any, Any]) -> MaterializedLayer:
        """With its steps and operators, for the scheduler and its pages."""
        those = self.members.get(name, (name,))
        ops = [op for one in those if one in self.ops for op in members(self.ops[one])]
        steps = list(dict.fromkeys(op.step for op in ops))
        return MaterializedLayer(
            tasks,
            annotations={"mlopt": {"steps": steps}},
            collection_annotations={op.step: op.describe() for op in ops},
        )

    def _layer(self, op: Operator) -> str:
        """The name of the operator's layer, made now if it is not there."""
        if id(op) in self.names:
            return self.names[id(op)]
        # Inputs first, and without recursion: a pipeline may be long.
        for node in walk([op], stop=lambda n: id(n) in self.names or self._known(n)):
            if id(node) not in self.names:
                self._make(node)
        return self.names[id(op)]

    def _known(self, op: Operator) -> bool:
        return op.token in self.held or op.token in self.models

    def _make(self, op: Operator) -> None:
        name = self._name(op)
        self.names[id(op)], self.ops[name] = name, op
        known = self._known(op)
        self.reads[name] = set() if known else {self.names[id(i)] for i in op.inputs}
        if op.token in self.held:
            handles = self.held[op.token]
            self.tasks[name] = {(name, i): handle for i, handle in enumerate(handles)}
        elif op.token in self.models:
            self.tasks[name] = {(name, 0): self.models[op.token]}
        elif isinstance(op, Source):
            self.tasks[name] = dict(self.sources[op.token].tasks)
        elif isinstance(op, Given):
            self.tasks[name] = {(name, 0): Task((name, 0), fitting.same, op.model)}
        elif isinstance(op, Learn):
            self.tasks[name] = self._learn(name, op)
        elif isinstance(op, Outcome):
            self.tasks[name] = self._outcome(name, op)
        else:
            self.tasks[name] = self._row_wise(name, op)

    def named(self, op: Operator) -> str:
        """What stands before the token in the name of an operator's layer."""
        return f"{_label(op)}-{_verb(op)}"

    def _name(self, op: Operator) -> str:
        return self._unused(self.named(op), op)

    def _unused(self, start: str, op: Operator) -> str:
        base = f"{start}-{op.token[:16]}"
        again = self.taken[base] = self.taken.get(base, 0) + 1
        return base if again == 1 else f"{base}-{again}"

    def _row_wise(self, name: str, op: Operator) -> dict[Any, Any]:
        if getattr(op, "scope", "rows") == "all":
            return self._on_all(name, op)
        inputs = [self._keys(i) for i in op.inputs]
        count = max(map(len, inputs))
        columns = [
            keys if i.gives_rows else keys * count
            for i, keys in zip(op.inputs, inputs, strict=True)
        ]
        function = block_function(op)
        if op.token in self.of_none:
            at = [i.gives_rows for i in op.inputs].index(True)
            function = fitting.OrNone(function, at, self.of_none[op.token])
        tasks = {
            (name, number): _task((name, number), function, *map(TaskRef, keys))
            for number, keys in enumerate(zip(*columns, strict=True))
        }
        self.by_block.update(tasks)
        return tasks

    def _on_all(self, name: str, op: Operator) -> dict[Any, Any]:
        """For a step that must see all rows together: gathered, applied, cut again."""
        model, x = op.inputs
        blocks, lengths = self._all(x)
        whole = (name, "all")
        function, fitted = block_function(op), TaskRef(self.model(model))
        named = op.step, have_labels(x, self.sources), lengths
        task = _task(whole, fitting.apply_gathered, *named, function, fitted, blocks)
        return {whole: task, **_cut(name, whole, len(self.rows(x)))}

    def _learn(self, name: str, op: Learn) -> dict[Any, Any]:
        if isinstance(op.way, OnePass):
            return self._one_pass(name, op, op.way)
        if isinstance(op.way, PartialFit):
            return self._in_turn(name, op, op.way)
        x, y, weight = self._refs(op.x), self._refs(op.y), self._refs(op.weight)
        both, lengths = (name, "both"), None
        if op.way is None:
            (x, lengths), (y, _), (weight, _) = map(self._all, (op.x, op.y, op.weight))
        given = op.estimator, op.params, op.transforms, op.way
        labelled = have_labels(op.x, self.sources)
        vectors = by_vectors(op.estimator)
        job = fitting.Job(op.step, *given, labelled, op.writes, lengths, vectors=vectors)
        fit = Timed(op.token, fitting.fit_gathered, a_model)
        return {
            both: _task(both, fit, job, x, y, weight),
            (name, 0): Task((name, 0), fitting.first, TaskRef(both)),
        }

    def _one_pass(self, name: str, op: Learn, way: OnePass) -> dict[Any, Any]:
        columns = [self._keys(i) for i in (op.x, op.y, op.weight)]
        part = Timed(op.token, fitting.part, on_the_way)
        merge = Timed(op.token, fitting.merge, on_the_way)
        tasks: dict[Any, Any] = {}
        level: list[Any] = []
        rows = itertools.zip_longest(*columns)
        for number, keys in enumerate(rows):
            key: Any = (name, "part", number)
            args = [None if k is None else TaskRef(k) for k in keys]
            tasks[key] = _task(key, part, op.step, way, op.estimator, *args)
            level.append(key)
        self.by_block.update(level)
        depth = itertools.count(1)
        while len(level) > 1:
            deep, pairs = next(depth), range(0, len(level) - 1, 2)
            for a in pairs:
                key = (name, "merge", deep, a // 2)
                refs = TaskRef(level[a]), TaskRef(level[a + 1])
                tasks[key] = _task(key, merge, op.step, way, *refs)
            odd = level[-1:] if len(level) % 2 else []
            level = [(name, "merge", deep, a // 2) for a in pairs] + odd
        key = (name, 0)
        finish = Timed(op.token, fitting.finish, a_model)
        tasks[key] = _task(key, finish, op.step, way, op.estimator, TaskRef(level[0]))
        return tasks

    def _in_turn(self, name: str, op: Learn, way: PartialFit) -> dict[Any, Any]:
        """A chain: each model is learnt from the one before, and a block."""
        told: Any = (name, "classes")
        classes = _task(told, fitting.classes_of, op.estimator, self._refs(op.y))
        tasks: dict[Any, Any] = {told: classes}
        model: Any = way.start(op.estimator)
        columns = [self._keys(i) for i in (op.x, op.y, op.weight)]
        for number, keys in enumerate(itertools.zip_longest(*columns)):
            block = List(*(None if k is None else TaskRef(k) for k in keys))
            last = number == len(columns[0]) - 1
            one: Any = (name, 0) if last else (name, "turn", number)
            turn = Timed(op.token, fitting.in_turn, a_model if last else on_the_way)
            given = op.step, way, op.writes
            tasks[one] = _task(one, turn, *given, model, block, TaskRef(told))
            model = TaskRef(one)
        return tasks

    def _outcome(self, name: str, op: Outcome) -> dict[Any, Any]:
        both = (self.names[id(op.learn)], "both")
        return _cut(name, both, len(self.rows(op.x)))

    def _keys(self, op: Operator | None) -> list[Any]:
        if op is None:
            return []
        return self.rows(op) if op.gives_rows else [self.model(op)]

    def _all(self, op: Operator | None) -> tuple[Any, tuple[int, ...] | None]:
        """All rows for one task, and how many each block has: of data in this process in
        one, as they were given; else in their blocks, which tell."""
        if isinstance(op, Source) and op.token not in self.held:
            source = self.sources[op.token]
            if source.given is not None:
                return List(TaskRef(source.given)), source.lengths
        return self._refs(op), None

    def _refs(self, op: Operator | None) -> Any:
        return None if op is None else List(*map(TaskRef, self._keys(op)))


def connected(layers: Mapping[str, MaterializedLayer]) -> HighLevelGraph:
    """Layers as a graph: each reads those that hold what its tasks read."""
    where = {key: name for name, layer in layers.items() for key in layer}
    reads = {name: _read(layer.values(), where) - {name} for name, layer in layers.items()}
    return HighLevelGraph(layers, reads)


def _read(tasks: Iterable[Any], where: Mapping[Any, str]) -> set[str]:
    nodes = (task for task in tasks if isinstance(task, GraphNode))
    return {where[key] for node in nodes for key in node.dependencies if key in where}


def _names(
    tasks: Mapping[Any, Any],
    inside: Mapping[Any, Sequence[Any]],
    places: Mapping[Any, str],
    stay: Collection[Any],
) -> dict[Any, Any]:
    """Keys of tasks that are several in one, or read others under other keys: a key says
    what the task does, and the scheduler may know it from another graph."""
    # A handle on workers has the name that its value got there.
    names = {k: v.key for k, v in tasks.items() if isinstance(v, TaskRef) and v.key != k}
    reads = {
        key: {d for one in those for d in tasks[one].dependencies if d in tasks} - {*those}
        for key, those in inside.items()
    }
    for key in toposort(
        reads, dependencies={k: v & reads.keys() for k, v in reads.items()}
    ):
        those, others = inside[key], [(k, names[k]) for k in reads[key] if k in names]
        if (len(those) == 1 and not others) or key in stay:
            continue
        mark = join(*map(str, those), *sorted(map(str, others)))[:_MARK]
        first, *rest = key if isinstance(key, tuple) else (key,)
        start = places[key] if rest and len(those) > 1 else first
        names[key] = (f"{start}-{mark}", *rest) if rest else f"{first}-{mark}"
    return names


def _cut(name: str, whole: Any, count: int) -> dict[Any, Any]:
    return {
        (name, i): Task((name, i), fitting.piece, TaskRef(whole), i) for i in range(count)
    }


def _task(key: Any, function: Any, *args: Any) -> Task:
    return Task(key, quietly, function, *args)


def _label(op: Operator) -> str:
    """The step's name as Dask shows all of: up to a "-" before what are no letters."""
    path = op.step.replace("/", ".")
    return re.sub(r"[^0-9A-Za-z_.+]+", "_", path).strip("_") or "step"


def _verb(op: Operator) -> str:
    return "fit" if isinstance(op, Learn) else type(op).__name__.lower()


def _owner(key: Any, owners: Mapping[Any, str]) -> str:
    """The layer of a key, or of what it was made for: `("kept", key)`."""
    name = str(key[0]) if isinstance(key, tuple) else str(key)
    while key not in owners and isinstance(key, tuple) and len(key) == 2:
        key = key[1]
    return owners.get(key, name)
