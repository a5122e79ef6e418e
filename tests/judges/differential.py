"""One case judged: mlopt's pipeline beside scikit-learn's, on equal rows and steps."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any

import dask
import numpy as np
import sklearn.pipeline
from sklearn.base import clone
from tests.judges.axes import turned_like
from tests.judges.compare import ROUNDING, SOLVED, check, differences
from tests.judges.known import excuse
from tests.judges.objectives import chooses_alike, is_chosen_alike, nearer
from tests.judges.outcomes import Difference, Raised, outcome
from tests.judges.pipelines import (
    LAST,
    UNSEEDED,
    Case,
    build,
    names_in,
    step,
    with_output,
)
from tests.judges.rounding import (
    FITS,
    beyond,
    in_order,
    place,
    rounded_otherwise,
    watched,
)
from tests.judges.tables import make

import mlopt
from mlopt.options import PLANS

METHODS = ("predict", "predict_proba", "decision_function", "transform")

SCORES = ("decision_function", "predict_proba")
"""Methods that tell how far a prediction is from another."""

ITERATIVE = {"from model", "logistic", "svc", "svr", "ridge", "squares", "ridge classifier"}
ITERATIVE |= {"stacking", "lasso", "discriminant"}
"""Parts whose result depends on where a solver stops, or on how a matrix is factored."""

CHOSEN = re.compile(r"fit((?:\[\d+\])+):SelectFromModel.estimator_:LogisticRegression\.")
"""Places within the model by which a step chooses columns; its path in brackets."""

STEP = re.compile(r"fit\[(\d+)\]")
"""The step that a difference is in."""

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
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not parts & set(UNSEEDED):
            _judge_values(case, parts)
            return
        for difference in _of_chance(case, parts):
            if excuse(case, parts, difference) is None:
                raise difference


def _judge_values(case: Case, parts: set[str]) -> None:
    tolerance = (
        SOLVED if parts & ITERATIVE or "float32" in case.table.container else ROUNDING
    )
    given = make(case.table)
    # The second finds whatever this process remembers of the first.
    for when in ("", "again: "):
        ours, theirs = mlopt.Pipeline(build(case)), sklearn.pipeline.Pipeline(build(case))
        with dask.config.set({"mlopt.plan": PLANS[case.table.seed % len(PLANS)]}):
            fitted = outcome(lambda: ours.fit(*given.ours[:2]))  # noqa: B023
        with watched() as seen, in_order(), turned_like(ours):
            other = outcome(lambda: theirs.fit(*given.theirs[:2]))  # noqa: B023
        failed = isinstance(other, Raised)
        wanted = {} if failed else _outputs(theirs, theirs, given.theirs)
        found = list(differences(f"{when}fit", fitted, other, tolerance))
        if not failed and not isinstance(fitted, Raised):
            made = _outputs(ours, theirs, given.ours)
            found += _of_outputs(when, made, wanted, tolerance)
        found = [one for one in found if excuse(case, parts, one) is None]
        if found:
            found = _not_solved_alike(case, found, (ours, theirs), given, seen)
        if found:
            found = beyond(found, _own(case, theirs, wanted, given, tolerance))
        if found:
            raise found[0]
        if failed:
            return


def _own(
    case: Case, theirs: Any, wanted: dict[str, Any], given: Any, tolerance: float
) -> Iterator[Difference]:
    """Of scikit-learn's pipeline from itself, with other rounding."""
    for number in range(FITS):
        with rounded_otherwise(number), in_order():
            other = sklearn.pipeline.Pipeline(build(case))
            other = outcome(lambda: other.fit(*given.theirs[:2]))  # noqa: B023
            yield from differences("fit", other, theirs, tolerance)
            if not isinstance(other, Raised):
                made = _outputs(other, theirs, given.theirs)
                yield from _of_outputs("", made, wanted, tolerance)


def _not_solved_alike(
    case: Case,
    found: list[Difference],
    pipes: tuple[Any, Any],
    given: Any,
    seen: dict[int, Any],
) -> list[Difference]:
    """Without those of linear models that lie as near to the minimum, and what follows."""
    rows, y = given.theirs[:2]
    left: list[Difference] = []
    last = len(case.steps)
    for difference in found:
        where = place(difference)
        step, chosen = STEP.match(where), CHOSEN.match(where)
        if last < (int(step[1]) if step else len(case.steps)):
            continue  # it was given other columns
        if where.startswith(f"fit[{len(case.steps)}]:"):
            with in_order():
                behind = clone(pipes[1][:-1]).fit_transform(rows, y)
            if nearer(case.last, pipes[0][-1], pipes[1][-1], behind, y):
                return left  # and what it predicts differs as well
        elif step and chosen and is_chosen_alike(pipes, chosen[1], seen, y):
            if not chooses_alike(pipes, chosen[1]):
                last = int(step[1])
            continue
        left.append(difference)
    return left


