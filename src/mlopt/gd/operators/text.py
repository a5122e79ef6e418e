"""Rows of a text file, divided in byte ranges, read only where they are needed.

A line belongs to the partition in which it begins. Lines may not contain line breaks
within quotes.
"""

from __future__ import annotations

import io
from abc import abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from mlopt.errors import InputError
from mlopt.gd.operators.interfaces import Batch, Context, Indices, Units
from mlopt.gd.operators.sources import Source
from mlopt.locking import cached_property
from mlopt.parameters import check_count
from mlopt.readers.files import HEAD, File
from mlopt.readers.layout import BLANKS, Layout, layout_of
from mlopt.readers.table import column

_FIRST = 1 << 16
"""Bytes from which lines of a file are counted: some hundred lines, as a rule."""
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"PK", b"PAR1", b"\x93NUMPY")


class TextSource(Source):
    """Lines of an uncompressed file; subclasses parse them.

    Random access: an offset is drawn uniformly among the bytes, which finds a line with a
    probability proportional to its length; it is then kept with probability ``s / length``,
    where s is the length of the shortest line among the first. So all lines that are at
    least so long are equally likely. A line shorter than all of the first ones is less
    likely, by the factor ``length / s``. No index is needed, and no other line is read.

    Parameters
    ----------
    path : str or Path
    partition_bytes : int, optional
        Default: a 64th of the file, within 64 KiB and 16 MiB.

    Raises
    ------
    InputError
        When there is no such file, it is empty or compressed, or has no lines.
    """

    def __init__(self, path: str | Path, partition_bytes: int | None = None) -> None:
        super().__init__()
        self.path = str(path)
        self.size = self._checked()
        self._index: dict[int, np.ndarray] = {}
        self.head = self._head()
        self.begin = self._begin()
        lines = [line for line in self._head_lines() if self._is_row(line)]
        if not lines:
            raise InputError(f"`{self.path}` must have rows, but has none.")
        self.lines = [line.rstrip(b"\r\n") for line in lines]
        lengths = [len(line) for line in lines]
        self.shortest, self.longest = min(lengths), max(lengths)
        self._mean = sum(lengths) / len(lengths)
        usual = min(max((self.size - self.begin) // 64, 1 << 16), 1 << 24)
        self.partition_bytes = check_count("partition_bytes", partition_bytes or usual)

    def _checked(self) -> int:
        where = Path(self.path).expanduser()
        if not where.is_file():
            raise InputError(f"`{self.path}` must be a file, but there is none.")
        if not (size := where.stat().st_size):
            raise InputError(f"`{self.path}` must hold data, but is empty.")
        if self._read(0, 6).startswith(_COMPRESSED):
            raise InputError(
                f"`{self.path}` must be plain text: compressed and binary files have no "
                "random access. Unpack it, or read it with `mlopt.readers.read_table`."
            )
        return size

    def _read(self, start: int, stop: int) -> bytes:
        with Path(self.path).expanduser().open("rb", buffering=0) as stream:
            stream.seek(start)
            data = stream.read(max(0, stop - start))
        self.counts.bytes_read += len(data)
        return data

    def _head(self) -> File:
        """So much of the beginning that some lines are whole."""
        size, data = _FIRST, self._read(0, _FIRST)
        while data.count(b"\n") < 8 and len(data) == size < HEAD:
            data += self._read(size, 2 * size)
            size *= 2
        return File(self.path, data, len(data) >= self.size)

    def _begin(self) -> int:
        """The offset of the first row."""
        return 0

    def _head_lines(self) -> list[bytes]:
        lines = self.head.head[self.begin :].splitlines(keepends=True)
        return lines if self.head.whole or len(lines) < 2 else lines[:-1]

    def _is_row(self, line: bytes) -> bool:
        """Whether there is a row in a line."""
        return bool(line.strip())

    @abstractmethod
    def _parsed(self, lines: list[bytes]) -> Batch:
        """Parse lines."""

    def parse(self, units: Units) -> Batch:
        """Lines as a batch."""
        if isinstance(units, Batch):
            return units
        try:
            return self._parsed(units)
        except ValueError as error:
            raise InputError(
                f"A row of `{self.path}` cannot be parsed: {str(error).rstrip('.')}. Bring "
                f"your own `transform` for such rows. The first of them: {units[0][:80]!r}."
            ) from error

    @property
    def parser(self) -> Callable[[Units, Context], Batch]:
        """The reference Transform of this file's lines."""
        return self._transform

    def _transform(self, units: Units, context: Context) -> Batch:
        del context
        return self.parse(units)

    @property
    def partitions(self) -> int:
        """Byte ranges."""
        return max(1, -(-(self.size - self.begin) // self.partition_bytes))

    @property
    def about(self) -> int:
        """Rows by the mean length of the first ones."""
        return max(1, round((self.size - self.begin) / self._mean))

    @property
    def n(self) -> int:
        """The number of rows: reads everything once, and keeps where lines begin."""
        return sum(len(self._lines_of(number)) for number in range(self.partitions))

    def _range(self, number: int) -> tuple[int, int]:
        start = self.begin + number * self.partition_bytes
        return start, min(start + self.partition_bytes, self.size)

    def _bytes(self, number: int) -> tuple[int, bytes]:
        """Where the first line of a partition begins, and its whole lines."""
        start, stop = self._range(number)
        # The byte before tells whether a line begins right at the start.
        first = start if number == 0 else start - 1
        data = self._read(first, stop)
        if number:
            skipped = data.find(b"\n") + 1
            if not skipped:  # one long line covers the whole partition
                return stop, b""
            first, data = first + skipped, data[skipped:]
        if not data:
            return first, b""
        return first, data + self._until_line_end(stop, data)

    def _until_line_end(self, offset: int, before: bytes) -> bytes:
        """What is missing of the line that ``before`` breaks off in."""
        rest = b""
        while offset < self.size and not (rest or before).endswith(b"\n"):
            piece = self._read(offset, offset + self.longest)
            end = piece.find(b"\n") + 1
            rest += piece[:end] if end else piece
            offset += len(piece)
        return rest

    def partition(self, number: int) -> list[bytes]:
        """All lines that begin in a byte range."""
        _, data = self._bytes(number)
        return [line for line in data.splitlines() if self._is_row(line)]

    def _lines_of(self, number: int) -> np.ndarray:
        """Start and end of each line of a partition, (rows, 2); read when first asked."""
        if number not in self._index:
            first, data = self._bytes(number)
            edges, at = [], first
            for line in data.splitlines(keepends=True):
                if self._is_row(line):
                    edges.append((at, at + len(line)))
                at += len(line)
            self._index[number] = np.array(edges, np.int64).reshape(-1, 2)
        return self._index[number]

    def take(self, indices: Indices) -> list[bytes]:
        """Lines by number, each with a read of its own."""
        counts = [len(self._lines_of(number)) for number in range(self.partitions)]
        starts = np.concatenate([[0], np.cumsum(counts)])
        owners = np.searchsorted(starts, indices, side="right") - 1
        places = [
            self._lines_of(owner)[i - starts[owner]]
            for i, owner in zip(indices, owners, strict=True)
        ]
        return [self._read(*place).rstrip(b"\r\n") for place in places]

    def random(self, generator: np.random.Generator, size: int) -> list[bytes]:
        """Lines at random offsets, corrected for their length; see the class."""
        found: list[bytes] = []
        while len(found) < size:
            line = self._line_at(int(generator.integers(self.begin, self.size)))
            if generator.random() * len(line) < self.shortest and self._is_row(line):
                found.append(line.rstrip(b"\r\n"))
        return found

    def _line_at(self, offset: int) -> bytes:
        """The whole line that holds the byte at ``offset``, its end included."""
        start = max(self.begin, offset - self.longest)
        data = self._read(start, offset + self.longest)
        while start > self.begin and data.rfind(b"\n", 0, offset - start) < 0:
            before = max(self.begin, start - self.longest)
            data, start = self._read(before, start) + data, before
        first = data.rfind(b"\n", 0, offset - start) + 1
        end = data.find(b"\n", offset - start) + 1
        if end:
            return data[first:end]
        return data[first:] + self._until_line_end(start + len(data), data)


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

    @cached_property
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

    def _is_row(self, line: bytes) -> bool:
        return bool(line.split(b"#")[0].strip())

    def _parsed(self, lines: list[bytes]) -> Batch:
        from sklearn.datasets import load_svmlight_file

        stream = io.BytesIO(b"\n".join(lines))
        X, y = load_svmlight_file(stream, n_features=self.columns, zero_based=False)
        if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
            raise ValueError("values must be finite numbers")
        return Batch(csr_array(X), labels(y, self.positive))


def _largest_column(line: bytes) -> int:
    pairs = [item for item in line.split(b"#")[0].split() if b":" in item]
    return max((int(p.split(b":")[0]) for p in pairs if p[:1].isdigit()), default=0)


def labels(y: Any, positive: float | None) -> Any:
    """As they are, or 1 for ``positive`` and -1 for the rest."""
    y = np.asarray(y, np.float64)
    return y if positive is None else np.where(y == positive, 1.0, -1.0)
