"""Models of earlier queries: what was planned once is found again by its content.

A model is found for the same training rows, target and settings, and the same versions of
mlopt and scikit-learn; never by the name of a table. Each has a folder, which is the output
of its sweep: ``mlopt predict``, ``mlopt serve`` and `mlopt.load` take it.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec
from filelock import FileLock

from mlopt.errors import InputError, did_you_mean
from mlopt.options import state_folder
from mlopt.sweep.models import MODEL
from mlopt.sweep.outputs import RESULT
from mlopt.writing import check_writable, write_files

ENTRY = "query.json"
PACKAGES = ("mlopt", "scikit-learn")


@dataclass(frozen=True)
class Entry:
    """A model of the catalogue.

    Parameters
    ----------
    name : str
        Of its folder: the target, and what the content comes to.
    clause : str
        As it was asked for.
    created : float
        Seconds since the epoch.
    versions : dict of str to str
        Of the packages that it was learnt with.
    """

    name: str
    clause: str
    created: float
    versions: dict[str, str]

    @property
    def current(self) -> bool:
        """Whether queries of these versions can find it."""
        return self.versions == versions()


class Catalogue:
    """The folder of all models.

    Parameters
    ----------
    folder : path, optional
        [default: MLOPT_CATALOGUE, or one in the user's home]

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> Catalogue(mkdtemp()).entries()
    []
    """

    def __init__(self, folder: Path | str | None = None) -> None:
        self.folder = state_folder("catalogue", folder or os.environ.get("MLOPT_CATALOGUE"))

    def entries(self) -> list[Entry]:
        """All models, the newest first."""
        found = (self._entry(path) for path in self.folder.glob(f"*/{ENTRY}"))
        return sorted((one for one in found if one), key=lambda one: -one.created)

    def path(self, name: str) -> Path:
        """The folder of a model, by its name or a beginning of it that no other has.

        Raises
        ------
        InputError
            There is none, or more than one.
        """
        names = [entry.name for entry in self.entries()]
        fits = [one for one in names if one == name] or [
            one for one in names if name and one.startswith(name)
        ]
        if len(fits) == 1:
            return self.folder / fits[0]
        if fits:
            raise InputError(f"{name!r} begins the names of several: {', '.join(fits)}.")
        known = f" Models: {', '.join(names[:20])}." if names else " It has no models."
        raise InputError(
            f"The catalogue has no model {name!r}.{did_you_mean(name, names)}{known}"
        )

    def place(self, target: str, key: str) -> Path:
        """The folder of a model, there or yet to be made."""
        safe = "".join(sign if sign.isalnum() else "_" for sign in target)[:40]
        return self.folder / f"{safe}-{key}"

    @contextmanager
    def filling(self, path: Path) -> Iterator[None]:
        """Nobody else fills the folder of a model meanwhile."""
        check_writable(self.folder, "catalogue")
        self.folder.mkdir(parents=True, exist_ok=True)
        with FileLock(self.folder / f".{path.name.rpartition('-')[2]}.lock"):
            yield

    def use(self, path: Path) -> bool:
        """Whether a model is there whole; it is used now."""
        whole = self._entry(path / ENTRY) is not None
        if whole:
            with suppress(OSError):  # a catalogue that may only be read
                (path / ENTRY).touch()
        return whole

    def keep(self, path: Path, clause: str) -> None:
        """Say that the model in a folder is whole."""
        entry = Entry(path.name, clause, time.time(), versions())
        write_files({path / ENTRY: msgspec.json.encode(entry)})

    def result(self, entry: Entry) -> dict[str, Any]:
        """What its sweep says of itself: ``best_score``, ``scoring``, ``seconds``, ..."""
        found: dict[str, Any] = json.loads((self.folder / entry.name / RESULT).read_text())
        return found

    def drop(self, name: str) -> str:
        """Remove a model; its whole name."""
        path = self.path(name)
        shutil.rmtree(path)
        return path.name

    def prune(self, unused: float | None = None) -> list[str]:
        """Remove what no query can find: models of other versions, sweeps that never ended.

        Parameters
        ----------
        unused : float, optional
            Also those that no query has used for so many seconds.

        Returns
        -------
        list of str
            What is gone.
        """
        gone = []
        for lock in self.folder.glob(".*.lock"):
            key = lock.name[1 : -len(".lock")]
            # Whoever plans it now holds the lock.
            with suppress(TimeoutError), FileLock(lock, timeout=0):
                for path in self.folder.glob(f"*-{key}"):
                    if not self._is_kept(path / ENTRY, unused):
                        shutil.rmtree(path)
                        gone.append(path.name)
        return sorted(gone)

    def _is_kept(self, path: Path, unused: float | None) -> bool:
        entry = self._entry(path)
        if entry is None or not entry.current:
            return False
        return unused is None or time.time() - path.stat().st_mtime <= unused

    def _entry(self, path: Path) -> Entry | None:
        with suppress(OSError, ValueError):  # damaged, or not whole
            if (path.parent / MODEL).is_file():
                json.loads((path.parent / RESULT).read_bytes())
                return msgspec.json.decode(path.read_bytes(), type=Entry)
        return None


def versions() -> dict[str, str]:
    """Of the packages that a model depends on."""
    return {name: version(name) for name in PACKAGES}
