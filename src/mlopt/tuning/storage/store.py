"""A copy of the study that outlives the process, written behind the search.

What ended is written at once, in a thread while others train: one transaction for trials
that end together. A process that is killed loses what was in training and at most one such
write; the same call again finds the rest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Self

from optuna.trial import FrozenTrial

from mlopt.tuning.storage.fingerprint import Fingerprint
from mlopt.tuning.storage.records import Recorded

LONGEST_WAIT = 600.0
"""Seconds to wait for who is at a study, where nothing else limits that."""


class Store(ABC):
    """Where trials are remembered.

    Laws: after `write` and `flush`, another process finds the trials with `recorded`;
    writing a trial twice is writing it once; a finished trial never changes, unless it was
    pruned and went on.

    Attributes
    ----------
    keeps : bool
        False: there is no point in writing.
    told : str
        A sentence on what was found at opening; empty when that was nothing.
    """

    keeps = True
    told = ""

    @abstractmethod
    def recorded(self) -> list[Recorded]:
        """The trials found at opening, by number."""

    @abstractmethod
    def write(self, trials: Iterable[FrozenTrial]) -> None:
        """Begin to write what changed; raises what went wrong with the write before.

        Waits for the write before, so that no more than one can be lost.
        """

    @abstractmethod
    def flush(self) -> None:
        """Wait until everything is written."""

    @abstractmethod
    def close(self) -> None:
        """Write everything and let others open the study; may be called twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class NullStore(Store):
    """Remembers nothing."""

    keeps = False

    def recorded(self) -> list[Recorded]:
        return []

    def write(self, trials: Iterable[FrozenTrial]) -> None:
        del trials

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


def open_store(
    storage: Any,
    study_name: str = "mlopt",
    fingerprint: Fingerprint | None = None,
    *,
    wait: float = LONGEST_WAIT,
) -> Store:
    """Open a stored study, or make it.

    Parameters
    ----------
    storage : str, Path, optuna.storages.RDBStorage or None
        A database URL as Optuna takes it, the path of an SQLite file, or Optuna's own
        storage of one. None remembers nothing.
    study_name : str, default="mlopt"
    fingerprint : mapping of str to str or None, optional
        What must be the same whenever the study goes on: the data, the space, the metric;
        see `mlopt.tuning.storage.fingerprint`.
    wait : float, default=600
        Seconds to wait for another process of this host that is at the same study. When it
        is done, its trials are found here.

    Raises
    ------
    StudyError
        The storage cannot be opened, is in use for longer than ``wait``, or the study there
        is that of another search.
    """
    if storage is None:
        return NullStore()
    # a search without a storage need not load a database library
    from mlopt.tuning.storage.database_store import open_database

    return open_database(storage, study_name, dict(fingerprint or {}), wait)
