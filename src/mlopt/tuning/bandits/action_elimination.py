"""Action elimination: give up a model whose error is well above the best so far.

Source: TuPAQ, Algorithm 3, a variant of Even-Dar, Mannor and Mansour (2006).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar, Literal

from mlopt.tuning.bandits.base import (
    Bandit,
    Progress,
    Verdicts,
    latest,
    next_multiple,
    require,
    verdicts,
)


@dataclass(frozen=True, kw_only=True)
class ActionElimination(Bandit):
    """Keep a model while its error is within ``1 + eps`` of the best model's.

    The paper's algorithm compares qualities, ``quality(m) * (1 + eps) > quality(best)``.
    With accuracies that prunes next to nothing: at eps = 0.5 and a best of 0.95 every model
    above 0.633 survives. Its experiment compares errors, and so does the default here:
    ``error(m) <= (1 + eps) * error(best)`` with ``error = perfect - score``.

    Parameters
    ----------
    eps : float, default=0.5
        Slack; infinite keeps all.
    form : {"error", "quality"}, default="error"
        What is compared. A score above ``perfect`` has no error, so qualities are
        compared then.
    floor : float, default=0.01
        The best error counts as at least this, so that a perfect model does not end all
        others: one point of accuracy. Where ``perfect`` is 0 (losses, which have a unit)
        it is a fraction of the median error.
    first : int, optional
        Passes before a model may be given up; a tenth of ``max_passes``, at least 3.
    every : int, optional
        Passes between two looks; ``first`` by default.
    """

    name: ClassVar[str] = "action-elimination"

    eps: float = 0.5
    form: Literal["error", "quality"] = "error"
    floor: float = 0.01
    first: int | None = None
    every: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require("eps", self.eps, self.eps >= 0, "0 or more")
        require("floor", self.floor, self.floor >= 0, "0 or more")
        require(
            "form", self.form, self.form in ("error", "quality"), '"error" or "quality"'
        )
        for name, value in (("first", self.first), ("every", self.every)):
            require(name, value, value is None or value >= 1, "at least 1")

    def next_stop(self, progress: Progress) -> int:
        first = min(self.first or max(3, -(-self.max_passes // 10)), self.max_passes)
        return next_multiple(progress.passes, first, self.every or first, self.max_passes)

    def allocate(self, active: Sequence[Progress], history: Sequence[Progress]) -> Verdicts:
        seen = latest(history, active)
        reasons: dict[int, str] = {}
        if seen and not math.isinf(self.eps):
            best = max(seen, key=lambda p: (p.score, -p.trial))
            compared = self._by_quality if self._by_qualities(best) else self._by_error
            reasons = compared(active, best, seen)
        return verdicts(active, self.max_passes, reasons)

    def _by_qualities(self, best: Progress) -> bool:
        return self.form == "quality" or best.score > self.perfect

    def _by_error(
        self, active: Sequence[Progress], best: Progress, seen: Sequence[Progress]
    ) -> dict[int, str]:
        unit = median(self.perfect - p.score for p in seen) if self.perfect == 0 else 1.0
        bar = (1 + self.eps) * max(self.perfect - best.score, self.floor * unit)
        return {
            p.trial: f"error {self.perfect - p.score:.4g} is above {bar:.4g}, "
            f"{1 + self.eps:g} times the best so far (trial {best.trial})"
            for p in active
            # equal up to rounding counts as equal
            if self.perfect - p.score > bar * (1 + 1e-9)
        }

    def _by_quality(
        self, active: Sequence[Progress], best: Progress, seen: Sequence[Progress]
    ) -> dict[int, str]:
        del seen
        return {
            p.trial: f"score {p.score:.4g} times {1 + self.eps:g} is not above "
            f"{best.score:.4g}, the best so far (trial {best.trial})"
            for p in active
            # a best score of 0 or less is not above itself
            if p.trial != best.trial and not p.score * (1 + self.eps) > best.score
        }
