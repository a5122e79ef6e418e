"""What samples tell of operators at full size."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from distributed import Client
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
)
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler
from tests.clocks import Clock
from tests.pipeline.graphs import scaled

import mlopt
from mlopt.cluster import Threads
from mlopt.gd.plans.methods import BY_NAME
from mlopt.pipeline.fits.base import ManyPasses, OnePass
from mlopt.pipeline.fits.few import Few
from mlopt.pipeline.fits.models.classifiers import Logistic
from mlopt.pipeline.fits.models.theirs import logistic_cost
from mlopt.pipeline.graph.operators import Apply, Given, Learn, Operator, Source
from mlopt.pipeline.profiling.profile import Profile, profile
from mlopt.pipeline.profiling.sampling import Sample
from mlopt.pipeline.profiling.shapes import stats_of
from mlopt.pipeline.profiling.trial import Trial
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.stats import Stats

X = Source("X", "content")
ROWS, BLOCKS = 40_000, 8


def trials(*sizes: int, columns: int = 4) -> list[Trial]:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(max(sizes), columns))
    return [Trial(Sample({X.token: data[:n]}, ROWS)) for n in sizes]


def function(call: Any, scope: str = "rows") -> Apply:
    model = Given("step", FunctionTransformer(call), call.__name__)
    return Apply("step", model, X, scope=scope)


def profiled(op: Operator, threads: int = 2) -> Profile:
    return profile((op,), trials(512, 1024), BLOCKS, Resources(workers=1, threads=threads))


def test_bytes_grow_with_the_rows() -> None:
    op = scaled("features", X, RBFSampler(n_components=16, random_state=0))
    assert profiled(op).bytes(op) == ROWS * 16 * 8
    op = scaled("features", X)
    assert profiled(op).measures[op.token].bytes.at(ROWS) == ROWS * 4 * 8


CLOCK = Clock(threads=2)


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing takes time but what `CLOCK` is told."""
    modules = "mlopt.pipeline.profiling.trial", "mlopt.kernels.compiling"
    CLOCK.install(monkeypatch, *modules)


def _lets_go(X: NDArray[Any]) -> NDArray[Any]:
    CLOCK.beside(2e-5 * len(X))
    return X


def _holds_the_lock(X: NDArray[Any]) -> NDArray[Any]:
    CLOCK.holding(2e-5 * len(X))
    return X


def _is_short(X: NDArray[Any]) -> NDArray[Any]:
    CLOCK.holding(2e-6 * len(X))
    return X


@pytest.mark.usefixtures("simulated")
def test_what_lets_go_of_the_lock_takes_its_share_of_the_threads() -> None:
    op = function(_lets_go)
    assert profiled(op).measures[op.token].crowding == pytest.approx(1.0)


@pytest.mark.usefixtures("simulated")
def test_what_holds_the_lock_gets_no_faster_by_threads() -> None:
    op = function(_holds_the_lock)
    assert profiled(op).measures[op.token].crowding == pytest.approx(2.0)


@pytest.mark.usefixtures("simulated")
def test_what_is_short_is_not_tried_on_threads() -> None:
    op = function(_is_short)
    assert profiled(op).measures[op.token].crowding == 1.0


@pytest.mark.usefixtures("simulated")
@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize(("work", "crowding"), [(CLOCK.holding, 2.0), (CLOCK.beside, 1.0)])
def test_one_interruption_does_not_tell_whether_threads_wait(
    work: Callable[[float], None], crowding: float, at: int
) -> None:
    (trial,) = trials(512)
    interrupted: deque[float] = deque()

    def call(X: NDArray[Any]) -> NDArray[Any]:
        work(interrupted.popleft() if interrupted else 0.01)
        return X

    op = function(call)
    trial.value(op)
    interrupted.extend([0.01] * at + [0.03])
    assert trial.crowding(op, 2) == pytest.approx(crowding)


class _Prepares(TransformerMixin, BaseEstimator):
    """Its first call after `fit` takes long."""

    def fit(self, X: Any, y: Any = None) -> _Prepares:
        self.new_ = True
        return self

    def transform(self, X: NDArray[Any]) -> NDArray[Any]:
        if self.new_:
            CLOCK.holding(0.05)
        self.new_ = False
        return X


@pytest.mark.usefixtures("simulated")
def test_what_only_the_first_call_takes_is_not_counted_for_every_block() -> None:
    op = scaled("prepares", X, _Prepares())
    assert profiled(op).seconds(op) < 0.05 * ROWS / 1024 / 2 / 10


