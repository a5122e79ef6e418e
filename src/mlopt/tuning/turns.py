"""Whose turn it is: where time is short, defaults come first, within half of the time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mlopt.tuning.crews.trials import Trial

SHARE = 0.5
"""Part of the time that defaults may take before any other trial begins: whatever a search
finds without them, it finds with them in twice the time at most."""


@dataclass(eq=False)
class Turns:
    """The defaults among the trials, and which of them others wait for.

    A default is trained to its end whatever it scores, so that no search is worse: one look
    tells its price, the next is the end. Where time is short all of them are looked at
    first. Then those end that together take half of the time at most, the cheapest first;
    a default that would take more trains as any other trial does.

    Parameters
    ----------
    count : int
        Trials that are defaults: the first.
    plain : set of int
        Those with the defaults of a class.
    short : bool
        Whether time may run out.
    """

    count: int = 0
    plain: frozenset[int] = frozenset()
    short: bool = False
    _chosen: bool = False
    _dear: set[int] = field(default_factory=set)
    """Defaults that train as any other."""
    _late: set[int] = field(default_factory=set)
    """Defaults that there was no time for when their turn came."""

    def keeps(self, trial: Trial) -> bool:
        """Whether ``trial`` is never given up."""
        return trial.number < self.count and trial.number not in self._dear

    def straight(self, trial: Trial) -> bool:
        """Whether the next look at ``trial`` is at its end."""
        own = self.short or trial.number in self.plain
        return trial.passes > 0 and own and self.keeps(trial)

    def going(self, trials: Sequence[Trial]) -> list[Trial]:
        """Those that there may still be time for."""
        return [trial for trial in trials if trial.number not in self._late]

    def leading(self, trials: Sequence[Trial]) -> list[Trial]:
        """Those that all others wait for: first for a look at each."""
        leads = [t for t in self.going(trials) if self.short and self.keeps(t)]
        fresh = [t for t in leads if t.passes == 0]
        return sorted(fresh, key=lambda t: t.number not in self.plain) or leads

    def now(self, trials: list[Trial]) -> list[Trial]:
        """Who trains now."""
        return self.leading(trials) or trials

    def choose(
        self,
        trials: list[Trial],
        rest: Callable[[Trial], float],
        seconds: float,
        spent: float = 0.0,
    ) -> tuple[list[Trial], list[Trial]]:
        """Once all were looked at: ``trials`` by price, and the defaults too dear to lead.

        Parameters
        ----------
        trials : list of Trial
        rest : callable
            Seconds that one thread takes to end a trial.
        seconds, spent : float
            Of all threads together that are left, and that training has taken so far.
        """
        leads = self.leading(trials)
        if self._chosen or not leads or leads[0].passes == 0:
            return trials, []
        self._chosen = True
        ranked = sorted(leads, key=lambda t: (rest(t), t.number))
        left = SHARE * (seconds + spent) - spent
        dear = []
        for trial in ranked:
            left -= rest(trial)
            if left < 0:
                dear.append(trial)
        self._dear = {trial.number for trial in dear}
        others = [trial for trial in trials if trial not in leads]
        return [*ranked, *others], dear

    def heard(self, asked: Sequence[tuple[Trial, object]]) -> bool:
        """Whether a default was late: ``asked`` to train on from passes, it did not."""
        late = {
            trial.number
            for trial, passes in asked
            if self.short
            and trial.number < self.count
            and trial.passes == passes
            and not trial.reason
        }
        late -= self._late
        self._late |= late
        return bool(late)
