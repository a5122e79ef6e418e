"""What CONTRIBUTING says of files is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text()
FILES = sorted(set(re.findall(r"`([\w/]+/[\w/]*(?:\.\w+)?)`", PAGE)))


@pytest.mark.parametrize("name", FILES)
def test_every_file_and_folder_that_is_named_is_there(name: str) -> None:
    places = [ROOT, *(ROOT / "src/mlopt" / room for room in ("", "tuning", "pipeline"))]
    places.append(ROOT / "tests/pipeline/fits")
    assert any((place / name).exists() for place in places)


@pytest.mark.parametrize(
    ("table", "where"),
    re.findall(r"`([A-Z_]{4,})`[^`]{0,40}?`((?:\w+/)+\w+\.py)`", PAGE),
)
def test_every_table_is_where_it_is_said_to_be(table: str, where: str) -> None:
    found = [path for path in (ROOT / where, ROOT / "src/mlopt" / where) if path.exists()]
    assert re.search(rf"^{table}\b", found[0].read_text(), re.MULTILINE)


def test_files_of_the_source_have_500_lines_at_most() -> None:
    sizes = {
        path.name: len(path.read_text().splitlines()) for path in ROOT.glob("src/**/*.py")
    }
    assert {name: size for name, size in sizes.items() if size > 500} == {}
