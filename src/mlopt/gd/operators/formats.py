"""Text sources by format: columns of numbers, and LIBSVM."""

from __future__ import annotations

import functools
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mlopt.gd.operators.interfaces import Batch
from mlopt.gd.operators.text import TextSource
from mlopt.readers.layout import BLANKS, Layout, layout_of
from mlopt.readers.table import column


class CsvSource(TextSource):
    """Numbers in columns; separator and header are found in the first lines.

    Parameters
    ----------
    path, partition_bytes
        See `TextSource`.
    target : str or int, default=0
        The label: a column's name, or its number; ML4all takes the first column.
    columns : sequence of str or int, optional
        The features. Default: all but the label.
    positive : float, optional
        Labels equal to this become 1, all others -1.
    """

    def __init__(
        self,
        path: str | Path,
        target: str | int = 0,
        columns: Sequence[str | int] | None = None,
        positive: float | None = None,
        partition_bytes: int | None = None,
    ) -> None:
        self.positive = positive
        super().__init__(path, partition_bytes)
        names = list(self._layout.names)
        self.target = names.index(column(names, target, self.path))
        chosen = [name for i, name in enumerate(names) if i != self.target]
        if columns is not None:
            chosen = [column(names, wanted, self.path) for wanted in columns]
        self._features = [names.index(name) for name in chosen]

    @functools.cached_property
    def _layout(self) -> Layout:
        return layout_of(self.head)

    def _begin(self) -> int:
        lines = self.head.head.splitlines(keepends=True)
        return sum(map(len, lines[: self._layout.skip]))

    @property
    def columns(self) -> int:
        """d."""
        return len(self._features)

    def _parsed(self, lines: list[bytes]) -> Batch:
        separator = None if self._layout.separator == BLANKS else self._layout.separator
        text = [line.decode("utf-8-sig") for line in lines]
        table = np.loadtxt(
            text,
            delimiter=separator,
            comments=None,
            quotechar='"',
            ndmin=2,
            usecols=[self.target, *self._features],
        )
        if len(table) != len(lines) or not np.isfinite(table).all():
            raise ValueError("values must be finite numbers")
        return Batch(table[:, 1:], labels(table[:, 0], self.positive))


class LibsvmSource(TextSource):
    """LIBSVM's sparse text, with columns that count from 1.

    Parameters
    ----------
    path, partition_bytes
        See `TextSource`.
    columns : int, optional
        d. Without it, the whole file is read once to find the largest column number.
    positive : float, optional
        Labels equal to this become 1, all others -1.
    """

    def __init__(
        self,
        path: str | Path,
        columns: int | None = None,
        positive: float | None = None,
        partition_bytes: int | None = None,
    ) -> None:
        self.positive, self._columns = positive, columns
        super().__init__(path, partition_bytes)

    @property
    def columns(self) -> int:
        """d."""
        if self._columns is None:
            parts = (self.partition(number) for number in range(self.partitions))
            numbers = (_largest_column(line) for part in parts for line in part)
            self._columns = max(numbers, default=0)
        return self._columns

    def _parsed(self, lines: list[bytes]) -> Batch:
        from sklearn.datasets import load_svmlight_file

        stream = io.BytesIO(b"\n".join(lines))
        X, y = load_svmlight_file(stream, n_features=self.columns, zero_based=False)
        return Batch(csr_array(X), labels(y, self.positive))


def _largest_column(line: bytes) -> int:
    pairs = [item for item in line.split(b"#")[0].split() if b":" in item]
    return max((int(p.split(b":")[0]) for p in pairs if p[:1].isdigit()), default=0)


def labels(y: Any, positive: float | None) -> Any:
    """As they are, or 1 for ``positive`` and -1 for the rest."""
    y = np.asarray(y, np.float64)
    return y if positive is None else np.where(y == positive, 1.0, -1.0)
