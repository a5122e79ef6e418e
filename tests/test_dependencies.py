"""What is imported is declared, what is declared is imported, and the oldest are tested."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

MODULES = {
    "scikit-learn": "sklearn",
    "pillow": "PIL",
}
"""Modules of packages that have another name."""

THROUGH = {"httptools", "cmaes"}
"""Packages that another one imports where they are installed: uvicorn, Optuna."""

PRIVATE = {"sklearn": "scikit-learn", "optuna": "optuna", "dask": "dask"}
"""Packages of which private names are used: a new version may not have them."""


def declared(*extras: str) -> dict[str, str]:
    """Specifiers by package, with those of some extras."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lists = [project["dependencies"]]
    lists += [project["optional-dependencies"][extra] for extra in extras]
    found = {}
    for requirement in (one for some in lists for one in some):
        match = re.fullmatch(r"([\w.-]+)(?:\[.*\])?(.*)", requirement)
        assert match is not None
        found[match[1].lower()] = match[2]
    return found


def imported() -> set[str]:
    """Top-level modules that src imports, wherever in a file."""
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.add(node.module.partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"mlopt"}


@pytest.mark.slow
def test_what_is_imported_is_declared_and_nothing_else() -> None:
    packages = declared("images", "polars", "serve", "sql")
    assert imported() == {MODULES.get(name, name) for name in {*packages} - THROUGH}


@pytest.mark.parametrize("module", PRIVATE)
def test_a_package_whose_private_names_are_used_has_an_upper_bound(module: str) -> None:
    assert "<" in declared()[PRIVATE[module]]


def test_the_lower_bounds_are_those_that_are_tested() -> None:
    lines = (ROOT / "constraints-oldest.txt").read_text().splitlines()
    tested = dict(line.lower().split("==") for line in lines if line[:1] not in {"#", ""})
    for package, specifier in declared("polars", "serve").items():
        match = re.match(r">=([\d.]+)", specifier)
        assert match is not None, package
        bound, version = match[1].split("."), tested[package].split(".")
        assert version[: len(bound)] == bound, package
