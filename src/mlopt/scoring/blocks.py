"""The rows of a file as a model takes them: at once, or in blocks that give the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import Pipeline

from mlopt.errors import TooLargeError
from mlopt.plan import format_bytes
from mlopt.readers.blocks import (
    NUMBER,
    TEXT,
    VECTOR,
    is_json_lines,
    read_blocks,
    read_documents,
    read_matrices,
)
from mlopt.readers.files import File, NotAlikeError
from mlopt.readers.unpacked import bytes_of
from mlopt.resources.sizes import memory_of
from mlopt.scoring.files import Job
from mlopt.sweep.learned import first_step, names_of, numbered_from
from mlopt.sweep.predict import known_of, read_rows, rows_for
from mlopt.sweep.tabular import ReadColumns, ToFloat32


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
        return memory_of(self.X)


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
    reason = "is asked for whole"
    if not whole and bytes_of(job.source, block_bytes) > block_bytes:
        start = 0
        try:
            for X in _read(job, model, block_bytes):
                texts = isinstance(X, list)
                yield Block(job, X if texts else rows_for(model, X), start)
                start += len(X) if texts else X.shape[0]
            return
        except NotAlikeError as error:
            if start:
                raise
            reason = f"cannot be read in blocks ({error})"
    if (size := bytes_of(job.source, memory)) > memory:
        raise TooLargeError(
            f"`{job.source}` {reason}, and its {format_bytes(size)} are more than the "
            f"{format_bytes(memory)} that may be taken: give more memory."
        )
    X, remarks = read_rows(model, str(job.source))
    yield Block(job, X, 0, remarks)


def _read(job: Job, model: Any, block_bytes: int) -> Iterator[Any]:
    if not _goes_by_rows(model):
        raise NotAlikeError(
            "not all steps of the model are known to treat each row by itself, as "
            "`mlopt.register(..., row_wise=True)` says of one"
        )
    if names_of(model) is None and is_json_lines(File.at(str(job.source))):
        return read_documents(job.source, block_bytes)
    width = getattr(first_step(model), "n_features_in_", None)
    columns = None if width is None else int(width)
    found = read_matrices(
        job.source, block_bytes, columns=columns, numbered_from=numbered_from(model)
    )
    if found is not None:
        return found
    known = known_of(model)
    return read_blocks(job.source, block_bytes, uses=_uses(model), known=known)


def _goes_by_rows(model: Any) -> bool:
    """Whether predictions of blocks are known to be those of the whole."""
    from mlopt.pipeline.steps.by_rows import goes_by_rows  # takes a while to import

    steps = [model]
    if type(model) is Pipeline:  # what our own make of a column, `_uses` takes care of
        steps = [one for _, one in model.steps if type(one) not in (ReadColumns, ToFloat32)]
    *before, last = ["passthrough", *steps]
    method = "predict" if hasattr(model, "predict") else "transform"
    return all(map(goes_by_rows, before)) and goes_by_rows(last, method)


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
    texts = dict.fromkeys([*first.categories, *first.texts, *dates], TEXT)
    vectors = dict.fromkeys(first.vectors or {}, VECTOR)
    return {**texts, **vectors, **dict.fromkeys(first.numbers, NUMBER)}
