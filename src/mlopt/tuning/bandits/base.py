"""What every bandit is: a rule that says who goes on training, from the history alone;
and the one that lets everybody.

Conventions: a trial's ``passes`` count scans over its rows; scores are higher-is-better;
every active trial is trained to its ``next_stop`` before `Bandit.allocate` is called.
Passes of two families are not of one kind: a forest is nearly as good after a tenth of its
trees as at the end, a boosted model is not. So equal ages are compared within a family.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from mlopt.parameters import check_count
from mlopt.passes import Passes


@dataclass(frozen=True)
class Progress:
    """A trial that was looked at after ``passes`` passes; ``done`` when fully trained."""

    trial: int
    passes: Passes
    score: float
    done: bool
    bracket: int = 0
    family: str = ""


@dataclass(frozen=True)
class Verdicts:
    """Numbers of the trials that are finished, go on, or are given up, and why."""

    finished: tuple[int, ...] = ()
    active: tuple[int, ...] = ()
    pruned: tuple[int, ...] = ()
    reasons: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Bandit(ABC):
    """Decides which trials deserve more passes; a pure function of the history.

    Laws: every active trial gets exactly one verdict; a trial that is done and has a score
    is finished; a score that is not a number is pruned; `next_stop` is above the passes
    made and at most ``max_passes``; the order of the history does not matter.

    Parameters
    ----------
    max_passes : int, default=100
        Passes of a fully trained model.
    n_trials : int, optional
        Trials of the whole search, when known.
    perfect : float, optional
        The best score possible: 1 for accuracy, AUC or R2, 0 for negated losses. By default
        that of the search's scorer, and 1 where that is a function.
    """

    name: ClassVar[str]

    max_passes: int = 100
    n_trials: int | None = None
    perfect: float | None = None

    def __post_init__(self) -> None:
        check_count("max_passes", self.max_passes)
        check_counts(n_trials=self.n_trials)

    def bind(self, max_passes: int, n_trials: int | None, perfect: float) -> Self:
        """The same rule for a search of this size and this score."""
        if self.perfect is not None:
            perfect = self.perfect
        return replace(self, max_passes=max_passes, n_trials=n_trials, perfect=perfect)

    @property
    def highest(self) -> float:
        """`perfect`, or what it is where nobody has said."""
        return 1.0 if self.perfect is None else self.perfect

    @property
    def parts(self) -> int:
        """Looks come at multiples of one pass through so many; 1: after whole passes."""
        return 1

    @property
    def optional(self) -> bool:
        """Whether looks may be left out: nobody has asked for them in particular."""
        return False

    def survival(self, looks: int) -> float:
        """Share of trials that are expected to go on after so many looks.

        Laplace's rule of succession: of what nobody has seen yet, one half. Who is not
        given up at the first look is not expected to be later.
        """
        return 0.5 if looks else 1.0

    @abstractmethod
    def next_stop(self, progress: Progress) -> Passes:
        """Passes at which the trial is looked at next."""

    @abstractmethod
    def allocate(self, active: Sequence[Progress], history: Sequence[Progress]) -> Verdicts:
        """Judge the trials that were just trained.

        Parameters
        ----------
        active : sequence of Progress
            The latest of each trial in training, each at its stop or done.
        history : sequence of Progress
            Every look at every trial so far, not only the last; may contain ``active``.
        """

    def start(self, number: int) -> Progress:
        """Trial ``number`` before its first pass: its `next_stop` is the first look."""
        return Progress(number, 0, math.nan, False, self.bracket(number))

    def bracket(self, number: int) -> int:
        """The bracket of trial ``number``: trials of one bracket compete."""
        del number
        return 0

    def room(self, active: Sequence[Progress], slots: int, proposed: int = 0) -> int:
        """How many new trials may enter now.

        Parameters
        ----------
        active : sequence of Progress
            Trials in training.
        slots : int
            Trials that train at once.
        proposed : int
            Trials proposed so far, which is the number of the next one.
        """
        del proposed
        return max(0, slots - len(active))


def verdicts(
    active: Sequence[Progress], max_passes: int, reasons: Mapping[int, str]
) -> Verdicts:
    """Everyone in ``active`` gets a verdict; ``reasons`` names who is given up, and why.

    A fully trained model is finished whatever it is compared with (TuPAQ, Algorithm 3).
    """
    pruned = {
        p.trial: "the score is not a number" if math.isnan(p.score) else reasons[p.trial]
        for p in active
        if math.isnan(p.score) or (p.trial in reasons and not over(p, max_passes))
    }
    return Verdicts(
        tuple(p.trial for p in active if p.trial not in pruned and over(p, max_passes)),
        tuple(p.trial for p in active if p.trial not in pruned and not over(p, max_passes)),
        tuple(pruned),
        pruned,
    )


def over(progress: Progress, max_passes: int) -> bool:
    """Whether the trial is fully trained."""
    return progress.done or progress.passes >= max_passes


def latest(*histories: Iterable[Progress]) -> list[Progress]:
    """The last look at each trial that has a score, by trial number.

    What a model scored earlier says nothing of the model that it became, so a lucky early
    look does not set the bar for others of its age.
    """
    last: dict[int, Progress] = {}
    for history in histories:
        for progress in history:
            before = last.get(progress.trial)
            if before is None or progress.passes >= before.passes:
                last[progress.trial] = progress
    return [last[t] for t in sorted(last) if not math.isnan(last[t].score)]


def next_multiple(passes: int, first: int, every: int, end: int) -> int:
    """The smallest of ``first, first + every, ...`` above ``passes``, at most ``end``."""
    steps = max(0, (passes - first) // every + 1)
    return min(first + steps * every, end)


def check_counts(**given: int | None) -> None:
    """Refuse what is neither None nor a whole number of at least 1."""
    for name, value in given.items():
        if value is not None:
            check_count(name, value)


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
        check_counts(every=self.every)

    def survival(self, looks: int) -> float:
        del looks
        return 1.0

    def next_stop(self, progress: Progress) -> int:
        every = self.every or self.max_passes
        return next_multiple(int(progress.passes), every, every, self.max_passes)

    def allocate(self, active: Sequence[Progress], history: Sequence[Progress]) -> Verdicts:
        del history
        return verdicts(active, self.max_passes, {})
