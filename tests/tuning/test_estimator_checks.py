"""scikit-learn's own checks of an estimator, for a search over each kind of training."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import mlopt

# As scikit-learn checks its own searches: what a fit refuses is raised, not scored as NaN.
SETTINGS: dict[str, Any] = {
    "sampler": "grid",
    "n_trials": None,
    "cv": 2,
    "n_jobs": 1,
    "error_score": "raise",
}
SEARCHES = [
    mlopt.ModelSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, **SETTINGS),
    mlopt.ModelSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, **SETTINGS),
    mlopt.ModelSearchCV(
        DecisionTreeClassifier(random_state=0), {"max_depth": [2, 3]}, **SETTINGS
    ),
    mlopt.ModelSearchCV(
        make_pipeline(StandardScaler(), LogisticRegression()),
        {"logisticregression__C": [0.1, 1.0]},
        **SETTINGS,
    ),
]


def excused(search: Any) -> dict[str, str]:
    """Checks that cannot hold, and why."""
    if not isinstance(search.estimator, Pipeline):
        return {}
    reason = "a pipeline's weights go to its last step; the scaler before it has none"
    return {"check_sample_weight_equivalence_on_dense_data": reason}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
# scikit-learn's own `check_cv` says so of a target of NaN, before it is refused.
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@parametrize_with_checks(SEARCHES, expected_failed_checks=excused)
def test_scikit_learns_checks_hold(estimator: Any, check: Any) -> None:
    check(estimator)