def test_an_iterative_fit_that_takes_long_is_tried_on_a_sample() -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(1024, 40))
    labels = (data[:, 0] + rng.normal(size=1024) > 0).astype(int)
    y = Source("y", "labels")
    op = Learn("model", LogisticRegression(), X, y)
    found = {}
    for rows in (2_000, 20_000_000):
        tries = [
            Trial(Sample({X.token: data[:n], y.token: labels[:n]}, rows))
            for n in (512, 1024)
        ]
        machine = Resources(workers=1, threads=2)
        options = profile((op,), tries, BLOCKS, machine).options[op.token]
        (found[rows],) = (o for o in options if o.name == "lbfgs")
    way = found[2_000].way
    assert isinstance(way, ManyPasses)
    typical = way.passes(op.estimator, Stats(2_000, 40))
    assert found[2_000].passes == typical
    few = Few(data[:512], labels[:512])
    seen = way.speculate(op.estimator, few, Stats(20_000_000, 40))
    assert (found[20_000_000].passes, found[20_000_000].doubt) == seen
    assert found[20_000_000].passes != typical


def wide(rows: int, *, lazy: bool) -> tuple[Learn, list[Trial]]:
    """Many classes and columns, so that Hessians are too large: lbfgs is the only way."""
    rng = np.random.default_rng(0)
    data, labels = rng.normal(size=(400, 300)), np.arange(400) % 20
    x, y = Source("X", "wide", lazy=lazy), Source("y", "labels")
    tries = [
        Trial(Sample({x.token: data[:n], y.token: labels[:n]}, rows)) for n in (200, 400)
    ]
    return Learn("model", LogisticRegression(), x, y), tries


@pytest.mark.parametrize(("room", "samples"), [(1e15, 0), (1e3, 1)])
def test_where_one_way_is_left_a_sample_is_fitted_only_for_what_to_keep(
    monkeypatch: pytest.MonkeyPatch, room: float, samples: int
) -> None:
    op, tries = wide(20_000_000, lazy=True)
    fitted = []

    def speculate(way: Logistic, *args: Any) -> tuple[float, float]:
        fitted.append(way.name)
        return 7.0, 2.0

    monkeypatch.setattr(Logistic, "speculate", speculate)
    machine = Resources(workers=1, threads=2, memory=2**30)
    options = profile((op,), tries, BLOCKS, machine, room).options[op.token]
    (chosen,) = (one for one in options if one.seconds is not None)
    assert chosen.name == "lbfgs"
    assert len(fitted) == samples
    # What nobody has seen may be further off.
    assert chosen.doubt == BY_NAME["lbfgs"].doubt if not samples else chosen.passes == 7.0


def test_a_way_that_likely_ends_before_it_is_done_is_left_for_one_that_is_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(0)
    data = rng.normal(size=(512, 40))
    x, y = Source("X", "tall", lazy=True), Source("y", "labels")
    rows = {x.token: data, y.token: (data[:, 0] > 0).astype(int)}

    def speculate(way: Logistic, *args: Any) -> tuple[float, float]:
        return (9.0 if way.name == "lbfgs" else 101.0), 1.5

    monkeypatch.setattr(Logistic, "speculate", speculate)
    for most in (100, 8):
        op = Learn("model", LogisticRegression(max_iter=most), x, y)
        tries = [Trial(Sample(rows, 20_000_000))]
        options = profile((op,), tries, BLOCKS, Resources(workers=1, threads=2)).options
        able = {o.name for o in options[op.token] if o.way and o.seconds is not None}
        late = {o.name: o.reason for o in options[op.token] if "likely" in o.reason}
        assert "lbfgs" in able
        if most == 8:  # all of them
            assert not late
        else:
            assert able == {"lbfgs"}
            assert late["newton-cg"] == "likely more than 100 passes"


def test_scikit_learns_own_fit_has_a_price_where_rows_are_in_one_place() -> None:
    machine = Resources(workers=1, threads=2)
    prices = {}
    for rows in (2_000, 200_000):
        op, tries = wide(rows, lazy=False)
        options = profile((op,), tries, 1, machine, 1e15).options[op.token]
        prices[rows] = options[-1].seconds or 0.0
        assert options[-1].way is None
        # What takes long in any way is tried, so that passes are known.
        assert (op.token in tries[0].values) == (rows > 2_000)
    assert 0 < prices[2_000] < prices[200_000] / 5
    op, tries = wide(2_000, lazy=True)
    own = profile((op,), tries, BLOCKS, machine, 1e15).options[op.token][-1]
    assert own.reason == "not tried"


@pytest.mark.parametrize(
    "model", [Ridge(), RidgeClassifier(), LinearRegression(), PCA(2), KMeans(3)]
)
def test_what_scikit_learn_solves_at_once_or_by_lloyd_has_a_price(model: Any) -> None:
    machine, y = Resources(workers=1, threads=2), Source("y", "labels")
    sample, labels = np.random.default_rng(0).normal(size=(1024, 6)), np.arange(1024) % 2
    for rows in (20_000, 2_000_000):
        tries = [
            Trial(Sample({X.token: sample[:n], y.token: labels[:n]}, rows))
            for n in (512, 1024)
        ]
        op = Learn("model", model, X, None if isinstance(model, KMeans) else y)
        own = profile((op,), tries, 1, machine, 1e15).options[op.token][-1]
        assert own.way is None
        assert own.seconds is not None
        assert 2e-9 < own.seconds / rows < 2e-6
        assert own.doubt == 1.0  # a sample says no more
        assert op.token not in tries[0].values


