"""What every way to run a job does; which one, nobody else need know."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

from mlopt.plan import Choice
from mlopt.server.program import Part, Program


class Layout(ABC):
    """A job under way.

    Laws: a step sees what the steps of its stratum before it have done; each cell has one
    step a pass; ``exact`` layouts give the same to the bit on any number of members.

    Parameters
    ----------
    program : Program
    passes : int
        That are behind its model.

    Attributes
    ----------
    passes : int
    loss : float
        Sum of the losses of the last pass.
    lost : int
        Members that were lost, and whose work others went on with.
    """

    exact: bool = True

    def __init__(self, program: Program, passes: int = 0) -> None:
        self.program, self.passes, self.lost = program, passes, 0
        self.loss = float("nan")

    @property
    def steps(self) -> tuple[int, ...]:
        """Steps of each stratum that are in `model`; of all as many, between two passes."""
        return (self.passes * len(self.program.parts),) * len(self.program.cells)

    @abstractmethod
    def advance(self, passes: int) -> None:
        """Do so many more passes; if that is interrupted, `passes` and `steps` are those
        that `model` has.

        Raises
        ------
        InputError
            A step returned what cannot be added to the model.
        ClusterError
            No member is left; `model` is what was copied last.
        """

    @abstractmethod
    def model(self) -> tuple[Sequence[Part], Sequence[Part]]:
        """Parts, and what strata keep, now: copies."""

    def changes(self) -> tuple[Choice, ...]:
        """What was configured anew on the way: a choice each, predicted and measured."""
        return ()

    @abstractmethod
    def close(self) -> None:
        """Let go of members."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