def _outputs(fitted: Any, theirs: Any, given: tuple[Any, Any, Any]) -> dict[str, Any]:
    """What a pipeline gives for rows and new rows, where scikit-learn's gives something."""
    rows = {"X": given[0], "new": given[2]}
    found = {
        f"{method}({name})": outcome(lambda: getattr(fitted, method)(X))  # noqa: B023
        for method in METHODS
        if hasattr(theirs, method)
        for name, X in rows.items()
    }
    if hasattr(theirs[-1], "fit_predict") and not hasattr(theirs[-1], "predict"):
        found["labels_"] = outcome(lambda: fitted[-1].labels_)
    found["get_feature_names_out"] = outcome(lambda: fitted.get_feature_names_out())
    return found


def _of_outputs(
    when: str, ours: dict[str, Any], theirs: dict[str, Any], tolerance: float
) -> Iterator[Difference]:
    for where, right in theirs.items():
        left = ours[where]
        if where == "get_feature_names_out" and isinstance(right, Raised):
            continue
        method, _, name = where.partition("(")
        if method == "predict":
            scores = [theirs.get(f"{one}({name}") for one in SCORES]
            left, right = _decided(left, right, scores, tolerance)
        yield from differences(f"{when}{where}", left, right, tolerance)


def _decided(left: Any, right: Any, scores: list[Any], tolerance: float) -> Any:
    """Predictions without the rows that lie where rounding decides."""
    if isinstance(left, Raised) or isinstance(right, Raised):
        return left, right
    for score in scores:
        if score is None or isinstance(score, Raised) or np.shape(left) != np.shape(right):
            continue
        margin = np.asarray(score)
        if margin.ndim > 1:
            top = np.sort(margin, axis=1)
            if top.shape[1] == 1:  # of one class nothing is left to decide
                continue
            margin = top[:, -1] - top[:, -2]
        clear = ~(np.abs(margin) <= tolerance * max(1.0, float(np.abs(margin).max())))
        return left[clear], right[clear]
    return left, right


def _of_chance(case: Case, parts: set[str]) -> Iterator[Difference]:
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
        tries = (_fitted(case, given) for _ in range(20 if raised and not others else 0))
        others += islice((one for one in tries if isinstance(one, Raised)), 1)
        mine, other = raised[0] if raised else fits[0][1], (others or theirs)[0]
        yield from differences("fit", mine, other, ROUNDING)
        return
    if raised or others:
        return
    for number, recipe in enumerate(case.steps):
        if isinstance(recipe, str) and recipe in UNSEEDED:
            pairs = [ours.steps[number][1] for ours, _ in fits]
            others = [fitted.steps[number][1] for fitted in theirs]
            if _equal(*pairs) and not _equal(*others):
                yield Difference(f"s{number}:{recipe}", "the same draw in two fits")
    for ours, _ in fits:
        yield from _of_consequences(case, ours, given, parts)


def _fitted(case: Case, given: Any) -> Any:
    pipe = sklearn.pipeline.Pipeline(build(case))
    with in_order():
        return outcome(lambda: pipe.fit(*given.theirs[:2]))


def _equal(a: Any, b: Any) -> bool:
    try:
        check("", a, b, 0.0)
    except Difference:
        return False
    return True


def _of_consequences(
    case: Case, ours: Any, given: Any, parts: set[str]
) -> Iterator[Difference]:
    """From what scikit-learn's steps learn behind the fitted steps before them."""
    if parts & UNLIKE:
        return
    tolerance = SOLVED if parts & ITERATIVE else ROUNDING
    rows, y = given.theirs[:2]
    plain = ours.export()
    before: list[Any] = []
    recipes = [*case.steps, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, (recipe, (name, fitted)) in enumerate(
            zip(recipes, plain.steps, strict=True)
        ):
            fresh = LAST[case.last]() if recipe is None else step(recipe)
            by_chance = recipe is not None and names_in(recipe) & set(UNSEEDED)
            if fresh != "passthrough" and not by_chance:
                with turned_like(fitted):
                    with_output(fresh, case.output).fit(rows, y)
                last = recipe is None and nearer(case.last, fitted, fresh, rows, y)
                if not last:
                    where = f"{name} behind chance"
                    found = list(differences(where, fitted, fresh, tolerance))
                    if found:
                        own = _own_step(where, fresh, before, given, tolerance)
                        found = beyond(found, own)
                    yield from found
            if number < len(case.steps) and fitted != "passthrough":
                rows = fitted.transform(rows)
                before.append(fitted)


def _own_step(
    where: str, fitted: Any, before: list[Any], given: Any, tolerance: float
) -> Iterator[Difference]:
    """Of scikit-learn's step from itself, when those before it round otherwise."""
    for number in range(FITS):
        rows, y = given.theirs[:2]
        with rounded_otherwise(number):
            for one in before:
                rows = one.transform(rows)
            other = outcome(lambda: clone(fitted).fit(rows, y))  # noqa: B023
        yield from differences(where, other, fitted, tolerance)


def shown(case: Case) -> str:
    """A case in a few lines, for a report."""
    return inspect.cleandoc(
        f"""
        {case.table}
        steps {case.steps}, last {case.last!r}, output {case.output!r}
        """
    )
