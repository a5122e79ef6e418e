"""Files that are complete or not there: an old one stays until the new one is."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

Write = Callable[[BinaryIO], Any]


def write_files(files: Mapping[Path, bytes | Write]) -> None:
    """Write each file beside its place, then move all of them there.

    Parameters
    ----------
    files : mapping of Path to bytes or callable
        What is in the file, or what writes it into the open file: nothing of a large one
        need be in memory twice.

    Raises
    ------
    OSError
        When the disk is full or the folder read-only; old files are then as they were.
    """
    staged: dict[Path, Path] = {}
    try:
        for path, content in files.items():
            staged[path] = path.with_name(f".{path.name}.{uuid4().hex[:8]}")
            with staged[path].open("wb") as file:
                if callable(content):
                    content(file)
                else:
                    file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for path, ready in staged.items():
            ready.replace(path)
    finally:
        for ready in staged.values():
            ready.unlink(missing_ok=True)
