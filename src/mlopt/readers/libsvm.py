"""LIBSVM's sparse text: ``label index:value index:value ...``."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from mlopt.errors import InputError
from mlopt.readers.files import File
from mlopt.readers.table import Table

_LINE = re.compile(rb"\s*[-+.\deE]+(\s+\d+:[-+.\deEnaif]+)*\s*(#.*)?")
NAME = "label"


def looks_like(file: File) -> bool:
    """Whether all the first lines are a number and pairs, and some has a pair."""
    lines = file.head.splitlines()
    lines = [line for line in (lines if file.whole else lines[:-1])[:20] if line.strip()]
    return any(b":" in line for line in lines) and all(map(_LINE.fullmatch, lines))


def read(file: File, target: str | int | None, columns: int | None) -> Table:
    """Features in CSR, and the number in front of each line as target."""
    from scipy.sparse import csr_array
    from sklearn.datasets import load_svmlight_file

    if target not in (None, NAME, 0, "0"):
        raise InputError(
            f"The target of `{file.path}`, a LIBSVM file, stands in front of each line and "
            f"is named `{NAME}`: leave `target` out, got `{target}`."
        )
    with file.opened() as stream:
        try:
            X, y = load_svmlight_file(stream, n_features=columns)
        except (ValueError, OverflowError, MemoryError) as error:
            raise InputError(
                f"`{file.path}` looks like LIBSVM but cannot be read as such: {error}."
            ) from error
    file.check_columns(X.shape[1])
    names = tuple(f"f{number}" for number in range(1, X.shape[1] + 1))
    return Table(csr_array(X), _whole(y), NAME, file.path, names)


def _whole(y: np.ndarray) -> Any:
    """Integers when all values are, as labels should look."""
    return y.astype(np.int64) if np.array_equal(y, np.floor(y)) else y
