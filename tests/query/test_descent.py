"""Queries with an algorithm of ML4all, or functions of the user's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, LogisticRegression

import mlopt
from mlopt.errors import InputError, TaskError

Array = NDArray[Any]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 3))
LABELS = (X @ [2.0, -1.0, 0.5] + RNG.logistic(size=600) > 0).astype(int)
NUMBERS = X @ [2.0, -1.0, 0.5] + 0.1 * RNG.normal(size=600)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, y in (("classes", LABELS), ("numbers", NUMBERS)):
        table = np.column_stack([y, X])
        np.savetxt(tmp_path / f"{name}.csv", table, delimiter=",", fmt="%.17g")
    monkeypatch.chdir(tmp_path)


def squares(x: Array, y: float, w: Array) -> Array:
    return np.asarray((w @ x - y) * x)


@pytest.mark.parametrize("algorithm", ["BGD", "MGD", "SGD", "SVRG"])
def test_every_algorithm_finds_the_classes(algorithm: str) -> None:
    query = f"RUN classification ON classes.csv USING ALGORITHM {algorithm}"
    model = mlopt.run(f"{query} HAVING MAX_ITER 3000;")
    best = LogisticRegression(C=np.inf).fit(X, LABELS).score(X, LABELS)
    assert np.mean(model.predict(X) == LABELS) > best - 0.02
    assert algorithm.lower() in model.describe()


@pytest.mark.parametrize("algorithm", ["BGD", "SVRG"])
def test_a_gradient_of_the_users_is_minimised(algorithm: str) -> None:
    model = mlopt.run(
        f"RUN squares() ON numbers.csv HAVING EPSILON 1e-6, MAX_ITER 5000 "
        f"USING STEP 0.5, ALGORITHM {algorithm};",
        functions={"squares": squares},
    )
    assert model.converged
    exact = LinearRegression(fit_intercept=False).fit(X, NUMBERS).coef_
    np.testing.assert_allclose(model.coef, exact, atol=1e-3)
    assert model.loss == "squares()"


def test_a_row_without_gradient_does_not_end_a_stochastic_run() -> None:
    model = mlopt.run(
        "RUN squares() ON numbers.csv USING ALGORITHM SGD, STEP 0.1 HAVING MAX_ITER 2000;",
        functions={"squares": lambda x, y, w: squares(x, y, w) * (x[0] > 0)},
    )
    assert np.abs(model.coef).max() > 1


def test_steps_samplers_and_rules_of_the_users_are_asked() -> None:
    asked: dict[str, int] = {"step": 0, "rule": 0}

    def step(iteration: int) -> float:
        asked["step"] += 1
        return 1.0 / iteration

    def rule(weights: Array, context: Any) -> float:
        asked["rule"] += 1
        return 0.0 if context["iteration"] >= 7 else 1.0

    model = mlopt.run(
        "RUN classification ON classes.csv USING STEP step(), CONVERGENCE rule();",
        functions={"step": step, "rule": rule},
    )
    assert model.converged
    assert asked == {"step": 7, "rule": 7}


@pytest.mark.parametrize("name", ["bernoulli", "random_partition", "shuffled_partition"])
def test_samplers_are_known_by_name(name: str) -> None:
    query = f"RUN svm ON classes.csv USING ALGORITHM SGD, SAMPLER {name}, STEP 0.5"
    model = mlopt.run(f"{query} HAVING MAX_ITER 1500;")
    assert np.mean(model.predict(X) == LABELS) > 0.75


def test_a_sampler_alone_is_one_of_mgd() -> None:
    named = "RUN classification ON classes.csv USING SAMPLER random_partition"
    alone, mgd = (mlopt.run(f"{named}{rest};") for rest in ("", ", ALGORITHM MGD"))
    np.testing.assert_array_equal(alone.coef, mgd.coef)


def test_a_plan_says_what_epsilon_is_of() -> None:
    def notes(rest: str) -> str:
        return str(
            mlopt.run(f"RUN svm ON classes.csv USING {rest} HAVING MAX_ITER 3;").plan
        )

    assert "EPSILON is of the norm of the gradient" in notes("ALGORITHM BGD")
    assert "EPSILON is of the gain of an iteration" in notes("ALGORITHM SGD")
    own = mlopt.run(
        "RUN squares() ON numbers.csv USING ALGORITHM SGD HAVING MAX_ITER 3;",
        functions={"squares": squares},
    )
    assert "EPSILON is of the change of the mean weights" in str(own.plan)


def test_a_run_that_was_stopped_says_what_to_revisit() -> None:
    query = "RUN classification ON classes.csv USING ALGORITHM BGD HAVING MAX_ITER 3"
    model = mlopt.run(f"{query}, EPSILON 1e-9;")
    assert not model.converged
    assert "revisit MAX_ITER (3), STEP or EPSILON" in model.message


def test_a_model_of_a_users_gradient_can_be_kept(tmp_path: Path) -> None:
    model = mlopt.run(
        "Q7 = RUN squares() ON numbers.csv; PERSIST Q7 ON kept.txt; Q7b = RUN squares() ON "
        "numbers.csv;",
        functions={"squares": squares},
    )
    again = mlopt.run("r = PREDICT ON numbers.csv:2-4 WITH kept.txt;")
    np.testing.assert_allclose(again, model.predict(X), rtol=1e-12)


@pytest.mark.parametrize(
    ("query", "error", "says"),
    [
        ("RUN bad() ON numbers.csv", InputError, "shape"),
        ("RUN raises() ON numbers.csv", TaskError, "compute"),
        ("RUN svm ON numbers.csv USING ALGORITHM BGD", InputError, "fraction|two classes"),
        ("RUN svm ON one.csv USING ALGORITHM BGD", InputError, "two classes.* another col"),
        ("RUN svm ON three.csv USING ALGORITHM SGD", InputError, "label has 3: leave ALG"),
    ],
)
def test_what_cannot_work_is_told(query: str, error: type, says: str) -> None:
    def bad(x: Array, y: float, w: Array) -> Array:
        return np.zeros(2)

    def raises(x: Array, y: float, w: Array) -> Array:
        raise ZeroDivisionError("no")

    Path("one.csv").write_text("1,2\n1,3\n")
    Path("three.csv").write_text("1,2\n2,3\n3,4\n")
    with pytest.raises(error, match=says):
        mlopt.run(query, functions={"bad": bad, "raises": raises})
