"""Who earns more than 50,000? A model is learnt, and scores a folder of CSV files.

Answers to the census of 1994 (Kohavi, 1996), from the folder ``adult`` of ``--data``.
Without it, scikit-learn's measurements of breast cancer. What is to be scored lies in many
CSV files; reading, predicting and writing overlap, in bounded memory, and the same call
again does only what is new. `mlopt predict MODEL FILES... --output DIR` does the same with
a model that `mlopt sweep` has written. Run with::

    python examples/score_folder.py --output demo
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mlopt
from mlopt.readers import read_table

DATA = Path(os.environ.get("MLOPT_DATA", Path(__file__).parents[2] / "shared/data"))


def census(folder: Path) -> tuple[pd.DataFrame, Any, pd.DataFrame, Any]:
    """Answers and whether somebody earns more; those to learn from, those to score."""
    parts = []
    for name in ("adult.data.gz", "adult.test.gz"):
        table = read_table(folder / "adult" / name, target="last")
        X = pd.DataFrame(table.X).rename(columns=str)
        parts += [X, np.char.startswith(np.asarray(table.y, str), ">50K")]
    return tuple(parts)


def cancers() -> tuple[pd.DataFrame, Any, pd.DataFrame, Any]:
    """Measurements and whether a lump is benign."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    return X[::2], np.asarray(y[::2], bool), X[1::2], np.asarray(y[1::2], bool)


def pipeline(X: pd.DataFrame) -> Pipeline:
    """Columns of numbers and of words, filled and scaled or told apart, a linear model."""
    numbers = list(X.select_dtypes("number").columns)
    filled = make_pipeline(SimpleImputer(), StandardScaler())
    told = OneHotEncoder(handle_unknown="ignore", min_frequency=5)
    columns = make_column_transformer((filled, numbers), remainder=told)
    return make_pipeline(columns, LogisticRegression(C=0.5, max_iter=500))


def main(arguments: Sequence[str] | None = None) -> float:
    """Learn, write files, score them, and again with one more; returns the accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--output", type=Path, default=Path("demo"))
    given = parser.parse_args(arguments)
    real = (given.data / "adult").is_dir()
    Xa, ya, Xb, yb = census(given.data) if real else cancers()
    model = pipeline(Xa).fit(Xa, ya)

    folder = given.output / "scoring"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "inbox").mkdir(parents=True)
    parts = np.array_split(np.arange(len(Xb)), given.files)
    names = [f"part{number:03d}.csv" for number in range(given.files)]

    def arrives(which: slice) -> mlopt.Predicted:
        for name, rows in zip(names[which], parts[which], strict=True):
            Xb.iloc[rows].to_csv(folder / "inbox" / name, index=False)
        return mlopt.predict(model, folder / "inbox", output=folder / "scores")

    first = arrives(slice(0, -1))
    second = arrives(slice(-1, None))
    print(f"{len(first.rows)} files with {sum(first.rows.values()):,} rows in "
          f"{first.seconds:.1f} s")  # fmt: skip
    print(f"again: {len(second.rows)} new, {len(second.skipped)} were there already")
    scored = sorted([*second.rows, *second.skipped])
    found = np.concatenate([pd.read_csv(path)["prediction"] for path in scored])
    accuracy = float(np.mean(found == yb))
    print(f"accuracy {accuracy:.4f}")
    print(f"Look at {scored[0]}.")
    return accuracy


if __name__ == "__main__":
    main()
