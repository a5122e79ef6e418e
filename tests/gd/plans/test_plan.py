"""Plans for a task: all of them solve it, the cheapest comes first, limits are kept."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.svm import SVC

import mlopt
from mlopt.errors import InputError
from mlopt.gd.plans import SolverPlan, Task, descents, falling, plan, proof, running
from mlopt.gd.plans.forecast import Passes
from mlopt.gd.plans.methods import BY_NAME
from mlopt.gd.plans.proof import Proof, prove
from mlopt.gd.plans.running import Alternative, Race, solve
from mlopt.resources import Resources
from mlopt.training import Limits

Array = NDArray[Any]
X, Y = make_classification(3000, 12, n_informative=6, n_redundant=0, random_state=0)
NUMBERS = X @ np.arange(12) + np.random.default_rng(0).normal(size=3000)
SOLVERS = [
    "lbfgs", "newton-cholesky", "dual-coordinate-descent", "cholesky", "svd",
    "sparse_cg",
]  # fmt: skip
TASKS = {
    "logistic": Task("logistic", l2=1e-3),
    "multinomial": Task("multinomial", l2=1e-3),
    "hinge": Task("hinge", l2=1e-3, fit_intercept=False),
    "squared_hinge": Task("squared_hinge", l2=1e-3, fit_intercept=False),
    "squared": Task("squared", l2=1e-3),
    "huber": Task("huber", l2=1e-3),
}


def targets(task: Task) -> Array:
    if not task.classifies:
        return np.asarray(NUMBERS)
    return np.asarray(Y + 2 * (X[:, 0] > 0) if task.loss_name == "multinomial" else Y)


def objective(task: Task, coef: Array, intercept: Any) -> float:
    """The task's objective, written out."""
    z, y = X @ coef + intercept, targets(task)
    penalty = 0.5 * task.l2 * float(np.sum(coef**2))
    if task.loss == "multinomial":
        top = z.max(axis=1, keepdims=True)
        norm = np.log(np.exp(z - top).sum(axis=1)) + top[:, 0]
        return float(np.mean(norm - z[np.arange(len(y)), y])) + penalty
    if task.classifies:
        margin = np.where(y == 1, z, -z)
        losses = {
            "logistic": np.logaddexp(0, -margin),
            "hinge": np.maximum(0, 1 - margin),
            "squared_hinge": np.maximum(0, 1 - margin) ** 2,
        }
    else:
        r = np.abs(z - y)
        losses = {"squared": r**2 / 2, "huber": np.where(r <= 1, r**2 / 2, r - 0.5)}
    return float(losses[task.loss_name].mean()) + penalty


@cache
def least(name: str) -> float:
    """The minimum, as an exact method finds it."""
    methods = ["dual-coordinate-descent" if name == "hinge" else "lbfgs"]
    task = TASKS[name]
    result = plan(task, X, targets(task), tolerance=1e-8, methods=methods).run()
    return objective(task, result.coef, result.intercept)


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array])
def test_every_solver_reaches_the_tolerance(name: str, layout: Any) -> None:
    task, y = TASKS[name], targets(TASKS[name])
    minimum = least(name)
    ranked = plan(task, layout(X), y, tolerance=1e-4, methods=SOLVERS)
    for alternative in ranked.alternatives:
        result = alternative.run()
        assert result.converged, alternative.name
        reached = objective(task, result.coef, result.intercept)
        assert result.objective == pytest.approx(reached, rel=1e-9)
        assert reached <= minimum * (1 + 2e-4), alternative.name


SMOOTH = ["logistic", "squared_hinge", "squared", "huber"]
DETERMINISTIC = ["bgd", "barzilai-borwein", "line-search"]
STOCHASTIC = [
    "mgd/eager/shuffled-partition", "mgd/lazy/random-partition", "mgd/eager/bernoulli",
    "sgd/lazy/shuffled-partition", "adam/lazy/shuffled-partition",
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "method", "wanted"), [
    *((name, f"{method}/eager", 0.01) for name in SMOOTH for method in DETERMINISTIC
      # Barzilai-Borwein steps may cycle where the curvature jumps.
      if (name, method) != ("huber", "barzilai-borwein")),
    *(("logistic", method, 0.05) for method in STOCHASTIC),
])  # fmt: skip
def test_the_plans_of_ml4all_reach_the_same_quality(
    name: str, method: str, wanted: float
) -> None:
    task, y = TASKS[name], targets(TASKS[name])
    (one,) = plan(task, X, y, tolerance=wanted, methods=[method]).alternatives
    result = one.run(time_limit=20)
    assert result.converged, result.message
    # The gap is an estimate.
    assert result.objective <= least(name) * (1 + 2 * wanted)


