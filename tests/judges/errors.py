"""Whether an error that scikit-learn does not raise is one of those it has to raise.

What is fitted in another order raises another of the errors that are there, and what is not
applied raises none of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Any

from sklearn.pipeline import Pipeline
from tests.judges.outcomes import Difference, Raised, outcome
from tests.judges.pipelines import Case, Recipe, build, step, with_output
from tests.judges.tables import make

DRAWS = 5
"""Fits of a branch, which may draw what decides whether it can be fitted."""


def is_of_another_branch(case: Case, difference: Difference) -> bool:
    """Whether mlopt raises what scikit-learn raises of one branch alone."""
    ours, theirs = difference.ours, difference.theirs
    if ours is None or theirs is None:
        return False
    for number, recipe in enumerate(case.steps):
        rows, y = _before(case, number)
        failed = outcome(lambda: _step(case, recipe).fit_transform(rows, y))  # noqa: B023
        if isinstance(failed, Raised):
            return any(_same(ours, one) for one in _alone(case, recipe, rows, y))
    return False


def is_of_what_is_not_applied(case: Case, difference: Difference) -> bool:
    """Whether scikit-learn raises in `transform` of the step before a last that passes."""
    theirs = difference.theirs
    if difference.where != "fit" or difference.ours is not None or theirs is None:
        return False
    if case.last != "none":
        return False
    number = max((i for i, one in enumerate(case.steps) if one != "pass"), default=-1)
    if number < 0:
        return False
    rows, y = _before(case, number)
    fitted = outcome(lambda: _step(case, case.steps[number]).fit(rows, y))
    if isinstance(fitted, Raised):
        return False
    applied = outcome(lambda: fitted.transform(rows))
    return isinstance(applied, Raised) and _same(theirs, applied)


def _before(case: Case, number: int) -> tuple[Any, Any]:
    """The rows that a step is fitted on in scikit-learn, and y."""
    rows, y = make(case.table).theirs[:2]
    if number:
        rows = outcome(lambda: Pipeline(build(case)[:number]).fit_transform(rows, y))
    return rows, y


def _alone(case: Case, recipe: Recipe, rows: Any, y: Any) -> Iterator[Raised]:
    for one in reduced(recipe):
        for _ in range(DRAWS):
            found = outcome(lambda: _step(case, one).fit_transform(rows, y))  # noqa: B023
            if isinstance(found, Raised):
                yield found


def _step(case: Case, recipe: Recipe) -> Any:
    made = step(recipe)
    return Pipeline([("only", with_output(made, case.output))])


def reduced(recipe: Recipe) -> Iterator[Recipe]:
    """A recipe with one branch of each union, in all ways."""
    if isinstance(recipe, str):
        yield recipe
    elif recipe[0] == "chain":
        for inner in product(*(list(reduced(one)) for one in recipe[1:])):
            yield ("chain", *inner)
    elif recipe[0] == "union":
        for one in recipe[1:]:
            yield from (("union", inner) for inner in reduced(one))
    else:
        for one, columns in recipe[1:]:
            yield from (("columns", (inner, columns)) for inner in reduced(one))


def _same(a: Raised, b: Raised) -> bool:
    return a.family is b.family and _text(a) == _text(b)


def _text(raised: Raised) -> str:
    """What is said, without the step that mlopt names before it."""
    return re.sub(r"^Step `[^`]*`: ", "", str(raised.error).strip())
