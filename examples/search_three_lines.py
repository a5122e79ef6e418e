"""The search in three lines: 64 strengths of a linear model, five folds, shared scans."""

from __future__ import annotations

from optuna.distributions import FloatDistribution
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mlopt


def main() -> None:
    """Search, and show the plan that was run."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler(), LogisticRegression())
    search = mlopt.ModelSearchCV(model, {"C": FloatDistribution(1e-4, 1e4, log=True)})
    search.fit(X, y)

    print(search.plan_.explain())
    pruned = f"{search.n_pruned_} of {len(search.cv_results_['params'])} trials were pruned"
    print(f"\naccuracy {search.best_score_:.4f} with {search.best_params_}; {pruned}")


if __name__ == "__main__":
    main()
