"""What predicts a file, in whatever process: block by block, to CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from mlopt.readers.unpacked import bytes_of
from mlopt.scoring.blocks import Block, blocks_of
from mlopt.scoring.files import Job, content_of
from mlopt.sweep.formulas import csv_of
from mlopt.sweep.predict import predictions, unreadable_cells
from mlopt.writing import write_file

BLOCK = 1 << 21
"""Bytes of a file in a block at most. A block has a fixed cost: with half as many bytes a
CPU second has .7 times the rows, with twice as many 1.2, with four times 1.3
(`benchmarks/sizes.py`). But a file of fewer blocks than cores leaves some without work."""
SHARE = 32
"""Parts of the memory, of which a block of a file may have one: some eight are under way
(as many as are fed, `predict.OPEN` and the cores), and a text takes about four times its
bytes as a frame."""


@dataclass(frozen=True)
class Part:
    """Predictions of a block as CSV."""

    content: bytes
    rows: int
    remarks: tuple[str, ...]


@dataclass(frozen=True)
class Done:
    """A file that was predicted; ``before`` is of `content_of` before it was read."""

    job: Job
    rows: int
    remarks: tuple[str, ...]
    before: list[Any]


@dataclass(frozen=True)
class Scorer:
    """What stages do, here or on a worker.

    Parameters
    ----------
    model : fitted estimator
    memory : int
        Bytes that rows may take.
    proba : bool
    """

    model: Any
    memory: int
    proba: bool

    @property
    def block(self) -> int:
        """Bytes of a file in a block at most."""
        return max(1, min(BLOCK, self.memory // SHARE))

    def blocks(self, job: Job, whole: bool) -> Iterator[Block]:
        """The rows of a file."""
        return blocks_of(job, self.model, self.block, self.memory, whole=whole)

    def parts(self, job: Job, whole: bool) -> Iterator[Job | Block]:
        """The rows of a file; one of a single block as it is, to be read, predicted and
        written by one thread: threads that hand it on wait for each other's lock.
        """
        if not whole and 0 < bytes_of(job.source, self.block) <= self.block:
            return iter([job])
        return self.blocks(job, whole)

    def score_part(self, part: Job | Block) -> Part | Done:
        """What `parts` gave, predicted."""
        return self.score_file((part, False)) if isinstance(part, Job) else self.score(part)

    def score(self, block: Block) -> Part:
        """Predictions of a block."""
        predicted = predictions(self.model, block.X, proba=self.proba)
        content = csv_of(predicted, header=not block.start)
        remarks = unreadable_cells(self.model, block.X)
        if block.start:
            remarks = [f"from row {block.start + 1:,} on: {remark}" for remark in remarks]
        return Part(content, len(predicted), (*block.remarks, *remarks))

    def score_file(self, given: tuple[Job, bool]) -> Done:
        """Write the predictions of a file, block by block."""
        before = as_found(given[0])
        return written(given[0], map(self.score, self.blocks(*given)), before)


def as_found(job: Job) -> list[Any]:
    """`content_of` the file, to be asked before it is read."""
    return content_of(job.source) if job.source.exists() else []


def written(job: Job, parts: Iterable[Part], before: list[Any]) -> Done:
    """Write predictions to their place, when they are whole."""
    rows, remarks = 0, list[str]()

    def write(file: BinaryIO) -> None:
        nonlocal rows
        for part in parts:
            file.write(part.content)
            rows += part.rows
            remarks.extend(part.remarks)

    write_file(job.output, write)
    return Done(job, rows, tuple(remarks), before)
