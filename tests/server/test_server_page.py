"""What the page about servers, and the class it shows, say is so."""

from __future__ import annotations

import doctest
from pathlib import Path

from mlopt.server import job

PAGE = Path(__file__).parents[2] / "docs" / "server.md"


def test_the_examples_are_true() -> None:
    for found in (doctest.testfile(str(PAGE), module_relative=False), doctest.testmod(job)):
        assert found.attempted > 0
        assert found.failed == 0
