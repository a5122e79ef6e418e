"""Walking and rewriting a graph, each shared node once.

A graph is its sinks: the operators whose values are wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from mlopt.pipeline.graph.operators import Operator

Sinks = tuple[Operator, ...]


def walk(
    sinks: Iterable[Operator], stop: Callable[[Operator], bool] = lambda _: False
) -> Iterator[Operator]:
    """Every node once, inputs before the nodes that read them.

    Below a node for which ``stop`` holds nothing is visited.
    """
    seen: set[int] = set()
    # A stack and not a recursion: a pipeline may be longer than Python's is deep.
    stack = [(node, False) for node in reversed(tuple(sinks))]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif id(node) not in seen:
            seen.add(id(node))
            stack.append((node, True))
            if not stop(node):
                stack += [(child, False) for child in reversed(node.inputs)]


def rebuild(sinks: Sinks, step: Callable[[Operator], Operator]) -> Sinks:
    """The graph with ``step`` applied to every node, inputs first."""
    done: dict[int, Operator] = {}
    for node in walk(sinks):
        done[id(node)] = step(node.with_inputs(lambda child: done[id(child)]))
    return tuple(done[id(sink)] for sink in sinks)


def readers(sinks: Sinks) -> dict[int, list[Operator]]:
    """For each node, by `id`, the nodes that read it."""
    found: dict[int, list[Operator]] = {}
    for node in walk(sinks):
        found.setdefault(id(node), [])
        for child in node.inputs:
            found.setdefault(id(child), []).append(node)
    return found


def show(
    sinks: Sinks, describe: Callable[[Operator], str] = lambda op: op.describe()
) -> str:
    """One line a node: its number, what it is, and the numbers of what it reads.

    ::

        #0 Source X
        #1 Learn scale StandardScaler() #0
        #2 Apply scale #1 #0
    """
    numbers: dict[int, int] = {}
    lines: list[str] = []
    for node in walk(sinks):
        numbers[id(node)] = len(numbers)
        reads = " ".join(f"#{numbers[id(child)]}" for child in node.inputs)
        what = describe(node) if not node.gives_rows else ""
        text = f"#{numbers[id(node)]} {type(node).__name__} {node.step} {what} {reads}"
        lines.append(" ".join(text.split()))
    return "\n".join(lines)
