"""No bandit: every trial is trained to the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlopt.tuning.bandits.base import (
    Bandit,
    Progress,
    Verdicts,
    next_multiple,
    require,
    verdicts,
)


@dataclass(frozen=True, kw_only=True)
class NoPruning(Bandit):
    """Every trial is trained to the end.

    Parameters
    ----------
    every : int, optional
        Passes between two looks, for learning curves; by default only the end is seen.
    """

    name: ClassVar[str] = "none"

    every: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require("every", self.every, self.every is None or self.every >= 1, "at least 1")

    def survival(self, looks: int) -> float:
        del looks
        return 1.0

    def next_stop(self, progress: Progress) -> int:
        every = self.every or self.max_passes
        return next_multiple(int(progress.passes), every, every, self.max_passes)

    def allocate(self, active: Sequence[Progress], history: Sequence[Progress]) -> Verdicts:
        del history
        return verdicts(active, self.max_passes, {})
