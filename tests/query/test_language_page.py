"""The examples of docs/language.md run, and give what it says."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from mlopt.query import run
from mlopt.query.run import Session
from mlopt.query.store import dumps, loads

PAGE = Path(__file__).parents[2] / "docs/language.md"


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(run, "_SESSION", Session())
    result = doctest.testfile(
        str(PAGE), module_relative=False, optionflags=doctest.ELLIPSIS
    )
    assert result.attempted > 10
    assert result.failed == 0


def test_the_stored_model_is_one() -> None:
    page = PAGE.read_text()
    start = page.index("    mlopt linear model")
    text = page[start : page.index("    end\n") + 8].replace("\n    ", "\n").lstrip()
    assert dumps(loads(text)) == text
