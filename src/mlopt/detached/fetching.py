"""Results of a job on their way to where somebody wants them."""

from __future__ import annotations

import shutil
from pathlib import Path

from mlopt.writing import check_free, finish_files


def copied(found: Path, place: Path) -> Path:
    """Copy a file, or a folder, to a place, or into a folder that is there.

    Raises
    ------
    InputError
        Something that is there would be replaced.
    """
    if not found.is_dir():
        target = place / found.name if place.is_dir() else place
        check_free([target])
        return Path(shutil.copyfile(found, target))
    finish_files(found)
    files = (one for one in found.rglob("*") if not one.is_dir())
    check_free([] if place.is_dir() else [place])
    check_free(place / one.relative_to(found) for one in files)
    return Path(shutil.copytree(found, place, dirs_exist_ok=True))
