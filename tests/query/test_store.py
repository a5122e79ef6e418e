"""Stored models give the same bits again, and damaged ones are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mlopt.errors import InputError
from mlopt.query.model import Features, Model
from mlopt.query.run import Session
from mlopt.query.store import dumps, loads, read_model, write_model

EXAMPLE = """\
mlopt linear model, format 1
task: "classification"
loss: "logistic"
dtype: "float64"
classes: ["no", "yes"]
width: 3
columns: [2, 3]
features: 2
---
"intercept" -1.2999999999999998
"age" 0.10000000000000001
"a \\"height\\"" -0.5
end
"""


def test_the_format_is_as_documented() -> None:
    model = loads(EXAMPLE)
    assert dumps(model) == EXAMPLE
    assert model.coef.tolist() == [0.1, -0.5]
    assert model.features == Features(("age", 'a "height"'), (2, 3), 3)
    assert model.predict([[20.0, 0.0], [0.0, 0.0]]).tolist() == ["yes", "no"]


@pytest.mark.parametrize(
    ("task", "source"),
    [
        ("classification", "people.csv"),
        ("svm", "iris.libsvm"),
        ("classification", "iris.parquet"),
        ("regression", "iris.csv.gz"),
    ],
)
def test_persist_and_predict_give_the_same_bits(
    folder: Path, session: Session, task: str, source: str
) -> None:
    model = session.run(f"RUN {task} ON {source}")
    session.run("PERSIST Q1 ON my_model.txt")
    again = read_model(Path("my_model.txt"))
    assert again.coef.tobytes() == model.coef.tobytes()
    assert np.asarray(again.intercept).tobytes() == np.asarray(model.intercept).tobytes()
    assert again.features == model.features
    stored = Session().run(f"PREDICT ON {source} WITH my_model.txt")
    direct = session.run(f"PREDICT ON {source} WITH Q1")
    assert stored.dtype == direct.dtype
    assert (stored == direct).all()
    assert dumps(again) == Path("my_model.txt").read_text()


values = arrays.arrays(
    st.sampled_from([np.float64, np.float32]),
    st.tuples(st.integers(1, 4), st.integers(1, 4).filter(lambda k: k != 2)),
    elements=st.floats(allow_nan=False, allow_infinity=False, width=32),
)


@given(values, st.text(min_size=1))
def test_any_numbers_and_names_survive(numbers: np.ndarray, name: str) -> None:
    single = numbers.shape[1] == 1
    model = Model(
        "classification",
        "logistic",
        numbers[:, 0] if single else numbers,
        numbers[0, 0] if single else numbers[0],
        Features((name,) * len(numbers)),
        classes=np.arange(2 if single else numbers.shape[1]),
    )
    again = loads(dumps(model))
    assert again.coef.tobytes() == np.ascontiguousarray(model.coef).tobytes()
    assert again.coef.dtype == numbers.dtype
    assert again.features == model.features


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (EXAMPLE, "", "first line"),
        (EXAMPLE, "a,b\n1,2\n", "first line"),
        ("format 1", "format 2", "it is of format 2, this version reads format 1"),
        ("end\n", "", "cut off"),
        ("-0.5\nend\n", "-0.", "cut off"),
        ('"age" 0.10000000000000001\n', "", "2 features, but has 2 lines"),
        ("0.10000000000000001", "x", "line 11 must have a name and 1 numbers"),
        ("0.10000000000000001", "0.1 0.2", "line 11 must have"),
        ("0.10000000000000001", "nan", "must be finite"),
        ('["no", "yes"]', '["no", "yes"', "header is damaged"),
        ('["no", "yes"]', '["no"]', "two classes"),
        ('["no", "yes"]', "null", "must have classes"),
        ("float64", "object", "float64 or float32"),
        ("width: 3", "width: true", "header is damaged"),
        ("width: 3", "evil: 3", "header is damaged"),
    ],
)
def test_a_damaged_file_is_refused_with_a_reason(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    path = tmp_path / "model.txt"
    assert old in EXAMPLE
    path.write_text(EXAMPLE.replace(old, new))
    with pytest.raises(InputError, match=f"model.txt must be a model.*{says}"):
        read_model(path)


def test_a_file_that_is_no_text_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "m.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="must be a model that PERSIST wrote"):
        read_model(tmp_path / "m.txt")
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_model(tmp_path / "other.txt")


def test_data_are_not_replaced_by_a_model(folder: Path, session: Session) -> None:
    before = Path("people.csv").read_bytes()
    with pytest.raises(InputError, match=r"people\.csv must be a model or not be there"):
        session.run("RUN svm ON people.csv; PERSIST Q1 ON people.csv")
    assert session.values == {}
    assert Path("people.csv").read_bytes() == before
    Path("empty.txt").touch()
    session.run("RUN svm ON people.csv; PERSIST Q1 ON empty.txt; PERSIST Q1 ON empty.txt")


def test_an_old_model_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "m.txt"
    write_model(loads(EXAMPLE), path)
    write_model(loads(EXAMPLE.replace("0.5", "0.25")), path)
    assert read_model(path).coef.tolist() == [0.1, -0.25]
    assert [p.name for p in tmp_path.iterdir()] == ["m.txt"]


def test_a_descent_that_diverges_leaves_the_old_model(
    folder: Path, session: Session
) -> None:
    Path("houses.csv").write_text("".join(f"{3 * i},{100 * i}\n" for i in range(1, 50)))
    session.run("Q0 = RUN regression ON houses.csv; PERSIST Q0 ON model.txt")
    before = Path("model.txt").read_bytes()
    with pytest.raises(InputError, match=r"diverged.* give a smaller STEP"):
        session.run(
            "Q1 = RUN regression ON houses.csv USING ALGORITHM BGD; PERSIST Q1 ON model.txt"
        )
    with pytest.raises(InputError, match=r"diverged.* give a smaller STEP"):
        session.run(
            "Q1 = RUN squares() ON houses.csv; PERSIST Q1 ON model.txt",
            functions={"squares": lambda x, y, w: (w @ x - y) * x},
        )
    assert Path("model.txt").read_bytes() == before


def test_cells_to_predict_must_be_finite(folder: Path, session: Session) -> None:
    session.run("Q0 = RUN svm ON people.csv; PERSIST Q0 ON model.txt")
    Path("new.csv").write_text("age,size\n40,1\ninf,2\n")
    with pytest.raises(InputError, match=r"finite numbers, but some of .new.csv"):
        session.run("PREDICT ON new.csv WITH model.txt")
