"""What a job does: calls of the command line and of Python, as values that a file holds.

Each says what it would be refused for on a worker that is to run it, and runs there what
the local command runs.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from mlopt import events
from mlopt.caching.disk import Disk
from mlopt.errors import ConfigError, InputError, masked
from mlopt.readers import BUNDLED
from mlopt.readers.files import File
from mlopt.sweep.config import Config, override
from mlopt.writing import check_file, check_writable, write_files

GIVEN, RETURNED = "given", "returned"
"""What a job from Python keeps: its arguments, and what its call returned."""


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
        """What people call it, in letters that a name may have."""
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


class Sweep(Work, frozen=True, kw_only=True, tag="sweep"):
    """`mlopt sweep`."""

    config: Config
    families: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return _stem(self.config.data.path)

    @property
    def limits(self) -> tuple[float | None, int | None]:
        return self.config.search.timeout, self.config.search.n_trials

    def check(self) -> None:
        _check_config(self.config)
        if self.config.output.directory is not None:
            check_writable(Path(self.config.output.directory))

    def run(self, place: Place) -> Outcome:
        from mlopt.sweep.outputs import summary
        from mlopt.sweep.run import sweep

        search = self.config.search
        output = Path(self.config.output.directory or place.output)
        config = override(
            self.config,
            storage=place.remembers(search.storage),
            timeout=place.left(search.timeout),
        )
        found = sweep(
            config=config, output=output, families=self.families, observer=place.observer
        )
        return Outcome(plain(summary(found)), found.describe(output), str(output))


class Fit(Work, frozen=True, kw_only=True, tag="fit"):
    """`mlopt fit`."""

    config: Config
    family: str
    output: str | None = None

    @property
    def title(self) -> str:
        return f"{_stem(self.config.data.path)}-{self.family}"

    def check(self) -> None:
        _check_config(self.config)
        if self.output is not None:
            check_file(Path(self.output), [self.config.data.path, self.config.data.test])

    def run(self, place: Place) -> Outcome:
        from mlopt.sweep.fit import fit_one
        from mlopt.sweep.models import MODEL, dump_model

        config = override(self.config, n_jobs=self.config.search.n_jobs or place.threads)
        fitted = fit_one(config, self.family, place.observer)
        output = Path(self.output) if self.output else _made(place.output) / MODEL
        write_files({output: dump_model(fitted.model)})
        found = {"scoring": fitted.scoring, "test_score": fitted.score}
        return Outcome(plain(found), fitted.describe(output), str(output))


class Query(Work, frozen=True, kw_only=True, tag="query"):
    """`mlopt run`."""

    text: str
    output: str | None = None

    @property
    def title(self) -> str:
        return "query"

    def check(self) -> None:
        from mlopt.query.places import files_read

        for path in files_read(self.text):
            _check_readable(path)

    def run(self, place: Place) -> Outcome:
        from mlopt.cluster import pack
        from mlopt.query.printing import run_and_print

        said = io.StringIO()
        output = None if self.output is None else Path(self.output)
        value = run_and_print(self.text, output, said, said)
        place.kept.write(RETURNED, pack(value))
        return Outcome(text=said.getvalue().rstrip("\n"), output=self.output)


class Predict(Work, frozen=True, kw_only=True, tag="predict"):
    """`mlopt predict` of files."""

    model: str
    paths: tuple[str, ...]
    output: str
    memory: str | None = None
    proba: bool = False

    @property
    def title(self) -> str:
        return f"predict-{_stem(self.model)}"

    def check(self) -> None:
        from mlopt.scoring.files import files_of
        from mlopt.sweep.models import model_file

        _check_readable(str(model_file(Path(self.model))))
        for path in files_of(self.paths):
            if not path.exists():
                raise InputError(f"`{path}` does not exist.")
        check_writable(Path(self.output))

    def run(self, place: Place) -> Outcome:
        from mlopt.scoring.predict import predict

        found = predict(
            self.model, self.paths, output=self.output, memory=self.memory,
            proba=self.proba, client=place.client, observer=place.observer,
            tell=lambda text: place.observer(events.Message(0.0, text)),
        )  # fmt: skip
        result = {
            "files": len(found.rows),
            "rows": sum(found.rows.values()),
            "skipped": len(found.skipped),
            "failed": {str(path): reason for path, reason in found.failed.items()},
        }
        return Outcome(result, found.describe(), self.output, not found.failed)


class Call(Work, frozen=True, kw_only=True, tag="call"):
    """``estimator.fit(X, y)`` from Python; the estimator and what is no path are kept.

    Parameters
    ----------
    what : str
        The class of the estimator.
    path : str, optional
        Where X is, and y in the column ``target``.
    target : str, optional
    seconds, trials : optional
        Limits of a search.
    """

    what: str
    path: str | None = None
    target: str | None = None
    seconds: float | None = None
    trials: int | None = None

    @property
    def title(self) -> str:
        return self.what

    @property
    def limits(self) -> tuple[float | None, int | None]:
        return self.seconds, self.trials

    def check(self) -> None:
        if self.path is not None:
            _check_readable(self.path)

    def run(self, place: Place) -> Outcome:
        from mlopt.cluster import pack, unpack
        from mlopt.sweep.loading import from_file
        from mlopt.tuning.search import ModelSearchCV

        estimator, X, y, fit_params = unpack(place.kept.read(GIVEN))
        if self.path is not None:
            source = from_file(self.path, self.target)
            X, y = source.X, source.y
        if isinstance(estimator, ModelSearchCV):
            fitted = _searched(estimator, place, X, y, fit_params)
        else:
            fitted = estimator.fit(X, y, **fit_params)
        place.kept.write(RETURNED, pack(fitted))
        named = ("best_score_", "best_params_")
        found = {name.strip("_"): getattr(fitted, name, None) for name in named}
        plan = getattr(fitted, "plan_", None)
        return Outcome(plain(found), plan.explain() if plan is not None else "")


AnyWork = Sweep | Fit | Query | Predict | Call


def _searched(
    search: Any, place: Place, X: Any, y: Any, fit_params: Mapping[str, Any]
) -> Any:
    """A search, with a storage of the job's where it has none, told to who follows."""
    own = search.get_params(deep=False)

    def observe(event: events.Event) -> None:
        place.observer(event)
        (own["observer"] or events.ignore)(event)

    try:
        search.set_params(
            storage=place.remembers(own["storage"]),
            observer=observe,
            timeout=place.left(own["timeout"]),
        )
        return search.fit(X, y, **fit_params)
    finally:
        search.set_params(**{n: own[n] for n in ("storage", "observer", "timeout")})


