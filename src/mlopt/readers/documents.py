"""Texts and their labels from JSON lines: one object a line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mlopt.errors import InputError, did_you_mean
from mlopt.readers.files import File
from mlopt.readers.lazily import block_edges
from mlopt.readers.table import listed


def read_jsonl(
    path: str | Path,
    *,
    text: str = "text",
    label: str | None = "label",
    block_rows: int | None = None,
) -> tuple[Any, np.ndarray | None]:
    """(X, y): documents, and a label each.

    Parameters
    ----------
    path : str or Path
        As it is or compressed; blank lines are left out.
    text, label : str
        Names of the values; ``label=None`` where there is none.
    block_rows : int, optional
        Give a dask bag whose blocks of so many documents are read when they are needed;
        labels are read at once. Each block of a compressed file is found by reading it
        from the start.

    Returns
    -------
    X : list of str, or dask bag
    y : ndarray of shape (n,), or None

    Raises
    ------
    InputError
        When a line is no JSON object or has no such value: its number is named.
    """
    file = File.at(str(path))
    if block_rows is None:
        with file.opened() as stream:
            pairs = list(_labelled(file.path, stream, text, label))
        if not pairs:
            raise InputError(f"`{path}` must hold a line of JSON at least.")
        documents = [document for document, _ in pairs]
        return documents, None if label is None else np.array([one for _, one in pairs])
    with file.streamed() as stream:
        labels = [one for _, one in _labelled(file.path, stream, text, label)]
    edges = block_edges(len(labels), block_rows)
    return _bag(file, text, edges), None if label is None else np.array(labels)


def records(path: str, stream: Iterable[bytes]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of JSON lines, each with the number of its line; blank ones left out.

    Raises
    ------
    InputError
        A line is no object.
    """
    for number, line in enumerate(stream, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except ValueError as error:
            raise InputError(
                f"Line {number} of `{path}` must be a JSON object: {error}."
            ) from error
        if not isinstance(record, dict):
            raise InputError(
                f"Line {number} of `{path}` must be a JSON object, got {record!r:.40}."
            )
        yield number, record


def texts_of(path: str, stream: Iterable[bytes]) -> Iterator[str]:
    """The documents of JSON lines.

    Raises
    ------
    InputError
        A line without one.
    """
    return (document for document, _ in _labelled(path, stream, "text", None))


def _labelled(
    path: str, stream: Any, text: str, label: str | None
) -> Iterator[tuple[str, Any]]:
    for number, record in records(path, stream):
        document = _value(path, number, record, text)
        if not isinstance(document, str):
            raise InputError(
                f"`{text}` in line {number} of `{path}` must be text, got {document!r:.40}."
            )
        yield document, None if label is None else _value(path, number, record, label)


def _value(path: str, number: int, record: dict[str, Any], name: str) -> Any:
    if name not in record:
        raise InputError(
            f"Line {number} of `{path}` has no `{name}`.{did_you_mean(name, list(record))} "
            f"It has {listed(list(record))}."
        )
    return record[name]


def _bag(file: File, text: str, edges: list[int]) -> Any:
    import dask
    import dask.bag as db

    headless = replace(file, head=b"")  # which each task would hold
    one = dask.delayed(partial(_between, headless, text), pure=False)
    return db.from_delayed([one(start, stop) for start, stop in pairwise(edges)])


def _between(file: File, text: str, start: int, stop: int) -> list[str]:
    with file.streamed() as stream:
        found = enumerate(_labelled(file.path, stream, text, None))
        documents = []
        for number, (document, _) in found:
            if number >= stop:
                break
            if number >= start:
                documents.append(document)
    return documents
