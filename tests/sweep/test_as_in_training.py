"""Files to predict and to test on are read as the file that was trained on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import mlopt
from mlopt.cli import run_arguments
from mlopt.readers import read_table
from mlopt.readers.blocks import read_blocks
from mlopt.readers.table import Known
from mlopt.scoring import scorer
from mlopt.serving.bodies import CSV, JSON, frame_of, read_rows
from mlopt.serving.model import load_served
from mlopt.sweep.loading import from_file
from mlopt.sweep.predict import predict_file

Write = Callable[[str, str], str]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(name: str, text: str) -> str:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return str(tmp_path / name)

    return written


def fitted(path: str, target: str = "y") -> Path:
    """A model that `mlopt fit` made of a file."""
    model = Path(path).with_suffix(".skops")
    run_arguments(["fit", path, "--target", target, "--output", str(model)])
    return model


CODES = np.random.default_rng(0).choice(["007", "1.10", "true", "A12"], 200)


def codes() -> pd.DataFrame:
    """Labels that follow from codes of which only one is no number or truth."""
    table = {
        "code": CODES,
        "x": np.arange(200) % 7,
        "y": np.where(CODES == "A12", "n", "y"),
    }
    return pd.DataFrame(table)


@pytest.fixture
def model_of_codes(write: Write) -> Path:
    return fitted(write("train.csv", codes().to_csv(index=False)))


@pytest.mark.parametrize("code", ["007", "1.10", "true"])
@pytest.mark.parametrize("block", [100, 1 << 21])
def test_a_code_is_what_it_is_beside_other_codes(
    code: str,
    block: int,
    model_of_codes: Path,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = write("rows.csv", "code,x\n" + f"{code},1\n" * 200)
    assert set(predict_file(model_of_codes, path)["prediction"]) == {"y"}
    monkeypatch.setattr(scorer, "BLOCK", block)
    done = mlopt.predict(model_of_codes, path, output=Path(path).parent / "out")
    assert set(pd.read_csv(next(iter(done.rows)))["prediction"]) == {"y"}


def test_rows_to_test_on_are_read_as_those_to_train_on(write: Write) -> None:
    train = write("train.csv", codes().assign(label=CODES).to_csv(index=False))
    test = write("test.csv", "code,label,x,y\n007,1.10,1,y\ntrue,007,2,y\n")
    found = from_file(test, "label", from_file(train, "label"))
    assert found.y.tolist() == ["1.10", "007"]
    assert found.X["code"].tolist() == ["007", "true"]


@pytest.mark.parametrize("names", [("007", "012"), ("true", "false"), ("01", "2", "010")])
@pytest.mark.parametrize("gap", ["", "1,a,\n"])
def test_labels_come_back_as_they_are_written(
    names: tuple[str, ...], gap: str, write: Write
) -> None:
    kinds = zip("abc", names, strict=False)
    rows = "".join(f"{k % 7},{z},{y}\n" for z, y in kinds for k in range(40))
    path = write("train.csv", f"x,z,y\n{rows}{gap}")
    predicted = predict_file(fitted(path), path)["prediction"]
    assert set(predicted) == set(names)
    test = write("test.csv", f"x,z,y\n1,a,{names[0]}\n")
    assert from_file(test, "y", from_file(path, "y", task="auto")).y.tolist() == [names[0]]


def test_labels_are_truths_where_their_metric_looks_for_the_class_1(write: Write) -> None:
    rows = "".join(f"{k % 7},{k},{('false', 'true')[k // 40]}\n" for k in range(80))
    path = write("train.csv", f"x,z,y\n{rows}")
    model = mlopt.sweep(path, target="y", scoring="f1", n_trials=1, families=["linear"])
    assert model.classes_.tolist() == [False, True]


@pytest.mark.parametrize(
    ("names", "gap"),
    [((2**64 - 1, 2**64 - 2), ""), ((10**18 + 7, 10**18 + 8), "1,a,\n")],
)
def test_large_labels_have_all_their_digits(
    names: tuple[int, int], gap: str, write: Write
) -> None:
    rows = "".join(f"{k % 7},{'ab'[k % 2]},{names[k % 2]}\n" for k in range(80))
    path = write("train.csv", f"x,z,y\n{rows}{gap}")
    predicted = predict_file(fitted(path), path)["prediction"]
    assert set(map(int, predicted)) == set(names)


@pytest.mark.parametrize("cells", [["7", "07"], ["1", "2"], ["True", "False"], ["a", "b"]])
def test_labels_that_names_do_not_tell_apart_stay_values(
    cells: list[str], write: Write
) -> None:
    path = write("train.csv", "x,y\n" + "".join(f"1,{one}\n" for one in cells * 20))
    assert from_file(path, "y", task="auto").y.equals(read_table(path, target="y").y)


def test_codes_of_steps_of_ones_own_stay_as_they_are(write: Write, tmp_path: Path) -> None:
    encode = make_column_transformer((OneHotEncoder(), ["code"]))
    model = make_pipeline(encode, LogisticRegression())
    model.fit(codes()[["code"]], codes()["y"])
    skops.io.dump(model, tmp_path / "model.skops")
    path = write("rows.csv", "x,code\n1,007\n2,007\n")
    assert predict_file(tmp_path / "model.skops", path)["prediction"].tolist() == ["y", "y"]
    served = load_served(tmp_path / "model.skops")
    bodies = {CSV: "code\n007\n", JSON: json.dumps([{"code": "007"}])}
    for media, body in bodies.items():
        frame = frame_of([read_rows(body.encode(), media, served)], served)
        assert frame["code"].tolist() == ["007"]


def test_a_decimal_comma_is_remembered(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).integers(1000, 9000, 200)
    lines = [f"{v // 1000}.{v % 1000:03};1,5;{'big' if v > 4000 else 'small'}" for v in x]
    model = fitted(write("train.csv", "\n".join(["price;w;y", *lines])))
    few = write("few.csv", "price;w\n8.900;20\n1.100;30\n")
    many = write("many.csv", "price;w\n" + "8.900;20\n" * 200)
    assert predict_file(model, few)["prediction"].tolist() == ["big", "small"]
    monkeypatch.setattr(scorer, "BLOCK", 100)
    done = mlopt.predict(model, [few, many], output=tmp_path / "out")
    assert not done.failed
    for path in done.rows:
        assert pd.read_csv(path)["prediction"][0] == "big"


def test_decimal_points_are_seen_where_a_comma_is_known(write: Write) -> None:
    known = Known(decimal=",")
    for text in ("a;b\n1.5;7\n2.125;8\n", "a,b\n1.125,7\n2.125,8\n"):
        assert read_table(write("p.csv", text), known=known).X["a"].max() == 2.125
    found = read_table(write("c.csv", "a;b\n1.125;7\n2.125;8\n"), known=known)
    assert found.X["a"].tolist() == [1125, 2125]
    assert found.decimal == ","


@pytest.mark.parametrize(
    "text", ["0,1,2\n5,6,7\n1,2,3\n", "city\nNew York\nLos Angeles\n", "None,a\n1,u\n2,v\n"]
)
def test_a_header_is_known_by_its_names(text: str, write: Write) -> None:
    path, names = write("rows.csv", text), text.partition("\n")[0].split(",")
    known = Known(names)
    whole = read_table(path, known=known).X
    assert [*whole.columns] == names
    assert len(whole) == 2
    blocks = read_blocks(path, 8, known=known)
    pd.testing.assert_frame_equal(pd.concat(blocks, ignore_index=True), whole)
