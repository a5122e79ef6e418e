"""`ModelSearchCV` behind the signatures of scikit-learn's searches."""

from __future__ import annotations

from typing import Any

import numpy as np

from mlopt import ModelSearchCV


class _Search(ModelSearchCV):
    """What scikit-learn's signatures do not name stays at what makes it their search."""

    max_passes = None
    timeout = None
    bandit = None
    batch_size = "auto"
    storage = None
    study_name = None
    client = None
    observer = None
    return_predictions = False
    weighted_scores = None

    def __init__(self) -> None:
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None, **params: Any) -> _Search:
        """As ours, without the columns of the table that scikit-learn's has not."""
        super().fit(X, y, **params)
        for name in ("family", "state", "passes", "reason"):
            del self.cv_results_[name]
        return self


class GridSearchCV(_Search):
    """Every point of ``param_grid``, trained to the end."""

    n_trials = None
    sampler = "grid"
    random_state = None

    def __init__(
        self,
        estimator: Any,
        param_grid: Any,
        *,
        scoring: Any = None,
        n_jobs: Any = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        error_score: Any = np.nan,
        return_train_score: bool = False,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.refit = refit
        self.cv = cv
        self.verbose = verbose
        self.pre_dispatch = pre_dispatch
        self.error_score = error_score
        self.return_train_score = return_train_score

    @property
    def space(self) -> Any:  # type: ignore[override]
        return self.param_grid


class RandomizedSearchCV(_Search):
    """``n_iter`` points drawn from ``param_distributions``, trained to the end."""

    sampler = "random"

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 10,
        scoring: Any = None,
        n_jobs: Any = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        random_state: Any = None,
        error_score: Any = np.nan,
        return_train_score: bool = False,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.scoring = scoring
        self.n_jobs = n_jobs
        self.refit = refit
        self.cv = cv
        self.verbose = verbose
        self.pre_dispatch = pre_dispatch
        self.random_state = random_state
        self.error_score = error_score
        self.return_train_score = return_train_score

    @property
    def space(self) -> Any:  # type: ignore[override]
        return self.param_distributions

    @property
    def n_trials(self) -> Any:  # type: ignore[override]
        return self.n_iter
