"""What an execution consists of: steps, what one of each takes, and who reads whom.

Convention on time: ``seconds`` is *one* execution of a node without its inputs, whole. An
estimator that passes ``weight`` times over its inputs asks for them ``weight`` times, and
its own ``seconds`` are those of the whole fit; they are not multiplied by ``weight``.
KeystoneML's formula takes them for each pass, its published code for the whole fit, as
here. In its test graph the estimator has ``seconds = 0`` and ``weight = 4``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from mlopt.errors import InputError
from mlopt.locking import cached_property


@dataclass(frozen=True)
class Node:
    """One step.

    Parameters
    ----------
    name : str
    seconds : float
        Of one whole execution, its inputs being there.
    bytes : float
        Of its output. ``inf`` when unknown: such an output is not a candidate.
    weight : int, default=1
        How many times one execution reads its inputs: the passes of an iterative one.
    inputs : tuple of int
        Positions of the nodes that it reads. One named twice is read once for each pass.
    candidate : bool, default=True
        Whether its output may be kept. It may not when it depends on what is not bound yet.
    always : bool, default=False
        Whether its output is kept in any case: persisted data, fitted models. Its bytes
        count as used.
    estimator : bool, default=False
        Whether its output is what a fit returns.
    """

    name: str
    seconds: float
    bytes: float
    weight: int = 1
    inputs: tuple[int, ...] = ()
    candidate: bool = True
    always: bool = False
    estimator: bool = False

    def __post_init__(self) -> None:
        if not (self.seconds >= 0 and math.isfinite(self.seconds)):
            raise InputError(
                f"`seconds` of {self.name!r} must be at least 0 and finite, got "
                f"{self.seconds!r}."
            )
        if not self.bytes >= 0:  # refuses NaN too
            raise InputError(
                f"`bytes` of {self.name!r} must be at least 0, got {self.bytes!r}."
            )
        if not (1 <= self.weight < math.inf and self.weight == int(self.weight)):
            raise InputError(
                f"`weight` of {self.name!r} must be a whole number of at least 1, got "
                f"{self.weight!r}."
            )
        if self.always and not math.isfinite(self.bytes):
            raise InputError(f"`bytes` of {self.name!r} must be finite: it is always kept.")


@dataclass(frozen=True)
class Graph:
    """Nodes in an order in which inputs come before their readers.

    Nodes that nobody reads are the results: each is asked for once.

    Raises
    ------
    InputError
        When there is no node, an input does not come before its reader, or the run that
        keeps nothing takes more seconds than a float can hold.
    """

    nodes: tuple[Node, ...]

    def __post_init__(self) -> None:
        if not self.nodes:
            raise InputError("`nodes` must hold at least one node, got none.")
        for position, node in enumerate(self.nodes):
            wrong = [i for i in node.inputs if not 0 <= i < position]
            if wrong:
                raise InputError(
                    f"`inputs` of {node.name!r} (position {position}) must come before it, "
                    f"got {wrong}. Give the nodes in topological order."
                )
        reads = [0.0] * len(self.nodes)  # where nothing is kept
        for v in reversed(range(len(self.nodes))):
            own = float(self.nodes[v].weight) * (reads[v] or 1.0)
            for i in self.inputs[v]:
                reads[i] += own
        # Far beyond any real run; products of it with seconds stay finite.
        if not max(reads) < 1e250:
            raise InputError("The weights of `nodes` multiply to more than can be counted.")

    @cached_property
    def inputs(self) -> tuple[tuple[int, ...], ...]:
        """What each node reads in one pass, without repetition."""
        return tuple(tuple(dict.fromkeys(node.inputs)) for node in self.nodes)

    @cached_property
    def steps(self) -> tuple[tuple[int, float, float, tuple[int, ...]], ...]:
        """Position, seconds, weight and inputs of each node, for loops that run often."""
        return tuple(
            (v, node.seconds, float(node.weight), self.inputs[v])
            for v, node in enumerate(self.nodes)
        )

    @cached_property
    def readers(self) -> tuple[tuple[int, ...], ...]:
        """Who reads each node."""
        out: list[list[int]] = [[] for _ in self.nodes]
        for position, inputs in enumerate(self.inputs):
            for i in inputs:
                out[i].append(position)
        return tuple(map(tuple, out))

    @cached_property
    def sinks(self) -> tuple[int, ...]:
        """Nodes that nobody reads."""
        return tuple(v for v, readers in enumerate(self.readers) if not readers)

    @cached_property
    def always(self) -> frozenset[int]:
        """Nodes that are kept in any case."""
        return frozenset(v for v, node in enumerate(self.nodes) if node.always)

    @cached_property
    def candidates(self) -> tuple[int, ...]:
        """Nodes that a strategy may keep: of known size, and not kept anyway."""
        return tuple(
            v
            for v, node in enumerate(self.nodes)
            if node.candidate and not node.always and math.isfinite(node.bytes)
        )

    def bytes_of(self, kept: Iterable[int]) -> float:
        """Bytes of the outputs of ``kept`` together."""
        return math.fsum(self.nodes[v].bytes for v in kept)
