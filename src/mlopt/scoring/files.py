"""Which files are read, where their predictions go, and which of them are there already."""

from __future__ import annotations

import fcntl
import glob
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from mlopt.errors import InputError
from mlopt.writing import check_outputs, check_writable, finish_files

JOURNAL = "predicted.jsonl"
"""In the output folder: a line for each file that is done, and of which content."""
_KEYS = {"source", "output", "rows", "bytes", "content", "model"}
_BEGINS = b'{"source": '
"""Of a line of it, be it cut off."""
_MAGIC = frozenset("*?[")


@dataclass(frozen=True)
class Job:
    """A file to predict, and where its predictions go."""

    source: Path
    output: Path


def files_of(
    paths: str | Path | Iterable[str | Path], output: Path | None = None
) -> list[Path]:
    """The files that paths, patterns and folders mean: each once, in order; of those in the
    folder ``output`` not what was written there.

    Raises
    ------
    InputError
        A pattern or a folder that means no file.
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    found: dict[Path, None] = {}
    for one in given:
        path = Path(one).expanduser()
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if p.is_file() and p.name[0] != ".")
        elif not path.exists() and is_pattern(one):
            # A pattern may be absolute, which `Path.glob` does not take.
            matches = map(Path, sorted(glob.glob(str(path), recursive=True)))  # noqa: PTH207  (absolute)
            inside = [match for match in matches if match.is_file()]
        else:
            inside = [path]
        if inside != [path] and output is not None:
            inside = _not_written(inside, output)
        if not inside:
            raise InputError(f"`{one}` must mean a file at least, but there is none.")
        found |= dict.fromkeys(inside)
    if not found:
        raise InputError("There must be a file to predict at least: name some.")
    return list(found)


def _not_written(files: Sequence[Path], output: Path) -> list[Path]:
    """Files without the journal and the predictions of others in their output folder, or
    below it."""
    names = {file.with_name(f"{file.name}.csv").absolute() for file in files}
    here = output.absolute()
    beside = {name for name in names if name.parent == here} | {here / JOURNAL}
    with suppress(OSError):
        beside |= {here / one for one in _records((here / JOURNAL).read_bytes())}
    return [file for file in files if file.absolute() not in beside]


def _records(content: bytes) -> dict[str, dict[str, Any]]:
    """The last line of a journal on each output."""
    found: dict[str, dict[str, Any]] = {}
    for line in content.splitlines():
        with suppress(ValueError, AttributeError):  # cut off by a kill
            record = json.loads(line)
            if record.keys() >= _KEYS:
                found[record["output"]] = record
    return found


def is_pattern(path: str | Path) -> bool:
    """Whether a path means files by a pattern."""
    return bool(_MAGIC & set(str(path)))


def jobs_of(sources: Sequence[Path], folder: Path) -> list[Job]:
    """Where the predictions of each file go: to CSV of its name, below the folder that all
    files have in common.

    Raises
    ------
    InputError
        Two would be written to one file, or one over what is read.
    """
    # Links stay, and nothing leads out of the folder.
    absolute = [Path(os.path.normpath(source.absolute())) for source in sources]
    common = Path(os.path.commonpath([path.parent for path in absolute]))
    outputs: dict[Path, Path] = {}
    for source, path in zip(sources, absolute, strict=True):
        name = path.name if path.suffix == ".csv" else f"{path.name}.csv"
        output = folder / path.relative_to(common).with_name(name)
        if output in outputs:
            raise InputError(
                f"`{outputs[output]}` and `{source}` must not both be written to "
                f"`{output}`: predict them apart."
            )
        outputs[output] = source
    return [Job(source, output) for output, source in outputs.items()]


def prepare(jobs: Sequence[Job], folder: Path, model: Path | None) -> None:
    """Make the folders, after a look whether they can be written to; end what a killed
    process began there.

    Raises
    ------
    InputError
    """
    check_writable(folder)
    sources = {os.path.realpath(job.source) for job in jobs}
    check_outputs([folder / JOURNAL], [*sources, model])
    for job in jobs:
        if os.path.realpath(job.output) in sources:
            check_outputs([job.output], [one.source for one in jobs])
        if model is not None:
            check_outputs([job.output], [model])
    for place in {folder, *(job.output.parent for job in jobs)}:
        place.mkdir(parents=True, exist_ok=True)
        finish_files(place)


class Journal:
    """What is done, kept in the output folder; a context manager that one run has at once.

    A file is done if a line of the journal says that its content, by size and time, was
    predicted by this model, and the output is there as it was written.

    Parameters
    ----------
    folder : Path
    model : str
        What tells this model, and what is asked of it, from others.
    """

    def __init__(self, folder: Path, model: str) -> None:
        self._path, self._model = folder / JOURNAL, model
        self._done: dict[str, dict[str, Any]] = {}
        self._file: IO[bytes] | None = None

    def __enter__(self) -> Self:
        self._file = self._path.open("ab+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            raise InputError(
                f"`{self._path.parent}` must be written to by one run at a time, but "
                "another one is at work there: wait, or name another folder."
            ) from error
        self._file.seek(0)
        content = self._file.read()
        self._done = _records(content)
        ours = self._done or content[: len(_BEGINS)] == _BEGINS[: len(content)]
        if not ours:
            self._file.close()
            raise InputError(
                f"`{self._path}` must be what an earlier run noted there, but it is "
                "another file: name another folder, or move it away."
            )
        if content and not content.endswith(b"\n"):
            self._file.write(b"\n")
        return self

    def __exit__(self, *error: object) -> None:
        assert self._file is not None
        self._file.close()

    def has(self, job: Job) -> int | None:
        """The rows of a file that is done, else None."""
        record = self._done.get(str(job.output.relative_to(self._path.parent)))
        if record is None or record.get("model") != self._model:
            return None
        with suppress(OSError):
            same = record["content"] == content_of(job.source)
            if same and record["bytes"] == job.output.stat().st_size:
                return int(record["rows"])
        return None

    def add(self, job: Job, rows: int, content: list[Any]) -> None:
        """A file is in its place; ``content`` is of `content_of` before it was read."""
        assert self._file is not None
        record = {
            "source": str(job.source),
            "output": str(job.output.relative_to(self._path.parent)),
            "rows": rows,
            "bytes": job.output.stat().st_size,
            "content": content,
            "model": self._model,
        }
        self._file.write(json.dumps(record).encode() + b"\n")
        self._file.flush()


def content_of(path: Path) -> list[Any]:
    """What tells whether a file is still the same."""
    stat = path.stat()
    return [os.path.realpath(path), stat.st_size, stat.st_mtime_ns]


def size_of(path: Path) -> int:
    """Bytes of a file; 0 where there is none."""
    return path.stat().st_size if path.exists() else 0


def digest(*parts: bytes) -> str:
    """A short name of some content."""
    found = hashlib.sha256()
    for part in parts:
        found.update(hashlib.sha256(part).digest())
    return found.hexdigest()[:32]
