"""The examples of docs/sweep.md run, and it has every key with its default."""

from __future__ import annotations

import doctest
import json
import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from mlopt.sweep.config import Config, Data, Family, Output, Search
from mlopt.sweep.strict import convert

PAGE = Path(__file__).parents[2] / "docs/sweep.md"


def test_the_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 8
    assert result.failed == 0
    folder = PAGE.read_text().partition("## The folder")[2].partition("## Going on")[0]
    made = {path.name for path in (tmp_path / "sweep-visits").iterdir()}
    named = set(re.findall(r"`([a-z]+\.[a-z]+)`", folder))
    assert {name for name in made if not name.startswith(".")} <= named


def test_the_file_is_one() -> None:
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    tree = tomllib.loads(text)
    assert tree["search"].pop("timeout") == "2m"
    assert set(convert(tree, Config, "").families) == {"linear", "forest"}


@pytest.mark.parametrize(
    ("title", "struct"),
    [
        ("[data]", Data),
        ("[search]", Search),
        ("[output]", Output),
        ("[families.NAME]", Family),
    ],
)
def test_every_key_is_there_with_its_default(title: str, struct: type) -> None:
    table = PAGE.read_text().partition(f"| `{title}` |")[2].partition("\n\n")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) *\|", table, re.MULTILINE))
    assert set(rows) == set(struct.__struct_fields__)  # type: ignore[attr-defined]
    built = msgspec.structs.asdict(struct())
    for key, said in rows.items():
        if said:
            value = None if said == "none" else json.loads(said)
            assert (list(built[key]) if value == [] else built[key]) == value, key
