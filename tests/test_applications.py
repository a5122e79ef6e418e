"""The applications run without their data, are right with them, and draw what they say."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from PIL import Image
from tests.test_examples import EXAMPLES, load

DATA = Path(os.environ.get("MLOPT_DATA", EXAMPLES.parents[1] / "shared/data"))
LEAST = {"sentiment": 0.95, "speech": 0.97, "patches": 0.97}
"""Accuracies on what comes with the packages; what always answers the most frequent class
would reach .79, .1 and .1."""
ON_REAL_DATA = {"sentiment": 0.86, "speech": 0.94, "patches": 0.94}
"""On a cut of the data."""
FOLDERS = {"sentiment": "imdb", "speech": "isolet_part", "patches": "usps"}

pytestmark = pytest.mark.slow


def drawn(path: Path) -> bool:
    """Whether a picture shows something: many shades, not one."""
    with Image.open(path) as image:
        return len(np.unique(np.asarray(image.convert("L")))) > 50


@pytest.mark.parametrize("name", sorted(LEAST))
def test_an_application_runs_on_any_machine(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accuracy = load(name).main(["--data", str(tmp_path), "--output", str(tmp_path)])
    text = capsys.readouterr().out

    assert text.startswith("fit Pipeline")
    assert accuracy >= LEAST[name]
    assert f"accuracy {accuracy:.4f}" in text
    assert drawn(tmp_path / f"{name}.png")


@pytest.mark.parametrize("name", sorted(FOLDERS))
def test_an_application_is_right_on_a_cut_of_its_data(name: str, tmp_path: Path) -> None:
    if not (DATA / FOLDERS[name]).is_dir():
        pytest.skip(f"there is no {DATA / FOLDERS[name]}")
    accuracy = load(name).main(["--data", str(DATA), "--output", str(tmp_path)])
    assert accuracy >= ON_REAL_DATA[name]


def written_reviews(folder: Path, rows: int) -> ModuleType:
    rng = np.random.default_rng(0)
    for part in ("train", "test"):
        lines = []
        for number in range(rows):
            words = [*rng.choice(list("abcdefgh"), 12), ("fine", "dull")[number % 2]]
            text = " ".join(f"{word}{word}" for word in rng.permutation(words))
            record = {"id": number, "label": 1 - number % 2, "text": text}
            lines.append(json.dumps(record))
        path = folder / "imdb" / f"imdb_{part}.jsonl.gz"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return load("sentiment")


def test_reviews_are_cut_at_random_unless_all_are_wanted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    example = written_reviews(tmp_path, 300)
    monkeypatch.setattr(example, "CUT", 200)
    arguments = ["--data", str(tmp_path), "--output", str(tmp_path)]

    assert example.main(arguments) == 1.0
    assert "200 texts learnt from and 200 judged" in capsys.readouterr().out
    assert example.main([*arguments, "--all"]) == 1.0
    assert "300 texts learnt from and 300 judged" in capsys.readouterr().out


def test_the_words_that_matter_are_those_drawn(tmp_path: Path) -> None:
    example = written_reviews(tmp_path, 300)
    Xa, ya, _, _ = example.reviews(tmp_path, None)
    figure = example.picture(example.pipeline().fit(Xa, ya), ("bad", "good"))
    words = [label.get_text() for label in figure.axes[0].get_yticklabels()]

    assert words[0] == "dulldull"
    assert words[-1] == "finefine"
