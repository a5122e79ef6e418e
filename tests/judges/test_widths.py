"""What the judges draw fits into memory: the bound on columns holds."""

from __future__ import annotations

import numpy as np
from sklearn.pipeline import Pipeline
from tests.judges.pipelines import Case, build
from tests.judges.tables import Table, make
from tests.judges.widths import WIDEST, widest


def test_a_case_is_no_wider_than_foretold() -> None:
    table = Table("array", ("normal", "wide", "counts"), 60, "three", 0)
    both = ("union", "bins", ("chain", "splines", "squares"), "fourier")
    for steps in (("squares", "squares"), (both, "maxabs"), ("pca", "squares", "voting")):
        X, y, _ = make(table).theirs
        rows, widths = X, [X.shape[1]]
        for _, step in build(Case(table, steps, "none"))[:-1]:
            rows = Pipeline([("only", step)]).fit_transform(rows, y)
            widths.append(np.shape(rows)[1])
        assert max(widths) <= widest(table, steps) <= 2 * max(widths)


def test_squares_of_squares_of_squares_are_not_drawn() -> None:
    table = Table("array", ("normal",) * 5, 60, "two", 0)
    assert widest(table, ("squares", "squares")) < WIDEST
    assert widest(table, (("chain", "squares", "squares", "squares"), "pca")) > WIDEST
