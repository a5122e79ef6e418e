"""Action elimination: give up a model whose error is well above the best so far.

Source: TuPAQ, Algorithm 3, a variant of Even-Dar, Mannor and Mansour (2006).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import ClassVar, Literal

from mlopt.passes import Passes
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
    against : {"peers", "best"}, default="peers"
        "best" is the paper's: the best model to date, which may have trained ten times
        longer, so that those proposed late, when the sampler has learnt, hardly get a
        chance. "peers" compares with the others as they were after as many passes.
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
    against: Literal["peers", "best"] = "peers"
    floor: float = 0.01
    first: int | None = None
    every: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require("eps", self.eps, self.eps >= 0, "0 or more")
        require("floor", self.floor, self.floor >= 0, "0 or more")
        require(
            "form", self.form, self.form in ("error", "quality"), "'error' or 'quality'"
        )
        known = self.against in ("peers", "best")
        require("against", self.against, known, "'peers' or 'best'")
        for name, value in (("first", self.first), ("every", self.every)):
            require(name, value, value is None or value >= 1, "at least 1")

    def next_stop(self, progress: Progress) -> int:
        first = min(self.first or max(3, -(-self.max_passes // 10)), self.max_passes)
        return next_multiple(
            int(progress.passes), first, self.every or first, self.max_passes
        )

    def allocate(self, active: Sequence[Progress], history: Sequence[Progress]) -> Verdicts:
        reasons: dict[int, str] = {}
        for passes in {p.passes for p in active}:
            here = [p for p in active if p.passes == passes]
            looks = [p for p in (*history, *active) if self._comparable(p, passes)]
            reasons |= self._reasons(here, latest(looks))
        return verdicts(active, self.max_passes, reasons)

    def _comparable(self, look: Progress, passes: Passes) -> bool:
        """Looks at the same age, and at models that are done: they will not change.

        A lucky look at a younger age would otherwise end everybody, its own model too.
        """
        same_age = look.passes == passes or (look.done and look.passes < passes)
        return self.against == "best" or same_age

    def _reasons(
        self, here: Sequence[Progress], seen: Sequence[Progress]
    ) -> dict[int, str]:
        if not seen or math.isinf(self.eps):
            return {}
        best = max(seen, key=lambda p: (p.score, -p.trial))
        if self.form == "quality" or best.score > self.perfect:
            return self._by_quality(here, best)
        unit = median(self.perfect - p.score for p in seen) if self.perfect == 0 else 1.0
        return self._by_error(here, best, self.floor * unit)

    def _by_error(
        self, here: Sequence[Progress], best: Progress, floor: float
    ) -> dict[int, str]:
        bar = (1 + self.eps) * max(self.perfect - best.score, floor)
        return {
            p.trial: f"error {self.perfect - p.score:.4g} is above {bar:.4g}, "
            f"{1 + self.eps:g} times the best so far (trial {best.trial})"
            for p in here
            # equal up to rounding counts as equal
            if self.perfect - p.score > bar * (1 + 1e-9)
        }

    def _by_quality(self, here: Sequence[Progress], best: Progress) -> dict[int, str]:
        return {
            p.trial: f"score {p.score:.4g} times {1 + self.eps:g} is not above "
            f"{best.score:.4g}, the best so far (trial {best.trial})"
            for p in here
            # a best score of 0 or less is not above itself
            if p.trial != best.trial and not p.score * (1 + self.eps) > best.score
        }


def _require_one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    require(name, value, value in allowed, " or ".join(map(repr, allowed)))
