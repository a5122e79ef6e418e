"""1560 spoken letters in five folds: 4000 random cosine features, least squares.

usage: speech.py [--data DIR] [--repeats 3] [--rows N]
"""

from __future__ import annotations

from compared import arguments, compare, example  # isort: skip

from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

EXAMPLE = example("speech")


def main():
    given = arguments(__doc__)
    X, y = EXAMPLE.letters(given.data)
    X, y = X[: given.rows], y[: given.rows]

    def judged(make):
        right = 0
        for learn, judge in EXAMPLE.folds(X, y, 5):
            model = make().fit(X[learn], y[learn])
            right += (model.predict(X[judge]) == y[judge]).sum()
        return float(right / len(y))

    def ours(seed):
        return EXAMPLE.pipeline(X.shape[1]).set_params(randomfeatures__random_state=seed)

    def theirs(seed):
        gamma = 0.3 / X.shape[1]
        features = RBFSampler(gamma=gamma, n_components=4000, random_state=seed)
        return make_pipeline(StandardScaler(), features, RidgeClassifier(alpha=0.1))

    compare(
        f"speech, {len(X)} rows",
        lambda seed: judged(lambda: ours(seed)),
        lambda seed: judged(lambda: theirs(seed)),
        given.repeats,
    )


if __name__ == "__main__":
    main()
