"""Which digit is it? Told by thousands of random cosines of the pixels, never all at once.

A linear model on random features comes close to a kernel machine. The features are made
block by block while the model is fitted, as in KeystoneML's MNIST and TIMIT pipelines, so
that memory holds one block of them. Run with::

    python examples/digits_random_features.py --data mnist         20,000 of 60,000 images
    python examples/digits_random_features.py --data mnist --all   all, and more features
    python examples/digits_random_features.py                      scikit-learn's digits

``--data`` names a folder with ``train-images-idx3-ubyte.gz`` and the other three files of
MNIST.
"""

from __future__ import annotations

import argparse
import gzip
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from scipy.ndimage import gaussian_filter
from sklearn.datasets import load_digits
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import train_test_split

import mlopt
from mlopt.pipeline.library.learning import BlockLeastSquaresClassifier


class Setting(NamedTuple):
    """How much of it: rows to learn from, and what is tuned to so many."""

    rows: int | None
    features: int
    block: int
    sweeps: int
    gamma: float
    alpha: float


CUT = Setting(20_000, 8192, 2048, 1, 0.02, 0.25)
ALL = Setting(None, 32_768, 2048, 2, 0.02, 0.5)
SMALL = Setting(None, 2048, 512, 3, 0.05, 0.1)


def digits_model(setting: Setting) -> BlockLeastSquaresClassifier:
    """From pixels to digits."""
    features = mlopt.RandomFeatures(setting.features, gamma=setting.gamma, random_state=0)
    return BlockLeastSquaresClassifier(
        setting.alpha, features=features, block_size=setting.block, n_iter=setting.sweeps
    )


def load(folder: Path | None, rows: int | None) -> tuple[Any, Any, Any, Any]:
    """Pixels in float32 and their digits, to learn from and to test.

    Parameters
    ----------
    folder : Path, optional
        Where the four files are; None: scikit-learn's digits of 8 x 8 pixels.
    rows : int, optional
        So many to learn from, the first ones; None: all.
    """
    if folder is None:
        X, y = load_digits(return_X_y=True)
        train, test, y_train, y_test = train_test_split(
            np.float32(X / 16), y, test_size=0.25, random_state=0, stratify=y
        )
        return train[:rows], y_train[:rows], test, y_test
    train, test = (
        _idx(folder / f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 784)
        for part in ("train", "t10k")
    )
    y_train, y_test = (
        _idx(folder / f"{part}-labels-idx1-ubyte.gz", 8) for part in ("train", "t10k")
    )
    return smooth(train[:rows]), y_train[:rows], smooth(test), y_test


def smooth(pixels: Any) -> Any:
    """Images (n, 784) of bytes in float32, blurred by a pixel and all equally long.

    Strokes that are wider, or a pixel aside, then come closer. 9.2 is the mean length of
    the images with pixels of 0 ... 1.
    """
    images = pixels.reshape(-1, 28, 28) / np.float32(255)
    images = gaussian_filter(images, (0, 1.0, 1.0)).reshape(-1, 784)
    length = np.linalg.norm(images, axis=1, keepdims=True)
    return images * np.float32(9.2) / np.maximum(length, np.float32(1e-6))


def _idx(path: Path, header: int) -> Any:
    """The bytes of an idx file behind its header."""
    with gzip.open(path) as file:
        return np.frombuffer(file.read(), np.uint8, offset=header)


def draw(images: Any, digits: Any, scores: Any, path: Path) -> None:
    """Which digits are taken for which, and the surest mistakes of the commonest pairs."""
    found = scores.argmax(axis=1)
    counts = confusion_matrix(digits, found, labels=range(10))
    np.fill_diagonal(counts, 0)
    figure = Figure(figsize=(11, 5.5), layout="constrained")
    left, right = figure.subfigures(1, 2)
    axes = left.subplots()
    axes.imshow(counts, cmap="Reds")
    for row, column in zip(*np.nonzero(counts), strict=True):
        axes.text(column, row, counts[row, column], ha="center", va="center")
    axes.set(xticks=range(10), yticks=range(10), xlabel="found", ylabel="is")
    axes.set_title(f"{counts.sum()} of {len(digits):,} digits found wrongly")
    side = round(images.shape[1] ** 0.5)
    order = np.argsort(counts, axis=None)[::-1][:4]
    for axes_row, pair in zip(right.subplots(4, 4), order, strict=True):
        true, taken = divmod(int(pair), 10)
        own = np.flatnonzero((digits == true) & (found == taken))
        # the surest first
        sure = own[np.argsort(scores[own, true] - scores[own, taken])]
        for axes in axes_row:
            axes.set_axis_off()
        for axes, number in zip(axes_row, sure, strict=False):
            axes.imshow(images[number].reshape(side, side), cmap="Greys")
        axes_row[0].set_title(
            f"{true} found as {taken}: {len(own)}", fontsize=9, loc="left"
        )
    figure.savefig(path, dpi=120)


def main(arguments: Sequence[str] | None = None) -> None:
    """Learn, say how it was done and how well, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the MNIST files")
    parser.add_argument("--all", action="store_true", help="all rows and more features")
    parser.add_argument("--output", type=Path, default=Path("digits_random_features.png"))
    given = parser.parse_args(arguments)
    setting = (ALL if given.all else CUT) if given.data else SMALL

    X, y, X_test, y_test = load(given.data, setting.rows)
    model = digits_model(setting)
    print(model.explain(X, y))
    model.fit(X, y)
    print(f"\nafter the run\n{model.plan_}")
    started = time.perf_counter()
    scores = model.decision_function(X_test)
    accuracy = np.mean(model.classes_[scores.argmax(axis=1)] == y_test)
    print(
        f"\naccuracy {accuracy:.4f} on {len(y_test):,} images; learnt from {len(y):,}, "
        f"predicted in {time.perf_counter() - started:.1f} s"
    )
    draw(X_test, y_test, scores, given.output)
    print(f"confusions are drawn in {given.output}")


if __name__ == "__main__":
    main()
