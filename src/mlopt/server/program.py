"""What a job does, wherever it runs: a model in parts, rows in strata, a step for both.

::

               part 0   part 1   part 2       a model that is in one part has one column
    stratum 0  cell     cell     cell         of cells: each is for all of it
    stratum 1  cell     cell     cell

A step has the rows of one cell and one part of the model; and what its stratum keeps, which
nobody else has (factors of its users, topics of its tokens). Steps of one stratum, and of
one part, come one after the other; no two others depend on each other. Source: Gemulla et
al., "Large-scale matrix factorization with distributed stochastic gradient descent", KDD
2011.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from mlopt.cluster import Executor
from mlopt.errors import InputError
from mlopt.locking import cached_property
from mlopt.rows.block import Block, fixed, read_only
from mlopt.server.blocks import Array, add_to
from mlopt.server.tables import Table, Tables, is_wide

Part = Mapping[str, Array]


class Step(ABC):
    """What is done with the rows of a cell."""

    @abstractmethod
    def visit(self, cell: Any, part: Part, state: Part, passes: int) -> float:
        """Change a part of the model and what the stratum keeps, in place.

        Parameters
        ----------
        cell : any
        part, state : mapping of str to ndarray
            Nobody else's meanwhile.
        passes : int
            Before this one.

        Returns
        -------
        float
            A loss, to be summed over a pass.
        """

    def delta(self, cell: Any, part: Part, state: Part, passes: int) -> tuple[Part, float]:
        """What is to be added to a part that others change meanwhile; and the loss."""
        changed = {name: array.copy() for name, array in part.items()}
        loss = self.visit(cell, changed, state, passes)
        return {name: changed[name] - array for name, array in part.items()}, loss


@dataclass(frozen=True)
class Adds(Step):
    """A user's ``step(block, model) -> delta``.

    Parameters
    ----------
    function : callable
    alone : bool
        Whether the model is a single array, and so is a delta.
    """

    function: Callable[[Any, Any], Any]
    alone: bool

    def visit(self, cell: Any, part: Part, state: Part, passes: int) -> float:
        delta, loss = self.delta(cell, part, state, passes)
        add_to([*part.values()], [delta[name] for name in part])
        return loss

    def delta(self, cell: Any, part: Part, state: Part, passes: int) -> tuple[Part, float]:
        given = {name: read_only(array) for name, array in part.items()}
        rows = fixed(cell) if isinstance(cell, Block) else cell
        found = self.function(rows, given[""] if self.alone else given)
        delta = {"": found} if self.alone else found
        check_delta(delta, part)
        return {name: _like(delta[name], array) for name, array in part.items()}, 0.0


def check_delta(delta: Any, part: Part) -> None:
    """Raise unless a step has returned what can be added to the model.

    Raises
    ------
    InputError
    """
    if not isinstance(delta, Mapping) or delta.keys() != part.keys():
        got = list(delta) if isinstance(delta, Mapping) else type(delta).__name__
        raise InputError(
            f"`step` must return a delta with the arrays of the model, {sorted(part)}; got "
            f"{got}."
        )
    for name, array in part.items():
        what = f"`{name}` of its delta" if name else "its delta"
        _check_kind(delta[name], what)
        found = np.asarray(delta[name])
        if found.shape != array.shape:
            raise InputError(
                f"`step` must return a delta of the model's shape: {what} should have "
                f"{array.shape}, and has {found.shape}."
            )
        if not np.can_cast(found.dtype, array.dtype, "same_kind"):
            raise InputError(
                f"`step` must return a delta that can be added to {array.dtype}: {what} "
                f"is of {found.dtype}."
            )
        if array.dtype.kind in "iu" and not np.can_cast(found.dtype, array.dtype):
            limits, least, most = np.iinfo(array.dtype), found.min(), found.max()
            if not limits.min <= least <= most <= limits.max:
                raise InputError(
                    f"{what[0].upper()}{what[1:]} cannot be added to {array.dtype}: it has "
                    f"{most if most > limits.max else least}. Begin with a model of a "
                    "wider type."
                )


def _like(delta: Any, array: Array) -> Array:
    """In a type that holds what the model's does: those of several steps are added up."""
    found = np.asarray(delta)
    whole = array.dtype.kind in "iu"
    kind = array.dtype if whole else np.result_type(found, array)
    return found.astype(kind, copy=False)


def _check_kind(found: Any, what: str) -> None:
    """Refuse what numpy would make something else of."""
    if found is None:
        raise InputError(
            "`step` must return a delta to be added to the model: as "
            f"{what} it returned None."
        )
    for kind, how, so in (
        ("masked", "filled", isinstance(found, np.ma.MaskedArray)),
        ("sparse", "toarray", sp.issparse(found)),
    ):
        if so:
            raise InputError(
                f"`step` must return an array: {what} is {kind}. Give its `{how}`."
            )


CLOCK = "clock"
"""The table that has of each stratum the number of its steps that are done."""