def test_the_hinge_loss_with_an_intercept_is_proven() -> None:
    task = Task("hinge", l2=1e-2)
    found = plan(task, X, Y, tolerance=1e-2).run()
    assert found.claim == "proven"
    peer = SVC(kernel="linear", C=1 / (1e-2 * len(Y))).fit(X, Y)
    minimum = objective(task, peer.coef_[0], peer.intercept_[0])
    assert found.objective <= 1.01 * minimum


def test_a_gradient_of_the_users_is_a_task() -> None:
    def pull(x: Array, y: float, w: Array) -> Array:
        return np.asarray((w @ x - y) * x)

    def misfit(x: Array, y: float, w: Array) -> float:
        return float((w @ x - y) ** 2 / 2)

    few, numbers = X[:300], NUMBERS[:300]
    own = Task(pull, l2=1e-3, objective=misfit)
    found = plan(own, few, numbers, tolerance=1e-4, methods=["bgd/eager"])
    result = found.run()
    # Nothing is known of the function: its gap is an estimate, and is not claimed.
    assert (result.claim, result.converged) == ("estimated", False)
    assert "estimated" in result.message
    same = plan(Task("squared", l2=1e-3, fit_intercept=False), few, numbers,
                tolerance=1e-8, methods=["svd"]).run()  # fmt: skip
    assert result.objective == pytest.approx(same.objective, rel=1e-4)
    assert "pull" in found.explain()

    blind = plan(Task(pull, l2=1e-3), few, numbers, tolerance=1e-2, speculation=False)
    assert "objective" in blind.refused["line-search/eager"]
    assert {a.method.unit for a in blind.alternatives} == {"iterations"}
    assert np.isnan(blind.alternatives[0].run(max_iter=20).objective)


def test_a_step_that_diverges_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(descents, "batch_eigenvalue", lambda rows, batch: 1e-3)
    task = TASKS["squared"]
    result = plan(task, X, NUMBERS, methods=["bgd/eager"]).run()
    assert not result.converged
    assert "diverged" in result.message
    assert result.n_iter < 50


def test_plans_are_ranked_and_explained() -> None:
    found = plan(TASKS["squared"], X, NUMBERS)

    seconds = [a.predicted_seconds for a in found.alternatives]
    assert seconds == sorted(seconds)
    assert {a.name for a in found.alternatives} >= {"cholesky", "svd", "lbfgs"}
    for a in found.alternatives:
        assert a.interval[0] <= a.predicted_seconds <= a.interval[1]
    assert "newton-cholesky" in found.refused
    assert found.chosen.name in found.explain()
    assert "not for the squared loss" in found.explain(verbose=True)


def test_what_the_table_lacks_is_refused_with_its_reason() -> None:
    found = plan(Task("squared_hinge", l2=1e-3), X, Y)
    assert "fit_intercept" in found.refused["dual-coordinate-descent"]
    with pytest.raises(InputError, match="No method can minimise the hinge loss"):
        plan(Task("hinge"), X, Y, methods=SOLVERS)


def test_a_hinge_loss_of_weighted_rows_without_a_penalty_is_refused_in_a_sentence() -> None:
    weights = np.linspace(1.0, 2.0, len(Y))
    said = r"^`l2` must be positive for the hinge loss .*weights, got 0.0: .*`sample_w"
    with pytest.raises(InputError, match=said) as refused:
        plan(Task("hinge"), X, Y, sample_weight=weights)
    assert len(str(refused.value)) < 200
    assert plan(Task("hinge", l2=1e-6), X, Y, sample_weight=weights).chosen


