"""One case judged: mlopt's pipeline beside scikit-learn's, on equal rows and steps."""

from __future__ import annotations

import inspect
import warnings
from contextlib import suppress
from typing import Any

import numpy as np
import sklearn.pipeline
from sklearn.base import clone
from tests.judges.compare import ROUNDING, SOLVED, Difference, Raised, check, outcome
from tests.judges.known import excuse
from tests.judges.objectives import nearer
from tests.judges.pipelines import LAST, UNSEEDED, Case, build, names_in, step
from tests.judges.tables import make

import mlopt

METHODS = ("predict", "predict_proba", "decision_function", "transform")

ITERATIVE = {"from model", "logistic", "svc", "svr", "ridge", "squares", "ridge classifier"}
ITERATIVE |= {"stacking", "lasso", "discriminant"}
"""Parts whose result depends on where a solver stops, or on how a matrix is factored."""

UNLIKE = {"twice", "target", "stacking"}
"""Parts whose `fit_transform` is not `fit` and then `transform`."""


def judge(case: Case) -> None:
    """That mlopt does what scikit-learn does.

    Raises
    ------
    Difference
        Unless it is a documented one.
    """
    parts = names_in(("chain", *case.steps)) | {case.last}
    try:
        if parts & set(UNSEEDED):
            _judge_chance(case, parts)
        else:
            _judge_values(case, parts)
    except Difference as difference:
        if excuse(case, parts, difference) is None:
            raise


def _judge_values(case: Case, parts: set[str]) -> None:
    tolerance = (
        SOLVED if parts & ITERATIVE or "float32" in case.table.container else ROUNDING
    )
    given = make(case.table)
    # The second finds whatever this process remembers of the first.
    for when in ("", "again: "):
        ours, theirs = mlopt.Pipeline(build(case)), sklearn.pipeline.Pipeline(build(case))
        fitted = outcome(lambda: ours.fit(*given.ours[:2]))  # noqa: B023
        other = outcome(lambda: theirs.fit(*given.theirs[:2]))  # noqa: B023
        try:
            check(f"{when}fit", fitted, other, tolerance)
        except Difference as difference:
            rows, y = given.theirs[:2]
            if not difference.where.startswith(f"{when}fit[{len(case.steps)}]:"):
                raise
            behind = clone(theirs[:-1]).fit_transform(rows, y)
            if not nearer(case.last, ours[-1], theirs[-1], behind, y):
                raise
            return  # documented: and what it predicts differs as well
        if isinstance(other, Raised):
            return
        _judge_outputs(when, ours, theirs, given, tolerance)


def _judge_outputs(when: str, ours: Any, theirs: Any, given: Any, tolerance: float) -> None:
    rows = (("X", given.ours[0], given.theirs[0]), ("new", given.ours[2], given.theirs[2]))
    for method in METHODS:
        if not hasattr(theirs, method):
            continue
        for name, mine, others in rows:
            left = outcome(lambda: getattr(ours, method)(mine))  # noqa: B023
            right = outcome(lambda: getattr(theirs, method)(others))  # noqa: B023
            where = f"{when}{method}({name})"
            if method == "predict" and tolerance == SOLVED:
                left, right = _decided(theirs, others, left, right)
            check(where, left, right, tolerance)
    if hasattr(theirs[-1], "fit_predict") and not hasattr(theirs[-1], "predict"):
        check(f"{when}labels_", ours[-1].labels_, theirs[-1].labels_, tolerance)
    left, right = outcome(ours.get_feature_names_out), outcome(theirs.get_feature_names_out)
    if not isinstance(right, Raised):
        check(f"{when}get_feature_names_out", left, right, tolerance)


def _decided(theirs: Any, X: Any, left: Any, right: Any) -> tuple[Any, Any]:
    """Predictions without the rows that lie where rounding decides."""
    if isinstance(left, Raised) or isinstance(right, Raised):
        return left, right
    if hasattr(theirs, "decision_function"):
        margin = np.asarray(theirs.decision_function(X))
        if margin.ndim > 1:
            top = np.sort(margin, axis=1)
            margin = top[:, -1] - top[:, -2]
        clear = np.abs(margin) > SOLVED * max(1.0, float(np.abs(margin).max()))
        if np.shape(left) == np.shape(right):
            return left[clear], right[clear]
    return left, right


def _judge_chance(case: Case, parts: set[str]) -> None:
    """Chance may differ; what follows from it may not, and no draw is used twice."""
    given = make(case.table)
    X, y = given.ours[:2]
    fits = []
    for _ in range(2):
        ours = mlopt.Pipeline(build(case))
        fits.append((ours, outcome(lambda: ours.fit(X, y))))  # noqa: B023
    theirs = [_fitted(case, given) for _ in range(2)]
    raised = [one for _, one in fits if isinstance(one, Raised)]
    others = [one for one in theirs if isinstance(one, Raised)]
    if len(raised) == len(fits) or len(others) == len(theirs):
        # What was drawn may decide whether a step can be fitted at all.
        tries = (_fitted(case, given) for _ in range(20 if raised else 0))
        others += [one for one in tries if isinstance(one, Raised)]
        check("fit", raised[0] if raised else fits[0][1], (others or theirs)[0], ROUNDING)
        return
    if raised or others:
        return
    for number, recipe in enumerate(case.steps):
        if isinstance(recipe, str) and recipe in UNSEEDED:
            pairs = [ours.steps[number][1] for ours, _ in fits]
            others = [fitted.steps[number][1] for fitted in theirs]
            if _equal(*pairs) and not _equal(*others):
                raise Difference(f"s{number}:{recipe}", "the same draw in two fits")
    for ours, _ in fits:
        _judge_consequences(case, ours, given, parts)


def _fitted(case: Case, given: Any) -> Any:
    pipe = sklearn.pipeline.Pipeline(build(case))
    return outcome(lambda: pipe.fit(*given.theirs[:2]))


def _equal(a: Any, b: Any) -> bool:
    try:
        check("", a, b, 0.0)
    except Difference:
        return False
    return True


def _judge_consequences(case: Case, ours: Any, given: Any, parts: set[str]) -> None:
    """Every step has learnt what scikit-learn learns behind the fitted steps before it."""
    if parts & UNLIKE:
        return
    tolerance = SOLVED if parts & ITERATIVE else ROUNDING
    rows, y = given.theirs[:2]
    plain = ours.export()
    recipes = [*case.steps, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, (recipe, (name, fitted)) in enumerate(
            zip(recipes, plain.steps, strict=True)
        ):
            fresh = LAST[case.last]() if recipe is None else step(recipe)
            by_chance = recipe is not None and names_in(recipe) & set(UNSEEDED)
            if fresh != "passthrough" and not by_chance:
                with suppress(ValueError):
                    if case.output != "default" and hasattr(fresh, "set_output"):
                        fresh.set_output(transform=case.output)
                fresh.fit(rows, y)
                last = recipe is None and nearer(case.last, fitted, fresh, rows, y)
                if not last:
                    check(f"{name} behind chance", fitted, fresh, tolerance)
            if number < len(case.steps) and fitted != "passthrough":
                rows = fitted.transform(rows)


def shown(case: Case) -> str:
    """A case in a few lines, for a report."""
    return inspect.cleandoc(
        f"""
        {case.table}
        steps {case.steps}, last {case.last!r}, output {case.output!r}
        """
    )