def _in_turn(parts: int, passes: int) -> Sequence[int]:
    del passes
    return range(parts)


@dataclass(frozen=True)
class Program:
    """A job.

    Parameters
    ----------
    step : Step
    parts : sequence of mapping of str to ndarray
        Of the model; at least as many as there are strata, or one.
    cells : sequence of sequences
        ``cells[stratum][part]``.
    states : sequence of mapping of str to ndarray, optional
        What each stratum keeps.
    turns : callable, optional
        ``turns(parts, passes)``: the rounds of a pass; in round ``t`` stratum ``a`` has
        part ``a + t``, modulo their number.
    executor : Executor, optional
        Whose handles the cells are; else they are values.
    """

    step: Step
    parts: Sequence[Part]
    cells: Sequence[Sequence[Any]]
    states: Sequence[Part] = ()
    turns: Callable[[int, int], Sequence[int]] = field(default=_in_turn)
    executor: Executor | None = None

    def __post_init__(self) -> None:
        lengths = {len(row) for row in self.cells}
        if not self.cells or lengths != {len(self.parts)}:
            raise InputError(
                f"Rows must have strata with a cell for each of the {len(self.parts)} "
                f"parts of the model; got {len(self.cells)} strata with {sorted(lengths)} "
                "cells."
            )

    @property
    def plan(self) -> Plan:
        """What members must know of it, which is small."""
        return Plan(self.step, len(self.parts), len(self.cells), self.tables, self.turns)

    @cached_property
    def tables(self) -> Tables:
        """Of the parts, and of what strata keep."""
        return Tables.of(self.model())

    def model(self) -> dict[str, Any]:
        """Parts and states as a store has them."""
        named = {part_name(b): part for b, part in enumerate(self.parts)}
        named |= {state_name(a): state for a, state in enumerate(self.states) if state}
        model: dict[str, Any] = {
            name: value for one, part in named.items() for name, value in _tables(one, part)
        }
        return model | {CLOCK: np.zeros(len(self.cells), np.int64)}

    def starting(self, parts: Sequence[Part]) -> Program:
        """The same job from another model."""
        return replace(self, parts=parts)

    def gathered(self) -> Program:
        """The same job with its rows in this process."""
        if self.executor is None:
            return self
        cells = [[self.executor.result(cell) for cell in row] for row in self.cells]
        return replace(self, cells=cells, executor=None)

    def cut(self, model: Mapping[str, Any]) -> tuple[list[Part], list[Part]]:
        """A store's model as parts and states."""
        plan = self.plan
        found = [plan.whole(name, model) for name in map(part_name, range(plan.parts))]
        states = [plan.whole(state_name(a), model) for a in range(plan.strata)]
        return found, states if self.states else []


@dataclass(frozen=True)
class Plan:
    """A `Program` without its rows and its model."""

    step: Step
    parts: int
    strata: int
    tables: Tables
    turns: Callable[[int, int], Sequence[int]]

    def order(self, stratum: int, first: int) -> Iterator[tuple[int, int, int]]:
        """From pass ``first`` on: passes, parts that a stratum has, and their places."""
        place, passes = 0, first
        while True:
            for turn in self.turns(self.parts, passes):
                yield passes, (stratum + int(turn)) % self.parts, place
                place += 1
            passes += 1

    def holders(self, part: int, first: int) -> Iterator[tuple[int, int]]:
        """From pass ``first`` on: passes, and strata that have a part, in their order."""
        passes = first
        while True:
            for turn in self.turns(self.parts, passes):
                if self.parts == 1:
                    yield from ((passes, stratum) for stratum in range(self.strata))
                elif (stratum := (part - int(turn)) % self.parts) < self.strata:
                    yield passes, stratum
            passes += 1

    def of(self, name: str) -> dict[str, Table]:
        """The tables of a part, or of what a stratum keeps."""
        return {
            one: table
            for one, table in self.tables.tables.items()
            if one == name or one.startswith(f"{name} ")
        }

    def whole(self, name: str, model: Mapping[str, Any]) -> Part:
        """A part, or what a stratum keeps, from a store's model."""
        out: dict[str, Array] = {}
        for one in self.of(name):
            value = model[one]
            out |= value if isinstance(value, Mapping) else {one[len(name) + 1 :]: value}
        return out

    def split(self, name: str, part: Part) -> dict[str, Any]:
        """A part as a store has it."""
        return dict(_tables(name, part))


def part_name(part: int) -> str:
    """The name of a part's tables."""
    return f"part{part}"


def state_name(stratum: int) -> str:
    """The name of the tables of what a stratum keeps."""
    return f"state{stratum}"


def _tables(name: str, part: Part) -> Iterator[tuple[str, Any]]:
    counts = {len(array) if np.ndim(array) else 1 for array in part.values()}
    apart = is_wide(*map(np.asarray, part.values()))
    if len(part) > 1 and len(counts) == 1 and not apart:
        yield name, part  # rows of all of them go together
    else:
        yield from ((f"{name} {one}", array) for one, array in part.items())
