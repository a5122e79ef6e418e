"""The examples of docs/declaring.md run, and the last is refuted as it says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlopt.errors import InputError
from mlopt.pipeline.fits import registry

PAGE = Path(__file__).parents[2] / "docs/declaring.md"


@pytest.fixture(autouse=True)
def _nothing_registered() -> Iterator[None]:
    before = dict(registry.RECORDS)
    yield
    registry.RECORDS.clear()
    registry.RECORDS.update(before)


def test_the_examples_of_the_page_run() -> None:
    *examples, refuted = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    names: dict[str, Any] = {"__name__": "page"}
    for example in examples:
        exec(example, names)
    said = r"`centred` is declared row-wise, .* and by itself \[0. 0. 0. 0.\]"
    with pytest.raises(InputError, match=said):
        exec(refuted, names)
