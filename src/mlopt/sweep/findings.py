"""From the result of a sweep to what its report says."""

from __future__ import annotations

from importlib.metadata import version

from mlopt.report.history import FAIL, PRUNED, TrialRow, format_score
from mlopt.report.influence import importance, main_family
from mlopt.report.page import Findings
from mlopt.sweep.result import SweepResult

PACKAGES = ("mlopt", "numpy", "scipy", "scikit-learn", "optuna", "pandas", "dask", "skops")


def findings_of(result: SweepResult) -> Findings:
    """What the report shows."""
    prepared, search, rows = result.prepared, result.search, result.trials
    family = main_family(rows)
    shares = importance(search.study_, rows, family) if family else {}
    return Findings(
        title=f"{prepared.target.name} in {prepared.name}",
        summary=_sentence(result, rows),
        facts=_facts(result, rows),
        trials=rows,
        scoring=prepared.scoring,
        best_params=result.best_params,
        plan=result.plan,
        importance=shares,
        family=family,
        checked=result.checked,
        columns=prepared.messages,
        footer=_footer(result),
    )


def _sentence(result: SweepResult, rows: tuple[TrialRow, ...]) -> str:
    prepared, target = result.prepared, result.prepared.target
    what = f"one of {len(target.classes)} classes" if target.classifies else "a number"
    stopped = " until it was interrupted" if result.interrupted else ""
    return (
        f"{target.name} is {what}, learned from {len(prepared.y):,} rows and "
        f"{prepared.X.shape[1]} columns. {len(rows)} configurations of "
        f"{len(prepared.families)} model families were tried{stopped}."
    )


def _facts(result: SweepResult, rows: tuple[TrialRow, ...]) -> list[tuple[str, str, str]]:
    prepared, search = result.prepared, result.search
    scoring = prepared.scoring.removeprefix("neg_").replace("_", " ")
    sign = -1 if prepared.scoring.startswith("neg_") else 1
    states = [row.state for row in rows]
    pruned, failed = states.count(PRUNED), states.count(FAIL)
    full = max((row.passes for row in rows), default=0) * len(rows)
    facts = [
        (f"Validation {scoring}", format_score(sign * result.best_score), prepared.cv_name),
        ("Trials", f"{len(rows)}", f"{pruned} pruned, {failed} failed"),
        ("Passes over the rows", f"{search.passes_:,}", f"of {full:,} without pruning"),
        ("Time", f"{result.seconds:.0f} s", "reading and final fit included"),
    ]
    if result.test_score is not None:
        value = format_score(sign * result.test_score)
        facts.insert(
            0, (f"Test {scoring}", value, f"{len(prepared.y_test):,} rows never seen")
        )
    return facts


def _footer(result: SweepResult) -> list[str]:
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return [f"Seed {result.config.search.seed}. {packages}."]
