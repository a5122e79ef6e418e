"""The story of a search, told from its events: one row a trial."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mlopt import events
from mlopt.passes import Passes

RUNNING, COMPLETE, PRUNED, FAIL = "RUNNING", "COMPLETE", "PRUNED", "FAIL"
WAITING = "WAITING"
"""Of what was not trained to its end; a resumed search goes on with it."""


@dataclass(frozen=True)
class Look:
    """One look at a trial: its score after so many passes."""

    passes: Passes
    score: float
    elapsed: float


@dataclass(frozen=True)
class TrialRow:
    """A trial, and what became of it."""

    number: int
    family: str
    params: Mapping[str, Any] = field(default_factory=dict)
    started: float = 0.0
    looks: tuple[Look, ...] = ()
    state: str = RUNNING
    seconds: float = 0.0
    reason: str = ""
    ended: float = math.nan

    @property
    def passes(self) -> Passes:
        """Passes over the rows so far."""
        return self.looks[-1].passes if self.looks else 0

    @property
    def score(self) -> float:
        """The latest score; NaN before the first."""
        return self.looks[-1].score if self.looks else math.nan

    @property
    def label(self) -> str:
        """What it is, in a line."""
        inner = ", ".join(f"{short(name)}={shown(v)}" for name, v in self.params.items())
        return f"#{self.number} {self.family} {inner}".strip()


def trial_rows(happened: Iterable[events.Event]) -> tuple[TrialRow, ...]:
    """The trials of a search in the order they were proposed."""
    rows: dict[int, TrialRow] = {}
    for event in happened:
        match event:
            case events.TrialStarted():
                rows[event.trial] = TrialRow(
                    event.trial, event.family, dict(event.params), event.elapsed
                )
            case events.TrialScored():
                row = rows[event.trial]
                look = Look(event.passes, event.score, event.elapsed)
                rows[event.trial] = replace(
                    row, looks=(*row.looks, look), seconds=row.seconds + event.seconds
                )
            case events.TrialPruned():
                rows[event.trial] = _ended(rows, event, PRUNED, event.reason)
            case events.TrialFailed():
                rows[event.trial] = _ended(rows, event, FAIL, event.reason)
            case events.TrialLeft():
                rows[event.trial] = _ended(rows, event, WAITING, event.reason)
            case events.TrialFinished():
                rows[event.trial] = _ended(rows, event, COMPLETE, "")
    return tuple(rows[number] for number in sorted(rows))


def best_first(rows: Iterable[TrialRow]) -> list[TrialRow]:
    """Trials with a score, by score; those that the bandit gave up come last.

    A trial that the time limit ended in the middle stands with the fully trained ones: more
    training would hardly have made it worse.
    """
    scored = [r for r in rows if math.isfinite(r.score) and r.state != FAIL]
    return sorted(scored, key=lambda r: (r.state == PRUNED, -r.score, r.number))


def best_so_far(rows: Sequence[TrialRow]) -> list[tuple[float, float]]:
    """(seconds, best score until then) where it rises; pruned trials do not count."""
    looks = [look for r in rows if r.state not in (PRUNED, FAIL) for look in r.looks]
    line: list[tuple[float, float]] = []
    for look in sorted(looks, key=lambda look: look.elapsed):
        if math.isfinite(look.score) and (not line or look.score > line[-1][1]):
            line.append((look.elapsed, look.score))
    return line


def families_in(rows: Iterable[TrialRow]) -> list[str]:
    """The families, in the order they first appeared."""
    return list(dict.fromkeys(row.family for row in rows))


def short(name: str) -> str:
    """A parameter without the steps it is nested in: ``model__C`` is C."""
    return name.rpartition("__")[2]


def labels(names: Iterable[str]) -> dict[str, str]:
    """What to call each parameter: `short`, unless two would be called alike."""
    names = list(names)
    often = Counter(map(short, names))
    return {name: short(name) if often[short(name)] == 1 else name for name in names}


def shown(value: Any) -> str:
    """A value for people: four significant digits."""
    if not isinstance(value, float) or not math.isfinite(value):
        return str(value)
    if value == 0 or 1e-3 <= abs(value) < 1e4:
        return f"{value:.4g}"
    if 1e4 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    digits, _, power = f"{value:.2e}".partition("e")
    return f"{digits.rstrip('0').rstrip('.')}e{int(power)}"


def _ended(rows: Mapping[int, TrialRow], event: Any, state: str, reason: str) -> TrialRow:
    return replace(rows[event.trial], state=state, reason=reason, ended=event.elapsed)


def format_score(score: float) -> str:
    """A score for people: four decimals while that says something."""
    return f"{score:.4f}" if abs(score) < 100 else f"{score:,.0f}"
