"""From the result of a sweep to what its report says."""

from __future__ import annotations

from importlib.metadata import version

from mlopt.passes import passes_text
from mlopt.report.history import COMPLETE, FAIL, PRUNED, WAITING, format_score
from mlopt.report.influence import importance, main_family
from mlopt.report.page import Findings
from mlopt.sweep.beside import described
from mlopt.sweep.result import SweepResult

PACKAGES = ("mlopt", "numpy", "scipy", "scikit-learn", "optuna", "pandas", "dask", "skops")


def findings_of(result: SweepResult) -> Findings:
    """What the report shows."""
    prepared, search, rows = result.prepared, result.search, result.trials
    family = main_family(rows, result.best.family)
    shares = importance(search.study_, rows, family) if family else {}
    return Findings(
        title=f"{prepared.target.name} in {prepared.name}",
        summary=_sentence(result),
        facts=_facts(result),
        trials=rows,
        scoring=prepared.scoring,
        best_params=result.best_params,
        plan=result.plan,
        importance=shares,
        family=family,
        checked=result.checked,
        columns=prepared.messages,
        usage=_usage(result),
        footer=_footer(result),
    )


def _sentence(result: SweepResult) -> str:
    prepared, target = result.prepared, result.prepared.target
    classes = f" into {len(target.classes)} classes" if target.classifies else ""
    told = described(result.config.data, prepared.beside)
    stopped = ", until it was interrupted" if result.interrupted else ""
    looked = [row.family for row in result.trials if row.looks]
    return (
        f"{target.task.capitalize()} of {target.name}{classes}, learned from "
        f"{len(prepared.y):,} rows and {prepared.X.shape[1]} columns. "
        f"{_several(len(looked), 'configuration')} of "
        f"{_several(len({*looked}), 'model family', 'model families')} "
        f"{'was' if len(looked) == 1 else 'were'} tried{stopped}.{_idle(result)}"
        + "".join(f" {one[0].upper()}{one[1:]}." for one in told)
    )


def _idle(result: SweepResult) -> str:
    """How many families were never fitted, which says nothing against them."""
    idle = result.idle
    if not idle:
        return ""
    number = _several(len(idle), "family", "families")
    it = "it" if len(idle) == 1 else "them"
    return (
        f" {number} ({', '.join(idle)}) never got a turn: more time or trials would give "
        f"{it} one."
    )


def _several(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


def _usage(result: SweepResult) -> list[str]:
    """How to predict with the model; nothing without one."""
    if result.model is None:
        return []
    return [
        "mlopt predict FOLDER new.csv",
        'mlopt.load("FOLDER").predict(pandas.read_csv("new.csv"))',
    ]


def _facts(result: SweepResult) -> list[tuple[str, str, str]]:
    prepared, rows = result.prepared, result.trials
    scoring = prepared.scoring.removeprefix("neg_").replace("_", " ")
    sign = -1 if prepared.scoring.startswith("neg_") else 1
    states = [row.state for row in rows]
    pruned, failed, left = (states.count(state) for state in (PRUNED, FAIL, WAITING))
    ends = f"{pruned} pruned, {failed} failed" + f", {left} unfinished" * (left > 0)
    passes = sum(row.passes for row in rows)
    validation = format_score(sign * result.best_score)
    unfinished = result.best.state not in (COMPLETE, PRUNED)
    judged = (
        prepared.cv_name + f", after {passes_text(result.best.passes)} passes" * unfinished
    )
    family = result.best.family.replace("_", " ")
    facts = [
        (f"Validation {scoring}", validation, judged),
        ("Best family", family, f"trial {result.best.number}"),
        ("Trials", f"{len(rows)}", ends),
        ("Passes", passes_text(passes), "over the rows, by all trials"),
        ("Time", f"{result.seconds:.0f} s", "from reading to the test"),
    ]
    if result.test_score is not None:
        value = format_score(sign * result.test_score)
        note = f"{len(prepared.y_test):,} rows never seen"
        facts.insert(0, (f"Test {scoring}", value, note))
        baseline = result.baseline
        if baseline is not None:
            answer = "majority class" if prepared.target.classifies else "mean"
            note = f"test {scoring} of the {answer}, whatever the row"
            facts.insert(1, ("Baseline", format_score(sign * baseline), note))
    return facts


def _footer(result: SweepResult) -> list[str]:
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    return [f"Seed {result.config.search.seed}. {packages}."]
