"""Models of a user's own steps on a table: what scikit-learn says of the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multioutput import ClassifierChain
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mlopt
from mlopt.serving.bodies import JSON, frame_of, read_rows
from mlopt.serving.model import ServedModel, load_served
from mlopt.sweep.predict import predictions

CITY = OneHotEncoder(handle_unknown="ignore")
NUMBERS = make_pipeline(SimpleImputer(), StandardScaler()), ["age", "wage"]
ENCODERS: dict[str, Any] = {
    "encoder": make_column_transformer((CITY, ["city"]), NUMBERS),
    "imputer in front": make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="most_frequent"), CITY), ["city"]), NUMBERS
    ),
    "constant": make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), CITY), ["city"])
    ),
    "selectors": make_column_transformer(
        (NUMBERS[0], make_column_selector(dtype_include="number")),
        (CITY, make_column_selector("city")),
    ),
    "positions": make_column_transformer((CITY, [2]), (SimpleImputer(), slice(0, 2))),
    "union": make_union(
        make_column_transformer((CITY, ["city"])), make_column_transformer(NUMBERS)
    ),
    "texts": make_column_transformer(
        (TfidfVectorizer(), "note"), (HashingVectorizer(n_features=8), "note"), NUMBERS
    ),
    "frames": make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["city"]), NUMBERS
    ).set_output(transform="pandas"),
}


def people(rows: int = 120) -> pd.DataFrame:
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 80, rows),
            "wage": random.lognormal(3, 1, rows).round(2),
            "city": random.choice(["rome", "oslo", "bern"], rows),
            "note": [
                " ".join(random.choice(["good", "bad", "fun"], 3)) for _ in range(rows)
            ],
        }
    )
    frame.loc[::5, "city"] = np.nan
    frame.loc[::7, "wage"] = np.nan
    return frame


X = people()
Y = np.where(X["age"] + 20 * (X["city"] == "oslo") > 55, "yes", "no")


def served(model: Any, folder: Path) -> ServedModel:
    skops.io.dump(model, folder / "model.skops")
    return load_served(folder / "model.skops")


def answered(model: ServedModel, rows: pd.DataFrame) -> pd.DataFrame:
    """As `/predict` answers ``rows`` in one request."""
    body = json.dumps(json.loads(rows.to_json(orient="records"))).encode()
    frame = frame_of([read_rows(body, JSON, model)], model)
    return predictions(model.estimator, frame, proba=model.has_probabilities)


@pytest.mark.parametrize("ours", [False, True], ids=["scikit-learn", "mlopt"])
@pytest.mark.parametrize("kind", ENCODERS)
def test_a_pipeline_answers_many_rows_and_each_alone(
    kind: str, ours: bool, tmp_path: Path
) -> None:
    plain = make_pipeline(ENCODERS[kind], LogisticRegression()).fit(X, Y)
    model = served(mlopt.optimize(plain).fit(X, Y) if ours else plain, tmp_path)
    expected = plain.predict_proba(X)
    np.testing.assert_allclose(answered(model, X).iloc[:, 1:], expected, atol=1e-3)
    for row in range(12):  # some of them without a city, some without a wage
        alone = answered(model, X[row : row + 1]).iloc[:, 1:]
        np.testing.assert_allclose(alone, expected[row : row + 1], atol=1e-3)


@pytest.mark.parametrize("gap", [None, np.nan])
def test_a_missing_text_is_the_one_of_the_training_rows(gap: Any, tmp_path: Path) -> None:
    cities = X["city"].astype(object)
    frame = pd.DataFrame(
        {"city": pd.Series(cities.where(cities.notna(), gap), dtype=object)}
    )
    plain = make_pipeline(CITY, LogisticRegression()).fit(frame, Y)
    model = served(plain, tmp_path)
    expected = plain.predict_proba(frame)
    np.testing.assert_allclose(answered(model, frame).iloc[:, 1:], expected)
    np.testing.assert_allclose(answered(model, frame[:1]).iloc[:, 1:], expected[:1])


def test_boosting_of_a_frame_knows_its_categories(tmp_path: Path) -> None:
    frame = X[["age", "wage", "city"]].astype({"city": "category"})
    plain = HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5).fit(frame, Y)
    model = served(plain, tmp_path)
    assert model.columns[2].values == ("bern", "oslo", "rome")
    found = answered(model, frame).iloc[:, 1:]
    np.testing.assert_allclose(found, plain.predict_proba(frame))


def test_several_outputs_are_columns_by_their_numbers(tmp_path: Path) -> None:
    both = np.c_[Y, np.where(X["age"] > 40, "old", "young")]
    steps = ENCODERS["encoder"]
    forest = make_pipeline(steps, RandomForestClassifier(5, random_state=0)).fit(X, both)
    model = served(forest, tmp_path)
    assert model.card["classes"] == [["no", "yes"], ["old", "young"]]
    found = answered(model, X)
    names = ["0_no", "0_yes", "1_old", "1_young"]
    assert [*found][:2] == ["prediction_0", "prediction_1"]
    assert [*found][2:] == [f"probability_{name}" for name in names]
    assert np.array_equal(found.iloc[:, :2], forest.predict(X))
    np.testing.assert_allclose(found.iloc[:, 2:], np.hstack(forest.predict_proba(X)))


@pytest.mark.parametrize("outputs", [1, 2])
def test_several_numbers_are_columns_too(outputs: int, tmp_path: Path) -> None:
    y = X[["age"] * outputs].to_numpy() * 2.0
    model = make_pipeline(ENCODERS["encoder"], Ridge()).fit(X, y)
    found = answered(served(model, tmp_path), X)
    assert [*found] == (["prediction_0", "prediction_1"] if outputs > 1 else ["prediction"])
    np.testing.assert_allclose(found, np.reshape(model.predict(X), (len(X), -1)))


def test_a_chain_gives_the_probability_of_each_output(tmp_path: Path) -> None:
    y = np.c_[X["age"] > 40, X["age"] > 60].astype(int)
    model = make_pipeline(ENCODERS["encoder"], ClassifierChain(LogisticRegression()))
    found = answered(served(model.fit(X, y), tmp_path), X)
    assert [*found][2:] == ["probability_0", "probability_1"]
    np.testing.assert_allclose(found.iloc[:, 2:], model.predict_proba(X))
