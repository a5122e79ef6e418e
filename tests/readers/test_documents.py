"""JSON lines: documents and labels, and which line is wrong."""

from __future__ import annotations

import gzip
import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mlopt
from mlopt.errors import InputError
from mlopt.pipeline.library.text import CommonSparseFeatures, TermFrequency, Tokenizer
from mlopt.readers import read_jsonl

RECORDS: list[dict[str, Any]] = [
    {"id": number, "text": f"word{number % 7} and ünïcode\n{number}", "label": number % 2}
    for number in range(25)
]
LINES = "\n".join(map(json.dumps, RECORDS)) + "\n\n"


def written(tmp_path: Path, content: str | bytes, name: str = "docs.jsonl") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_documents_and_labels(tmp_path: Path, packed: bool) -> None:
    raw = LINES.encode()
    X, y = read_jsonl(written(tmp_path, gzip.compress(raw) if packed else raw))

    assert [record["text"] for record in RECORDS] == X
    assert y is not None
    assert y.tolist() == [record["label"] for record in RECORDS]


def test_other_names_and_no_labels(tmp_path: Path) -> None:
    path = written(tmp_path, LINES)

    assert read_jsonl(path, label=None)[1] is None
    _, y = read_jsonl(path, label="id")
    assert y is not None
    assert y.tolist() == list(range(25))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("rows", [1, 10, 40])
def test_blocks_of_documents(tmp_path: Path, rows: int, packed: bool) -> None:
    raw = LINES.encode()
    path = written(tmp_path, gzip.compress(raw) if packed else raw)
    bag, y = read_jsonl(path, block_rows=rows)

    assert bag.npartitions == -(-25 // rows)
    assert bag.compute(scheduler="sync") == [record["text"] for record in RECORDS]
    assert y is not None
    assert len(y) == 25


def test_a_pipeline_reads_blocks_of_documents(tmp_path: Path) -> None:
    path = written(tmp_path, LINES)
    steps = [Tokenizer(), TermFrequency(), CommonSparseFeatures(20)]
    whole = mlopt.make_pipeline(*steps).fit_transform(read_jsonl(path)[0])
    lazy = mlopt.make_pipeline(*steps).fit(read_jsonl(path, block_rows=6)[0])

    assert np.array_equal(lazy.transform(read_jsonl(path)[0]).toarray(), whole.toarray())


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"text": "cut of', "Line 3 of `{path}` must be a JSON object"),
        ("[1, 2]", "Line 3 of `{path}` must be a JSON object, got [1, 2]"),
        ('{"Text": "a", "label": 1}', "`{path}` has no `text`. Did you mean `Text`?"),
        ('{"text": "a"}', "Line 3 of `{path}` has no `label`"),
        ('{"text": 5, "label": 1}', "`text` in line 3 of `{path}` must be text, got 5"),
    ],
)  # fmt: skip
def test_the_line_that_is_wrong_is_named(tmp_path: Path, line: str, says: str) -> None:
    path = written(tmp_path, "\n".join([*LINES.splitlines()[:2], line]))
    with pytest.raises(InputError, match=re.escape(says.format(path=path))):
        read_jsonl(path)


def test_a_file_of_blank_lines_has_no_documents(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a line of JSON at least"):
        read_jsonl(written(tmp_path, "\n\n"))


def test_blocks_may_be_of_a_file_that_is_too_large_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.jsonl"
    lines = [json.dumps({"text": f"document {n}", "label": n % 2}) for n in range(2000)]
    path.write_text("\n".join(lines))
    monkeypatch.setattr("mlopt.readers.files.memory_limit", lambda: 4000)
    X, y = read_jsonl(path, block_rows=500)
    assert X.compute(scheduler="sync")[-1] == "document 1999"
    assert y is not None
    assert len(y) == 2000
    assert len(pickle.dumps(X)) < path.stat().st_size / 4
