"""LIBSVM's sparse text: ``label index:value index:value ...``.

A query behind the label (``qid:3``) is left out, as by scikit-learn's reader.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from mlopt.errors import InputError
from mlopt.readers.files import File, NotAlikeError
from mlopt.readers.table import Table

_LINE = re.compile(rb"\s*[-+.\deE]+(\s+qid:\d+)?(\s+\d+:[-+.\deEnaif]+)*\s*(#.*)?")
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
            raise _unreadable(file, error) from error
    file.check_columns(X.shape[1])
    names = tuple(f"f{number}" for number in range(1, X.shape[1] + 1))
    return Table(csr_array(X), _whole(y), NAME, file.path, names)


def _unreadable(file: File, error: Exception) -> InputError:
    """What to tell of a file that another library would not read as LIBSVM."""
    return InputError(
        f"`{file.path}` cannot be read as LIBSVM, `label column:value ...` in each line: "
        f"{str(error).rstrip('.')}. Mend the line, or name another format."
    )


def blocks(file: File, columns: int, block_bytes: int) -> Iterator[Any]:
    """The features of consecutive rows, in CSR of so many columns.

    Whether columns are numbered from 0 or from 1, all rows tell: from 0, where one has a
    column 0. Rows that come before it were then read wrongly.

    Raises
    ------
    NotAlikeError
        Such a row comes after others.
    InputError
        As of `read`.
    """
    from scipy.sparse import csr_array

    from_one = None
    with file.streamed() as stream:
        while lines := stream.readlines(block_bytes):
            X = _rows(file, b"".join(lines))
            if not X.shape[0]:
                continue
            least = int(X.indices.min()) if X.nnz else None
            if least is not None and from_one is None:
                from_one = least > 0
            if from_one and least == 0:
                raise NotAlikeError(
                    f"`{file.path}` must number its columns alike to be read in blocks: "
                    "from 1 at first, and later there is a column 0."
                )
            indices = X.indices - bool(from_one)
            if X.nnz and (largest := int(indices.max())) >= columns:
                raise InputError(
                    f"`{file.path}` must have at most the {columns} columns of the model, "
                    f"but has {largest + 1}."
                )
            yield csr_array((X.data, indices, X.indptr), shape=(X.shape[0], columns))


def _rows(file: File, text: bytes) -> Any:
    """Rows with the numbers of columns that are written."""
    from sklearn.datasets import load_svmlight_file

    try:
        return load_svmlight_file(io.BytesIO(text), zero_based=True)[0]
    except (ValueError, OverflowError, MemoryError) as error:
        raise _unreadable(file, error) from error


def _whole(y: np.ndarray) -> Any:
    """Integers when all values are, as labels should look."""
    return y.astype(np.int64) if np.array_equal(y, np.floor(y)) else y
