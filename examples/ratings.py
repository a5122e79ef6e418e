"""What to watch next: factors of users and films from MovieLens's small set of ratings.

100,836 ratings (F. M. Harper and J. A. Konstan, "The MovieLens datasets", 2015), from the
folder ``ml_latest_small`` of ``--data``. Searches for factors, penalty and rate with
halving, and prints what is recommended to somebody who liked a few films. Run with::

    python examples/ratings.py --liked "Alien" --liked "Blade Runner"
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from optuna.distributions import CategoricalDistribution, FloatDistribution
from sklearn.model_selection import train_test_split

import mlopt

DATA = Path(os.environ.get("MLOPT_DATA", Path(__file__).parents[2] / "shared/data"))
LIKED = ("Toy Story (1995)", "Finding Nemo", "Shrek (2001)", "Monsters, Inc.")
RATED = 30
"""Ratings that a film must have to be recommended here: of fewer its bias is a guess."""
SPACE = {
    "n_components": CategoricalDistribution([4, 8, 16, 32]),
    "alpha": FloatDistribution(0.02, 0.2, log=True),
    "learning_rate": FloatDistribution(0.01, 0.1, log=True),
}


def tables(folder: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Ratings (userId, movieId, rating), and titles by movieId."""
    ratings = pd.read_csv(folder / "ml_latest_small/ratings.csv.gz")
    movies = pd.read_csv(folder / "ml_latest_small/movies.csv.gz")
    return ratings[["userId", "movieId", "rating"]], movies.set_index("movieId").title


def search(ratings: pd.DataFrame, n_trials: int) -> mlopt.ModelSearchCV:
    """Halving over passes, judged by held-out error."""
    return mlopt.ModelSearchCV(
        mlopt.MatrixFactorization(max_iter=40),
        SPACE,
        n_trials=n_trials,
        bandit="successive-halving",
        scoring="neg_root_mean_squared_error",
        cv=3,
    ).fit(ratings[["userId", "movieId"]], ratings.rating)


def main(arguments: Sequence[str] | None = None) -> None:
    """Search, judge, recommend."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--trials", type=int, default=24)
    parser.add_argument("--liked", action="append", help="the beginning of a title")
    options = parser.parse_args(arguments)
    ratings, titles = tables(options.data)
    train, test = train_test_split(ratings, test_size=0.1, random_state=0)

    found = search(train, options.trials)
    told = found.predict(test[["userId", "movieId"]])
    error = np.sqrt(np.mean((told - test.rating) ** 2))
    print(f"{found.n_pruned_} of {options.trials} trials were pruned; {found.best_params_}")
    print(f"RMSE {error:.3f} on {len(test):,} ratings held out; stars go from 0.5 to 5\n")

    often = ratings.groupby("movieId").rating.transform("size") >= RATED
    model = mlopt.MatrixFactorization(max_iter=40, random_state=0, **found.best_params_)
    model.fit(ratings[often])
    names = titles[model.items_].to_numpy()
    liked = [
        at
        for at, name in enumerate(names)
        if name.startswith(tuple(options.liked or LIKED))
    ]
    if not liked:
        parser.error(f"no film with {RATED} ratings begins so: {options.liked}")
    print("Somebody gives five stars to:", "; ".join(names[liked]))
    stars = np.full(len(liked), 5.0)
    new = sp.csr_array((stars, ([0] * len(liked), liked)), shape=(1, len(names)))
    fans = mlopt.MatrixFactorization(
        32, implicit=True, alpha=10.0, confidence=4.0, random_state=0
    ).fit(ratings[often & (ratings.rating >= 4)])
    wanted = sp.csr_array(
        (stars, ([0] * len(liked), np.searchsorted(fans.items_, model.items_[liked]))),
        shape=(1, len(fans.items_)),
    )
    _show("Who liked these also liked:", titles, fans.recommend(wanted, 8))
    _show("Expected to be rated best:", titles, model.recommend(new, 8))


def _show(heading: str, titles: pd.Series, best: tuple[np.ndarray, np.ndarray]) -> None:
    print(f"\n{heading}")
    for item, score in zip(best[0][0], best[1][0], strict=True):
        print(f"  {score:.2f}  {titles[item]}")


if __name__ == "__main__":
    main()
