"""25,000 film reviews learnt from, 25,000 judged: words and pairs, logistic regression.

usage: sentiment.py [--data DIR] [--repeats 3] [--rows N]
"""

from __future__ import annotations

from compared import arguments, compare, example  # isort: skip

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

EXAMPLE = example("sentiment")


def main():
    given = arguments(__doc__)
    Xa, ya, Xb, yb = EXAMPLE.reviews(given.data, given.rows)

    def ours(_):
        model = EXAMPLE.pipeline().fit(Xa, ya)
        return float((model.predict(Xb) == yb).mean())

    def theirs(_):
        terms = TfidfVectorizer(
            ngram_range=(1, 2), max_features=200_000, sublinear_tf=True, dtype=np.float32
        )
        model = make_pipeline(terms, LogisticRegression(C=30, max_iter=300)).fit(Xa, ya)
        return float((model.predict(Xb) == yb).mean())

    compare(f"sentiment, {len(Xa)} and {len(Xb)} texts", ours, theirs, given.repeats)


if __name__ == "__main__":
    main()
