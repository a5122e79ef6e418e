"""Row-wise steps up to the next model run as one task a block.

::

    #0 Source X                  #0 Source X
    #1 Apply log #0              #1 Fused log+scale #0
    #2 Apply scale #1       ->
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from mlopt.pipeline.graph.operators import Apply, Convert, Fused, Join, Operator, Select
from mlopt.pipeline.graph.schedule import must_stay
from mlopt.pipeline.graph.walking import Sinks, readers, walk
from mlopt.pipeline.rules.base import Context, Draft


def fuse_rows(draft: Draft, context: Context) -> Draft:
    """Regions of row-wise operators, each as one.

    What is kept, or read from several places, is the end of a task.
    """
    del context
    ends, members = regions(draft.sinks, draft.kept), dict[int, list[Operator]]()
    for op in walk(draft.sinks):
        if id(op) in ends:
            members.setdefault(ends[id(op)], []).append(op)
    if all(len(inside) == 1 for inside in members.values()):
        return draft
    return replace(draft, sinks=_fused(draft.sinks, members))


def _fused(sinks: Sinks, members: dict[int, list[Operator]]) -> Sinks:
    """Each region in the place of its last operator."""
    done: dict[int, Operator] = {}
    for op in walk(sinks):
        inside = members.get(id(op), [])
        if len(inside) < 2:
            done[id(op)] = op.with_inputs(lambda child: done[id(child)])
            continue
        own = set(map(id, inside))
        outer = [i for one in inside for i in one.inputs if id(i) not in own]
        reads = {id(i): done[id(i)] for i in outer}
        done[id(op)] = Fused(_named(inside), op, tuple(reads.values()))
    return tuple(done[id(sink)] for sink in sinks)


def is_row_wise(op: Operator) -> bool:
    """Whether each row of the value depends on one row of each input alone."""
    if isinstance(op, Apply):
        return op.scope == "rows"
    return isinstance(op, Select | Join | Convert)


def regions(sinks: Sinks, kept: Collection[str]) -> dict[int, int]:
    """For each row-wise operator, by `id`, the last operator of its region."""
    who = readers(sinks)
    wanted = {id(sink) for sink in sinks}
    ends: dict[int, int] = {}
    for op in reversed(list(walk(sinks))):
        if not is_row_wise(op):
            continue
        after = {ends.get(id(reader), -1) for reader in who[id(op)]}
        ends_here = id(op) in wanted or op.token in kept or must_stay(op)
        alone = ends_here or len(after) != 1 or -1 in after
        ends[id(op)] = id(op) if alone else after.pop()
    return ends


def _named(ops: list[Operator]) -> str:
    """The steps in order, each once: "scale+pca"."""
    return "+".join(dict.fromkeys(op.step for op in ops))
