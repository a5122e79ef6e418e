"""Which files are read to be predicted, how, and how much of one at once."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from sklearn.linear_model import LinearRegression, Ridge

import mlopt
from mlopt.errors import TooLargeError
from mlopt.scoring.blocks import blocks_of
from mlopt.scoring.files import Job
from mlopt.scoring.scorer import Scorer


def test_a_libsvm_file_is_numbered_as_the_one_that_was_trained_on(tmp_path: Path) -> None:
    X = sparse.random_array((60, 4), density=0.7, rng=np.random.default_rng(0)).tolil()
    X[:, 0] = np.arange(60) % 2
    X, train, test = sparse.csr_array(X), tmp_path / "train.svm", tmp_path / "test.svm"
    dump_svmlight_file(X, X[:, [0]].toarray().ravel(), str(train), zero_based=True)
    rows = X[::2]  # none of which has a column 0
    dump_svmlight_file(rows, np.arange(30) % 2, str(test), zero_based=True)
    model = mlopt.sweep(
        str(train), None, test=str(test), output=tmp_path / "out", families=["linear"],
        n_trials=1,
    )  # fmt: skip
    for given in (model, mlopt.load(tmp_path / "out")):
        for memory in ("1 GB", 32 * 1000):  # at once, and in blocks of 1000 bytes
            mlopt.predict(given, test, output=tmp_path / f"to{memory}", memory=memory)
            found = pd.read_csv(tmp_path / f"to{memory}" / "test.svm.csv")["prediction"]
            assert np.allclose(found, model.predict(rows))


def test_a_folder_may_be_its_own_output(tmp_path: Path) -> None:
    table = pd.DataFrame({"a": [1.0, 2, 3], "b": [0.0, 1, 5]})
    table.to_parquet(tmp_path / "a.parquet")
    ridge = Ridge().fit(table, table.a)
    assert len(mlopt.predict(ridge, tmp_path, output=tmp_path).rows) == 1
    for again in (tmp_path, tmp_path / "*"):
        assert len(mlopt.predict(ridge, again, output=tmp_path).skipped) == 1


def pack(kind: str, table: pd.DataFrame, path: Path) -> None:
    """A table in a small file."""
    text = table.to_csv(index=False).encode()
    if kind == "parquet":
        table.to_parquet(path)
    elif kind == "npz":
        np.savez_compressed(path.with_suffix(".npz"), X=np.ascontiguousarray(table))
        path.with_suffix(".npz").rename(path)
    elif kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.csv", text)
    else:
        path.write_bytes({"gz": gzip, "bz2": bz2, "xz": lzma}[kind].compress(text))


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz", "zip", "parquet", "npz"])
def test_a_packed_file_is_as_large_as_what_is_in_it(kind: str, tmp_path: Path) -> None:
    columns: Any = {"a": np.ones(40_000), "b": np.arange(40_000) // 1000 + 0.5}
    table, path, memory = pd.DataFrame(columns), tmp_path / "packed", 1 << 20
    rows = table.to_numpy() if kind == "npz" else table
    model: Any = LinearRegression().fit(rows, table.a)
    pack(kind, table, path)
    job, block = Job(path, tmp_path / "out.csv"), memory // 32
    blocks = [one.X.shape[0] for one in blocks_of(job, model, block, memory)]
    assert sum(blocks) == len(table)
    assert len(blocks) > 1
    (part, *_) = Scorer(model, memory, proba=False).parts(job, whole=False)
    assert not isinstance(part, Job)
    with pytest.raises(TooLargeError, match="are more than"):
        list(blocks_of(job, model, block, block, whole=True))
