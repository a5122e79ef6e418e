"""Files for models of a user's own steps: what scikit-learn says of the same rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler, scale
from tests.scoring.people import people

import mlopt
from mlopt.errors import InputError
from mlopt.scoring import scorer
from mlopt.scoring.blocks import blocks_of
from mlopt.scoring.files import Job
from mlopt.sweep.predict import predict_file

X = people(200, 0)[["age", "wage"]].fillna(0.0)
Y = np.where(X["age"] > 40, "old", "young")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model that does not begin with a step of ours, nor one that picks columns."""
    fitted = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, Y)
    skops.io.dump(fitted, tmp_path / "model.skops")
    return tmp_path / "model.skops"


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("block", [500, 1 << 21])
def test_a_model_takes_its_columns_from_a_table_by_name(
    kind: str, block: int, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scorer, "BLOCK", block)
    table, path = X.assign(target=Y)[["target", "wage", "age"]], tmp_path / f"rows.{kind}"
    match kind:
        case "csv":
            table.to_csv(path, index=False)
        case "jsonl":
            table.to_json(path, orient="records", lines=True)
        case _:
            table.to_parquet(path)
    done = mlopt.predict(model, path, output=tmp_path / "out")
    assert not done.failed
    found = pd.read_csv(next(iter(done.rows)))["prediction"]
    assert list(found) == list(mlopt.load(model).predict(X))


@pytest.mark.parametrize("declares", [False, True])
def test_undeclared_steps_get_all_rows_at_once(
    declares: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scorer, "BLOCK", 500)
    calls: list[int] = []

    def double(X: pd.DataFrame) -> pd.DataFrame:
        calls.append(len(X))
        return 2 * X

    function = mlopt.register(double, row_wise=True) if declares else scale
    model = make_pipeline(FunctionTransformer(function), Ridge()).fit(X, X["age"])
    calls.clear()
    X.to_csv(tmp_path / "rows.csv", index=False)
    done = mlopt.predict(model, tmp_path / "rows.csv", output=tmp_path / "out")
    assert not done.failed
    assert (len(calls) > 1) == declares
    found = pd.read_csv(next(iter(done.rows)))["prediction"]
    np.testing.assert_allclose(found, model.predict(X))


@pytest.mark.parametrize("family", ["linear", "random_features", "random_forest"])
def test_models_of_sweeps_are_cut_into_blocks(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = people(200, 0).assign(many=lambda t: t.index % 60)
    table["many"] = table["many"].map("k{}".format)
    model = mlopt.sweep(table, "age", families=[family], n_trials=1)
    table.to_csv(tmp_path / "rows.csv", index=False)
    job = Job(tmp_path / "rows.csv", tmp_path / "out.csv")
    assert len(list(blocks_of(job, model, 500, 1 << 20))) > 1


def test_a_column_that_is_not_there_is_named(model: Path, tmp_path: Path) -> None:
    X[["age"]].to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(InputError, match="columns of the training data; 'wage' is missing"):
        predict_file(model, str(tmp_path / "rows.csv"))


def test_a_column_without_a_cell_is_of_the_type_of_training(tmp_path: Path) -> None:
    table = people(100, 0).assign(city=lambda t: t["city"].where(t["age"] > 30))
    encode = make_column_transformer(
        (OneHotEncoder(), ["city"]), (SimpleImputer(), ["wage"])
    )
    fitted = make_pipeline(encode, Ridge()).fit(table, table["age"])
    skops.io.dump(fitted, tmp_path / "model.skops")
    empty = table[table["city"].isna()][:2].assign(wage=np.nan)
    empty.to_csv(tmp_path / "rows.csv", index=False)
    found = predict_file(tmp_path / "model.skops", str(tmp_path / "rows.csv"))
    np.testing.assert_allclose(found["prediction"], fitted.predict(empty))


def test_several_outputs_are_columns_by_their_numbers(tmp_path: Path) -> None:
    y = np.c_[X["age"], -X["wage"]]
    skops.io.dump(Ridge().fit(X, y), tmp_path / "model.skops")
    X.to_csv(tmp_path / "rows.csv", index=False)
    found = predict_file(tmp_path / "model.skops", str(tmp_path / "rows.csv"))
    assert [*found] == ["prediction_0", "prediction_1"]
    np.testing.assert_allclose(found, Ridge().fit(X, y).predict(X))


def test_rows_that_a_model_refuses_are_no_traceback(model: Path, tmp_path: Path) -> None:
    X.assign(age=np.nan).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(InputError, match=r"refuses the rows of `.*rows\.csv`.*NaN"):
        predict_file(model, str(tmp_path / "rows.csv"))


def test_documents_are_read_in_blocks_that_give_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scorer, "BLOCK", 1000)
    texts = [f"{'good' if n % 3 else 'bad'} film number {n}" for n in range(200)]
    words = make_pipeline(TfidfVectorizer(), LogisticRegression())
    words.fit(texts, [n % 3 > 0 for n in range(200)])
    lines = [json.dumps({"text": text, "id": n}) for n, text in enumerate(texts)]
    for name, content in (("a.jsonl", lines), ("b.jsonl", [*lines, '{"id": 3}'])):
        (tmp_path / name).write_text("\n".join(content))
    done = mlopt.predict(words, tmp_path / "a.jsonl", output=tmp_path / "out", proba=True)
    found = pd.read_csv(next(iter(done.rows)))
    np.testing.assert_allclose(found.iloc[:, 1:], words.predict_proba(texts))
    assert list(found["prediction"]) == list(words.predict(texts))
    done = mlopt.predict(words, tmp_path / "b.jsonl", output=tmp_path / "out")
    assert "Line 201 of" in next(iter(done.failed.values()))


@pytest.mark.parametrize("proba", [False, True])
def test_a_table_is_no_list_of_documents(proba: bool, tmp_path: Path) -> None:
    texts = make_pipeline(TfidfVectorizer(), LogisticRegression())
    skops.io.dump(texts.fit(["good fun", "bad"], [1, 0]), tmp_path / "model.skops")
    (tmp_path / "rows.csv").write_text("good,bad\nfun,1\nfun,2\nbad,3\n")
    with pytest.raises(InputError, match="a row for each of 3, but gave 2"):
        predict_file(tmp_path / "model.skops", str(tmp_path / "rows.csv"), proba=proba)
