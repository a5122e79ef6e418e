"""The examples of docs/sql.md run, and give what it says."""

from __future__ import annotations

import doctest
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/sql.md"


def test_the_examples_run() -> None:
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 4
    assert result.failed == 0
