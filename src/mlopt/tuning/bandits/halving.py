"""Successive halving and Hyperband: brackets of trials, of which the best part goes on.

::

    passes      3        9        27       81
    trials      27  ->   9   ->   3   ->   1       one bracket, factor 3

Source: Jamieson and Talwalkar (2016); Li, Jamieson, DeSalvo, Rostamizadeh and Talwalkar
(2018), "Hyperband", Algorithm 1. Brackets run one after the other, each in step.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, count, takewhile
from numbers import Real
from typing import ClassVar

from mlopt.errors import InputError
from mlopt.locking import cached_property
from mlopt.parameters import check_count
from mlopt.passes import FINEST, Passes, exact, passes_text
from mlopt.tuning.bandits.base import (
    Bandit,
    Progress,
    Verdicts,
    check_counts,
    latest,
    verdicts,
)


@dataclass(frozen=True, kw_only=True)
class Brackets(Bandit):
    """What the two have in common.

    Parameters
    ----------
    factor : int, default=3
        One in ``factor`` trials of a bracket goes on after each look; of several families,
        one in ``factor`` of each, at least one.
    min_passes : int, float or Fraction, default=3
        Passes before the first look: after one pass, luck decides where rows are few. Of
        many rows a part may do (``1/9``): what trains row by row then stops within its
        first pass, and goes on from there; what cannot is looked at after a whole one.
    """

    factor: int = 3
    min_passes: float | Fraction = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("factor", self.factor, least=2)
        least, given = Fraction(1, FINEST), self.min_passes
        if not (isinstance(given, Real) and math.isfinite(given) and given >= least):
            raise InputError(f"`min_passes` must be at least {least}, got {given!r}.")

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, ...]:
        """Trials at the start of each bracket; after the last, the first comes again."""

    @property
    def parts(self) -> int:
        return math.lcm(*(stop.denominator for stop in self.stops(0)))

    @abstractmethod
    def stops(self, bracket: int) -> tuple[Passes, ...]:
        """Passes at which trials of ``bracket`` are looked at; the last is the maximum."""

    def survival(self, looks: int) -> float:
        return float(self.factor**-looks)

    def next_stop(self, progress: Progress) -> Passes:
        stops = self.stops(progress.bracket)
        return next((s for s in stops if s > progress.passes), self.max_passes)

    def bracket(self, number: int) -> int:
        rounds, rest = divmod(number, sum(self.sizes))
        ends = list(accumulate(self.sizes))
        return rounds * len(ends) + next(i for i, end in enumerate(ends) if rest < end)

    def room(self, active: Sequence[Progress], slots: int, proposed: int = 0) -> int:
        """The rest of the next bracket once nothing is active, whatever ``slots``.

        A bracket competes as a whole; who trains it may do so in several batches.
        """
        if len(self.stops(0)) == 1:  # nobody competes with anybody
            return super().room(active, slots, proposed)
        rounds, bracket = divmod(self.bracket(proposed), len(self.sizes))
        end = rounds * sum(self.sizes) + sum(self.sizes[: bracket + 1])
        return 0 if active else end - proposed

    def allocate(self, active: Sequence[Progress], history: Sequence[Progress]) -> Verdicts:
        seen = latest(history, active)
        reasons: dict[int, str] = {}
        for group in {(p.bracket, p.family) for p in active}:
            field = [p for p in seen if (p.bracket, p.family) == group]
            here = [p for p in active if (p.bracket, p.family) == group and not p.done]
            reasons |= self._losers(here, field)
        return verdicts(active, self.max_passes, reasons)

    def _losers(
        self, here: Sequence[Progress], entered: Sequence[Progress]
    ) -> dict[int, str]:
        """Why those in ``here`` that are not among the best of their bracket are given up.

        Who converged early still holds its place: it shows what the others must reach.
        """
        running = {p.trial for p in here}
        passes = max((p.passes for p in here), default=0)
        stops = self.stops(here[0].bracket) if here else ()
        if passes not in stops:
            return {}
        kept = max(1, len(entered) // self.factor ** (1 + stops.index(passes)))
        field = [p for p in entered if p.done or p.passes >= passes]
        ranked = sorted(field, key=lambda p: (-p.score, p.trial))
        age = f"{passes_text(passes)} passes"
        return {
            p.trial: f"rank {rank} of {len(field)} after {age}; {kept} go on"
            for rank, p in enumerate(ranked, start=1)
            if rank > kept and p.trial in running
        }


@dataclass(frozen=True, kw_only=True)
class SuccessiveHalving(Brackets):
    """One bracket: looks after ``min_passes * factor**k`` passes, and at the end.

    Parameters
    ----------
    size : int, optional
        Trials of a bracket; by default all of the search, or without a known number as
        many as leave one at the last look.
    """

    name: ClassVar[str] = "successive-halving"

    size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(size=self.size)

    @property
    def sizes(self) -> tuple[int, ...]:
        return (self.size or self.n_trials or self.factor ** (len(self.stops(0)) - 1),)

    def stops(self, bracket: int) -> tuple[Passes, ...]:
        del bracket
        return self._stops

    @cached_property
    def _stops(self) -> tuple[Passes, ...]:
        rungs = (exact(exact(self.min_passes) * self.factor**k) for k in count())
        return (*takewhile(lambda passes: passes < self.max_passes, rungs), self.max_passes)


@dataclass(frozen=True, kw_only=True)
class Hyperband(Brackets):
    """Brackets that trade many short trials against few long ones (Li et al. 2018).

    With ``s_max`` the largest s such that ``min_passes * factor**s <= max_passes``, bracket
    s = s_max ... 0 starts with ``ceil((s_max + 1) / (s + 1) * factor**s)`` trials and looks
    after ``max_passes / factor**s, ..., max_passes / factor, max_passes`` passes.
    """

    name: ClassVar[str] = "hyperband"

    @property
    def sizes(self) -> tuple[int, ...]:
        most = self._most
        return tuple(
            -(-(most + 1) * self.factor**s // (s + 1)) for s in range(most, -1, -1)
        )

    def stops(self, bracket: int) -> tuple[Passes, ...]:
        s = self._most - bracket % (self._most + 1)
        looks = (Fraction(self.max_passes, self.factor**k) for k in range(s, -1, -1))
        return tuple(round(look) if look >= 1 else look for look in looks)

    @property
    def _most(self) -> int:
        rungs = (exact(self.min_passes) * self.factor**s for s in count(1))
        return sum(1 for _ in takewhile(lambda passes: passes <= self.max_passes, rungs))
