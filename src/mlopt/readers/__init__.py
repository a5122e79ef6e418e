"""Data from files: tables (CSV and its kin, Parquet, LIBSVM, ``.npz``, and scikit-learn's
own), images (IDX, or a folder a class), texts (JSON lines) and sounds (WAV).
"""

from __future__ import annotations

from pathlib import Path

from mlopt.errors import InputError, did_you_mean
from mlopt.readers.documents import read_jsonl
from mlopt.readers.files import File
from mlopt.readers.idx import read_idx, read_idx_pair
from mlopt.readers.pictures import read_images
from mlopt.readers.sounds import read_sounds, read_wav
from mlopt.readers.table import UNKNOWN, Known, Table, column, table_of

__all__ = [
    "Table",
    "check_table",
    "read_idx",
    "read_idx_pair",
    "read_images",
    "read_jsonl",
    "read_sounds",
    "read_table",
    "read_wav",
]

BUNDLED = "sklearn:"
_NAMES = ("iris", "digits", "wine", "breast_cancer", "diabetes")
"""The data sets that come with scikit-learn."""


def read_table(
    path: str | Path,
    *,
    target: str | int | None = None,
    columns: int | None = None,
    numbered_from: int | None = None,
    known: Known = UNKNOWN,
) -> Table:
    """Read a data set, whatever its format: looks at what is in it, not at its name.

    Parameters
    ----------
    path : str or Path
        A file, as it is or compressed (``.gz``, ``.bz2``, ``.xz``, ``.zip``); or
        ``sklearn:NAME`` for iris, digits, wine, breast_cancer or diabetes.
    target : str or int, optional
        The column to predict: its name, its number (from 0; -1 counts from the end), or
        "last". Without one, ``y`` is None where the format does not set it apart.
    columns : int, optional
        Features of a LIBSVM file, when its rows may lack the last ones.
    numbered_from : {0, 1}, optional
        The number of its first column, when its rows may lack that one.
    known : Known, optional
        Of a text, what a model has learnt of such.

    Returns
    -------
    Table

    Raises
    ------
    InputError
        When the file is not there, cannot be read, is empty, is larger than memory allows,
        or has no such column.
    """
    name = str(path)
    if name.startswith(BUNDLED):
        return _read_bundled(name.removeprefix(BUNDLED), target)
    file = File.at(name)
    if file.is_parquet:
        from mlopt.readers.binary import read_parquet

        return read_parquet(file, target)
    if file.is_numpy:
        from mlopt.readers.binary import read_npz

        return read_npz(file, target)
    from mlopt.readers import delimited, libsvm

    if libsvm.looks_like(file):
        return libsvm.read(file, target, columns, numbered_from)
    return delimited.read(file, target, known)


def check_table(path: str, target: str | None = None) -> list[str] | None:
    """Refuse what `read_table` would, as far as the beginning of the file tells.

    Parameters
    ----------
    path : str
    target : str, optional
        Looked for in the header of a plain table; other formats are not opened for it.

    Returns
    -------
    list of str or None
        The columns of a plain table; None of another format.

    Raises
    ------
    InputError
    """
    if path.startswith(BUNDLED):
        return None
    file = File.at(path)
    if file.is_parquet or file.is_numpy:
        return None
    from mlopt.readers import libsvm
    from mlopt.readers.layout import layout_of

    if libsvm.looks_like(file):
        return None
    names = list(layout_of(file).names)
    if target is not None:
        column(names, target, path)
    return names


def _read_bundled(name: str, target: str | int | None) -> Table:
    """One of `_NAMES`; the target is its own unless another column is named."""
    if name not in _NAMES:
        raise InputError(
            f"`sklearn:{name}` names no data set.{did_you_mean(name, _NAMES)} Those here: "
            f"{', '.join(_NAMES)}."
        )
    from sklearn import datasets

    frame = getattr(datasets, f"load_{name}")(as_frame=True).frame
    return table_of(frame, "target" if target is None else target, f"sklearn:{name}")
