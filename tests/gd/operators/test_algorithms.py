"""Reference algorithms: they find what scikit-learn finds, and are what they say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from tests.gd.operators.cases import problem, regression, source

from mlopt.errors import InputError
from mlopt.gd.operators import (
    MORE_PLANS,
    PLANS,
    TABLE_3,
    Algorithm,
    Gradient,
    MatrixSource,
    RandomPartition,
    Settings,
    ShuffledPartition,
    UserGradient,
    plan_row,
    references,
)
from mlopt.gd.operators.samplers import generator_of
from mlopt.gd.operators.updates import Constant, Inverse, InverseRoot

L2 = 0.05
X, Y = problem()
XR, YR = regression()
LOGISTIC = Gradient("logistic", l2=L2, fit_intercept=True)
SQUARED = Gradient("squared", l2=L2, fit_intercept=True)


def sklearn_weights(loss: str) -> np.ndarray:
    """With an intercept that has no penalty, last."""
    if loss == "logistic":
        model = LogisticRegression(C=1 / (L2 * len(X)), tol=1e-10, max_iter=2000).fit(X, Y)
        return np.append(model.coef_[0], model.intercept_)
    ridge = Ridge(alpha=L2 * len(XR), tol=1e-12).fit(XR, YR)
    return np.append(ridge.coef_, ridge.intercept_)


def data(loss: str, block_rows: int | None = None) -> tuple[Gradient, MatrixSource]:
    if loss == "logistic":
        return LOGISTIC, source(X, Y, block_rows)
    return SQUARED, source(XR, YR, block_rows)


EXACT: dict[str, Callable[[Settings], Algorithm]] = {
    "bgd": references.bgd,
    "line_search": references.line_search,
    "barzilai_borwein": references.barzilai_borwein,
    "adam": lambda settings: references.adam(replace(settings, step=Constant(0.03))),
    "svrg": lambda s: references.svrg(replace(s, step=Constant(0.03), every=400)),
}


@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize("name", sorted(EXACT))
def test_exact_algorithms_find_scikit_learns_weights(name: str, loss: str) -> None:
    compute, rows = data(loss)
    settings = Settings(compute, step=Constant(0.5), tolerance=1e-6, max_iter=12_000)
    result = EXACT[name](settings).run(rows)
    assert result.converged, result.message
    np.testing.assert_allclose(result.weights, sklearn_weights(loss), atol=1e-5)
    np.testing.assert_array_equal(result.coef, result.weights[:-1])
    assert result.intercept == result.weights[-1]


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "squared"])
@pytest.mark.parametrize(
    "name", [row.name for row in (*PLANS, *MORE_PLANS) if row.sampling is not None]
)
def test_stochastic_plans_come_close(name: str, loss: str) -> None:
    compute, rows = data(loss, block_rows=100)
    step = Constant(0.02) if name.startswith("adam") else InverseRoot(0.3)
    settings = Settings(compute, step=step, batch=40, max_iter=1000, tolerance=0)
    run = plan_row(name).build(settings).start(rows, seed=2)
    run.advance(1000)
    best = replace(run.algorithm, update=lambda total: sklearn_weights(loss), max_iter=1)
    least = best.run(rows, objective_every=1).history[0].objective
    zero = np.log(2) if loss == "logistic" else 0.5 * float(np.mean(YR**2))
    # One row an iteration leaves a few per cent of the possible decrease.
    share = 0.06 if name.startswith("sgd") else 0.02
    assert run.objective() - least < share * (zero - least)


def test_svrg_is_algorithm_2_written_out() -> None:
    m, alpha, T = 7, 0.1, 40
    gradient = TABLE_3["logistic"]
    settings = Settings(gradient, Constant(alpha), every=m, max_iter=T, tolerance=0)
    found = references.svrg(settings, RandomPartition()).run(source(X, Y), seed=5)

    def grad(w: np.ndarray, i: int) -> np.ndarray:
        return np.asarray((-1 / (1 + np.exp(Y[i] * (w @ X[i])))) * Y[i] * X[i])

    w = anchor = np.zeros(X.shape[1])
    mu = w
    for t in range(1, T + 1):
        if t % m - 1 == 0:
            anchor = w
            mu = np.mean([grad(anchor, i) for i in range(len(X))], axis=0)
            w = w - alpha * mu
        else:
            random = generator_of({"seed": 5}, 0, t)  # type: ignore[arg-type]
            i = int(random.integers(len(X), size=1)[0])
            w = w - alpha * (grad(w, i) - grad(anchor, i) + mu)
    np.testing.assert_allclose(found.weights, w, rtol=1e-10)


def test_line_search_only_accepts_steps_that_satisfy_armijo() -> None:
    settings = Settings(LOGISTIC, tolerance=1e-8, max_iter=400)
    run = references.line_search(settings).start(source(X, Y))
    accepted = refused = 0
    while not run.done:
        before, f0 = run.context["weights"], run.objective()
        run.advance(1)
        after = run.context["weights"]
        if run.context["iteration"] == 1 or after is before:
            refused += run.context["iteration"] > 1
            continue
        square = float(((after - before) ** 2).sum())
        # after = before - a g, so that a |g|^2 = |after - before|^2 / a.
        g = LOGISTIC(run.data.partition(0), {"weights": before}).gradient / len(X)  # type: ignore[arg-type]
        a = np.sqrt(square) / np.linalg.norm(g)
        assert run.objective() <= f0 - 1e-4 * square / a + 1e-12
        accepted += 1
    assert run.converged
    assert accepted > 10
    assert refused > 5


def test_line_search_refuses_the_papers_stopping_rule() -> None:
    with pytest.raises(InputError, match="fidelity=False"):
        references.line_search(Settings(fidelity=True))


def test_step_rules() -> None:
    assert [InverseRoot()(i) for i in (1, 4, 100)] == [1.0, 0.5, 0.1]
    assert [Inverse(3)(i) for i in (1, 3)] == [3.0, 1.0]
    assert Constant(0.2)(17) == 0.2
    with pytest.raises(InputError, match="beta"):
        Inverse(0)


def test_one_step_of_each_update_by_hand() -> None:
    gradient = UserGradient(lambda x, y, w: w - y)  # the minimum is y
    rows = source(np.zeros((1, 1)), np.array([4.0]))

    def weights(make: Callable[[Settings], Algorithm], steps: int) -> float:
        settings = Settings(gradient, Constant(0.25), max_iter=steps, tolerance=0)
        return float(make(settings).run(rows).weights[0])

    assert weights(references.bgd, 2) == pytest.approx(1 + 0.25 * 3)
    # The curvature is 1: the second Barzilai-Borwein step lands on the minimum.
    assert weights(references.barzilai_borwein, 2) == pytest.approx(4)
    assert weights(references.adam, 1) == pytest.approx(0.25)


def test_the_papers_rule_stops_hinge_sgd_untrained_and_the_sound_one_does_not() -> None:
    features, labels = problem(5000, 20)
    rows = source(features, labels)
    sample = ShuffledPartition()
    paper = Settings(TABLE_3["svm"], fidelity=True, max_iter=5000)
    sound = replace(paper, fidelity=False)
    short = [references.sgd(paper, sample).run(rows, seed=seed) for seed in range(5)]
    assert all(result.converged and result.n_iter < 50 for result in short)
    long = references.sgd(sound, sample).run(rows)
    assert long.n_iter >= 5000

    def accuracy(w: np.ndarray) -> float:
        return float(np.mean(np.sign(features @ w) == labels))

    assert accuracy(long.weights) > max(accuracy(r.weights) for r in short) + 0.05


def test_the_objective_rule_looks_at_windows_that_double() -> None:
    settings = Settings(LOGISTIC, Constant(0.3), batch=40, tolerance=0.02)
    result = references.mgd(replace(settings, max_iter=5000), RandomPartition()).run(
        source(X, Y)
    )
    assert result.converged
    # n / m is 10 iterations; the rule speaks at the ends of windows, from the second on.
    ends = [i for _, i in result.errors]
    assert ends == [10 * (2**k - 1) for k in range(2, 2 + len(ends))]


@pytest.mark.slow
def test_noise_does_not_end_a_run() -> None:
    settings = Settings(LOGISTIC, InverseRoot(), batch=40, tolerance=1e-3)
    for seed in range(5):
        result = references.mgd(settings, RandomPartition()).run(source(X, Y), seed=seed)
        assert not result.converged
        assert all(delta > 1e-3 for delta, _ in result.errors)


def test_divergence_is_a_result_with_a_message() -> None:
    settings = Settings(SQUARED, step=Constant(1e200), max_iter=50)
    result = references.bgd(settings).run(source(XR, YR))
    assert not result.converged
    assert "smaller step" in result.message


def test_the_table_has_the_papers_eleven_plans() -> None:
    names = [row.name for row in PLANS]
    assert len(names) == len(set(names)) == 11
    assert names[0] == "bgd/eager"
    assert not any("lazy/bernoulli" in name for name in names)
    for row in (*PLANS, *MORE_PLANS):
        assert row.build(Settings()).name == row.name
    with pytest.raises(InputError, match="`plan` must be one of"):
        plan_row("sgd/lazy/bernoulli")
