"""How much is in a file that may be packed: a small one may hold anything."""

from __future__ import annotations

import zipfile
from pathlib import Path

from mlopt.errors import InputError
from mlopt.readers.binary import value_bytes
from mlopt.readers.files import PARQUET, STREAMS, ZIP, File

_AT_ONCE = 1 << 16
"""Bytes that are unpacked at once to be counted."""


def bytes_of(path: Path, most: int) -> int:
    """Bytes of what is in a file; 0 where there is none.

    Of a compressed one no more is unpacked than tells that it has more than ``most``.
    """
    size = path.stat().st_size if path.exists() else 0
    if not 0 < size <= most:
        return size
    try:
        return max(size, _unpacked(path, most))
    except (InputError, OSError, zipfile.BadZipFile):
        return size  # whoever reads it says what is wrong


def _unpacked(path: Path, most: int) -> int:
    with path.open("rb") as raw:
        magic = raw.read(6)
        raw.seek(0)
        if magic.startswith(ZIP):  # which gives no more than it promises
            return sum(one.file_size for one in zipfile.ZipFile(raw).infolist())
        if magic.startswith(PARQUET):
            return _of_parquet(path)
    if not magic.startswith(STREAMS):
        return 0
    size = 0
    with File.at(str(path)).streamed() as stream:
        while size <= most and (part := len(stream.read(_AT_ONCE))):
            size += part
    return size


def _of_parquet(path: Path) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return value_bytes(pq.read_metadata(path))
    except pa.ArrowException:
        return 0
