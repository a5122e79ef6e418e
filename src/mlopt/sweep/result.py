"""What came of a sweep."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlopt.plan import Plan
from mlopt.report.checked import Checked
from mlopt.report.history import TrialRow, trial_rows
from mlopt.sweep.config import Config
from mlopt.sweep.prepare import Prepared


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
        """The same metric on the test rows."""
        checked = self.checked
        return None if checked is None else float(checked.scores[self.prepared.scoring])

    @property
    def trials(self) -> tuple[TrialRow, ...]:
        """Every trial, in the order of proposal."""
        return trial_rows(self.search.events_)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search before its time."""
        return bool(self.search.interrupted_)

    def describe(self, folder: Path | None = None) -> str:
        """The plan, the scores, and where the results are."""
        scoring = self.prepared.scoring
        lines = [
            self.plan.explain(),
            "",
            f"best {scoring} in validation: {self.best_score:.5g}",
        ]
        if self.test_score is not None:
            rows = f"{len(self.prepared.y_test):,} rows"
            lines.append(f"test {scoring}: {self.test_score:.5g} on {rows}")
        if folder is not None:
            lines.append(f"report: {folder / 'report.html'}")
        return "\n".join(lines)
