"""The rows of a file as a model takes them: at once, or in blocks that give the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mlopt.errors import TooLargeError
from mlopt.locking import open_in_forks
from mlopt.plan import format_bytes
from mlopt.readers.blocks import (
    NUMBER,
    TEXT,
    is_json_lines,
    read_blocks,
    read_documents,
    read_matrices,
)
from mlopt.readers.files import File, NotAlikeError
from mlopt.scoring.files import Job, size_of
from mlopt.sweep.learned import first_step, names_of
from mlopt.sweep.predict import read_rows, rows_for
from mlopt.sweep.tabular import ReadColumns

_READING = open_in_forks(threading.Lock())
"""One file is read at a time: readers set the filter of warnings of the process."""


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of a file.

    Attributes
    ----------
    job : Job
    X : data frame, matrix or list
    start : int
        The number of the first, from 0.
    remarks : tuple of str
        How the file was read.
    """

    job: Job
    X: Any
    start: int = 0
    remarks: tuple[str, ...] = ()

    def __sizeof__(self) -> int:
        from dask.sizeof import sizeof

        return int(sizeof(self.X))


def blocks_of(
    job: Job, model: Any, block_bytes: int, memory: int, whole: bool = False
) -> Iterator[Block]:
    """The rows of a file: one block if it is small or ``whole``, else several.

    Raises
    ------
    NotAlikeError
        After some blocks: the rest is not as they were; the file must be read whole.
    TooLargeError
        It must be read whole, and is larger than ``memory``.
    InputError
    """
    size = size_of(job.source)
    reason = "is asked for whole"
    if size > block_bytes and not whole:
        start = 0
        try:
            for X in _in_turn(_read(job, model, block_bytes)):
                texts = isinstance(X, list)
                yield Block(job, X if texts else rows_for(model, X), start)
                start += len(X) if texts else X.shape[0]
            return
        except NotAlikeError as error:
            if start:
                raise
            reason = f"cannot be read in blocks ({error})"
    if size > memory:
        raise TooLargeError(
            f"`{job.source}` {reason}, and its {format_bytes(size)} are more than the "
            f"{format_bytes(memory)} that may be taken: give more memory."
        )
    with _READING:
        X, remarks = read_rows(model, str(job.source))
    yield Block(job, X, 0, remarks)


def _read(job: Job, model: Any, block_bytes: int) -> Iterator[Any]:
    if names_of(model) is None and is_json_lines(File.at(str(job.source))):
        return read_documents(job.source, block_bytes)
    width = getattr(first_step(model), "n_features_in_", None)
    columns = None if width is None else int(width)
    found = read_matrices(job.source, block_bytes, columns=columns)
    if found is not None:
        return found
    return read_blocks(job.source, block_bytes, uses=_uses(model))


def _in_turn(frames: Iterator[Any]) -> Iterator[Any]:
    while True:
        with _READING:
            frame = next(frames, None)
        if frame is None:
            return
        yield frame


def _uses(model: Any) -> dict[str, str] | None:
    """How the model uses columns, where it says so.

    Raises
    ------
    NotAlikeError
        It reads dates whose format the first row of a file tells.
    """
    first = first_step(model)
    if not isinstance(first, ReadColumns):
        return None
    dates = first.dates or {}
    if not all(dates.values()):
        raise NotAlikeError("the model takes the format of its dates from the first row")
    texts = dict.fromkeys([*first.categories, *dates], TEXT)
    return {**texts, **dict.fromkeys(first.numbers, NUMBER)}
