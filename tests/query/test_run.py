"""Queries do what they say: scikit-learn's models, from files of all formats."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

import mlopt
from mlopt.errors import (
    ConstraintError,
    InputError,
    MloptError,
    QuerySyntaxError,
    UnsupportedError,
)
from mlopt.gd.plans.methods import BY_NAME
from mlopt.gd.svm import SOLVERS
from mlopt.kernels.losses import LOSSES
from mlopt.query import descent, fitting, planned
from mlopt.query.model import Model
from mlopt.query.request import Function, Request
from mlopt.query.run import Session
from mlopt.query.store import read_model
from mlopt.query.words import ALGORITHMS


def test_classification_is_logistic_regression(folder: Path, session: Session) -> None:
    people = pd.read_csv("people.csv")
    model = session.run("RUN classification ON people.csv HAVING EPSILON 1e-10")
    judge = LogisticRegression(tol=1e-8, max_iter=1000)
    judge.fit(people[["age", "size"]], people["buys"])
    assert model.coef == pytest.approx(judge.coef_[0], rel=1e-3)
    assert model.intercept == pytest.approx(judge.intercept_[0], rel=1e-3)
    assert list(model.classes) == ["no", "yes"]
    assert model.converged
    assert not model.message
    assert model.seconds > 0
    assert (model.predict(people[["size", "age"]]) == people["buys"]).mean() > 0.8
    assert "classes no/yes, 2 features, converged in" in repr(model)


@pytest.mark.parametrize(
    "source",
    [
        "iris.libsvm",
        "libsvm(iris.libsvm)",
        "iris.npz",
        "iris.parquet",
        "iris.csv.gz",
        "csv('iris.csv.gz')",
        "sklearn(iris)",
        "iris.csv.gz:1, iris.csv.gz:2-5",
        "iris.csv.gz:1, iris.npz",
    ],
)
def test_every_format_gives_the_same_model(
    folder: Path, session: Session, source: str
) -> None:
    X, y = load_iris(return_X_y=True)
    model = session.run(f"RUN classification ON {source}")
    judge = LogisticRegression(tol=1e-8, max_iter=1000).fit(X, y)
    assert model.coef.shape == (4, 3)
    assert model.intercept.shape == (3,)
    assert (model.predict(X) == judge.predict(X)).mean() > 0.98
    if "," in source:
        source = source.partition(", ")[2]
    predicted = session.run(f"PREDICT ON {source} WITH Q1")
    assert (predicted == model.predict(X)).all()


def test_regression_is_least_squares(folder: Path, session: Session) -> None:
    X, y = load_diabetes(return_X_y=True)
    np.savetxt("y.csv", y)
    pd.DataFrame(X).to_csv("x.csv", index=False, header=False)
    model = session.run("RUN regression ON y.csv, x.csv")
    assert model.coef == pytest.approx(LinearRegression().fit(X, y).coef_)
    assert model.classes is None
    part = session.run("RUN linear() ON y.csv, x.csv:2-4, x.csv:7")
    assert part.coef == pytest.approx(LinearRegression().fit(X[:, [1, 2, 3, 6]], y).coef_)
    assert part.features.names == ("c1", "c2", "c3", "c6")


def test_a_libsvm_file_is_numbered_as_the_one_of_the_model(
    folder: Path, session: Session
) -> None:
    X = np.random.default_rng(0).integers(0, 2, (400, 4)).astype(float)
    dump_svmlight_file(X, X[:, 0], "train.svm", zero_based=True)
    rows = X[X[:, 0] == 0]
    dump_svmlight_file(rows, rows[:, 0], "test.svm", zero_based=True)
    session.run("RUN classification ON train.svm; PERSIST Q1 ON model.txt")
    for model in ("Q1", "model.txt"):
        for source in ("test.svm", "libsvm(test.svm)"):
            assert not session.run(f"PREDICT ON {source} WITH {model}").any()


def test_svm_is_the_hinge_loss_of_table_3(folder: Path, session: Session) -> None:
    people = pd.read_csv("people.csv")
    X = people[["age", "size"]]
    # Unscaled, LIBLINEAR's dual takes long: age near zero mean and unit variance.
    X = (X - X.mean()) / X.std()
    X.assign(buys=people["buys"])[["buys", "age", "size"]].to_csv("scaled.csv", index=False)
    for task in ("svm", "hinge()"):
        model = session.run(
            f"RUN {task} ON scaled.csv HAVING EPSILON 1e-6, MAX_ITER 100000"
        )
        judge = LinearSVC(loss="hinge", tol=1e-8, max_iter=10**6).fit(X, people["buys"])
        assert model.loss == "hinge"
        assert model.coef == pytest.approx(judge.coef_[0], rel=1e-2)


def test_the_same_query_gives_the_same_model(folder: Path, session: Session) -> None:
    first, second = (session.run("RUN svm ON people.csv") for _ in range(2))
    assert first.coef.tobytes() == second.coef.tobytes()


def test_an_algorithm_is_what_runs(folder: Path, session: Session) -> None:
    model = session.run("RUN regression ON people.csv:2-3 USING ALGORITHM svd")
    assert model.plan.choices[-1].chosen == "svd"
    assert "constraints: EPSILON 0.001" in model.plan.notes


@pytest.mark.parametrize(
    "algorithm",
    ["lbfgs", "newton-cholesky", "dual-newton", "newton-cg", "dual-coordinate-descent"],
)
def test_an_algorithm_of_a_support_vector_machine_is_what_runs(
    folder: Path, session: Session, algorithm: str
) -> None:
    rng = np.random.default_rng(0)
    wide = np.column_stack([np.arange(40) % 2, rng.normal(size=(40, 60))])
    np.savetxt("wide.csv", wide, delimiter=",")
    query = f"RUN squared_hinge ON wide.csv USING ALGORITHM {algorithm}"
    for plan in (session.run(query).plan, session.explain(query)):
        assert plan is not None
        assert plan.choices[-1].chosen == algorithm


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_fit_ends_when_time_is_over(
    folder: Path, session: Session, monkeypatch: pytest.MonkeyPatch, loss: str
) -> None:
    """Which was predicted to suffice."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 60)) * np.logspace(0, 4, 60)
    y = (rng.random(1500) < 0.5).astype(int)
    np.savetxt("random.csv", np.column_stack([y, X]), delimiter=",")
    monkeypatch.setattr("mlopt.query.run._too_late", lambda *_: "")
    model = session.run(
        f"RUN {loss} ON random.csv HAVING TIME 500ms, EPSILON 1e-12, MAX_ITER 300000 "
        "USING ALGORITHM dual-coordinate-descent"
    )
    assert not model.converged
    assert "revisit TIME" in model.message
    assert model.plan is not None
    assert (model.plan.choices[-1].measured or 0.0) < 5.0  # all passes take 18 s


