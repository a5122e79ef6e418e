"""The data of the benchmarks: (X_train, y_train, X_test, y_test), standardised.

adult, mnist and usps are read from the folder that the environment variable MLOPT_DATA
names (default: shared/data beside the checkout); `synthetic` needs no file.
"""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

FOLDER = Path(os.environ.get("MLOPT_DATA", Path(__file__).parents[2] / "shared/data"))


def load(name: str, rows: int | None = None):
    """One of "adult", "mnist", "synthetic", "usps"; ``rows`` cuts the training part."""
    X, y = LOADERS[name]()
    Xa, Xb, ya, yb = train_test_split(X, y, test_size=0.2, random_state=0, stratify=y)
    if rows is not None:
        Xa, ya = Xa[:rows], ya[:rows]
    scaler = StandardScaler().fit(Xa)
    Xa, Xb = scaler.transform(Xa), scaler.transform(Xb)
    return np.ascontiguousarray(Xa), ya, np.ascontiguousarray(Xb), yb


def adult():
    """48,842 x 108, one-hot, float64."""
    parts = [
        pd.read_csv(FOLDER / f"adult/adult.{part}.gz", header=None, skipinitialspace=True,
                    skiprows=skip)
        for part, skip in (("data", 0), ("test", 1))
    ]  # fmt: skip
    frame = pd.concat(parts, ignore_index=True)
    y = frame.pop(14).str.rstrip(".").eq(">50K").to_numpy().astype(int)
    return pd.get_dummies(frame).to_numpy(dtype=np.float64), y


def mnist():
    """70,000 x 784, float32: is the digit odd?"""
    images, labels = [], []
    for part in ("train", "t10k"):
        with gzip.open(FOLDER / f"mnist/{part}-images-idx3-ubyte.gz") as file:
            images.append(np.frombuffer(file.read(), np.uint8, offset=16).reshape(-1, 784))
        with gzip.open(FOLDER / f"mnist/{part}-labels-idx1-ubyte.gz") as file:
            labels.append(np.frombuffer(file.read(), np.uint8, offset=8))
    X = np.concatenate(images).astype(np.float32) / np.float32(255)
    return X, np.concatenate(labels) % 2


def usps():
    """9,298 x 256, float64: which of ten digits?"""
    parts = [
        pd.read_csv(FOLDER / f"usps/zip.{part}.csv.gz", header=None)
        for part in ("train", "test")
    ]
    frame = pd.concat(parts, ignore_index=True)
    y = frame.pop(0).to_numpy(dtype=int)
    return frame.to_numpy(dtype=np.float64), y


def synthetic():
    """200,000 x 100, float64."""
    return make_classification(
        200_000, 100, n_informative=30, n_redundant=20, n_clusters_per_class=4, flip_y=0.05,
        random_state=7,
    )  # fmt: skip


LOADERS = {"adult": adult, "mnist": mnist, "synthetic": synthetic, "usps": usps}
