"""Which digit is it? Told from the edges in it: SIFT descriptors and Fisher vectors.

The pipeline is that of KeystoneML for photographs (VOC): dense SIFT, principal components
of the descriptors, a mixture of Gaussians over them, improved Fisher vectors, and a linear
model. Run with::

    python examples/sift_fisher.py --data usps      5,000 of 7,291 digits from envelopes
    python examples/sift_fisher.py                  the digits that scikit-learn brings

``--data`` names a folder with ``zip.train.csv.gz`` and ``zip.test.csv.gz``: 16 x 16 digits
of the US Postal Service, the label first and then pixels of -1 ... 1, as in the R package
ElemStatLearn.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.ndimage import zoom
from sklearn.datasets import load_digits
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import train_test_split

import mlopt
from mlopt.pipeline.library.column_pca import ColumnPCA
from mlopt.pipeline.library.fisher import FisherVector
from mlopt.pipeline.library.image import SIFT
from mlopt.pipeline.library.signal import NormalizeRows, SignedHellinger

COMPONENTS, CENTRES = 32, 32


def sift_fisher() -> mlopt.Pipeline:
    """From images to digits."""
    return mlopt.make_pipeline(
        SIFT(step=1, bin_size=2),
        ColumnPCA(COMPONENTS, n_samples=20_000, random_state=0),
        FisherVector(CENTRES, n_samples=20_000, random_state=0),
        SignedHellinger(),
        NormalizeRows(),
        RidgeClassifier(alpha=0.1),
    )


def load(folder: Path | None, rows: int | None) -> tuple[Any, Any, Any, Any]:
    """Images of 16 x 16 pixels in 0 ... 1 and their digits, to learn from and to test.

    Parameters
    ----------
    folder : Path, optional
        Where the two files are; None: scikit-learn's digits, enlarged from 8 x 8.
    rows : int, optional
        So many to learn from, the first ones; None: all.
    """
    if folder is None:
        X, y = load_digits(return_X_y=True)
        images = np.float32(zoom(X.reshape(-1, 8, 8), (1, 2, 2), order=1) / 16)
        train, test, y_train, y_test = train_test_split(
            images, y, test_size=0.25, random_state=0, stratify=y
        )
        return train[:rows], y_train[:rows], test, y_test
    parts = [
        pd.read_csv(folder / f"zip.{part}.csv.gz", header=None).to_numpy(np.float32)
        for part in ("train", "test")
    ]
    (train, y_train), (test, y_test) = (
        ((part[:, 1:].reshape(-1, 16, 16) + 1) / 2, part[:, 0].astype(int))
        for part in parts
    )
    return train[:rows], y_train[:rows], test, y_test


def draw(images: Any, digits: Any, found: Any, path: Path) -> None:
    """What SIFT sees of five digits, and which digits are taken for which."""
    figure = Figure(figsize=(10, 7.5), layout="constrained")
    above, below = figure.subfigures(2, 1, height_ratios=(1, 2))
    wrong = np.flatnonzero(found != digits)[:2]
    shown = [*(int(np.flatnonzero(digits == d)[0]) for d in (2, 4, 8)), *wrong]
    for axes, number in zip(above.subplots(1, 5), shown, strict=False):
        _strokes(axes, images[number])
        axes.set_title(f"{digits[number]}, found {found[number]}", fontsize=9)
    counts = confusion_matrix(digits, found, labels=range(10))
    axes = below.subplots()
    np.fill_diagonal(counts, 0)
    axes.imshow(counts, cmap="Reds")
    for row, column in zip(*np.nonzero(counts), strict=True):
        axes.text(column, row, counts[row, column], ha="center", va="center")
    axes.set(xticks=range(10), yticks=range(10), xlabel="found", ylabel="is")
    axes.set_title(f"{counts.sum()} of {len(digits):,} digits found wrongly")
    figure.savefig(path, dpi=120)


def _strokes(axes: Any, image: Any) -> None:
    """One descriptor of the whole image: in each bin, strokes as long as its values."""
    sift = SIFT(step=16, bin_size=4)
    bins = sift.transform(image[None])[0, 0].reshape(4, 4, 8)
    first = sift.centres(*image.shape)[0] - 1.5 * 4
    rows, columns, turns = (index.ravel() for index in np.indices(bins.shape))
    lengths, angles = bins.ravel(), 2 * np.pi * turns / 8
    axes.imshow(image, cmap="Greys", alpha=0.5)
    axes.quiver(
        first[1] + 4 * columns, first[0] + 4 * rows,
        lengths * np.cos(angles), lengths * np.sin(angles),
        color="tab:red", angles="xy", scale=0.1, scale_units="xy", width=0.012,
    )  # fmt: skip
    axes.set_axis_off()


def main(arguments: Sequence[str] | None = None) -> None:
    """Learn, say how it was done and how well, and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the USPS files")
    parser.add_argument("--rows", type=int, default=5000, help="images to learn from")
    parser.add_argument("--all", action="store_true", help="learn from all images")
    parser.add_argument("--output", type=Path, default=Path("sift_fisher.png"))
    given = parser.parse_args(arguments)

    X, y, X_test, y_test = load(given.data, None if given.all else given.rows)
    pipeline = sift_fisher()
    begin = time.perf_counter()
    pipeline.fit(X, y)
    seconds = time.perf_counter() - begin
    found = pipeline.predict(X_test)

    print(pipeline.plan_.explain(), end="\n\n")
    each = len(pipeline[0].centres(*X.shape[1:]))
    print(f"{len(X):,} images of {each} descriptors learnt in {seconds:.1f} s.")
    print(
        f"accuracy {np.mean(found == y_test):.4f} on {len(X_test):,} images not seen before"
    )
    draw(X_test, y_test, found, given.output)
    print(f"Look at {given.output}.")


if __name__ == "__main__":
    main()
