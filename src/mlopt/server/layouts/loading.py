"""What a user's job has to do, by its program: sizes, and seconds of a step if need be."""

from __future__ import annotations

from dataclasses import dataclass

from mlopt.locking import cached_property
from mlopt.resources.sizes import memory_of
from mlopt.server.layouts.pool import Pool
from mlopt.server.layouts.pricing import STEP, Load, Priced, layouts
from mlopt.server.layouts.timing import timed
from mlopt.server.program import Program, part_name
from mlopt.server.workers import Mode


@dataclass(frozen=True)
class Work:
    """A program, and how it is to be run.

    Parameters
    ----------
    program : Program
    passes : int
        That are left.
    before : int
        Passes that are behind its model.
    mode : {"lockstep", "bounded", "async"}, optional
    staleness : int
    servers : int, optional
    """

    program: Program
    passes: int
    before: int = 0
    mode: Mode | None = None
    staleness: int = 1
    servers: int | None = None

    def __str__(self) -> str:
        strata, parts = len(self.program.cells), len(self.program.parts)
        cells = f"{strata} x {parts} blocks" if parts > 1 else f"{strata} blocks"
        return f"{self.passes} passes over {cells}"

    def prices(self, pool: Pool, measure: bool) -> list[Priced]:
        """All layouts; by steps that are timed, or without their seconds."""
        return layouts(self.load(self.step if measure else None), pool)

    @cached_property
    def step(self) -> float:
        """Seconds of a step, measured."""
        return timed(self.program, self.before)

    @cached_property
    def rows(self) -> float:
        """Bytes of all cells; where others have them, as many times that of the first."""
        program = self.program
        if program.executor is None:
            return float(sum(memory_of(cell) for row in program.cells for cell in row))
        # On a worker, by what is registered there: not all of it here can travel.
        first = program.executor.submit(memory_of, program.cells[0][0])
        count = sum(len(row) for row in program.cells)
        return float(program.executor.result(first)) * count

    def load(self, step: float | None) -> Load:
        """With so many seconds of a step."""
        program, plan = self.program, self.program.plan
        size = sum(array.nbytes for part in program.parts for array in part.values())
        states = sum(array.nbytes for state in program.states for array in state.values())
        blocks = sum(len(table.blocks) for table in plan.of(part_name(0)).values())
        return Load(
            self.passes, plan.strata, plan.parts, step, rows=self.rows,
            part=size / plan.parts, states=float(states), blocks=blocks,
            held=program.executor is not None, mode=self.mode, staleness=self.staleness,
            servers=self.servers, beside=STEP,
        )  # fmt: skip
