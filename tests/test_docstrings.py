"""The examples of docstrings run, and give what they say."""

from __future__ import annotations

import doctest
import re
from importlib import import_module
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src"
MODULES = sorted(
    ".".join(path.relative_to(SOURCE).with_suffix("").parts)
    for path in SOURCE.rglob("*.py")
    if re.search(r">>> (?!.*doctest: \+SKIP)", path.read_text())
)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    module = import_module(name.removesuffix(".__init__"))
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0
