"""The database behind a stored study: its address, its locks, and rows that follow trials.

Optuna's own `RDBStorage` makes one transaction of every attribute; 64 trials and 3 rungs
cost it seconds. Here a rung is one transaction on the same tables, so that Optuna's
dashboard and command line read the study as any other.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import sqlalchemy
from filelock import FileLock
from optuna.distributions import distribution_to_json
from optuna.storages import RDBStorage

# Optuna has no public name for its tables; their layout is checked at opening.
from optuna.storages._rdb import models
from optuna.trial import FrozenTrial, TrialState
from sqlalchemy import orm

from mlopt.errors import StudyError

SECONDS_TO_WAIT_FOR_A_LOCK = 60
"""Other searches write to the file in milliseconds; one that copies it may take longer."""


def address(storage: Any) -> sqlalchemy.URL:
    """The database that ``storage`` names: a URL, or the path of an SQLite file.

    An `optuna.storages.RDBStorage`, also as a study keeps it, names its own.

    Raises
    ------
    StudyError
        It is none of these, keeps nothing, or its folder does not exist.
    """
    # Optuna wraps a storage that it is given into one with a cache
    inner = getattr(storage, "_backend", None)
    storage = inner if isinstance(inner, RDBStorage) else storage
    if not isinstance(storage, str | Path | RDBStorage):
        raise StudyError(
            "`storage` must be a path, a database URL or an optuna RDBStorage, got "
            f"{type(storage).__name__}. Give e.g. sqlite:///study.db."
        )
    text = storage.url if isinstance(storage, RDBStorage) else str(storage)
    if "://" not in text:
        return _file(sqlalchemy.URL.create("sqlite", database=str(Path(text).expanduser())))
    try:
        url = sqlalchemy.make_url(text)
    except (sqlalchemy.exc.ArgumentError, ValueError):
        # not shown: it may hold a password
        raise StudyError(
            "`storage` must be a path or a URL such as sqlite:///study.db or "
            "postgresql://user:password@host/name; what was given cannot be read as one."
        ) from None
    return _file(url) if is_sqlite(url) else url


def _file(url: sqlalchemy.URL) -> sqlalchemy.URL:
    if url.database in (None, "", ":memory:"):
        raise StudyError(
            f"`storage` must outlive the process, and {shown(url)} is in memory. "
            "Name a file, e.g. sqlite:///study.db, or leave `storage` out."
        )
    folder = Path(url.database).absolute().parent
    if not folder.is_dir():
        raise StudyError(f"The folder of the study must exist, and {folder} does not.")
    return url


def is_sqlite(url: sqlalchemy.URL) -> bool:
    """Whether the database is a file."""
    return url.get_backend_name() == "sqlite"


def shown(url: sqlalchemy.URL) -> str:
    """The address without its secrets, for messages."""
    return url.set(query={}).render_as_string(hide_password=True)


def lock(url: sqlalchemy.URL, what: str = "") -> FileLock:
    """A lock on the database, or on ``what`` in it, for the processes of this host.

    The operating system frees it when its process dies.
    """
    if is_sqlite(url) and url.database is not None:
        path = Path(url.database).absolute()
        folder, name = path.parent, path.name
    else:
        folder = Path(tempfile.gettempdir())
        name = f"mlopt-{getpass.getuser()}-{_digest(shown(url))}"
    part = f".{_digest(what)}" if what else ""
    return FileLock(folder / f".{name}{part}.lock", thread_local=False)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def connect(url: sqlalchemy.URL) -> RDBStorage:
    """Optuna's storage there, its tables made if there are none.

    Only one process may make the tables at a time: call it under `lock`.
    """
    # Optuna formats the address, so braces in a path must be doubled
    text = url.render_as_string(hide_password=False).replace("{", "{{").replace("}", "}}")
    if not is_sqlite(url):
        return RDBStorage(text)
    wait = {"timeout": SECONDS_TO_WAIT_FOR_A_LOCK}
    storage = RDBStorage(text, engine_kwargs={"connect_args": wait})
    sqlalchemy.event.listen(storage.engine, "connect", _fast_and_safe)
    storage.engine.dispose()  # connections made before know nothing of it
    return storage


def _fast_and_safe(connection: Any, record: Any) -> None:
    """Readers do not block the writer, and a killed process loses no finished write."""
    del record
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")


def save(engine: sqlalchemy.Engine, study_id: int, trials: Iterable[FrozenTrial]) -> None:
    """Bring the rows of ``trials`` up to date, in one transaction.

    Trials that are finished in the database stay as they are, but for those that were
    pruned there and went on.
    """
    wanted = {trial.number: trial for trial in trials}
    with orm.Session(engine) as session, session.begin():
        rows = {row.number: row for row in session.scalars(_rows(study_id, wanted))}
        for number in sorted(wanted):
            row = rows.get(number)
            if row is None:
                row = _row(study_id, wanted[number])
                session.add(row)
            elif row.state.is_finished() and not _went_on(row, wanted[number]):
                continue
            _update(row, wanted[number])


def _went_on(row: Any, trial: FrozenTrial) -> bool:
    """Whether a trial that was pruned has more rungs now: there was more budget."""
    pruned = row.state is TrialState.PRUNED
    return pruned and len(trial.intermediate_values) > len(row.intermediate_values)


def release(engine: sqlalchemy.Engine, study_id: int) -> None:
    """Trials in training become waiting ones; call it when nobody can be training them."""
    model = models.TrialModel
    with orm.Session(engine) as session, session.begin():
        session.execute(
            sqlalchemy.update(model)
            .where(model.study_id == study_id, model.state == TrialState.RUNNING)
            .values(state=TrialState.WAITING)
        )


def _rows(study_id: int, numbers: Iterable[int]) -> Any:
    model = models.TrialModel
    return (
        sqlalchemy.select(model)
        .where(model.study_id == study_id, model.number.in_(list(numbers)))
        .options(
            orm.selectinload(model.user_attributes),
            orm.selectinload(model.intermediate_values),
            orm.selectinload(model.values),
        )
    )


def _row(study_id: int, trial: FrozenTrial) -> Any:
    """A new row with what never changes of a trial: its number and its parameters."""
    row = models.TrialModel(study_id=study_id, number=trial.number)
    for name, value in trial.params.items():
        distribution = trial.distributions[name]
        row.params.append(
            models.TrialParamModel(
                param_name=name,
                param_value=distribution.to_internal_repr(value),
                distribution_json=distribution_to_json(distribution),
            )
        )
    return row


def _update(row: Any, trial: FrozenTrial) -> None:
    row.state = trial.state
    row.datetime_start = trial.datetime_start
    row.datetime_complete = trial.datetime_complete
    _set_attributes(row, trial.user_attrs)
    _set_intermediate_values(row, trial.intermediate_values)
    if trial.value is not None:
        value, kind = models.TrialValueModel.value_to_stored_repr(trial.value)
        if not row.values:
            row.values.append(models.TrialValueModel(objective=0))
        row.values[0].value, row.values[0].value_type = value, kind


def _set_attributes(row: Any, attributes: dict[str, Any]) -> None:
    there = {attribute.key: attribute for attribute in row.user_attributes}
    for key, value in attributes.items():
        text = json.dumps(value)
        if key not in there:
            row.user_attributes.append(
                models.TrialUserAttributeModel(key=key, value_json=text)
            )
        elif there[key].value_json != text:
            there[key].value_json = text


def _set_intermediate_values(row: Any, values: dict[int, float]) -> None:
    model = models.TrialIntermediateValueModel
    there = {value.step: value for value in row.intermediate_values}
    for step, score in values.items():
        value, kind = model.intermediate_value_to_stored_repr(score)
        if step not in there:
            there[step] = model(step=step)
            row.intermediate_values.append(there[step])
        there[step].intermediate_value = value
        there[step].intermediate_value_type = kind
