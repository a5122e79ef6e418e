"""One case judged: mlopt's pipeline beside scikit-learn's, on equal rows and steps."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import sklearn.pipeline
from sklearn.base import clone
from tests.judges.compare import ROUNDING, SOLVED, check, differences
from tests.judges.known import excuse
from tests.judges.objectives import is_chosen_alike, nearer
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

METHODS = ("predict", "predict_proba", "decision_function", "transform")

ITERATIVE = {"from model", "logistic", "svc", "svr", "ridge", "squares", "ridge classifier"}
ITERATIVE |= {"stacking", "lasso", "discriminant"}
"""Parts whose result depends on where a solver stops, or on how a matrix is factored."""

CHOSEN = re.compile(r"fit((?:\[\d+\])+):SelectFromModel.estimator_:LogisticRegression\.")
"""Places within the model by which a step chooses columns; its path in brackets."""

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
        fitted = outcome(lambda: ours.fit(*given.ours[:2]))  # noqa: B023
        with watched() as seen, in_order():
            other = outcome(lambda: theirs.fit(*given.theirs[:2]))  # noqa: B023
        found = list(_all(when, fitted, other, given, tolerance))
        found = [one for one in found if excuse(case, parts, one) is None]
        if found:
            found = _not_solved_alike(case, found, (ours, theirs), given, seen)
        if found:
            found = beyond(found, _own(case, theirs, given, tolerance))
        if found:
            raise found[0]
        if isinstance(other, Raised):
            return


def _all(
    when: str, ours: Any, theirs: Any, given: Any, tolerance: float
) -> Iterator[Difference]:
    """Of what is fitted, and of what it gives."""
    yield from differences(f"{when}fit", ours, theirs, tolerance)
    if not isinstance(ours, Raised) and not isinstance(theirs, Raised):
        rows = (
            ("X", given.ours[0], given.theirs[0]),
            ("new", given.ours[2], given.theirs[2]),
        )
        yield from _of_outputs(when, ours, theirs, rows, tolerance)


def _own(case: Case, theirs: Any, given: Any, tolerance: float) -> Iterator[Difference]:
    """Of scikit-learn's pipeline from itself, with other rounding."""
    rows, y, new = given.theirs
    for number in range(FITS):
        with rounded_otherwise(number), in_order():
            other = sklearn.pipeline.Pipeline(build(case))
            other = outcome(lambda: other.fit(rows, y))  # noqa: B023
            yield from differences("fit", other, theirs, tolerance)
            if not isinstance(other, Raised):
                same = (("X", rows, rows), ("new", new, new))
                yield from _of_outputs("", other, theirs, same, tolerance)


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
    for difference in found:
        where = place(difference)
        chosen = CHOSEN.match(where)
        if where.startswith(f"fit[{len(case.steps)}]:"):
            with in_order():
                behind = clone(pipes[1][:-1]).fit_transform(rows, y)
            if nearer(case.last, pipes[0][-1], pipes[1][-1], behind, y):
                return left  # and what it predicts differs as well
        elif chosen and is_chosen_alike(pipes, chosen[1], seen, y):
            continue
        left.append(difference)
    return left


def _of_outputs(
    when: str, ours: Any, theirs: Any, rows: Any, tolerance: float
) -> Iterator[Difference]:
    for method in METHODS:
        if not hasattr(theirs, method):
            continue
        for name, mine, others in rows:
            left = outcome(lambda: getattr(ours, method)(mine))  # noqa: B023
            right = outcome(lambda: getattr(theirs, method)(others))  # noqa: B023
            where = f"{when}{method}({name})"
            if method == "predict":
                left, right = _decided(theirs, others, left, right, tolerance)
            yield from differences(where, left, right, tolerance)
    if hasattr(theirs[-1], "fit_predict") and not hasattr(theirs[-1], "predict"):
        labels = ours[-1].labels_, theirs[-1].labels_
        yield from differences(f"{when}labels_", *labels, tolerance)
    left, right = outcome(ours.get_feature_names_out), outcome(theirs.get_feature_names_out)
    if not isinstance(right, Raised):
        yield from differences(f"{when}get_feature_names_out", left, right, tolerance)


def _decided(theirs: Any, X: Any, left: Any, right: Any, tolerance: float) -> Any:
    """Predictions without the rows that lie where rounding decides."""
    if isinstance(left, Raised) or isinstance(right, Raised):
        return left, right
    for method in ("decision_function", "predict_proba"):
        if not hasattr(theirs, method) or np.shape(left) != np.shape(right):
            continue
        margin = np.asarray(getattr(theirs, method)(X))
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
