"""Small files to query, in a folder that is the current one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file, load_iris

from mlopt.query.run import Session


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``people.csv`` with a header and the label ``buys``; ``iris`` in many formats."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    age, size = random.normal(40, 10, 200), random.normal(size=200)
    buys = np.where(age + 5 * random.normal(size=200) > 40, "yes", "no")
    people = pd.DataFrame({"buys": buys, "age": age, "size": size})
    people.to_csv("people.csv", index=False)
    X, y = load_iris(return_X_y=True)
    dump_svmlight_file(X, y, "iris.libsvm", zero_based=False)
    np.savez("iris.npz", X=X, y=y)
    table = pd.DataFrame(X, columns=["sl", "sw", "pl", "pw"])
    table.insert(0, "kind", y)
    table.to_parquet("iris.parquet")
    table.to_csv("iris.csv.gz", index=False, header=False)
    return tmp_path


@pytest.fixture
def session() -> Session:
    """A session without names."""
    return Session()
