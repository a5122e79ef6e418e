"""scikit-learn's checks of estimators; what its own pipeline fails is all that may fail."""

from __future__ import annotations

from typing import Any

import pytest
import sklearn.pipeline
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import mlopt

IN_PLACE = "a pipeline fits its steps in place, as scikit-learn's does"
FAILS: dict[str, str] = {
    "check_estimators_overwrite_params": IN_PLACE,
    "check_dont_overwrite_parameters": IN_PLACE,
}
LENIENT = "scalers take missing values, and a pipeline takes what its steps take"


def _steps(*steps: Any) -> list[tuple[str, Any]]:
    return [(f"step{number}", step) for number, step in enumerate(steps)]


CLASSIFIER = _steps(StandardScaler(), LogisticRegression())
REGRESSOR = _steps(StandardScaler(), Ridge())
SCALERS = _steps(StandardScaler(), MinMaxScaler())
COMPONENTS = _steps(StandardScaler(), PCA(1, random_state=0))
ALL = [CLASSIFIER, REGRESSOR, SCALERS, COMPONENTS]


def expected(pipeline: Any) -> dict[str, str]:
    """The checks that a pipeline of these steps fails, with the reason."""
    if isinstance(pipeline.steps[-1][1], MinMaxScaler):
        return {**FAILS, "check_estimators_nan_inf": LENIENT}
    return FAILS


@parametrize_with_checks(
    [mlopt.Pipeline(steps) for steps in ALL], expected_failed_checks=expected
)
def test_a_pipeline_passes_the_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("steps", ALL, ids=lambda steps: type(steps[-1][1]).__name__)
def test_what_fails_is_what_fails_for_scikit_learn_s_own_pipeline(steps: Any) -> None:
    pipeline = sklearn.pipeline.Pipeline(steps)
    results = check_estimator(pipeline, on_fail=None, on_skip=None)
    failed = {one["check_name"] for one in results if one["status"] == "failed"}
    assert failed == set(expected(pipeline))
