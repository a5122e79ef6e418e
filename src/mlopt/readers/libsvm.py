"""LIBSVM's sparse text: ``label index:value index:value ...``.

Columns are numbered from 1, or from 0 where a row has a column 0. A file that lacks its
first columns does not tell: whoever knows how those before it were numbered says so.

A query behind the label (``qid:3``) is left out, as by scikit-learn's reader.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import IO, Any

import numpy as np

from mlopt.errors import InputError
from mlopt.readers.files import File, NotAlikeError
from mlopt.readers.table import WHOLE, Table

_LINE = re.compile(rb"\s*[-+.\deE]+(\s+qid:\d+)?(\s+\d+:[-+.\deEnaif]+)*\s*(#.*)?")
NAME = "label"


def looks_like(file: File) -> bool:
    """Whether all the first lines are a number and pairs, and some has a pair.

    Lines of nothing but a remark are none, as `dump_svmlight_file` writes ``comment``.
    """
    lines = file.head.splitlines()
    lines = [
        line
        for line in (lines if file.whole else lines[:-1])
        if line.strip() and not line.lstrip().startswith(b"#")
    ][:20]
    return any(b":" in line for line in lines) and all(map(_LINE.fullmatch, lines))


def read(
    file: File,
    target: str | int | None,
    columns: int | None,
    numbered_from: int | None = None,
) -> Table:
    """Features in CSR, and the number in front of each line as target."""
    if target not in (None, NAME, 0, "0"):
        raise InputError(
            f"The target of `{file.path}`, a LIBSVM file, stands in front of each line and "
            f"is named `{NAME}`: leave `target` out, got `{target}`."
        )
    with file.opened() as stream:
        X, y = _rows(file, stream)
    if numbered_from is None:
        numbered_from = int(_least(X) != 0)
    X = _numbered(file, X, columns, numbered_from)
    file.check_columns(X.shape[1])
    names = tuple(f"f{number}" for number in range(1, X.shape[1] + 1))
    return Table(X, _whole(y), NAME, file.path, names, numbered_from=numbered_from)


def blocks(
    file: File, columns: int, block_bytes: int, numbered_from: int | None = None
) -> Iterator[Any]:
    """The features of consecutive rows, in CSR of so many columns.

    Whether columns are numbered from 0 or from 1, all rows tell where nobody else does:
    from 0, where one has a column 0. Rows that come before it were then read wrongly.

    Raises
    ------
    NotAlikeError
        Such a row comes after others.
    InputError
        As of `read`.
    """
    told = numbered_from is not None
    with file.streamed() as stream:
        while lines := stream.readlines(block_bytes):
            X, _ = _rows(file, io.BytesIO(b"".join(lines)))
            if not X.shape[0]:
                continue
            least = _least(X)
            if least is not None and numbered_from is None:
                numbered_from = int(least > 0)
            if numbered_from and least == 0 and not told:
                raise NotAlikeError(
                    f"`{file.path}` must number its columns alike to be read in blocks: "
                    "from 1 at first, and later there is a column 0."
                )
            yield _numbered(file, X, columns, numbered_from or 0)


def _rows(file: File, text: IO[bytes]) -> Any:
    """Rows with the numbers of columns that are written, and their labels."""
    from sklearn.datasets import load_svmlight_file

    try:
        return load_svmlight_file(text, zero_based=True)
    except (ValueError, OverflowError, MemoryError) as error:
        raise InputError(
            f"`{file.path}` cannot be read as LIBSVM, `label column:value ...` in each "
            f"line: {str(error).rstrip('.')}. Mend the line, or name another format."
        ) from error


def _least(X: Any) -> int | None:
    return int(X.indices.min()) if X.nnz else None


def _numbered(file: File, X: Any, columns: int | None, numbered_from: int) -> Any:
    """Rows whose columns count from 0."""
    from scipy.sparse import csr_array

    if numbered_from and _least(X) == 0:
        raise InputError(
            f"`{file.path}` must number its columns from 1, as the rows that were trained "
            "on, but has a column 0: number it alike."
        )
    found = int(X.indices.max()) + 1 - numbered_from if X.nnz else 0
    if columns is not None and found > columns:
        raise InputError(
            f"`{file.path}` cannot be read as rows of {columns} columns, the model's: it "
            f"has {found}."
        )
    width = max(found, 1) if columns is None else columns
    indices = X.indices - X.indices.dtype.type(numbered_from)
    return csr_array((X.data, indices, X.indptr), shape=(X.shape[0], width))


def _whole(y: np.ndarray) -> Any:
    """Integers when all values are, as labels should look."""
    whole = np.array_equal(y, np.floor(y)) and (np.abs(y) <= WHOLE).all()
    return y.astype(np.int64) if whole else y
