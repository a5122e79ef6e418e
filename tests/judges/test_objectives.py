"""Models whose objectives the judge compares are solved as far as it tells them apart."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.judges.objectives import EQUAL, OBJECTIVES, chooses_alike
from tests.judges.pipelines import LAST


@pytest.mark.parametrize("last", OBJECTIVES)
def test_solvers_stop_nearer_to_the_minimum_than_objectives_are_told_apart(
    last: str,
) -> None:
    # What a gradient of `tol` leaves of a quadratic objective goes by its square.
    assert LAST[last]().tol ** 2 <= EQUAL


def test_models_that_choose_other_columns_are_told_from_those_that_do_not() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)

    def chosen(threshold: str) -> Any:
        select = SelectFromModel(LogisticRegression(), threshold=threshold)
        return make_pipeline(StandardScaler(), select).fit(X, y)

    one, same, other = chosen("mean"), chosen("mean"), chosen("0.01*mean")
    assert chooses_alike((one, same), "[1]")
    assert not chooses_alike((one, other), "[1]")