def test_lloyds_iterations_are_scikit_learns_where_rows_are_in_one_place() -> None:
    machine = Resources(workers=1, threads=2)
    op, tries = Learn("model", KMeans(8), X), trials(512, 1024, columns=40)
    found = profile((op,), tries, BLOCKS, machine, 1e15).options[op.token]
    own, ours = found[-1].seconds, found[0].seconds
    assert own is not None
    assert ours is not None
    assert own < ours / 1.5


def test_few_sparse_rows_tell_nothing_of_scikit_learns_steps() -> None:
    machine, random = Resources(workers=1, threads=2), np.random.default_rng(0)
    rows = sparse.random_array((400, 3000), density=0.01, format="csr", rng=random)
    x, y, labels = Source("X", "words"), Source("y", "labels"), np.arange(400) % 2
    tries = [
        Trial(Sample({x.token: rows[:n], y.token: labels[:n]}, 10_000_000))
        for n in (200, 400)
    ]
    op = Learn("model", LogisticRegression(), x, y)
    found = profile((op,), tries, 1, machine, 1e15).options[op.token]
    own = found[-1]
    assert op.token not in tries[0].values
    assert own.doubt == 3.0  # nothing tells how many steps it takes
    usual = price("theirs.lbfgs.passes.sparse")
    stats = stats_of(rows, 10_000_000, 1)
    cost = logistic_cost(op.estimator, replace(stats, outputs=1), usual)
    assert cost is not None
    assert own.seconds == pytest.approx(cost.seconds(machine), rel=0.3)


class _SlowMerge(OnePass):
    """Statistics that are cheap to make and dear to add up."""

    name = "slow"
    kinds = (MinMaxScaler,)

    def part(self, estimator: Any, X: Any, y: Any, weight: Any) -> int:
        return len(X)

    def merge(self, left: int, right: int) -> int:
        CLOCK.holding(0.03)
        return left + right

    def finish(self, estimator: Any, statistics: int) -> Any:
        return estimator.fit(np.zeros((1, 4)))


@pytest.mark.usefixtures("simulated")
def test_adding_up_statistics_is_part_of_the_price(monkeypatch: Any) -> None:
    ways = "mlopt.pipeline.profiling.profile.ways_of"
    monkeypatch.setattr(ways, lambda estimator: (_SlowMerge(),))
    op = Learn("model", MinMaxScaler(), X)
    slow, *_ = profiled(op).options[op.token]
    assert slow.seconds is not None
    assert slow.seconds == pytest.approx(0.03 * (BLOCKS - 1))


def test_what_is_gathered_goes_over_the_network_but_for_one_workers_share() -> None:
    """A way beside others: scikit-learn's own fit, with what bringing its rows takes."""
    op = scaled("features", X).model
    assert isinstance(op, Learn)
    found = {}
    for workers, network in ((1, 1e4), (2, 1e12), (2, 1e4)):
        machine = Resources(workers=workers, threads=2, network=network)
        options = profile((Apply("f", op, X),), trials(512, 1024), BLOCKS, machine).options
        found[workers, network] = options[op.token][-1]
    size = ROWS * 4 * 8
    assert {one.way for one in found.values()} == {None}
    assert {one.memory for one in found.values()} == {size}
    more = [found[2, network].seconds or 0.0 for network in (1e4, 1e12)]
    assert more[0] - more[1] == pytest.approx(size / 2 / 1e4, rel=0.1)
    assert (found[1, 1e4].seconds or 0.0) < more[0]


def test_what_nobody_declared_is_called_once_at_a_time() -> None:
    busy = threading.Lock()

    def alone(X: Any) -> Any:
        if not busy.acquire(blocking=False):
            raise RuntimeError("two calls at once")
        try:
            time.sleep(2e-5 * len(X))
            return X + 1
        finally:
            busy.release()

    X = np.random.default_rng(0).normal(size=(100_000, 20))
    model = mlopt.make_pipeline(FunctionTransformer(alone), StandardScaler()).fit(X)
    np.testing.assert_allclose(model[-1].mean_, X.mean(axis=0) + 1)


def test_samples_are_looked_at_here_whoever_has_the_rows() -> None:
    X = np.random.default_rng(0).normal(size=(64, 3))
    with Client(
        n_workers=1,
        processes=False,
        protocol="tcp://",
        host="127.0.0.1",
        dashboard_address=None,
    ):
        assert isinstance(Few(X, None).rows.executor, Threads)
