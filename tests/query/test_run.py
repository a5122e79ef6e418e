"""Queries do what they say: scikit-learn's models, from files of all formats."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.svm import LinearSVC

import mlopt
from mlopt.errors import (
    ConstraintError,
    InputError,
    InputWarning,
    MloptError,
    QuerySyntaxError,
    UnsupportedError,
)
from mlopt.query.model import Model
from mlopt.query.request import Function, Request
from mlopt.query.run import Session


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


def test_a_file_with_some_of_the_columns_is_refused(folder: Path, session: Session) -> None:
    session.run("Q1 = RUN svm ON people.csv")
    people = pd.read_csv("people.csv")
    people.rename(columns={"size": "sizes"}).to_csv("other.csv", index=False)
    told = r"lacks `size`. Did you mean `sizes`"
    with pytest.raises(InputError, match=told):
        session.run("PREDICT ON other.csv WITH Q1")
    named = session.run("PREDICT ON other.csv:2-3 WITH Q1")
    assert (named == session.run("PREDICT ON people.csv WITH Q1")).all()


def test_names_that_were_made_up_are_not_looked_for(folder: Path, session: Session) -> None:
    """The model is from a file without a header; this one's names say nothing of it."""
    people = pd.read_csv("people.csv")
    people.to_csv("bare.csv", index=False, header=False)
    session.run("Q1 = RUN svm ON bare.csv")
    people.set_axis(["label", "c1", "height"], axis=1).to_csv("named.csv", index=False)
    expected = session.run("PREDICT ON bare.csv WITH Q1")
    session.run("PERSIST Q1 ON m.txt")
    for model in ("Q1", "m.txt"):
        found = session.run(f"PREDICT ON named.csv WITH {model}")
        assert (found == expected).all()


def test_names_that_look_made_up_but_stand_in_a_file_are_names(
    folder: Path, session: Session
) -> None:
    people = pd.read_csv("people.csv").set_axis(["y", "c1", "c2"], axis=1)
    people.to_csv("train.csv", index=False)
    people[["y", "c2", "c1"]].to_csv("swapped.csv", index=False)
    people.rename(columns={"c2": "other"}).to_csv("lack.csv", index=False)
    session.run("Q1 = RUN svm ON train.csv")
    expected = session.run("PREDICT ON train.csv WITH Q1")
    assert (session.run("PREDICT ON swapped.csv WITH Q1") == expected).all()
    with pytest.raises(InputError, match="it lacks `c2`"):
        session.run("PREDICT ON lack.csv WITH Q1")


def test_columns_that_are_named_in_another_order_than_the_models_are_told(
    folder: Path, session: Session
) -> None:
    people = pd.read_csv("people.csv")
    people[["size", "age"]].to_csv("swapped.csv", index=False)
    model = session.run("Q1 = RUN classification ON people.csv")
    with pytest.warns(InputWarning, match="`size` goes for `age`"):
        found = session.run("PREDICT ON swapped.csv:1-2 WITH Q1")
    # Named columns are taken as they are all the same.
    assert (found == model.predict(people[["size", "age"]].to_numpy())).all()
    expected = session.run("PREDICT ON people.csv:2-3 WITH Q1")
    assert (
        session.run("PREDICT ON swapped.csv:2, swapped.csv:1 WITH Q1") == expected
    ).all()


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
        ("RUN svm ON a.csv USING SAMPLER bernoulli", "SAMPLER bernoulli has nothing to do"),
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


def test_columns_count_as_in_the_file_even_where_one_says_nothing(
    folder: Path, session: Session
) -> None:
    pd.read_csv("people.csv").to_csv("indexed.csv")
    model = session.run("RUN classification ON indexed.csv:2, indexed.csv:4")
    assert model.features.names == ("size",)
    assert model.features.columns == (4,)
    with pytest.raises(QuerySyntaxError, match="only counts the rows"):
        session.run("RUN classification ON indexed.csv:1, indexed.csv:4")


def test_a_parser_of_the_users_own(folder: Path, session: Session) -> None:
    def halves(path: str) -> tuple[np.ndarray, np.ndarray]:
        table = pd.read_csv(path)
        return table[["age", "size"]].to_numpy() / 2, table["buys"].to_numpy()

    model = session.run("RUN svm ON halves(people.csv)", functions={"halves": halves})
    assert model.coef.shape == (2,)
    with pytest.raises(InputError, match="must return a table"):
        session.run("RUN svm ON f(people.csv)", functions={"f": lambda path: [1, 2]})


def test_test_files_may_have_other_columns_in_another_order(
    folder: Path, session: Session
) -> None:
    people = pd.read_csv("people.csv")
    expected = session.run("RUN svm ON people.csv; PREDICT ON people.csv WITH Q1")
    people[["size", "age"]].assign(more="x").to_csv("other.csv", index=False)
    assert (session.run("PREDICT ON other.csv WITH Q1") == expected).all()
    people[["age", "size"]].to_csv("bare.csv", index=False, header=False)
    assert (session.run("PREDICT ON bare.csv WITH Q1") == expected).all()
    people.to_csv("same.csv", index=False, header=False)
    assert (session.run("PREDICT ON same.csv WITH Q1") == expected).all()
    assert (session.run("PREDICT ON same.csv:2-3 WITH Q1") == expected).all()


def test_predictions_check_the_number_of_columns(folder: Path, session: Session) -> None:
    model = session.run("RUN svm ON people.csv")
    assert len(model.predict([[1.0, 2.0]])) == 1
    with pytest.raises(InputError, match=r"2 features of the model.*got shape"):
        model.predict(np.zeros((3, 5)))


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
