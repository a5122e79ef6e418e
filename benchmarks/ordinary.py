"""Pipelines as people write them, not tuned: is mlopt ever slower than scikit-learn?

Numbers, columns of a frame, texts and sparse counts are drawn by --seed, and fitted by
pipelines of scikit-learn's steps: the same steps in `sklearn.pipeline.Pipeline`, on all
cores that its BLAS and OpenMP take, and in `mlopt.Pipeline`, in turn, with nothing learnt
before. Printed are the medians of fitting and of predicting as many rows, their ratios
(above 1: mlopt is faster), what the plan foresaw, and the scores on other rows, which must
be the same. The last line counts ratios below .9 and .75.

usage: ordinary.py [--seed 0] [--rounds 3] [--size 1.0] [--only NAME,...]
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import time
import warnings

os.environ.setdefault("DASK_MLOPT__REMEMBER", "false")  # as on the first day
warnings.filterwarnings("ignore")

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn import (
    cluster,
    compose,
    decomposition,
    discriminant_analysis,
    ensemble,
    feature_selection,
    impute,
    kernel_approximation,
    linear_model,
    naive_bayes,
    neighbors,
    neural_network,
    pipeline,
    preprocessing,
    random_projection,
    svm,
    tree,
)
from sklearn.base import clone
from sklearn.feature_extraction import text

import mlopt
from mlopt.pipeline.environment import environment

SAME = 0.01
"""Of a score: how far two fits of models with drawn parts, or stopped by `tol`, may be."""


class Drawn:
    """Data of one seed, twice as many rows as are fitted: the others are predicted."""

    def __init__(self, seed, size):
        self.rng, self.size = np.random.default_rng(seed), size

    def _targets(self, Z, kind):
        noise = self.rng.normal(size=len(Z)) * Z.std()
        value = Z + 0.5 * noise
        if kind == "value":
            return value
        edges = np.quantile(value, np.linspace(0, 1, int(kind) + 1)[1:-1])
        return np.digitize(value, edges)

    def numbers(self, n, d, kind="2", dtype=np.float64, positive=False):
        n = int(2 * n * self.size)
        scales = 10 ** self.rng.uniform(-1, 1, d)
        X = self.rng.normal(size=(n, d)) * scales + self.rng.normal(size=d) * scales
        X[:, : d // 2] += self.rng.normal(size=(n, 1)) * scales[: d // 2]
        weights = self.rng.normal(size=d) / scales * (self.rng.random(d) < 0.5)
        Z = X @ weights
        Z = Z + np.abs(X[:, 0] / scales[0]) * Z.std()
        X = np.abs(X) if positive else X
        return X.astype(dtype), self._targets(Z, kind)

    def frame(self, n, kind="2"):
        """Twelve numbers with values missing and six columns of words."""
        X, y = self.numbers(n, 12, "value")
        frame = pd.DataFrame(X, columns=[f"number{i}" for i in range(12)])
        for i in range(6):
            many = int(10 ** self.rng.uniform(0.5, 2.3))
            words = np.array([f"word{j}" for j in range(many)], dtype=object)
            which = np.minimum(self.rng.geometric(3 / many, len(X)) - 1, many - 1)
            y = y + self.rng.normal(size=many)[which] * y.std() * 0.3
            frame[f"text{i}"] = words[which]
        frame = frame.mask(self.rng.random(frame.shape) < [0.05] * 12 + [0.0] * 6)
        return frame, self._targets(y, kind)

    def texts(self, n, kind="2", words=60):
        n, vocabulary = int(2 * n * self.size), 20_000
        rank = np.minimum(self.rng.zipf(1.25, size=(n, words)), vocabulary) - 1
        y = (self.rng.normal(size=vocabulary)[rank]).sum(axis=1)
        return [" ".join(f"w{j}" for j in row) for row in rank], self._targets(y, kind)

    def counts(self, n, d, kind="2", each=40):
        n = int(2 * n * self.size)
        X = sparse.random(n, d, each / d, "csr", rng=self.rng, data_rvs=self._ones)
        return X, self._targets(X @ self.rng.normal(size=d), kind)

    def _ones(self, many):
        return self.rng.integers(1, 6, many).astype(float)


NUMBERS = [f"number{i}" for i in range(12)]
TEXTS = [f"text{i}" for i in range(6)]


def columns(*, dense=False):
    """What the examples of scikit-learn do to a frame."""
    to_numbers = impute.SimpleImputer(), preprocessing.StandardScaler()
    one_hot = preprocessing.OneHotEncoder(handle_unknown="ignore", sparse_output=not dense)
    return compose.make_column_transformer(
        (pipeline.make_pipeline(*to_numbers), NUMBERS), (one_hot, TEXTS)
    )


def ordinals():
    encoder = preprocessing.OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1
    )
    return compose.make_column_transformer((encoder, TEXTS), remainder="passthrough")


def jobs():
    """Name to the data, drawn when it is its turn, and the steps."""
    pre, lin, dec = preprocessing, linear_model, decomposition
    scale = pre.StandardScaler
    return {
        "scale, logistic": (
            lambda o: o.numbers(100_000, 30), [scale(), lin.LogisticRegression()]),
        "scale, logistic of 8": (
            lambda o: o.numbers(30_000, 40, "8"), [scale(), lin.LogisticRegression()]),
        "scale, PCA, logistic": (
            lambda o: o.numbers(40_000, 100),
            [scale(), dec.PCA(20), lin.LogisticRegression()]),
        "power, regression": (
            lambda o: o.numbers(50_000, 20, "value"),
            [pre.PowerTransformer(), lin.LinearRegression()]),
        "quantiles, ridge": (
            lambda o: o.numbers(100_000, 20, "value"),
            [pre.QuantileTransformer(random_state=0), lin.Ridge()]),
        "squares, ridge f32": (
            lambda o: o.numbers(20_000, 20, "value", np.float32),
            [pre.PolynomialFeatures(2), scale(), lin.Ridge()]),
        "splines, ridge": (
            lambda o: o.numbers(50_000, 15, "value"),
            [pre.SplineTransformer(), lin.Ridge()]),
        "bins, logistic": (
            lambda o: o.numbers(50_000, 20),
            [pre.KBinsDiscretizer(10, quantile_method="averaged_inverted_cdf"),
             lin.LogisticRegression()]),
        "fourier, ridge of classes f32": (
            lambda o: o.numbers(10_000, 30, "5", np.float32),
            [scale(), kernel_approximation.RBFSampler(n_components=3000, random_state=0),
             lin.RidgeClassifier()]),
        "nystroem, svm": (
            lambda o: o.numbers(20_000, 30),
            [scale(), kernel_approximation.Nystroem(n_components=300, random_state=0),
             svm.LinearSVC()]),
        "projection, svm": (
            lambda o: o.numbers(20_000, 500),
            [random_projection.GaussianRandomProjection(100, random_state=0),
             scale(), svm.LinearSVC(loss="hinge", C=0.001)]),
        "scale, lasso": (
            lambda o: o.numbers(50_000, 200, "value"), [scale(), lin.Lasso(0.1)]),
        "scale, lasso of 5 folds": (
            lambda o: o.numbers(10_000, 50, "value"), [scale(), lin.LassoCV()]),
        "scale, ridge of 5 folds": (
            lambda o: o.numbers(50_000, 100, "value"),
            [scale(), lin.RidgeCV(np.logspace(-3, 3, 13), cv=5)]),
        "scale, sgd": (
            lambda o: o.numbers(50_000, 50), [scale(), lin.SGDClassifier(random_state=0)]),
        "LDA": (
            lambda o: o.numbers(50_000, 100, "5"),
            [scale(), discriminant_analysis.LinearDiscriminantAnalysis()]),
        "QDA": (
            lambda o: o.numbers(50_000, 60, "3"),
            [scale(), discriminant_analysis.QuadraticDiscriminantAnalysis()]),
        "naive bayes": (
            lambda o: o.numbers(200_000, 40, "4"), [naive_bayes.GaussianNB()]),
        "PCA, naive bayes": (
            lambda o: o.numbers(60_000, 100, "4"), [dec.PCA(30), naive_bayes.GaussianNB()]),
        "best, neighbours": (
            lambda o: o.numbers(10_000, 40),
            [feature_selection.SelectKBest(k=8), neighbors.KNeighborsClassifier()]),
        "scale, k-means, logistic": (
            lambda o: o.numbers(50_000, 20),
            [scale(), cluster.KMeans(20, n_init=1, random_state=0),
             lin.LogisticRegression()]),
        "NMF, logistic": (
            lambda o: o.numbers(5_000, 100, positive=True),
            [dec.NMF(10, random_state=0), lin.LogisticRegression()]),
        "scale, RBF svm": (
            lambda o: o.numbers(4_000, 20), [scale(), svm.SVC(cache_size=500)]),
        "scale, perceptron": (
            lambda o: o.numbers(10_000, 30),
            [scale(), neural_network.MLPClassifier((50,), max_iter=15, random_state=0)]),
        "tree": (
            lambda o: o.numbers(50_000, 20), [scale(), tree.DecisionTreeClassifier(
                max_depth=8, random_state=0)]),
        "forest": (
            lambda o: o.numbers(20_000, 20),
            [scale(), ensemble.RandomForestClassifier(50, random_state=0)]),
        "forest on all cores": (
            lambda o: o.numbers(20_000, 20),
            [scale(), ensemble.RandomForestClassifier(50, random_state=0, n_jobs=-1)]),
        "boosting": (
            lambda o: o.numbers(50_000, 30),
            [ensemble.HistGradientBoostingClassifier(random_state=0)]),
        "columns, logistic": (
            lambda o: o.frame(50_000), [columns(), lin.LogisticRegression()]),
        "columns, ridge": (
            lambda o: o.frame(50_000, "value"), [columns(dense=True), lin.Ridge()]),
        "columns, best, forest": (
            lambda o: o.frame(20_000),
            [columns(dense=True), feature_selection.SelectKBest(k=30),
             ensemble.RandomForestClassifier(30, random_state=0)]),
        "columns, boosting": (
            lambda o: o.frame(50_000, "value"),
            [ordinals(), ensemble.HistGradientBoostingRegressor(random_state=0)]),
        "texts, logistic": (
            lambda o: o.texts(20_000),
            [text.TfidfVectorizer(), lin.LogisticRegression()]),
        "pairs of words, svm": (
            lambda o: o.texts(8_000, "4"),
            [text.TfidfVectorizer(ngram_range=(1, 2), min_df=2), svm.LinearSVC()]),
        "texts, SVD, logistic": (
            lambda o: o.texts(10_000),
            [text.TfidfVectorizer(min_df=3), dec.TruncatedSVD(50, random_state=0),
             lin.LogisticRegression()]),
        "hashed texts, naive bayes": (
            lambda o: o.texts(20_000, "3"),
            [text.HashingVectorizer(alternate_sign=False), naive_bayes.MultinomialNB()]),
        "counts, tf-idf, best, logistic": (
            lambda o: o.counts(40_000, 10_000),
            [text.TfidfTransformer(), feature_selection.SelectKBest(
                feature_selection.chi2, k=2000), lin.LogisticRegression()]),
        "union, logistic": (
            lambda o: o.numbers(40_000, 60),
            [pipeline.make_union(
                pipeline.make_pipeline(scale(), dec.PCA(10)),
                pipeline.make_pipeline(scale(), feature_selection.SelectKBest(k=15))),
             lin.LogisticRegression()]),
    }  # fmt: skip


def seconds(call, *args):
    began = time.perf_counter()
    value = call(*args)
    return time.perf_counter() - began, value


def compare(X, y, steps, rounds):
    """Seconds of fit and predict, and scores, by who ran them; what was foreseen."""
    half = len(y) // 2
    here, there = X[:half], X[half:]
    named = [(f"step{i}", step) for i, step in enumerate(steps)]
    found = {}
    for _ in range(rounds):
        for kind in (pipeline.Pipeline, mlopt.Pipeline):
            environment.clear()
            gc.collect()
            model = kind([(name, clone(step)) for name, step in named])
            fit, _ = seconds(model.fit, here, y[:half])
            predict, said = seconds(model.predict, there)
            classes = y.dtype.kind == "i"
            truth = y[half:]
            score = np.mean(said == truth) if classes else 1 - np.mean(
                (said - truth) ** 2) / np.var(truth)  # fmt: skip
            found.setdefault(kind, []).append((fit, predict, score))
    plan = model.plan_
    return (*(np.median(np.array(one), axis=0) for one in found.values()), plan)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", type=float, default=1.0, help="of the rows")
    parser.add_argument("--only", default="", help="names, or parts of them")
    options = parser.parse_args()
    wanted = [part for part in options.only.split(",") if part]
    print(f"{'':31s}{'fit':>16s}{'':8s}{'foreseen':>8s}{'predict':>16s}{'':9s}scores")
    ratios = []
    for name, (draw, steps) in jobs().items():
        if wanted and not any(part.strip() in name for part in wanted):
            continue
        X, y = draw(Drawn(options.seed, options.size))
        theirs, ours, plan = compare(X, y, steps, options.rounds)
        fit, predict, _ = theirs / ours
        ratios += [fit, predict]
        foreseen = np.nan if plan.predicted is None else plan.predicted
        apart = "" if abs(theirs[2] - ours[2]) <= SAME else "  DIFFERENT"
        print(
            f"{name:31s} {theirs[0]:7.2f} {ours[0]:7.2f} {fit:5.2f}x {foreseen:8.2f} "
            f"{theirs[1]:7.3f} {ours[1]:7.3f} {predict:5.2f}x  "
            f"{theirs[2]:.3f} {ours[2]:.3f}{apart}",
            flush=True,
        )
    print(
        f"\n{len(ratios)} ratios: median {statistics.median(ratios):.2f}, "
        f"{sum(r < 0.9 for r in ratios)} below .9, "
        f"{sum(r < 0.75 for r in ratios)} below .75"
    )


if __name__ == "__main__":
    main()
