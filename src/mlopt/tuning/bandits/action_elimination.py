"""Action elimination: give up a model whose error is well above the best so far.

Source: TuPAQ, Algorithm 3, a variant of Even-Dar, Mannor and Mansour (2006).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import ClassVar, Literal

from mlopt.parameters import check_choice, check_positive
from mlopt.passes import Passes
from mlopt.tuning.bandits.base import (
    Bandit,
    Progress,
    Verdicts,
    check_counts,
    latest,
    next_multiple,
    over,
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
        chance. "peers" compares with others of the family as they were after as many
        passes; and with the best fully trained model of other families, once one of its
        own is fully trained too and tells how errors of the family fall from here.
    floor : float, default=0.01
        The best error counts as at least this, so that a perfect model does not end all
        others: one point of accuracy. Where ``perfect`` is 0 (losses, which have a unit)
        it is a fraction of the median error.
    first : int, optional
        Passes before a model may be given up; a tenth of ``max_passes``, at least 3.
    every : int, optional
        Passes between two looks; ``first`` by default. With neither given, looks that cost
        more than they may save are left out.
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
        check_positive("eps", self.eps, zero=True, infinite=True)
        check_positive("floor", self.floor, zero=True)
        check_choice("form", self.form, ("error", "quality"))
        check_choice("against", self.against, ("peers", "best"))
        check_counts(first=self.first, every=self.every)

    @property
    def optional(self) -> bool:
        return self.first is None and self.every is None

    def next_stop(self, progress: Progress) -> int:
        first = min(self.first or max(3, -(-self.max_passes // 10)), self.max_passes)
        return next_multiple(
            int(progress.passes), first, self.every or first, self.max_passes
        )

    def allocate(self, active: Sequence[Progress], history: Sequence[Progress]) -> Verdicts:
        seen = [*history, *active]
        if self.against == "best":
            return verdicts(active, self.max_passes, self._reasons(active, latest(seen)))
        reasons: dict[int, str] = {}
        for family, passes in {(p.family, p.passes) for p in active}:
            here = [p for p in active if (p.family, p.passes) == (family, passes)]
            own = [p for p in seen if p.family == family]
            # At models that are done too: they will not change. A lucky look at a younger
            # age would otherwise end everybody, its own model too.
            peers = [p for p in own if p.passes == passes or (p.done and p.passes < passes)]
            reasons |= self._reasons(here, latest(peers))
            reasons |= self._outdone(here, own, passes, seen)
        return verdicts(active, self.max_passes, reasons)

    def _outdone(
        self,
        here: Sequence[Progress],
        own: Sequence[Progress],
        passes: Passes,
        seen: Sequence[Progress],
    ) -> dict[int, str]:
        """Who would end too far below another family, if as lucky as any of its own."""
        # The last look before this age does: from there its error fell at least as far.
        ages = {p.trial: p for p in latest([p for p in own if p.passes <= passes])}
        done = [p for p in latest(seen) if over(p, self.max_passes)]
        rest = [p for p in done if p.family != here[0].family]
        ended = [p for p in done if p.family == here[0].family]
        if not ended or not rest:
            return {}
        perfect = self.highest
        falls = [
            (perfect - p.score) / (perfect - ages.get(p.trial, p).score)
            for p in ended
            if perfect > ages.get(p.trial, p).score
        ]
        fall = max(0.0, min([1.0, *falls]))
        hopes = [replace(p, score=perfect - fall * (perfect - p.score)) for p in here]
        reasons = self._reasons(hopes, rest)
        return {
            number: f"if it goes on as others of its family did: {reason}"
            for number, reason in reasons.items()
        }

    def _reasons(
        self, here: Sequence[Progress], seen: Sequence[Progress]
    ) -> dict[int, str]:
        if not seen or math.isinf(self.eps):
            return {}
        best = max(seen, key=lambda p: (p.score, -p.trial))
        if self.form == "quality" or best.score > self.highest:
            return self._by_quality(here, best)
        unit = median(self.highest - p.score for p in seen) if self.highest == 0 else 1.0
        return self._by_error(here, best, self.floor * unit)

    def _by_error(
        self, here: Sequence[Progress], best: Progress, floor: float
    ) -> dict[int, str]:
        bar = (1 + self.eps) * max(self.highest - best.score, floor)
        return {
            p.trial: f"error {self.highest - p.score:.4g} is above {bar:.4g}, "
            f"{1 + self.eps:g} times the best so far (trial {best.trial})"
            for p in here
            # equal up to rounding counts as equal
            if self.highest - p.score > bar * (1 + 1e-9)
        }

    def _by_quality(self, here: Sequence[Progress], best: Progress) -> dict[int, str]:
        return {
            p.trial: f"score {p.score:.4g} times {1 + self.eps:g} is not above "
            f"{best.score:.4g}, the best so far (trial {best.trial})"
            for p in here
            # a best score of 0 or less is not above itself
            if p.trial != best.trial and not p.score * (1 + self.eps) > best.score
        }
