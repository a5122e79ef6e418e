"""Pipelines that the judges draw, as recipes: equal recipes are built equal, and anew.

A recipe is the name of a part, or a tuple: ``("union", recipe, ...)``, ``("chain", recipe,
...)``, ``("columns", (recipe, columns), ...)``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from hypothesis import strategies as st
from sklearn import cluster, ensemble, linear_model, preprocessing
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction import text
from sklearn.feature_selection import SelectFromModel, SelectKBest, VarianceThreshold
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.random_projection import GaussianRandomProjection
from sklearn.svm import LinearSVC, LinearSVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from tests.judges import parts
from tests.judges.tables import TEXTS, WORDS, Table

Recipe = Any

# Both sides solve to the same minimum, as far as doubles tell it.
_logistic = partial(linear_model.LogisticRegression, tol=1e-9, max_iter=2000)
_forest = partial(ensemble.RandomForestClassifier, n_estimators=4, max_depth=3)
_either = {"handle_unknown": "ignore"}


def _voting() -> Any:
    members = [("tree", DecisionTreeClassifier(max_depth=2, random_state=0))]
    members += [("forest", _forest(random_state=1))]
    return ensemble.VotingClassifier(members, voting="soft", flatten_transform=True)


def _stacking() -> Any:
    members = [("tree", DecisionTreeClassifier(max_depth=2, random_state=0))]
    members += [("bayes", GaussianNB())]
    return ensemble.StackingClassifier(members, _logistic(), cv=3)


def _unseeded_voting() -> Any:
    return ensemble.VotingClassifier([("forest", _forest())], voting="soft")


SOUND: dict[str, Callable[[], Any]] = {
    "scale": StandardScaler,
    "scale without mean": lambda: StandardScaler(with_mean=False),
    "minmax": preprocessing.MinMaxScaler,
    "maxabs": preprocessing.MaxAbsScaler,
    "impute mean": SimpleImputer,
    "impute median, indicate": lambda: SimpleImputer(strategy="median", add_indicator=True),
    "impute frequent": lambda: SimpleImputer(strategy="most_frequent"),
    "normalize": preprocessing.Normalizer,
    "squares": lambda: preprocessing.PolynomialFeatures(2, include_bias=False),
    "bins": lambda: preprocessing.KBinsDiscretizer(
        3, subsample=None, quantile_method="averaged_inverted_cdf"
    ),
    "not constant": VarianceThreshold,
    "pass": lambda: "passthrough",
    "absolute": lambda: FunctionTransformer(np.abs),
    "root": lambda: FunctionTransformer(parts.signed_root),
}
"""What works on numbers; with those that are missing, the imputers."""

DENSE: dict[str, Callable[[], Any]] = {
    "robust": preprocessing.RobustScaler,
    "power": preprocessing.PowerTransformer,
    "splines": lambda: preprocessing.SplineTransformer(n_knots=3),
    "quantiles": lambda: preprocessing.QuantileTransformer(n_quantiles=10, subsample=None),
    "pca": lambda: PCA(2, svd_solver="full"),
    "svd": lambda: TruncatedSVD(1, algorithm="arpack", random_state=0),
    "best": lambda: SelectKBest(k=1),
    "from model": lambda: SelectFromModel(_logistic(C=0.5)),
    "discriminant": LinearDiscriminantAnalysis,
    "fourier": lambda: RBFSampler(n_components=5, random_state=0),
    "nystroem": lambda: Nystroem(n_components=5, random_state=0),
    "projection": lambda: GaussianRandomProjection(2, random_state=0),
    "near": lambda: KNNImputer(n_neighbors=2),
    "distances": lambda: cluster.KMeans(2, n_init=1, random_state=0),
    "voting": _voting,
    "stacking": _stacking,
    "leaves": lambda: ensemble.RandomTreesEmbedding(3, max_depth=2, random_state=0),
    "agglomerate": lambda: cluster.FeatureAgglomeration(2),
    "target": lambda: preprocessing.TargetEncoder(random_state=0, cv=3),
}

OWN: dict[str, Callable[[], Any]] = {
    "centre": lambda: parts.Centre(2.0),
    "all rows": parts.AllRows,
    "told 2": lambda: parts.Told().told(2.0),
    "told 5": lambda: parts.Told().told(5.0),
    "made 2": lambda: parts.scaled_by(2.0),
    "made 5": lambda: parts.scaled_by(5.0),
    "twice": parts.Twice,
    "lambda": lambda: FunctionTransformer(lambda d: np.asarray(d, dtype=float) * 3.0),
}

LOOKING: dict[str, Callable[[], Any]] = {
    "fill mean": lambda: FunctionTransformer(parts.fill_mean),
    "fill forward": lambda: FunctionTransformer(parts.fill_forward),
    "ranks": lambda: FunctionTransformer(parts.ranks),
    "by maximum": lambda: FunctionTransformer(parts.by_maximum),
    "running sum": lambda: FunctionTransformer(parts.running_sum),
}
"""Functions that look at all rows."""

UNSEEDED: dict[str, Callable[[], Any]] = {
    "jitter": parts.Jitter,
    "global jitter": parts.GlobalJitter,
    "forest voting": _unseeded_voting,
    "random leaves": lambda: ensemble.RandomTreesEmbedding(3, max_depth=2),
    "random projection": lambda: GaussianRandomProjection(2),
    "random fourier": lambda: RBFSampler(n_components=4),
    "select by forest": lambda: SelectFromModel(_forest(), max_features=1),
}

ENCODING: dict[str, Callable[[], Any]] = {
    "one-hot": lambda: preprocessing.OneHotEncoder(**_either),
    "one-hot dense": lambda: preprocessing.OneHotEncoder(sparse_output=False, **_either),
    "one-hot strict": preprocessing.OneHotEncoder,
    "one-hot frequent": lambda: preprocessing.OneHotEncoder(
        min_frequency=3, handle_unknown="infrequent_if_exist"
    ),
    "ordinal": lambda: preprocessing.OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2
    ),
    "codes": lambda: FunctionTransformer(parts.codes),
    "dummies": lambda: FunctionTransformer(parts.dummies),
    "fill and one-hot": lambda: Pipeline(
        [
            ("fill", SimpleImputer(strategy="constant", fill_value="none")),
            ("encode", preprocessing.OneHotEncoder(**_either)),
        ]
    ),
}

READING: dict[str, Callable[[], Any]] = {
    "terms": text.CountVectorizer,
    "pairs": lambda: text.CountVectorizer(ngram_range=(1, 2), min_df=2),
    "letters": lambda: text.CountVectorizer(analyzer="char", max_features=9),
    "tfidf": text.TfidfVectorizer,
    "tfidf few": lambda: text.TfidfVectorizer(max_features=5, sublinear_tf=True),
    "hashed": lambda: text.HashingVectorizer(n_features=16),
    "own words": lambda: text.CountVectorizer(tokenizer=str.split, token_pattern=None),
}

LAST: dict[str, Callable[[], Any]] = {
    "none": lambda: "passthrough",
    "logistic": lambda: _logistic(C=0.3),
    "svc": lambda: LinearSVC(C=0.1, dual=False, tol=1e-9, max_iter=5000),
    "ridge": lambda: linear_model.Ridge(alpha=2.0, tol=1e-9),
    "squares": linear_model.LinearRegression,
    "ridge classifier": lambda: linear_model.RidgeClassifier(tol=1e-9),
    "lasso": lambda: linear_model.Lasso(0.1, tol=1e-8, max_iter=5000),
    "svr": lambda: LinearSVR(random_state=0, C=0.01, max_iter=3000),
    "tree": lambda: DecisionTreeClassifier(max_depth=3, random_state=0),
    "regression tree": lambda: DecisionTreeRegressor(max_depth=3, random_state=0),
    "forest": lambda: _forest(random_state=0),
    "boosting": lambda: ensemble.HistGradientBoostingClassifier(max_iter=2, random_state=0),
    "near": lambda: KNeighborsClassifier(3),
    "near numbers": lambda: KNeighborsRegressor(3),
    "bayes": GaussianNB,
    "counts bayes": MultinomialNB,
    "discriminant": LinearDiscriminantAnalysis,
    "clusters": lambda: cluster.KMeans(2, n_init=1, random_state=0),
    "small clusters": lambda: cluster.MiniBatchKMeans(
        2, n_init=1, random_state=0, batch_size=4096
    ),
    "density": lambda: cluster.DBSCAN(1.0),
    "guess": lambda: DummyClassifier(strategy="stratified", random_state=0),
    "descent": lambda: linear_model.SGDClassifier(random_state=0, max_iter=20, tol=None),
}

NEAR = {"near", "near numbers"}

PARTS = SOUND | DENSE | OWN | LOOKING | UNSEEDED | ENCODING | READING


@dataclass(frozen=True)
class Case:
    """A table and the pipeline that is fitted to it, as recipes."""

    table: Table
    steps: tuple[Recipe, ...]
    last: str
    output: str = "default"


def build(case: Case) -> list[tuple[str, Any]]:
    """The steps, new."""
    steps = [(f"s{i}", step(recipe)) for i, recipe in enumerate(case.steps)]
    steps.append(("last", LAST[case.last]()))
    return [(name, with_output(one, case.output)) for name, one in steps]


def with_output(one: Any, output: str) -> Any:
    """A step that gives data frames if `output` says so."""
    # A step of the user's own, or a text vectorizer within, may not have it.
    with suppress(ValueError):
        if output != "default" and hasattr(one, "set_output") and hasattr(one, "transform"):
            one.set_output(transform=output)
    return one


def step(recipe: Recipe) -> Any:
    """One step, new."""
    if isinstance(recipe, str):
        return PARTS[recipe]()
    kind, *inner = recipe
    if kind == "columns":
        split = [(f"t{i}", step(one), list(cols)) for i, (one, cols) in enumerate(inner)]
        return ColumnTransformer(split, remainder="drop", sparse_threshold=0.3)
    named = [(f"p{i}", step(one)) for i, one in enumerate(inner)]
    return FeatureUnion(named) if kind == "union" else Pipeline(named)


def names_in(recipe: Recipe) -> set[str]:
    """The parts of a recipe."""
    if isinstance(recipe, str):
        return {recipe}
    if recipe[0] == "columns":
        return set().union(*(names_in(one) for one, _ in recipe[1:]))
    return set().union(*map(names_in, recipe[1:]))


def _numeric(table: Table, extra: tuple[str, ...]) -> st.SearchStrategy[Recipe]:
    names = (*SOUND, *extra) if table.is_sparse else (*SOUND, *DENSE, *OWN, *extra)
    if table.is_dask:
        # The signs of its axes are nobody's: no two factorizations need agree on them.
        names = tuple(name for name in names if name != "discriminant")
    leaf = st.sampled_from(names)
    some = st.lists(leaf, min_size=2, max_size=3)
    wider = st.one_of(
        leaf,
        leaf,
        some.map(lambda inner: ("union", *inner)),
        some.map(lambda inner: ("chain", *inner)),
    )
    deeper = st.lists(wider, min_size=2, max_size=2).map(lambda inner: ("union", *inner))
    return st.one_of(leaf, wider, wider, deeper)


@st.composite
def cases(draw: Any, drawn: st.SearchStrategy[Table], extra: str = "") -> Case:
    """A table and a pipeline that fits it more often than not.

    With ``extra``, "looking" or "unseeded", one step at least is of that kind.
    """
    table = draw(drawn)
    more = {"": (), "looking": tuple(LOOKING), "unseeded": tuple(UNSEEDED)}[extra]
    numeric = _numeric(table, more)
    steps: list[Recipe] = []
    if table.container in TEXTS:
        steps.append(draw(_reading()))
    elif table.is_frame and (table.those(*WORDS) or draw(st.booleans())):
        steps.append(draw(_columns(table, numeric)))
    elif table.those("missing", "one missing") and draw(st.integers(0, 3)):
        filling = ["impute mean", "impute median, indicate", "impute frequent"]
        steps.append(draw(st.sampled_from([*filling, *more[:2]])))
    if more:
        steps.append(draw(st.sampled_from(more)))
    steps += draw(st.lists(numeric, min_size=not steps, max_size=2))
    output = draw(st.sampled_from(["default"] * 5 + ["pandas"]))
    # Of rows that are equally far away, rounding decides which is near.
    tied = table.container in TEXTS or table.is_sparse
    lasts = [name for name in LAST if not (tied and name in NEAR)]
    return Case(table, tuple(steps), draw(st.sampled_from(lasts)), output)


@st.composite
def _columns(draw: Any, table: Table, numeric: st.SearchStrategy[Recipe]) -> Recipe:
    """A ColumnTransformer, at times with pipelines and unions within."""
    inner: list[tuple[Recipe, tuple[str, ...]]] = []
    words = table.those(*WORDS)
    numbers = [name for name in table.names if name not in words]
    if words:
        one = st.sampled_from(list(ENCODING))
        some = draw(st.lists(one, min_size=1, max_size=2, unique=True))
        inner += [(recipe, tuple(words)) for recipe in some]
    if numbers:
        first = draw(st.sampled_from(["impute mean", "impute median, indicate"]))
        then = draw(numeric)
        inner.append((("chain", first, then), tuple(numbers)))
        if draw(st.booleans()):
            inner.append((draw(numeric), (numbers[0],)))
    return ("columns", *inner)


@st.composite
def _reading(draw: Any) -> Recipe:
    some = draw(
        st.lists(st.sampled_from(list(READING)), min_size=1, max_size=2, unique=True)
    )
    return some[0] if len(some) == 1 else ("union", *some)
