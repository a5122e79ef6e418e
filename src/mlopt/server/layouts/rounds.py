"""Rounds: steps of all rows on one model, which then becomes what their sum makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from mlopt.cluster import Executor
from mlopt.errors import InputError
from mlopt.server.blocks import Array, add_to
from mlopt.server.layouts.layout import Layout
from mlopt.server.program import Part, Program, Step


class Rounds(Layout):
    """One sum over all strata for each part of the model; nothing is held but the rows.

    Parameters
    ----------
    program : Program
        Whose strata keep nothing.
    executor : Executor
    passes : int
    """

    def __init__(self, program: Program, executor: Executor, *, passes: int = 0) -> None:
        super().__init__(program, passes)
        if program.states:
            raise InputError(
                "rounds: what strata keep would have to travel with each; use rotate, "
                "servers or threads."
            )
        self.executor = executor
        self._parts: list[Part] = [
            {name: np.array(array) for name, array in part.items()}
            for part in program.parts
        ]
        values = program.executor is None
        self._cells = [
            [executor.put(cell) if values else cell for cell in row]
            for row in program.cells
        ]

    def advance(self, passes: int) -> None:
        for _ in range(passes):
            loss, parts = 0.0, list[Part]()
            for part, arrays in enumerate(self._parts):
                delta, more = self.executor.reduce(
                    partial(_delta, self.program.step, self.passes), _sum,
                    [row[part] for row in self._cells], arrays,
                )  # fmt: skip
                # Other arrays: threads may have the ones before.
                parts.append(
                    {
                        name: np.asarray(_total(array, delta[name]), array.dtype)
                        for name, array in arrays.items()
                    }
                )
                loss += more
            # All of a pass at once: one that is interrupted has not been.
            self.passes, self._parts, self.loss = self.passes + 1, parts, loss

    def model(self) -> tuple[Sequence[Part], Sequence[Part]]:
        return self._parts, []

    def close(self) -> None:
        """The executor is its owner's."""


def _delta(step: Step, passes: int, cell: Any, part: Part) -> tuple[Part, float]:
    return step.delta(cell, part, {}, passes)


def _sum(one: tuple[Part, float], other: tuple[Part, float]) -> tuple[Part, float]:
    parts = {name: _total(array, other[0][name]) for name, array in one[0].items()}
    return parts, one[1] + other[1]


def _total(one: Array, other: Array) -> Array:
    if one.dtype.kind not in "iu":
        return np.asarray(one + other)
    total = np.array(one)
    add_to([total], [other])
    return total
