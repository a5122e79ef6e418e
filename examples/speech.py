"""Which letter was spoken? 617 features of its sound, random cosines, least squares.

1560 of ISOLET's recordings (Cole and Fanty, 1991), from the folder ``isolet_part`` of
``--data``, 60 a letter. Without it, scikit-learn's images of digits. A fifth of the rows,
as many of each class, is held out; with ``--all`` each fifth in turn, so that every row is
judged once. Run with::

    python examples/speech.py --output demo
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler

import mlopt
from mlopt.pipeline.library.evaluators import MulticlassMetrics
from mlopt.readers import read_table

DATA = Path(os.environ.get("MLOPT_DATA", Path(__file__).parents[2] / "shared/data"))


def pipeline(columns: int) -> mlopt.Pipeline:
    """KeystoneML's pipeline for speech: cosine features, then least squares."""
    return mlopt.make_pipeline(
        StandardScaler(),
        mlopt.RandomFeatures(4000, gamma=0.3 / columns, random_state=0),
        RidgeClassifier(alpha=0.1),
    )


def letters(folder: Path) -> tuple[Any, Any]:
    """Features of sounds (1560, 617), and letters."""
    table = read_table(folder / "isolet_part/isolet_1560.csv.gz", target="last")
    alphabet = np.array([chr(ord("a") + number) for number in range(26)])
    return np.asarray(table.X, float), alphabet[np.asarray(table.y, int) - 1]


def digits() -> tuple[Any, Any]:
    """Images of digits as rows (1797, 64), and digits."""
    X, y = load_digits(return_X_y=True)
    return X, y.astype(str)


def folds(X: Any, y: Any, count: int) -> Iterator[tuple[Any, Any]]:
    """Rows to learn from and to judge by: the first ``count`` of five folds."""
    splitter = StratifiedKFold(5, shuffle=True, random_state=0)
    return islice(splitter.split(X, y), count)


def picture(found: MulticlassMetrics) -> Figure:
    """What was taken for what; the diagonal, which is right, is left pale."""
    figure = Figure((7.5, 7), layout="constrained")
    axes = figure.subplots()
    wrong = found.confusion.astype(float)
    np.fill_diagonal(wrong, 0)
    shares = wrong / np.maximum(found.confusion.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(shares, cmap="Reds", vmin=0)
    places = range(len(found.classes))
    axes.set_xticks(places, found.classes)
    axes.set_yticks(places, found.classes)
    for row, column in zip(*np.nonzero(wrong), strict=True):
        colour = "white" if shares[row, column] > shares.max() / 2 else "black"
        text = {"ha": "center", "va": "center", "size": 7, "color": colour}
        axes.text(column, row, int(wrong[row, column]), **text)
    axes.plot(places, places, color="0.85", zorder=0)
    axes.set(xlabel="taken for", ylabel="spoken", title=f"{found.error:.1%} are wrong")
    figure.colorbar(image, label="share of those spoken", shrink=0.7)
    return figure


def main(arguments: Sequence[str] | None = None) -> float:
    """Show the plan, learn, judge, and draw; returns the accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument("--all", action="store_true", help="five folds, not the first")
    parser.add_argument("--output", type=Path, default=Path("demo"), help="for the picture")
    given = parser.parse_args(arguments)
    real = (given.data / "isolet_part").is_dir()
    X, y = letters(given.data) if real else digits()

    begin, parts = time.perf_counter(), []
    for learn, judge in folds(X, y, 5 if given.all else 1):
        model = pipeline(X.shape[1])
        if not parts:
            print(model.explain(X[learn], y[learn]))
        predicted = model.fit(X[learn], y[learn]).predict(X[judge])
        parts.append(MulticlassMetrics.of(predicted, y[judge], np.unique(y)))
    found = sum(parts[1:], parts[0])
    took = time.perf_counter() - begin
    print(f"\n{int(found.confusion.sum()):,} rows judged, none learnt from, {took:.1f} s")
    print(f"accuracy {found.accuracy:.4f}, of the worst letter "
          f"{min(found.of_class(c).recall for c in found.classes):.2f}")  # fmt: skip

    given.output.mkdir(parents=True, exist_ok=True)
    picture(found).savefig(given.output / "speech.png", dpi=120)
    print(f"Look at {given.output / 'speech.png'}.")
    return found.accuracy


if __name__ == "__main__":
    main()