def test_every_algorithm_of_the_language_is_a_way_that_there_is() -> None:
    ours = {name for name in ALGORITHMS if name not in descent.ALGORITHMS}
    fits = {name for loss in LOSSES for name in planned.algorithms(loss)}
    assert ours == fits
    assert ours <= set(BY_NAME)
    assert set(SOLVERS) <= set(BY_NAME)


def test_names_live_in_a_session(folder: Path, session: Session) -> None:
    first = session.run("RUN svm ON people.csv")
    named = session.run("Q7 = RUN svm ON people.csv")
    second = session.run("RUN svm ON people.csv")
    assert [one.name for one in (first, named, second)] == ["Q1", "Q7", "Q2"]
    session.run("result = PREDICT ON people.csv WITH Q7")
    assert (session.values["result"] == session.run("PREDICT ON people.csv WITH Q1")).all()
    with pytest.raises(QuerySyntaxError, match=r"`Q9` is not known.*Models: Q1, Q7, Q2"):
        session.run("PERSIST Q9 ON m.txt")
    with pytest.raises(QuerySyntaxError, match="`result` holds predictions"):
        session.run("PERSIST result ON m.txt")


def test_a_text_that_asks_for_its_unnamed_runs_means_its_own(
    folder: Path, session: Session
) -> None:
    session.run("RUN svm ON people.csv")  # Q1
    session.run("RUN svm ON people.csv")  # Q2
    found = session.run("RUN regression ON people.csv:2-3; PERSIST Q1 ON m.txt")
    assert read_model(found).task == "regression"
    assert session.values["Q1"].task == "regression"
    session.run(
        "RUN svm ON people.csv; RUN regression ON people.csv:2-3; PERSIST Q2 ON m.txt"
    )
    assert read_model(found).task == "regression"
    assert session.values["Q1"].task == "classification"
    # Asked for before there is one of its own, or not at all: what the name stood for.
    session.run("PERSIST Q2 ON m.txt; RUN svm ON people.csv")
    assert read_model(found).task == "regression"
    assert session.values["Q3"].task == "classification"


