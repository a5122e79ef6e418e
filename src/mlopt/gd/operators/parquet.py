"""Rows of a Parquet file: a row group is a partition, and arrow parses it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mlopt.errors import InputError
from mlopt.gd.operators.formats import labels
from mlopt.gd.operators.interfaces import Batch, Indices
from mlopt.gd.operators.sources import Source, gathered
from mlopt.readers.table import column


class ParquetSource(Source):
    """Row groups of one Parquet file.

    A row cannot be read without its row group. So random access to one row reads a whole
    group, and random-partition sampling gains nothing here; shuffled-partition does.

    Parameters
    ----------
    path : str or Path
    target : str or int, default=0
        The label: a column's name or number.
    positive : float, optional
        Labels equal to this become 1, all others -1.
    """

    def __init__(
        self, path: str | Path, target: str | int = 0, positive: float | None = None
    ) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        super().__init__()
        self.path, self.positive = str(path), positive
        try:
            self._file = pq.ParquetFile(Path(self.path).expanduser())
        except (OSError, pa.ArrowException) as error:
            raise InputError(
                f"`{self.path}` cannot be read as Parquet: {error}."
            ) from error
        names = list(self._file.schema_arrow.names)
        self.target = column(names, target, self.path)
        self.names = tuple(name for name in names if name != self.target)
        groups = [
            self._file.metadata.row_group(i) for i in range(self._file.num_row_groups)
        ]
        self._starts = np.concatenate([[0], np.cumsum([g.num_rows for g in groups])])
        self._bytes = [
            sum(group.column(i).total_compressed_size for i in range(group.num_columns))
            for group in groups
        ]

    @property
    def partitions(self) -> int:
        """Row groups."""
        return len(self._bytes)

    @property
    def nbytes(self) -> int:
        """Compressed bytes of all row groups."""
        return int(sum(self._bytes))

    @property
    def columns(self) -> int:
        """d."""
        return len(self.names)

    @property
    def n(self) -> int:
        """The number of rows, from the file's footer."""
        return int(self._starts[-1])

    def partition(self, number: int) -> Batch:
        """A row group."""
        self.counts.bytes_read += self._bytes[number]
        self.counts.reads += 1
        table = self._file.read_row_group(number)
        columns = [self._numbers(table, name) for name in (self.target, *self.names)]
        return Batch(np.column_stack(columns[1:]), labels(columns[0], self.positive))

    def _numbers(self, table: Any, name: str) -> Any:
        try:
            return table.column(name).to_numpy().astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"The column `{name}` of `{self.path}` must hold numbers: {error}."
            ) from error

    def random(self, generator: np.random.Generator, size: int) -> Batch:
        """Rows that are all equally likely; each reads its row group."""
        return self.take(generator.integers(self.n, size=size))

    def take(self, indices: Indices) -> Batch:
        """Rows by number; a row group is read once for all rows asked of it."""

        def take(number: int, own: Indices) -> Any:
            group = self.partition(number).take(own)
            return np.column_stack([group.y, group.X])

        table = gathered(self._starts, indices, take)
        return Batch(table[:, 1:], table[:, 0])