def test_a_reason_is_said_once_for_all_methods_that_have_it() -> None:
    smooth = [name for name in BY_NAME if name != "working-set"]
    says = r"here: not with an L1 .* \(\S+ and \d+ more.*Leave it to working-set"
    with pytest.raises(InputError, match=says):
        plan(Task("logistic", l1=0.1), X, Y, methods=smooth)
    with pytest.raises(InputError, match=r"here: not for the hinge loss \(lbfgs\)\.$"):
        plan(Task("hinge"), X, Y, methods=["lbfgs"])


def test_speculation_is_bounded_and_sees_the_data() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(120_000, 40))
    labels = (rows @ rng.normal(size=40) + rng.normal(size=120_000) > 0).astype(int)
    task = Task("logistic", l2=1e-6)
    plan(task, rows[:20_000], labels[:20_000])  # kernels are compiled by now
    guess = plan(task, rows, labels, tolerance=1e-5, speculation=False)
    found = plan(task, rows, labels, tolerance=1e-5)

    assert {a.passes.source for a in guess.alternatives} <= {"typical", "foreseen"}
    spent = found.planning_seconds - guess.planning_seconds
    assert spent < 0.1 * guess.chosen.predicted_seconds + 0.5
    for a in found.alternatives:
        if a.passes.source == "sampled":
            assert a.passes.low <= a.run().n_iter * 2
            assert a.run().n_iter <= a.passes.high * 2


def test_limits_stop_a_run_and_say_so() -> None:
    (first, *_) = plan(TASKS["multinomial"], X, targets(TASKS["multinomial"]),
                       methods=["lbfgs"], tolerance=1e-9).alternatives  # fmt: skip
    result = first.run(max_iter=2)
    assert (result.n_iter, result.converged) == (2, False)
    assert "limit of 2 passes" in result.message
    assert [passes for passes, _, _ in result.history] == [1, 2]


def test_a_plan_that_proves_bad_is_left_with_its_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "_AGAIN", np.inf)  # whatever the clock says
    monkeypatch.setattr(running, "_TRIFLE", 0.0)  # and however little the other one takes
    task, y = TASKS["multinomial"], targets(TASKS["multinomial"])
    found = plan(task, X, y, tolerance=1e-8, methods=["lbfgs", "newton-cholesky"])
    by_name = {a.name: a for a in found.alternatives}
    wrong = replace(by_name["lbfgs"], passes=Passes.known(3.0))
    result = solve(
        [
            wrong,
            replace(by_name["newton-cholesky"], passes=Passes.known(1.0), span=(0.0, 0.0)),
        ]
    )

    assert result.methods == ("lbfgs", "newton-cholesky")
    assert result.converged
    assert [passes for passes, _, _ in result.history] == list(range(1, result.n_iter + 1))
    alone = by_name["newton-cholesky"].run()
    before = 2 * falling.FEWEST  # gaps of the last half of the time tell
    assert result.n_iter - before <= alone.n_iter
    assert result.objective == pytest.approx(alone.objective, rel=1e-7)


