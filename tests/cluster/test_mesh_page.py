"""What the page about meshes, and the class it shows, say is so."""

from __future__ import annotations

import doctest
from pathlib import Path

from mlopt.cluster import mesh_here

PAGE = Path(__file__).parents[2] / "docs" / "mesh.md"


def test_the_examples_are_true() -> None:
    page = doctest.testfile(str(PAGE), module_relative=False)
    assert page.attempted > 0
    assert page.failed == 0
    of_class = doctest.testmod(mesh_here)
    assert of_class.attempted > 0
    assert of_class.failed == 0