def check_storage(storage: Any) -> None:
    """Refuse a storage that would take a password into files and to workers.

    Raises
    ------
    ConfigError
    """
    if storage is None or (
        isinstance(storage, Path | str) and "***" not in masked(str(storage))
    ):
        return
    raise ConfigError(
        "The `storage` of a search that is submitted must be a path or an address without "
        "a password, as it goes into a file: set OPTUNA_STORAGE on the workers instead."
    )


def plain(value: Any) -> Any:
    """What JSON holds of a result."""
    return msgspec.json.decode(msgspec.json.encode(value, enc_hook=_shown))


def _shown(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else repr(value)


def _check_config(config: Config) -> None:
    for path in (config.data.path, config.data.test):
        if path is not None:
            _check_readable(path)


def _check_readable(path: str) -> None:
    if not path.startswith(BUNDLED):
        File.at(path)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _stem(path: str) -> str:
    """The name of a file as a name of a job may begin."""
    name = path.partition(BUNDLED)[2] or Path(path).name.partition(".")[0]
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-_") or "data"


def named(paths: Sequence[str]) -> tuple[str, ...]:
    """Paths as they are from anywhere on this machine."""
    return tuple(absolute(path) for path in paths)


def absolute(path: str) -> str:
    """A path as it is from anywhere on this machine; a bundled set as it is."""
    return path if path.startswith(BUNDLED) else str(Path(path).expanduser().absolute())
