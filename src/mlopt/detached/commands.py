"""`mlopt submit` and `mlopt jobs`: what is typed becomes a job, a job becomes lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from mlopt.cluster.connect import reached
from mlopt.detached.job import Job, current, error_of, job_of, jobs, submit
from mlopt.detached.kinds import Fit, Predict, Query, Sweep
from mlopt.detached.records import LOST, OPEN
from mlopt.detached.work import Work, absolute
from mlopt.errors import ConfigError
from mlopt.plan.units import format_seconds
from mlopt.query.parser import is_query
from mlopt.query.places import anywhere
from mlopt.settings import SETTINGS, Settings, check_fit, config_of
from mlopt.statuses import DONE, FAILED
from mlopt.writing import check_file

ACTIONS = ("list", "follow", "fetch", "cancel", "resume")


def work_of(
    source: str,
    files: Sequence[str],
    settings: Settings,
    *,
    family: str | None,
    output: str | None,
    proba: bool,
    memory: str | None,
) -> Work:
    """What a command line asks for: the same as `mlopt run`, `predict`, `fit` or `sweep`.

    Raises
    ------
    ConfigError, InputError
    """
    place = None if output is None else absolute(output)
    if files:
        _check_settings(settings, "Predictions of files", family=family)
        if place is None:
            raise ConfigError("Files need `--output DIR`: a folder for predictions.")
        return Predict(
            model=absolute(source),
            paths=tuple(map(absolute, files)),
            output=place,
            memory=memory,
            proba=proba,
        )
    if is_query(source):
        _check_settings(settings, "A query", family=family, proba=proba, memory=memory)
        return Query(text=anywhere(source), output=place)
    if proba or memory is not None:
        raise ConfigError("`--proba` and `--memory` are for predictions: MODEL FILES...")
    if family is not None:
        check_fit(settings)
    config = config_of(source, settings)
    found = config.output.directory and absolute(config.output.directory)
    data = config.data
    config = msgspec.structs.replace(
        config,
        data=msgspec.structs.replace(
            data, path=absolute(data.path), test=data.test and absolute(data.test)
        ),
        output=msgspec.structs.replace(config.output, directory=place or found),
    )
    if family is not None:
        if place is not None:
            check_file(Path(place), [source])
        return Fit(config=config, family=family, output=place)
    return Sweep(config=config, families=tuple(settings.names))


def submitted(work: Work, scheduler: str, storage: Path | None, name: str | None) -> str:
    """Submit it; what to say of that."""
    job = submit(work, scheduler=scheduler, storage=storage, name=name)
    where = f" --storage {storage}" if storage else ""
    sys.stderr.write(
        f"mlopt: submitted; to follow it: mlopt jobs {job.name} --scheduler {scheduler}"
        f"{where}\n"
    )
    return job.name


def about(
    words: Sequence[str],
    scheduler: str,
    storage: Path | None,
    output: Path | None,
    as_json: bool,
) -> int:
    """Do what ``mlopt jobs`` is asked: a list, or something with a job."""
    action, name = _asked(words)
    if action == "list":
        found = jobs(scheduler, storage)
        with reached(scheduler) as client:
            sys.stdout.write((as_list if as_json else listing)(found, client))
        return DONE
    job = job_of(name, scheduler, storage)
    if action == "cancel":
        job.cancel()
        sys.stdout.write(f"{name} is cancelled\n")
    elif action == "resume":
        job.resume()
        sys.stdout.write(f"{name} goes on\n")
    elif action == "fetch":
        if output is None:
            raise ConfigError("`mlopt jobs fetch` needs `--output`: a file or folder.")
        sys.stdout.write(f"{job.fetch(output)}\n")
    else:
        return _followed(job, as_json)
    return DONE


def as_list(found: Sequence[Job], client: Any) -> str:
    """All jobs as JSON, times in seconds since the epoch; not their works, which may hold
    passwords."""
    told = [
        {
            "name": job.name,
            "work": type(record.work).__name__.lower(),
            "status": current(job.folder, client),
            "created": record.created,
            "began": record.began,
            "ended": record.ended,
            "attempt": record.attempt,
            "failed": record.failed and record.failed.message,
        }
        for job in found
        for record in (job.record,)
    ]
    return f"{msgspec.json.format(msgspec.json.encode(told)).decode()}\n"


def listing(found: Sequence[Job], client: Any) -> str:
    """A line a job."""
    rows = [("NAME", "WHAT", "STATUS", "SINCE", "")]
    for job in found:
        record, status = job.record, current(job.folder, client)
        kind = type(record.work).__name__.lower()
        since = record.ended or record.began or record.created
        ago = format_seconds(max(0.0, time.time() - since))
        failed = record.failed.message if record.failed else ""
        note = "mlopt jobs resume" if status == LOST else " ".join(failed.split())[:60]
        rows.append((record.name, kind, status, ago, note))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _followed(job: Job, as_json: bool) -> int:
    """Follow a job to its end; print what the local command would, and end as it would."""
    status = job.follow(sys.stderr)
    record = job.record
    if record.outcome is None or status in OPEN:
        raise error_of(record, status)
    said = record.outcome.text
    if as_json:
        said = msgspec.json.format(msgspec.json.encode(record.outcome.result)).decode()
    if said:
        sys.stdout.write(f"{said}\n")
    for source, reason in record.outcome.result.get("failed", {}).items():
        sys.stderr.write(f"mlopt: {source} failed: {reason}\n")
    return DONE if record.outcome.complete else FAILED


def _asked(words: Sequence[str]) -> tuple[str, str]:
    """The action and the name of a job."""
    if not words:
        return "list", ""
    action, *names = words if words[0] in ACTIONS else ("follow", *words)
    if len(names) != (action != "list"):
        raise ConfigError(
            f"`mlopt jobs` takes a name, or one of {', '.join(ACTIONS)} and a name; got "
            f"{' '.join(words)!r}."
        )
    return action, names[0] if names else ""


def _check_settings(settings: Settings, what: str, **given: Any) -> None:
    unfit = [name for name, value in given.items() if value]
    if settings != SETTINGS or unfit:
        extra = f" ({', '.join(f'--{name}' for name in unfit)})" if unfit else ""
        raise ConfigError(
            f"{what} need none of the settings of a sweep: leave them{extra}."
        )
