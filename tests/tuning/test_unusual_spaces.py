"""Spaces and models that are ordinary to users and were not to the search."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import make_classification
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

import mlopt
from mlopt.errors import InputError
from mlopt.gd.linear_training import LinearTraining
from mlopt.tuning import typical
from mlopt.tuning.crews.scoring import FromMargins
from mlopt.tuning.space.space import Space

X, Y = make_classification(200, 5, flip_y=0.2, random_state=0)
WHOLE: dict[str, Any] = {"sampler": "grid", "bandit": None, "n_trials": None}


def test_the_ends_of_all_parameters_are_looked_at_before_the_rest_of_a_long_one() -> None:
    space = {"alpha": np.logspace(-6, -1, 100).tolist(), "max_iter": [5, 500, 50, 100]}
    (family,) = Space.of(space, Ridge()).families
    views: Any = SimpleNamespace(of=lambda name, params: params)
    looks: Any = typical.ways_of(views, family)
    assert len(looks) == typical.MOST_LOOKS
    assert {look["max_iter"] for look in looks[:5]} >= {5, 500}
    assert {look["alpha"] for look in looks[:5]} >= {1e-6, 0.1}


@pytest.mark.parametrize(
    ("model", "space", "y"),
    [
        (
            Ridge(alpha=np.array([1.0, 10.0])),
            {"alpha": [0.1, 1.0, 10.0]},
            np.column_stack([X[:, 0], X[:, 1]]),
        ),
        (KMeans(2, n_init=1, init=X[:2]), {"init": ["k-means++", "random"]}, None),
        (GaussianNB(priors=np.array([0.5, 0.5])), {"priors": [None]}, Y),
    ],
)
def test_an_array_may_be_what_a_space_replaces(model: Any, space: Any, y: Any) -> None:
    search = mlopt.ModelSearchCV(model, space, cv=2, **WHOLE).fit(X, y)
    (name,) = space
    assert sorted(map(str, search.cv_results_[f"param_{name}"])) == sorted(
        map(str, space[name])
    )


def test_rows_far_from_every_class_have_even_probabilities() -> None:
    margins = np.array([[-800.0, -900.0, -1000.0], [1.0, -800.0, -800.0]])
    found = FromMargins(margins, np.arange(3), "sigmoid").predict_proba(None)
    np.testing.assert_allclose(found, [[1 / 3] * 3, [1.0, 0.0, 0.0]])


def test_models_that_overflow_have_no_score(monkeypatch: pytest.MonkeyPatch) -> None:
    own = LinearTraining.coefficients

    def overflows(self: LinearTraining, number: int) -> Any:
        coef, intercept = own(self, number)
        return (coef * np.nan if number % 2 else coef), intercept

    monkeypatch.setattr(LinearTraining, "coefficients", overflows)
    search = mlopt.ModelSearchCV(
        LogisticRegression(), {"C": [0.01, 0.1, 1.0, 10.0]}, cv=2,
        scoring="balanced_accuracy", refit=False, **WHOLE,
    ).fit(X, Y)  # fmt: skip
    assert "batched" in search.plan_.choices[0].chosen
    scores = (
        search.cv_results_["split0_test_score"],
        search.cv_results_["split1_test_score"],
    )
    lost = np.isnan(scores)
    assert lost.any()
    assert not lost.all()
    assert (np.nan_to_num(scores, nan=0.8) > 0.5).all()


def test_families_that_would_have_one_name_are_refused() -> None:
    families = {
        "svm": (SVC(), [{"C": [1.0]}, {"C": [10.0]}]),
        "svm-0": (SVC(), {"C": [100.0]}),
    }
    with pytest.raises(InputError, match="'svm-0'"):
        mlopt.ModelSearchCV(families).fit(X, Y)


@pytest.mark.filterwarnings("ignore")
def test_a_split_that_fails_leaves_the_others_to_train_to_their_end() -> None:
    one = np.flatnonzero(Y == 0)
    cv = [(one[:50], one[50:]), (np.arange(100), np.arange(100, 200))]
    model = GradientBoostingClassifier(n_estimators=40, random_state=0)
    settings: dict[str, Any] = {"cv": cv, "error_score": 0.0}
    space = {"max_depth": [2, 3]}
    found = mlopt.ModelSearchCV(
        model, space, sampler="grid", bandit="successive-halving", **settings
    ).fit(X, Y)
    expected = GridSearchCV(model, space, **settings).fit(X, Y)
    done = np.isfinite(found.cv_results_["split1_test_score"])
    assert done.any()
    best = found.cv_results_["split1_test_score"].max()
    assert best == expected.cv_results_["split1_test_score"].max()
