"""Which digit was written? Filters learnt from patches of the images, and a linear model.

9298 digits on envelopes (US Postal Service), from the folder ``usps`` of ``--data``: 7291
to learn from, 2007 to judge by. Without it, scikit-learn's 1797 digits of 8 x 8. Patches
are normalised and whitened; their centroids become filters (Coates and Ng, 2012); what the
filters see is rectified, pooled, and scaled (KeystoneML's RandomPatchCifar). Run with::

    python examples/patches.py --output demo
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import mlopt
from mlopt.pipeline.library.evaluators import MulticlassMetrics
from mlopt.pipeline.library.image import (
    ImageVectorizer,
    LearnedConvolver,
    Pooler,
    SymmetricRectifier,
)
from mlopt.readers import read_table

DATA = Path(os.environ.get("MLOPT_DATA", Path(__file__).parents[2] / "shared/data"))
CUT = 2500
"""Images to learn from without ``--all``."""


def pipeline(filters: int = 128, size: int = 6) -> mlopt.Pipeline:
    """mlopt's operators on images, scikit-learn's on what they give."""
    return mlopt.make_pipeline(
        LearnedConvolver(filters, size, variance=0.1, random_state=0),
        SymmetricRectifier(alpha=0.25),
        Pooler(5, 3) if size == 6 else Pooler(3, 2),
        ImageVectorizer(),
        StandardScaler(),
        LogisticRegression(C=0.01, max_iter=300),
    )


def envelopes(folder: Path, part: str) -> tuple[Any, Any]:
    """Images (n, 16, 16) of -1 ... 1, float32, and digits."""
    table = read_table(folder / f"usps/zip.{part}.csv.gz", target=0)
    X = np.asarray(table.X, np.float32).reshape(-1, 16, 16)
    return X, np.asarray(table.y).astype(int)


def small_digits() -> tuple[Any, Any, Any, Any]:
    """Images (n, 8, 8) of -1 ... 1, float32, and digits; a quarter to judge by."""
    X, y = load_digits(return_X_y=True)
    images = (X.reshape(-1, 8, 8) / 8 - 1).astype(np.float32)
    Xa, Xb, ya, yb = train_test_split(images, y, random_state=0, stratify=y)
    return Xa, ya, Xb, yb


def picture(model: mlopt.Pipeline) -> Figure:
    """The filters, those that matter most to the classifier first."""
    filters = model[0].dictionary_[..., 0]
    weights = np.abs(model[-1].coef_).sum(axis=0).reshape(-1, 2, len(filters))
    order = np.argsort(-weights.sum(axis=(0, 1)))
    rows = -(-len(filters) // 16)
    figure = Figure((9, 0.6 * rows + 0.6))
    figure.suptitle("Filters, by how much the digits depend on them")
    for number, which in enumerate(order, 1):
        axes = figure.add_subplot(rows, 16, number)
        most = np.abs(filters[which]).max()
        axes.imshow(filters[which], cmap="RdBu_r", vmin=-most, vmax=most)
        axes.set_axis_off()
    return figure


def main(arguments: Sequence[str] | None = None) -> float:
    """Show the plan, learn, judge, and draw; returns the accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument("--all", action="store_true", help="all images, not a cut")
    parser.add_argument("--output", type=Path, default=Path("demo"), help="for the picture")
    given = parser.parse_args(arguments)
    if (given.data / "usps").is_dir():
        model = pipeline()
        Xa, ya = envelopes(given.data, "train")
        Xa, ya = (Xa, ya) if given.all else (Xa[:CUT], ya[:CUT])
        Xb, yb = envelopes(given.data, "test")
    else:
        model = pipeline(64, 4)
        Xa, ya, Xb, yb = small_digits()

    print(model.explain(Xa, ya))
    begin = time.perf_counter()
    predicted = model.fit(Xa, ya).predict(Xb)
    took = time.perf_counter() - begin
    found = MulticlassMetrics.of(predicted, yb)
    print(f"\n{len(Xa):,} images learnt from and {len(Xb):,} judged in {took:.1f} s")
    print(f"accuracy {found.accuracy:.4f}")

    given.output.mkdir(parents=True, exist_ok=True)
    picture(model).savefig(given.output / "patches.png", dpi=120)
    print(f"Look at {given.output / 'patches.png'}.")
    return found.accuracy


if __name__ == "__main__":
    main()
