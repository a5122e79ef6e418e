"""What a job does, as a value that a file holds: what every kind has in common.

Each says what it would be refused for on a worker that is to run it, and runs there what
the local command runs.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from mlopt import events
from mlopt.caching.disk import Disk
from mlopt.errors import ConfigError, InputError, masked
from mlopt.readers import BUNDLED
from mlopt.settings import stem_of

GIVEN, RETURNED, STATE = "given", "returned", "state"
"""What a job from Python keeps: its arguments, what its call returned, how far it was."""


class Outcome(msgspec.Struct, frozen=True):
    """What came of a job.

    Parameters
    ----------
    result : dict
        Plain values, as of ``--json``.
    text : str
        What the local command prints.
    output : str, optional
        The file or folder with results.
    complete : bool
        False where a part of it failed: the local command would end with status 1.
    """

    result: dict[str, Any] = {}
    text: str = ""
    output: str | None = None
    complete: bool = True


@dataclass(frozen=True)
class Place:
    """Where a job runs.

    Parameters
    ----------
    client : distributed.Client
        Of the pool.
    threads : int
        Of the worker: what runs beside the pool's calls may use as many.
    output : Path
        For results without another place.
    study : str
        Storage of a search that names none.
    kept : Disk
    spent : float
        Seconds of earlier attempts: a limit on time is one on all of them.
    observer : callable
        Hears every event.
    """

    client: Any
    threads: int
    output: Path
    study: str
    kept: Disk
    spent: float
    observer: events.Observer

    def remembers(self, storage: Any) -> Any:
        """The storage of a search: its own, else this machine's OPTUNA_STORAGE, else one of
        the job's."""
        return storage or os.environ.get("OPTUNA_STORAGE") or self.study

    def left(self, timeout: float | None) -> float | None:
        """What is left of a limit on time."""
        return None if timeout is None else max(1.0, timeout - self.spent)


class Work(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """What a job does. Paths are absolute: workers have folders of their own."""

    @property
    def title(self) -> str:
        """What people call it."""
        raise NotImplementedError

    @property
    def limits(self) -> tuple[float | None, int | None]:
        """Seconds and trials, for the bar of whoever follows."""
        return None, None

    def check(self) -> None:
        """On a worker: refuse what it could not read or write.

        Raises
        ------
        InputError
        """

    def run(self, place: Place) -> Outcome:
        """Do it; raises what the local call raises."""
        raise NotImplementedError


def check_storage(storage: Any) -> None:
    """Refuse a storage that would take a password into files and to workers.

    Raises
    ------
    ConfigError
    """
    plain = storage is None or isinstance(storage, Path | str)
    if plain and masked(str(storage)) == str(storage):
        return
    raise ConfigError(
        "The `storage` of a search that is submitted must be a path or an address without "
        "a password, as it goes into a file: set OPTUNA_STORAGE on the workers instead."
    )


def has_its_data(what: str) -> InputError:
    """That nothing can be given to what is submitted, which would not look at it."""
    return InputError(
        f"{what} says everything itself, also which data it has: leave X, y and parameters "
        "of `fit` out."
    )


def plain(value: Any) -> Any:
    """What JSON holds of a result."""
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=_shown))


def _shown(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else repr(value)


def made(folder: Path) -> Path:
    """The folder, which is there then."""
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def stem(path: str) -> str:
    """The name of a file as a name of a job may begin."""
    return lettered(stem_of(path)) or "data"


def lettered(title: str) -> str:
    """What is left of a title in letters that a name of a job may have, and so short that a
    number of six still fits."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", title).strip("-_")[:93]


def absolute(path: str) -> str:
    """A path as it is from anywhere on this machine; a bundled set as it is."""
    return path if path.startswith(BUNDLED) else str(Path(path).expanduser().absolute())