@pytest.mark.parametrize(
    ("left", "thought", "leaves"),
    [(19.0, 100.0, False), (21.0, 100.0, True), (4.9, 5.0, False), (5.1, 5.0, True)],
)
def test_what_is_less_well_known_must_be_so_much_better(
    left: float, thought: float, leaves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty times its worst case and doubt, unless it can be tried for what it takes."""
    task, y = TASKS["multinomial"], targets(TASKS["multinomial"])
    found = plan(task, X, y, tolerance=1e-8, methods=["lbfgs", "newton-cholesky"])
    by_name = {a.name: a for a in found.alternatives}
    passes = Passes(expected=5.0, low=1.0, high=20.0, source="typical")
    other = replace(by_name["newton-cholesky"], passes=passes, span=(1.0, 10.0))
    other = replace(other, predicted_seconds=thought)
    race = Race(replace(by_name["lbfgs"], passes=Passes.known(3.0)), Limits(100, None))
    race.training.advance(4)
    monkeypatch.setattr(Race, "_left", lambda self: left)
    assert race._disappoints(other) == leaves


def first_and_other(first: str, other: str) -> list[Alternative]:
    """Of the multinomial task, by these methods, as if passes were known."""
    task, y = TASKS["multinomial"], targets(TASKS["multinomial"])
    found = plan(task, X, y, tolerance=1e-8, methods=[first, other])
    by_name = {a.name: a for a in found.alternatives}
    return [replace(by_name[name], passes=Passes.known(3.0)) for name in (first, other)]


@pytest.mark.parametrize(
    ("elapsed", "left", "leaves"), [(2.9, 9.0, False), (3.1, 1.9, False), (3.1, 2.1, True)]
)
def test_what_was_left_returns_after_twice_the_time_of_all_before(
    elapsed: float, left: float, leaves: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    newton, lbfgs = first_and_other("newton-cholesky", "lbfgs")
    race = Race(newton, Limits(100, None))
    race.leave_for(lbfgs)
    race.began, race.alternative = 1.0, replace(lbfgs, predicted_seconds=0.5)
    monkeypatch.setattr(Race, "_left", lambda self: left)
    monkeypatch.setattr(Limits, "elapsed", property(lambda self: elapsed + 1e-9))
    assert race._disappoints(newton) == leaves


def test_where_all_disappoint_the_first_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is last used to go on for ever, however near another was to its end."""

    def disappoints(race: Race, following: Alternative) -> bool:
        return race.training.passes >= 2 and len(race.names) < 4

    monkeypatch.setattr(Race, "_disappoints", disappoints)
    result = solve(first_and_other("lbfgs", "newton-cholesky"))
    assert result.methods == ("lbfgs", "newton-cholesky") * 2
    assert result.converged


@pytest.mark.parametrize(("name", "most"), [("newton-cholesky", 1.0), ("lbfgs", np.inf)])
def test_gaps_that_fall_suddenly_tell_nothing_before(name: str, most: float) -> None:
    """Newton's were to take 25 s more, by a line through such gaps, and took .7 s."""
    race = Race(
        first_and_other(name, "newton-cholesky" if name == "lbfgs" else "lbfgs")[0],
        Limits(100, None),
    )
    race.began = race.limits.elapsed - 1.0
    now = race.limits.elapsed
    for i in range(4):
        race.gaps.add((i, now - 0.1 * (4 - i), 1e6 - i))
    assert race._left() < most + 0.5
    assert (race._left() > 20.0) == (name == "lbfgs")


def test_what_is_proven_nearly_goes_on_before_a_hessian_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For a hundredth of the gap, a Hessian of 1655 columns took five times the fit."""
    found = plan(TASKS["logistic"], X, Y, tolerance=1e-6, methods=["newton-cg"])
    alone, asked = found.chosen.run(), []

    def nearly(*given: Any) -> Proof | None:
        told = prove(*given)
        asked.append(given[-1])
        assert told is not None
        return replace(told, gap=1.5e-6) if len(asked) == 1 else told

    monkeypatch.setattr(running, "prove", nearly)
    result = found.chosen.run()
    assert (asked, result.converged) == ([running._NEARLY, 1.0], True)
    assert alone.n_iter < result.n_iter < 2 * alone.n_iter


@pytest.mark.parametrize(("spare", "made"), [(1.0, 1), (4.0, 0)])
def test_a_bound_that_lacks_little_needs_no_hessian(
    spare: float, made: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = plan(TASKS["logistic"], X, Y, tolerance=1e-2, methods=["newton-cg"])
    result, floors = found.chosen.run(), []
    planes = np.atleast_2d(result.coef), np.atleast_1d(result.intercept)
    first = prove(found.chosen.problem, *planes)
    assert first is not None

    def floor(*given: Any) -> float:
        floors.append(given)
        return 0.0

    monkeypatch.setattr(proof, "_floor", floor)
    prove(found.chosen.problem, *planes, first.gap / 2, spare)
    assert len(floors) == made


@pytest.mark.parametrize(
    ("gaps", "least", "most"),
    [([np.inf] * 4, 1.0, 1.5), ([np.inf] * 2 + [1.0] * 2, 0.0, 0.0), ([np.inf], 0.0, 0.0)],
)
def test_gaps_that_stay_infinite_tell_that_it_is_not_near(
    gaps: list[float], least: float, most: float
) -> None:
    race = Race(first_and_other("lbfgs", "newton-cholesky")[0], Limits(100, None))
    race.began = race.limits.elapsed - 1.0
    for i, gap in enumerate(gaps):
        race.gaps.add((i, race.limits.elapsed, gap))
    assert least <= race._left() <= most


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"tolerance": 0.0}, "`tolerance` must lie between 0 and 1"),
        ({"time_limit": -1.0}, "`time_limit` must be positive"),
        ({"time_limit": 1e-9}, "`time_limit` cannot be kept"),
        ({"max_iter": 1, "methods": ["lbfgs"]}, "`max_iter` cannot be kept"),
        ({"methods": ["lbgfs"]}, "`methods` must be among"),
    ],
)
def test_what_cannot_be_is_refused_before_running(
    settings: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        plan(TASKS["logistic"], X, Y, **settings)


@pytest.mark.parametrize(
    ("task", "y", "says"),
    [
        ({"loss": "logistik"}, Y, "`loss` must be one of"),
        ({"loss": "logistic", "l2": -1.0}, Y, "`l2` must be finite and at least 0"),
        ({"loss": "huber", "delta": 0.0}, NUMBERS, "`delta` must be finite and positive"),
        ({"loss": "logistic", "l2": "a"}, Y, "`l2` must be finite and at least 0"),
        ({"loss": "hinge", "l1": 0.1}, Y, "`l1` goes with the losses squared, logistic"),
        ({"loss": "huber", "positive": True}, NUMBERS, "`positive` goes with the losses"),
        ({"loss": "logistic"}, np.zeros(3000), r"at least two classes, got only 0\.0"),
        ({"loss": "logistic"}, np.arange(3000) % 3, "separates two classes"),
        ({"loss": "squared"}, NUMBERS[:-1], "one value for each of the 3000 rows"),
    ],
)
def test_bad_tasks_and_targets_are_refused(
    task: dict[str, Any], y: Array, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        plan(Task(**task), X, y)


@pytest.mark.parametrize("tolerance", [0.1, 0.5, 0.9])
def test_a_share_is_one_of_the_minimum(tolerance: float) -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 90))
    y = (X[:, 0] + random.normal(size=40) > 0).astype(int)
    task, one = Task("hinge", l2=0.01, fit_intercept=False), ["dual-coordinate-descent"]
    best = plan(task, X, y, methods=one, tolerance=1e-8).run().objective
    found = plan(task, X, y, methods=one, tolerance=tolerance).run()
    assert found.converged
    assert found.objective / best - 1 <= found.gap <= tolerance


def test_a_tolerance_below_rounding_is_refused() -> None:
    with pytest.raises(InputError, match="Use float64"):
        plan(TASKS["logistic"], X.astype(np.float32), Y, tolerance=1e-8)


def test_sample_weights_count() -> None:
    weights = np.random.default_rng(1).integers(0, 3, 3000).astype(float)
    twice = np.repeat(np.arange(3000), weights.astype(int))
    weighted = plan(TASKS["logistic"], X, Y, sample_weight=weights, tolerance=1e-9).run()
    repeated = plan(TASKS["logistic"], X[twice], Y[twice], tolerance=1e-9).run()
    np.testing.assert_allclose(weighted.coef, repeated.coef, rtol=1e-3, atol=1e-4)


def test_it_is_reached_through_the_package() -> None:
    assert mlopt.gd.plan is plan
    assert isinstance(mlopt.gd.plan(mlopt.gd.Task("squared"), X, NUMBERS), SolverPlan)


def test_predictions_are_for_the_threads_that_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    four = Resources(threads=4, bandwidth_all=4e10)
    monkeypatch.setattr(Resources, "probe", lambda client=None: four)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 60))
    y = (X[:, 0] > 0).astype(int)
    one, all_four = (
        plan(Task("logistic", l2=1e-3), X, y, methods=["newton-cholesky"], n_jobs=jobs)
        for jobs in (1, 4)
    )
    predicted = [found.alternatives[0].predicted_seconds for found in (one, all_four)]
    assert predicted[0] > 1.5 * predicted[1]
