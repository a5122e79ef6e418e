"""Which digit is on each picture? Many folders at once: open, gather, predict, write.

The pictures are PNG files, a folder for each day; what learns is the pipeline of
`patches.py`, on digits of envelopes from the folder ``usps`` of ``--data``, or without it
on scikit-learn's. A request is a folder, a feed a picture; 32 pictures go into one call of
the model, and a folder's answers into one CSV file. A picture that cannot be read fails
its folder alone, by name. Needs the extras ``demo`` and ``images``. Run with::

    python examples/pictures.py --output demo
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import mlopt

spec = importlib.util.spec_from_file_location(
    "patches", Path(__file__).with_name("patches.py")
)
patches = importlib.util.module_from_spec(spec)
spec.loader.exec_module(patches)

TOGETHER = 32
"""Pictures in one call of the model: one alone takes five times its share of these."""


def draw(folder: Path, X: Any, y: Any, days: int) -> list[Path]:
    """Images of -1 ... 1 as grey PNG files, named by number and digit."""
    shutil.rmtree(folder, ignore_errors=True)
    folders = [folder / f"day{day:02d}" for day in range(days)]
    for one in folders:
        one.mkdir(parents=True)
    for number, (image, digit) in enumerate(zip(X, y, strict=True)):
        grey = Image.fromarray(np.uint8(np.round(127.5 * (np.asarray(image) + 1))))
        grey.save(folders[number % days] / f"{number:05d}-{digit}.png")
    return folders


def opened(path: Path) -> tuple[str, np.ndarray]:
    """A picture as the model knows them."""
    with Image.open(path) as image:
        return path.name, np.asarray(image, np.float32) / 127.5 - 1


def stream_of(model: Any, output: Path, **given: Any) -> mlopt.Stream:
    """From folders of pictures to files of predictions; ``given`` is for `Stream`."""

    def predict(pictures: list[tuple[str, np.ndarray]]) -> list[tuple[str, int]]:
        names, images = zip(*pictures, strict=True)
        return list(zip(names, map(int, model.predict(np.stack(images))), strict=True))

    def write(feeds: Any) -> tuple[Path, int, int]:
        folder, rows = feeds.request[0].parent, [row for part in feeds for row in part]
        path = output / f"{folder.name}.csv"
        lines = [f"{name},{digit}\n" for name, digit in rows]
        path.write_text("file,digit\n" + "".join(lines))
        right = sum(name.endswith(f"-{digit}.png") for name, digit in rows)
        return path, len(rows), right

    stream = mlopt.Stream(**given).map(opened, name="open")
    return stream.aggregate(TOGETHER).map(predict).gather(write)


def main(arguments: Sequence[str] | None = None) -> float:
    """Learn, draw folders of pictures, predict them; returns the accuracy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=patches.DATA)
    parser.add_argument("--days", type=int, default=8, help="folders")
    parser.add_argument("--pictures", type=int, default=800)
    parser.add_argument("--output", type=Path, default=Path("demo"))
    given = parser.parse_args(arguments)
    if (given.data / "usps").is_dir():
        model = patches.pipeline()
        Xa, ya = (part[: patches.CUT] for part in patches.envelopes(given.data, "train"))
        Xb, yb = patches.envelopes(given.data, "test")
    else:
        model = patches.pipeline(64, 4)
        Xa, ya, Xb, yb = patches.small_digits()
    model.fit(Xa, ya)
    folder = given.output / "pictures"
    folders = draw(folder, Xb[: given.pictures], yb[: given.pictures], given.days)

    stream = stream_of(model, folder)
    rows = right = 0
    requests = (sorted(one.glob("*.png")) for one in folders)
    for path, count, well in stream.run(requests):
        print(f"{path}: {count} pictures")
        rows, right = rows + count, right + well
    print(stream.explain())
    print(f"\n{rows:,} pictures in {len(folders)} folders, accuracy {right / rows:.4f}")
    return right / rows


if __name__ == "__main__":
    main()
