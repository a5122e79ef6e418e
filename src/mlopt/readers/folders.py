"""A folder a class: files, and the name of the folder that each stands in."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np

from mlopt.errors import InputError


def labelled_files(
    folder: str | Path, suffixes: Collection[str]
) -> tuple[list[Path], np.ndarray]:
    """Files with one of ``suffixes``, and their labels, both in the order of the alphabet.

    Raises
    ------
    InputError
        When there is no such folder, or no such file in any of its folders.
    """
    where = Path(folder).expanduser()
    if not where.is_dir():
        raise InputError(f"`{folder}` must be a folder with a folder for each class.")
    found = [
        (file, inner.name)
        for inner in sorted(where.iterdir())
        if inner.is_dir()
        for file in sorted(inner.iterdir())
        if file.suffix.lower() in suffixes
    ]
    if not found:
        raise InputError(
            f"`{folder}` must have a folder for each class with files that end in "
            f"{sorted(suffixes)}, but has none."
        )
    return [file for file, _ in found], np.array([label for _, label in found])
