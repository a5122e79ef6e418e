"""Several model families in one search: what each reached, and what the bandit gave up."""

from __future__ import annotations

from collections import Counter

from optuna.distributions import FloatDistribution, IntDistribution
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

import mlopt


def main() -> None:
    """Linear models, kernel approximations and forests on handwritten digits."""
    X, y = load_digits(return_X_y=True)
    strength = FloatDistribution(1e-3, 1e3, log=True)
    linear = make_pipeline(MinMaxScaler(), mlopt.LogisticRegression())
    features = mlopt.RandomFeatures(n_components=300, gamma=0.05, random_state=0)
    kernel = make_pipeline(MinMaxScaler(), features, mlopt.LogisticRegression())
    forest = RandomForestClassifier(100)
    families = {
        "linear": (linear, {"C": strength}),
        "kernel": (kernel, {"C": strength, "gamma": [0.02, 0.05, 0.1]}),
        "forest": (forest, {"min_samples_leaf": IntDistribution(1, 20, log=True)}),
    }
    search = mlopt.ModelSearchCV(families, n_trials=40, cv=3, timeout=45.0)
    search.fit(X, y)

    results = search.cv_results_
    for family in families:
        mine = [i for i, name in enumerate(results["family"]) if name == family]
        best = max(results["mean_test_score"][i] for i in mine)
        states = Counter(str(results["state"][i]).lower() for i in mine)
        print(f"{family:<8} best {best:.4f}   {dict(states)}")
    print(f"\n{search.best_params_} reaches {search.best_score_:.4f}")


if __name__ == "__main__":
    main()
