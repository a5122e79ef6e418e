"""What came of a sweep."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sklearn.exceptions import UndefinedMetricWarning

from mlopt.hearing import unheard
from mlopt.plan import Plan
from mlopt.report.checked import Checked
from mlopt.report.history import (
    COMPLETE,
    FAIL,
    TrialRow,
    best_first,
    short,
    shown,
    trial_rows,
)
from mlopt.sweep.beside import described
from mlopt.sweep.config import Config
from mlopt.sweep.prepare import Prepared
from mlopt.tuning.space.defaults import default_points
from mlopt.tuning.space.space import Space


@dataclass(frozen=True, eq=False)
class SweepResult:
    """What came of a sweep.

    Parameters
    ----------
    prepared : Prepared
    search : ModelSearchCV
        Searched, without a final fit.
    best : TrialRow
        The trial that was chosen.
    model : estimator
        The best configuration, fitted on all training rows; None when Ctrl-C came before
        a final fit that would have taken long.
    plan : Plan
        Predicted beside measured.
    checked : Checked
        The model on the test rows.
    seconds : float
        In all.
    config : Config
    """

    prepared: Prepared
    search: Any
    best: TrialRow
    model: Any
    plan: Plan
    checked: Checked | None
    seconds: float
    config: Config

    @property
    def best_score(self) -> float:
        """Mean score of the best trial over the validation parts."""
        return self.best.score

    @property
    def best_params(self) -> dict[str, Any]:
        """Of the best trial, its family among them."""
        return {"family": self.best.family, **self.best.params}

    @property
    def test_score(self) -> float | None:
        """The same metric on the test rows; None where it has none."""
        scores = {} if self.checked is None else self.checked.scores
        return scores.get(self.prepared.scoring)

    @property
    def trials(self) -> tuple[TrialRow, ...]:
        """Every trial, in the order of proposal."""
        return trial_rows(self.search.events_)

    @property
    def untried(self) -> tuple[str, ...]:
        """Families of which a default was not trained to its end: it may be the better."""
        ended = {row.number for row in self.trials if row.state in (COMPLETE, FAIL)}
        space = Space.of_families(self.prepared.families)
        firsts = enumerate(space.decode(point)[0] for point in default_points(space))
        missed = {family for number, family in firsts if number not in ended}
        return tuple(name for name in self.prepared.families if name in missed)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search before its time."""
        return bool(self.search.interrupted_)

    @property
    def baseline(self) -> float | None:
        """The metric on the test rows of always the same answer; None where it has none."""
        prepared = self.prepared
        try:
            with unheard(UndefinedMetricWarning):
                score = prepared.target.score_of_same_answer(
                    prepared.scoring,
                    prepared.y,
                    prepared.y_test,
                    prepared.beside.weight,
                    prepared.beside_test.scored,
                )
        except ValueError:
            return None
        return score if math.isfinite(score) else None

    def describe(self, folder: Path | None = None) -> str:
        """The plan, what was chosen among what, the scores, and what to do next."""
        scoring = self.prepared.scoring
        params = ", ".join(f"{short(n)}={shown(v)}" for n, v in self.best.params.items())
        lines = [
            self.plan.explain(),
            "",
            f"best model: {self.best.family}" + (f", {params}" if params else ""),
            f"best {scoring} in validation: {self.best_score:.5g}",
            *self._others(),
            *described(self.config.data, self.prepared.beside),
        ]
        if self.checked is not None:
            rows = f" on {self.checked.rows:,} rows" * (self.test_score is not None)
            lines.append(f"test {scoring}: {self.checked.score(scoring)}{rows}")
        if self.baseline is not None:
            lines.append(f"test {scoring} of always the same answer: {self.baseline:.5g}")
        if folder is not None:
            if self.model is not None:
                lines.append(
                    f"to predict: mlopt predict {shlex.quote(str(folder))} DATA; in Python "
                    f"mlopt.load({str(folder)!r}).predict(frame)"
                )
            lines.append(f"report: {folder / 'report.html'}")
        return "\n".join(lines)

    @property
    def idle(self) -> list[str]:
        """Families that were never fitted, which says nothing against them."""
        begun = {row.family for row in self.trials if row.looks or row.state == FAIL}
        return [name for name in self.prepared.families if name not in begun]

    def _others(self) -> list[str]:
        """The best of every other family, and those that never had a turn."""
        best: dict[str, float] = {}
        for row in best_first(row for row in self.trials if row.looks):
            best.setdefault(row.family, row.score)
        others = [
            f"{n} {best[n]:.5g}" for n in sorted(best, key=lambda n: -best[n])
            if n != self.best.family
        ]  # fmt: skip
        idle = self.idle
        lines = [f"other families: {', '.join(others)}"] if others else []
        if idle:
            lines.append(f"without a turn: {', '.join(idle)}; give more time or trials")
        if short := [name for name in self.untried if name not in idle]:
            names = ", ".join(short)
            lines.append(
                f"not fully trained with its defaults: {names}; give more time or trials"
            )
        return lines


class SweepInterrupted(KeyboardInterrupt):
    """Ctrl-C or SIGTERM ended a sweep, after what there was had been written.

    Parameters
    ----------
    result : SweepResult
        What was found until then.
    """

    def __init__(self, result: SweepResult) -> None:
        super().__init__("The sweep was interrupted: `result` has what was found.")
        self.result = result
