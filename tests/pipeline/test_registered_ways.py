"""Ways that the author of a class declares are taken where they are the fastest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, TransformerMixin, clone
from sklearn.linear_model import Ridge, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

import mlopt
from mlopt.cluster import local_cluster
from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.pipeline.fits import registry
from mlopt.pipeline.library.learning import BlockLeastSquares
from mlopt.plan import format_bytes
from mlopt.stats import Stats

N, CHUNK = 6000, 1500
X = np.random.default_rng(0).normal(2.0, 3.0, (N, 3))
Y = X @ [1.0, -2.0, 0.5] + 1.0
LAZY = da.from_array(X, (CHUNK, 3)), da.from_array(Y, CHUNK)
SEEN: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_registered() -> Iterator[None]:
    before = dict(registry.RECORDS)
    SEEN.clear()
    yield
    registry.RECORDS.clear()
    registry.RECORDS.update(before)


class Centre(TransformerMixin, BaseEstimator):
    """Takes away the mean of all rows."""

    def fit(self, X: Any, y: Any = None) -> Centre:
        SEEN.append(len(X))
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X: Any) -> Any:
        return X - self.mean_


class Means(mlopt.OnePass):
    """Sums that are added up."""

    name = "sums"

    def part(self, estimator: Any, X: Any, y: Any, weight: Any) -> Any:
        SEEN.append(len(X))
        return X.sum(axis=0), len(X)

    def merge(self, left: Any, right: Any) -> Any:
        return left[0] + right[0], left[1] + right[1]

    def finish(self, estimator: Any, statistics: Any) -> Any:
        fitted = Centre()
        fitted.mean_ = statistics[0] / statistics[1]
        return fitted


class Line(RegressorMixin, BaseEstimator):
    """Least squares; its sums grow block by block."""

    def fit(self, X: Any, y: Any) -> Line:
        SEEN.append(len(X))
        return self._learnt(np.zeros((4, 4)), np.zeros(4), X, y)

    def partial_fit(self, X: Any, y: Any = None) -> Line:
        SEEN.append(len(X))
        start = getattr(self, "gram_", np.zeros((4, 4))), getattr(self, "moment_", 0.0)
        return self._learnt(*start, X, y)

    def _learnt(self, gram: Any, moment: Any, X: Any, y: Any) -> Line:
        Z = np.column_stack((X, np.ones(len(X))))
        self.gram_, self.moment_ = gram + Z.T @ Z, moment + Z.T @ y
        self.coef_ = np.linalg.lstsq(self.gram_, self.moment_, rcond=None)[0]
        return self

    def predict(self, X: Any) -> Any:
        return X @ self.coef_[:3] + self.coef_[3]


class ByPasses(mlopt.ManyPasses):
    """The same from `Rows`."""

    name = "passes"

    def __init__(self, seconds: float | None = 1e-6) -> None:
        self.seconds = seconds
        self.sampled = seconds is None

    def cost(self, estimator: Any, stats: Any, resources: Any, passes: Any = None) -> Any:
        return None if self.seconds is None else Cost(fixed=self.seconds)

    def fit(self, estimator: Any, rows: Any, y: Any, weight: Any) -> Any:
        fitted, start = Line(), 0
        for block in rows.map(lambda block: block.X):
            fitted.partial_fit(block, y[start : start + len(block)])
            start += len(block)
        return fitted


def chosen(pipeline: Any) -> str:
    return str(pipeline.plan_.choices[-1].chosen)


def test_statistics_that_merge_learn_from_blocks() -> None:
    mlopt.register(Centre, row_wise=True, reads_y=False, ways=[Means()])
    pipeline = mlopt.make_pipeline(Centre(), Ridge())
    pipeline.optimize = {"without": "choose_ways"}
    SEEN.clear()
    pipeline.fit(*LAZY)
    np.testing.assert_allclose(pipeline[0].mean_, X.mean(axis=0))
    assert pipeline.plan_.choices[0].chosen == "sums"
    assert max(SEEN) <= CHUNK


def test_partial_fit_goes_from_block_to_block() -> None:
    mlopt.register(Line, row_wise=True, ways=[mlopt.PartialFit()])
    pipeline = mlopt.make_pipeline(StandardScaler(), Line())
    pipeline.optimize = {"without": "choose_ways"}
    pipeline.fit(*LAZY)
    assert chosen(pipeline) == "partial_fit in turn"
    assert CHUNK in SEEN
    assert N not in SEEN
    np.testing.assert_allclose(pipeline.predict(LAZY[0]).compute(), Y)
    assert pipeline.plan_.choices[-1].predicted is not None


def test_partial_fit_of_a_classifier_is_told_all_classes() -> None:
    mlopt.register(GaussianNB, row_wise=True, ways=[mlopt.PartialFit()])
    labels = np.repeat(["a", "b", "c", "d"], CHUNK)
    pipeline = mlopt.make_pipeline(StandardScaler(), GaussianNB())
    pipeline.optimize = {"without": "choose_ways"}
    pipeline.fit(LAZY[0], da.from_array(labels, CHUNK))
    assert chosen(pipeline) == "partial_fit in turn"
    wanted = GaussianNB().fit(StandardScaler().fit_transform(X), labels)
    np.testing.assert_allclose(pipeline[-1].theta_, wanted.theta_)


def test_an_algorithm_over_rows_is_taken_when_it_is_cheapest() -> None:
    for seconds, name in ((100.0, "partial_fit in turn"), (0.0, "passes")):
        mlopt.register(Line, ways=[ByPasses(seconds), mlopt.PartialFit()])
        pipeline = mlopt.make_pipeline(StandardScaler(), Line()).fit(*LAZY)
        assert chosen(pipeline) in (name, "scikit-learn")
        np.testing.assert_allclose(pipeline.predict(X), Y)


def test_a_way_without_a_formula_is_priced_by_samples() -> None:
    mlopt.register(Line, ways=[ByPasses(None)])
    pipeline = mlopt.make_pipeline(StandardScaler(), Line()).fit(*LAZY)
    choice = pipeline.plan_.choices[-1]
    assert choice.predicted is not None
    assert choice.predicted > 0


def test_weights_that_partial_fit_does_not_take_are_refused() -> None:
    with pytest.raises(InputError, match="takes no weights"):
        mlopt.PartialFit().turn(Line(), X, Y, np.ones(N), None)


class WeighedLine(Line):
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        self.weight_ = sample_weight
        return super().fit(X, y)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("rules", [True, {"without": "choose_ways"}])
def test_weights_go_to_fit_where_partial_fit_takes_none(lazy: bool, rules: Any) -> None:
    mlopt.register(WeighedLine, ways=[mlopt.PartialFit()])
    pipeline = mlopt.make_pipeline(StandardScaler(), WeighedLine())
    pipeline.optimize = rules
    weight = np.linspace(1, 2, N)
    given = da.from_array(weight, CHUNK) if lazy else weight
    pipeline.fit(*(LAZY if lazy else (X, Y)), weighedline__sample_weight=given)
    assert chosen(pipeline) == "scikit-learn"
    np.testing.assert_array_equal(pipeline[-1].weight_, weight)


def test_a_block_that_is_worked_on_again_counts_once() -> None:
    way, first = mlopt.PartialFit(), Line()
    first = way.turn(first, X[:10], Y[:10], None, None)
    once, again = (way.turn(first, X[10:20], Y[10:20], None, None) for _ in range(2))
    np.testing.assert_array_equal(once.gram_, again.gram_)


def test_a_function_declared_row_wise_streams_in_fit_and_predict() -> None:
    def halved(X: Any) -> Any:
        SEEN.append(len(X))
        return X / 2

    step = FunctionTransformer(mlopt.register(halved, row_wise=True))
    pipeline = mlopt.make_pipeline(step, StandardScaler(), Ridge()).fit(*LAZY)
    found = pipeline.predict(LAZY[0])
    assert isinstance(found, da.Array)
    found.compute()
    assert max(SEEN) <= CHUNK
    assert "not declared" not in pipeline.plan_.explain()


def test_an_undeclared_function_is_gathered_and_the_plan_says_so() -> None:
    def halved(X: Any) -> Any:
        SEEN.append(len(X))
        return X / 2

    pipeline = mlopt.make_pipeline(FunctionTransformer(halved), StandardScaler(), Ridge())
    pipeline.fit(*LAZY)
    assert N in SEEN
    note = "halved is not declared row-wise: run on all rows at once"
    assert note in pipeline.plan_.explain()
    assert (
        f"all rows gathered in one place: {format_bytes(X.nbytes)}"
        in pipeline.plan_.explain()
    )


@pytest.mark.parametrize("last", [DecisionTreeClassifier(max_depth=2), SGDClassifier()])
def test_a_known_class_that_is_given_all_rows_is_said_to_gather_them(last: Any) -> None:
    X, y = LAZY[0], (LAZY[1] > 0).astype(int)
    note = f"all rows gathered in one place: {format_bytes(X.nbytes)}"
    pipeline = mlopt.make_pipeline(StandardScaler(), last)
    for plan in (pipeline.explain(X, y), pipeline.fit(X, y).plan_):
        assert note in plan.choices[-1].notes
    here = mlopt.make_pipeline(StandardScaler(), last).explain(X.compute(), y.compute())
    assert "gathered" not in here.explain()
    few = pipeline.fit(X[:300].rechunk((100, -1)), y[:300].rechunk(100)).plan_
    assert "all rows gathered in one place" in few.choices[-1].notes


@pytest.mark.parametrize(
    ("kind", "declared", "said"),
    [
        (np.abs, {"reads_y": True}, "is a function"),
        (np.abs, {"ways": [mlopt.PartialFit()]}, "is a function"),
        (BaseEstimator, {"row_wise": True}, "`BaseEstimator` cannot be row-wise"),
        (Centre, {"stateless": True, "reads_y": True}, "`Centre` cannot learn nothing"),
        (Centre, {"stateless": True, "ways": [Means()]}, "`Centre` cannot be stateless"),
        (Centre, {"seeded_by": "seed"}, "'seed' is none of"),
        (Centre, {"ways": [mlopt.PartialFit()]}, "`Centre` has no `partial_fit`"),
        (Centre, {"ways": [Means]}, "must be instances of"),
        (Centre, {"ways": Means()}, "must be a list of ways"),
        (Centre, {"row_wise": "no"}, "must be True or False"),
        (Centre, {"reads_y": "no"}, "must be True or False"),
        (Line, {"ways": [type("Free", (ByPasses,), {"cost": mlopt.ManyPasses.cost})()]},
         "has no price: define `cost`"),
    ],
)  # fmt: skip
def test_what_contradicts_itself_is_refused(kind: Any, declared: Any, said: str) -> None:
    before = dict(registry.RECORDS)
    with pytest.raises(InputError, match=said):
        mlopt.register(kind, **declared)
    assert before == registry.RECORDS


def test_rows_that_must_be_gathered_and_do_not_fit_name_the_step_and_what_to_do() -> None:
    resources = mlopt.Resources.probe()
    small = type(resources)(**{**vars(resources), "memory": 50_000})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mlopt.pipeline.estimator.resources_of", lambda where: small)
        pipeline = mlopt.make_pipeline(StandardScaler(), Line())
        with pytest.raises(
            InputError, match=r"`line`.*KiB gathered.*`Line` with `mlopt\.register"
        ):
            pipeline.fit(*LAZY)


def test_rows_that_do_not_fit_are_said_so_once_whatever_the_targets() -> None:
    def halved(X: Any) -> Any:
        return X / 2

    resources = mlopt.Resources.probe()
    small = type(resources)(**{**vars(resources), "memory": 5000})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mlopt.pipeline.estimator.resources_of", lambda where: small)
        patch.setattr("mlopt.pipeline.estimator.memory_limit", lambda: 1000)
        pipeline = mlopt.make_pipeline(FunctionTransformer(halved), Ridge())
        with pytest.raises(InputError) as told:
            pipeline.fit(LAZY[0], da.ones(N, chunks=CHUNK))
    assert str(told.value).startswith("Step `functiontransformer` is not declared")
    assert "sample" not in str(told.value)
    assert str(told.value).count("ive more memory") == 1


@pytest.mark.cluster
@pytest.mark.slow
def test_ways_learn_on_workers_what_they_learn_on_threads() -> None:
    mlopt.register(GaussianNB, row_wise=True, ways=[mlopt.PartialFit()])
    labels = da.from_array(np.repeat(["a", "b", "c", "d"], CHUNK), CHUNK)
    fits = {
        "partial_fit in turn": (GaussianNB(), labels, "theta_"),
        "sparse_cg": (mlopt.Ridge(solver="sparse_cg"), LAZY[1], "coef_"),
        "lbfgs": (mlopt.LogisticRegression(solver="lbfgs"), labels, "coef_"),
        "block by block": (BlockLeastSquares(), LAZY[1], "coef_"),
    }
    with local_cluster(2, 1):
        for name, (estimator, y, learnt) in fits.items():
            pipeline = mlopt.make_pipeline(StandardScaler(), estimator)
            pipeline.optimize = {"without": "choose_ways"}
            pipeline.fit(LAZY[0], y)
            assert chosen(pipeline) == name
            alone = clone(estimator).fit(StandardScaler().fit_transform(X), y.compute())
            found, wanted = (getattr(one, learnt) for one in (pipeline[-1], alone))
            np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-3)


def test_a_class_that_is_registered_again_keeps_the_ways_of_mlopt() -> None:
    own = {way.name for way in registry.ways_of(GaussianNB())}
    for _ in range(2):
        mlopt.register(GaussianNB, row_wise=True, ways=[mlopt.PartialFit()])
        ways = [way.name for way in registry.ways_of(GaussianNB())]
        assert own < set(ways)
        assert len(ways) == len(own) + 1


class Tally(TransformerMixin, BaseEstimator):
    """Counts rows in attributes that no name tells from others; has no parameters."""

    def fit(self, X: Any, y: Any = None) -> Tally:
        self.__dict__.clear()
        return self.partial_fit(X)

    def partial_fit(self, X: Any, y: Any = None) -> Tally:
        if not hasattr(self, "_n"):
            self._n, self.total_ = 0, 0.0
        self._n += len(X)
        self.total_ = self.total_ + X.sum(axis=0)
        self.mean_ = self.total_ / self._n
        self.__dict__.pop("_told", None)
        return self

    def transform(self, X: Any) -> Any:
        if not hasattr(self, "_told"):
            self._told = self.mean_ + 0.0
        return X - self._told


class TallyFrom(Tally):
    """Has a parameter, and begins to count where it is made."""

    def __init__(self, start: int = 0) -> None:
        self.start = start
        self._n, self.total_ = start, 0.0

    def fit(self, X: Any, y: Any = None) -> Tally:
        self._n, self.total_ = self.start, 0.0
        return self.partial_fit(X)


@pytest.mark.parametrize("kind", [Tally, TallyFrom])
@pytest.mark.parametrize("lazy", [False, True])
def test_a_second_fit_by_partial_fit_begins_anew(kind: Any, lazy: bool) -> None:
    mlopt.register(kind, row_wise=True, reads_y=False, ways=[mlopt.PartialFit()])
    step = kind().fit(X + 7.0)  # of its own, before
    step.tag = "mine"
    pipeline = mlopt.make_pipeline(step, Ridge())
    pipeline.optimize = {"without": "choose_ways"}
    for shift in (0.0, 1.0, 1.0):
        rows = X + shift
        with dask.config.set({"mlopt.plan": "always"}):
            pipeline.fit(da.from_array(rows, (CHUNK, 3)) if lazy else rows, LAZY[1])
        assert pipeline.plan_.choices[0].chosen == "partial_fit in turn"
        assert pipeline[0] is step
        assert (step._n, step.tag) == (N, "mine")
        np.testing.assert_allclose(step.mean_, rows.mean(axis=0))
        np.testing.assert_allclose(step.transform(rows), rows - rows.mean(axis=0))


class Warm(TallyFrom):
    def __init__(self, start: int = 0, warm_start: bool = True) -> None:
        super().__init__(start)
        self.warm_start = warm_start

    def fit(self, X: Any, y: Any = None) -> Tally:
        return self.partial_fit(X) if self.warm_start else super().fit(X)


def test_a_warm_start_goes_on_by_partial_fit_too() -> None:
    mlopt.register(Warm, row_wise=True, reads_y=False, ways=[mlopt.PartialFit()])
    pipeline = mlopt.make_pipeline(Warm(), Ridge())
    pipeline.optimize = {"without": "choose_ways"}
    for fits in (1, 2):
        pipeline.fit(*LAZY)
        assert pipeline[0]._n == fits * N


class Untold(Tally):
    """Does not tell the parameter that it was made with."""

    def __init__(self, start: int = 0) -> None:
        self._start = start


def test_what_cannot_be_made_anew_is_fitted_by_its_own_fit() -> None:
    way = mlopt.PartialFit()
    assert "cannot be made anew" in way.refuses(Untold(), Stats(N, 3))
    assert way.refuses(Tally(), Stats(N, 3)) == ""
