"""Which columns a query learns from, and which ones go for them in other data."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_iris

from mlopt.errors import (
    InputError,
    InputWarning,
    QuerySyntaxError,
)
from mlopt.query.ast import Run
from mlopt.query.files import Sheet, picked, taken
from mlopt.query.parser import parse
from mlopt.query.run import Session
from mlopt.query.text import Text
from mlopt.readers import Table


def test_a_file_with_some_of_the_columns_is_refused(folder: Path, session: Session) -> None:
    session.run("Q1 = RUN svm ON people.csv")
    people = pd.read_csv("people.csv")
    people.rename(columns={"size": "sizes"}).to_csv("other.csv", index=False)
    told = r"lacks `size`. Did you mean `sizes`"
    with pytest.raises(InputError, match=told):
        session.run("PREDICT ON other.csv WITH Q1")
    named = session.run("PREDICT ON other.csv:2-3 WITH Q1")
    assert (named == session.run("PREDICT ON people.csv WITH Q1")).all()


@pytest.mark.parametrize("names", [("007", "12"), (2**64 - 1, 2**64 - 2)])
def test_labels_come_back_as_they_are_written(
    names: tuple[Any, Any], folder: Path, session: Session
) -> None:
    rows = [f"{names[x // 30]},{x}" for x in range(60)]
    Path("codes.csv").write_text("\n".join(["code,x", *rows]))
    session.run("Q1 = RUN classification ON codes.csv; PERSIST Q1 ON codes.txt")
    assert set(session.run("PREDICT ON codes.csv:2 WITH codes.txt")) == set(names)
    assert session.run("RUN regression ON codes.csv").classes is None


def test_a_file_to_predict_is_read_as_that_of_the_model(
    folder: Path, session: Session
) -> None:
    rows = [f"{'no' if x < 30 else 'yes'};{20 * x},5;{x}" for x in range(60)]
    Path("mass.csv").write_text("\n".join(["y;mass;n", *rows]))
    session.run("Q1 = RUN classification ON mass.csv; PERSIST Q1 ON mass.txt")
    Path("new.csv").write_text("mass;n\n1.150;57\n50;2\n")  # more than a thousand there
    for source in ("new.csv", "csv(new.csv)"):
        found = session.run(f"PREDICT ON {source} WITH mass.txt")
        assert found.tolist() == ["yes", "no"]


def test_a_frame_with_some_of_the_columns_is_refused_as_a_file_is(
    folder: Path, session: Session
) -> None:
    model = session.run("RUN svm ON people.csv")
    people = pd.read_csv("people.csv")
    other = people.rename(columns={"size": "sizes"})[["sizes", "age"]]
    for frame in (other, pl.from_pandas(other), dd.from_pandas(other, npartitions=2)):
        with pytest.raises(
            InputError, match=r"X must .*lacks `size`. Did you mean `sizes`"
        ):
            model.predict(frame)
    twice = pd.concat([people, people[["age"]]], axis=1)
    with pytest.raises(InputError, match=r"each column .* once; it has `age` more often"):
        model.predict(twice)


@pytest.mark.parametrize("make", [pa.Table.from_pandas, pl.from_pandas])
def test_frames_of_all_kinds_have_their_columns_found_by_name(
    folder: Path, session: Session, make: Any
) -> None:
    model = session.run("RUN svm ON people.csv")
    people = pd.read_csv("people.csv")
    expected = model.predict(people[["age", "size"]].to_numpy())
    assert (model.predict(make(people[["size", "buys", "age"]])) == expected).all()
    renamed = people[["age", "size"]].set_axis(["a", "b"], axis=1)
    assert (model.predict(make(renamed)) == expected).all()


def test_columns_that_several_files_call_the_same_go_by_position(
    folder: Path, session: Session
) -> None:
    people = pd.read_csv("people.csv")
    people[["size"]].to_csv("other.csv", index=False)
    model = session.run("Q1 = RUN svm ON people.csv, other.csv")
    assert model.features.names == ("age", "size", "size")
    joined = pd.DataFrame({"age": people["age"], "size": 0.0, "size.1": people["size"]})
    expected = model.predict(joined.to_numpy())
    assert (model.predict(joined) == expected).all()
    joined.to_csv("joined.csv", index=False)
    assert (session.run("PREDICT ON joined.csv WITH Q1") == expected).all()
    with pytest.raises(InputError, match=r"has 3 features, but `other.csv` gives 1"):
        session.run("PREDICT ON other.csv WITH Q1")


def test_a_model_of_several_sparse_files_predicts_on_all_of_them_alone(
    folder: Path, session: Session
) -> None:
    X, y = load_iris(return_X_y=True)
    dump_svmlight_file(X[:, :2], y, "left.libsvm", zero_based=False)
    pd.DataFrame(X[:, 2:], columns=["pl", "pw"]).to_csv("right.csv", index=False)
    model = session.run("Q1 = RUN svm ON left.libsvm, right.csv")
    found = session.run("PREDICT ON left.libsvm, right.csv WITH Q1")
    assert (found == model.predict(X)).all()
    dump_svmlight_file(X[:, 2:], y, "right.libsvm", zero_based=False)
    session.run("Q2 = RUN svm ON left.libsvm, right.libsvm")
    with pytest.raises(InputError, match=r"has 4 features, but `left.libsvm` gives 2"):
        session.run("PREDICT ON left.libsvm WITH Q2")


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


def test_columns_count_as_in_the_file_even_where_one_says_nothing(
    folder: Path, session: Session
) -> None:
    pd.read_csv("people.csv").to_csv("indexed.csv")
    model = session.run("RUN classification ON indexed.csv:2, indexed.csv:4")
    assert model.features.names == ("size",)
    assert model.features.columns == (4,)
    with pytest.raises(QuerySyntaxError, match="only counts the rows"):
        session.run("RUN classification ON indexed.csv:1, indexed.csv:4")


def test_columns_are_found_in_time_with_their_number(session: Session) -> None:
    # By their squares it took half a minute.
    d = 20_000
    sheet = Sheet(Table(sp.csr_array((1, d)), np.ones(1), None, "", ("",) * d),
                  tuple(range(2, d + 2)), d + 1)  # fmt: skip
    text = f"RUN svm ON wide:2-{d + 1}"
    (run,) = parse(text).statements
    assert isinstance(run, Run)
    started = time.perf_counter()
    columns = picked(sheet, run.sources[0], Text(text))
    assert columns == list(sheet.numbers)
    assert taken(sheet, columns)[0] is sheet.table.X
    assert time.perf_counter() - started < 3.0


@pytest.mark.parametrize("kind", [np.asarray, pd.Series])
def test_labels_that_a_parser_leaves_out_are_no_class(
    folder: Path, session: Session, kind: Any
) -> None:
    X = np.arange(12.0).reshape(6, 2)
    y = kind(np.array(["no", "yes", None] * 2, dtype=object))
    with pytest.raises(InputError, match="must not be missing, but 2 of 6"):
        session.run("RUN svm ON f(people.csv)", functions={"f": lambda path: (X, y)})


def test_a_column_whose_name_a_parsers_table_has_twice_is_one(
    folder: Path, session: Session
) -> None:
    def parse(path: str) -> pd.DataFrame:
        return pd.read_csv(path).set_axis(["buys", "a", "a"], axis=1)

    model = session.run("RUN svm ON f(people.csv)", functions={"f": parse})
    assert (model.coef == session.run("RUN svm ON people.csv").coef).all()


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