def test_a_text_goes_on_with_what_it_found(folder: Path, session: Session) -> None:
    text = "RUN regression ON people.csv:2-3; PERSIST Q1 ON m.txt"
    steps = session.steps(text)
    next(steps)
    session.run("Q1 = RUN svm ON people.csv")  # as of a thread beside
    next(steps)
    assert read_model(Path("m.txt")).task == "regression"


def test_the_process_has_one_session(folder: Path) -> None:
    model = mlopt.run("RUN classification ON people.csv")
    assert isinstance(model, Model)
    assert mlopt.run(f"PERSIST {model.name} ON m.txt") == Path("m.txt")
    predicted = mlopt.run("result = PREDICT ON people.csv WITH m.txt;")
    assert predicted.shape == (200,)


def test_a_time_that_will_be_exceeded_is_refused_before_fitting(
    folder: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlopt.query.fitting.fit", None)
    with pytest.raises(ConstraintError, match=r"TIME 1ms cannot be met.*Revisit TIME"):
        session.run("RUN classification ON people.csv HAVING TIME 1ms")
    with pytest.raises(ConstraintError, match=r"by lbfgs.*Revisit TIME or ALGORITHM"):
        session.run("RUN logistic ON people.csv USING ALGORITHM lbfgs HAVING TIME 1ms")
    assert session.values == {}


@pytest.mark.parametrize("time", ["", " HAVING TIME 1h"])
def test_all_ways_are_ranked_once(
    folder: Path, session: Session, monkeypatch: pytest.MonkeyPatch, time: str
) -> None:
    ranked = Mock(wraps=mlopt.gd.plan)
    monkeypatch.setattr("mlopt.query.planned.plan", ranked)
    session.run(f"RUN classification ON people.csv{time}")
    assert ranked.call_count == 1


@pytest.mark.parametrize("task", ["classification", "svm"])
def test_what_a_run_is_predicted_to_take_is_what_is_measured(
    folder: Path, session: Session, task: str
) -> None:
    """All of it, with what comes before the fit, which alone has to be guessed."""
    plan: Any = session.run(f"RUN {task} ON people.csv").plan
    read, fit = (choice.measured for choice in plan.choices)
    before = plan.measured - fit
    assert before >= read
    guessed = plan.predicted - before
    assert guessed == pytest.approx(plan.choices[-1].predicted, rel=0.1)
    ahead: Any = session.explain(f"RUN {task} ON people.csv")
    assert ahead.predicted > ahead.choices[0].measured + ahead.choices[1].predicted


def test_planning_counts_towards_time(
    folder: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = fitting.ready

    def slow(*given: Any, **more: Any) -> fitting.Ready:
        return ready(*given, **more)._replace(seconds=3600.0)

    monkeypatch.setattr(fitting, "ready", slow)
    with pytest.raises(ConstraintError, match=r"reading and planning took 1\.0 h"):
        session.run("RUN classification ON people.csv HAVING TIME 1h")


def test_a_time_that_was_exceeded_is_told(folder: Path, session: Session) -> None:
    query = "RUN regression ON people.csv:2-3 HAVING TIME 1h"
    ticks = iter([0.0, 1.0, 7200.0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mlopt.query.run.time.perf_counter", lambda: next(ticks, 7200.0))
        model = session.run(query)
    assert model.message.endswith("It took 2.0 h, more than TIME 1h: revisit TIME.")


def test_an_epsilon_that_was_not_reached_names_what_to_revisit(
    folder: Path, session: Session
) -> None:
    model = session.run("RUN classification ON iris.npz HAVING MAX_ITER 5, EPSILON 1e-9")
    assert model.converged is False
    assert "EPSILON 1e-09 was not reached within MAX_ITER 5" in model.message
    assert "not converged in" in repr(model)
    assert model.message in model.describe()


def test_a_number_of_iterations_that_nothing_can_keep_is_refused_by_name(
    folder: Path, session: Session
) -> None:
    with pytest.raises(ConstraintError, match=r"MAX_ITER cannot be kept.*larger EPSILON"):
        session.run("RUN classification ON iris.npz HAVING MAX_ITER 1, EPSILON 1e-9")
    with pytest.raises(ConstraintError, match=r"EPSILON must be at least"):
        session.run("RUN classification ON iris.npz HAVING EPSILON 1e-16")


def test_explain_reads_and_fits_nothing(
    folder: Path, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlopt.query.fitting.fit", None)
    plan = session.explain("RUN classification ON iris.npz HAVING TIME 1ms")
    assert [choice.step for choice in plan.choices] == ["read", "fit"]
    assert plan.predicted is not None
    assert "TIME 1ms cannot be met" in plan.explain()
    with pytest.raises(InputError, match="one RUN statement"):
        session.explain("RUN svm ON iris.npz; RUN svm ON iris.npz")
    with pytest.raises(InputError, match="one RUN statement"):
        session.explain("PREDICT ON iris.npz WITH Q1")


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("RUN f() ON a.csv USING ALGORITHM lbfgs", "ALGORITHM lbfgs has no gradients"),
        ("RUN svm ON a.csv USING ALGORITHM BGD, SAMPLER bernoulli", "BGD uses all rows"),
        ("RUN svm ON a.csv USING SAMPLER f(), ALGORITHM SVRG", r"SAMPLER f\(\) cannot be"),
        ("RUN svm ON a.csv USING ALGORITHM lbfgs", "hinge loss.*dual-coord.*SGD"),
        ("RUN regression ON a.csv USING ALGORITHM newton-cholesky", "squared loss.*svd"),
    ],
)
def test_what_does_not_go_together_is_refused_by_name(
    session: Session, query: str, names: str
) -> None:
    with pytest.raises(UnsupportedError, match=names):
        session.run(query, functions={"f": abs})


@pytest.mark.parametrize("task", ["regression", "classification", "svm"])
def test_an_algorithm_that_is_recommended_can_be_named(session: Session, task: str) -> None:
    wrong = "svd" if task != "regression" else "newton-cholesky"
    with pytest.raises(UnsupportedError) as caught:
        session.run(f"RUN {task} ON a.csv USING ALGORITHM {wrong}")
    named = re.search(r"Use one of (.*), or leave", str(caught.value))
    assert named
    for name in named[1].split(", "):
        # All that is wrong: the file is not there.
        with pytest.raises(InputError, match=r"a\.csv"):
            session.run(f"RUN {task} ON a.csv USING ALGORITHM {name}")


@pytest.mark.parametrize(
    ("query", "column", "says"),
    [
        ("RUN g() ON people.csv", 5, "no function `g`.*functions="),
        ("RUN hinj() ON people.csv", 5, "Did you mean `hinge`"),
        ("RUN svm ON cvs(people.csv)", 12, "Did you mean `csv`"),
        ("PREDICT ON cvs(people.csv) WITH people.csv", 12, "Did you mean `csv`"),
        ("RUN svm ON people.csv:1", 12, "no features"),
        ("RUN svm ON people.csv:1, people.csv:3-4", 37, "no column 4.*has 3 columns"),
        ("RUN svm ON people.csv:1, people.csv", 26, "column 1 is the label already"),
        ("RUN svm ON people.csv:1-2, people.csv:2", 39, "column 2 is a feature already"),
        ("PREDICT ON people.csv WITH nosuch.txt", 28, "`nosuch.txt` is neither"),
        ("PREDICT ON people.csv:1-9 WITH Q1", 23, "has 3 columns"),
    ],
)
def test_what_only_the_run_can_know_is_shown_in_the_query(
    folder: Path, session: Session, query: str, column: int, says: str
) -> None:
    if "Q1" in query:
        session.run("RUN svm ON people.csv")
    with pytest.raises(QuerySyntaxError, match=says) as caught:
        session.run(query)
    assert (caught.value.line, caught.value.column) == (1, column)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("RUN svm ON peple.csv", "Did you mean `people.csv`"),
        (
            "RUN svm ON libsvm(people.csv)",
            "people.csv` cannot be read as LIBSVM.*name another",
        ),
        ("RUN regression ON people.csv", "must be numbers, but one is `(yes|no)`"),
        ("RUN classification ON people.csv:2-3", "is a fraction: RUN regression"),
        ("RUN regression ON people.csv:2, people.csv:1", "`buys` of .*holds `(yes|no)`"),
        ("RUN svm ON people.csv:1, iris.npz", "200 and `iris.npz` 150"),
        ("RUN svm ON people.csv:1, people.csv:2, iris.npz", "`iris.npz` 150"),
        ("RUN svm ON holes.csv", "column `b` .*lacks 1 of 3"),
        ("RUN svm ON holes.csv:2, holes.csv:1", "Labels must not be missing, but 1 of 3"),
        ("RUN svm ON one.csv", "at least two classes"),
        ("PERSIST Q1 ON no/such/m.txt", "folder that is there"),
        ("PREDICT ON people.csv:2 WITH Q1", "has 2 features, but .* 1 columns"),
        ("PREDICT ON people.csv WITH people.csv", "people.csv must be a model"),
    ],
)
def test_data_that_cannot_work_are_told_clearly(
    folder: Path, session: Session, query: str, says: str
) -> None:
    Path("holes.csv").write_text("a,b\n1,2\n0,\n1,5\n")
    Path("one.csv").write_text("a,b\n1,2\n1,3\n1,5\n")
    if "Q1" in query:
        session.run("RUN svm ON people.csv")
    with pytest.raises(InputError, match=says):
        session.run(query)


def test_all_statements_are_checked_before_the_first_runs(
    folder: Path, session: Session
) -> None:
    for wrong in ("PERSIST Q2 ON m.txt", "RUN svm ON a USING ALGORITHM lbfgs", "RUN svm"):
        with pytest.raises(MloptError):
            session.run(f"RUN svm ON people.csv; {wrong}")
        assert session.values == {}
    session.run("RUN svm ON people.csv; PERSIST Q1 ON m; PREDICT ON people.csv WITH m")


def test_a_parser_of_the_users_own(folder: Path, session: Session) -> None:
    def halves(path: str) -> tuple[np.ndarray, np.ndarray]:
        table = pd.read_csv(path)
        return table[["age", "size"]].to_numpy() / 2, table["buys"].to_numpy()

    model = session.run("RUN svm ON halves(people.csv)", functions={"halves": halves})
    assert model.coef.shape == (2,)
    with pytest.raises(InputError, match="must return a table"):
        session.run("RUN svm ON f(people.csv)", functions={"f": lambda path: [1, 2]})


def test_predictions_on_dask_are_lazy(folder: Path, session: Session) -> None:
    import dask.array as da

    model = session.run("RUN classification ON iris.npz")
    X, _ = load_iris(return_X_y=True)
    lazy = model.predict(da.from_array(X, chunks=(50, 4)))
    assert (lazy.compute() == model.predict(X)).all()


def test_arguments_that_are_no_query(session: Session) -> None:
    with pytest.raises(InputError, match="must be a text, got int"):
        session.run(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="`f` is none"):
        session.run("RUN svm ON a.csv", functions={"f": 3})  # type: ignore[dict-item]


def test_a_request_is_plain_values() -> None:
    request = Request("classification")
    assert request.tolerance == 1e-3
    assert request.time_limit is None
    assert str(Function("f", math.sin)) == "f()"


def test_a_model_is_found_where_it_is_written_however_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).normal(size=(60, 3))
    np.savez("d.npz", X=X, y=X[:, 0] > 0)
    found = mlopt.run(
        "RUN classification ON d.npz; PERSIST Q1 ON ./new.txt;"
        "PREDICT ON d.npz WITH new.txt;"
    )
    assert len(found) == 60
