"""`mlopt sql` and `mlopt catalogue`: what is typed becomes rows, or lines about models."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from mlopt.errors import ConfigError, InputError
from mlopt.plan import Plan
from mlopt.plan.units import format_seconds
from mlopt.predictive.answering import answered, check_settings
from mlopt.predictive.catalogue import Catalogue, Entry
from mlopt.predictive.planner import Planner
from mlopt.query.durations import parse_duration
from mlopt.report.progress import progress
from mlopt.sweep.formulas import csv_of
from mlopt.writing import check_file, write_or_print

ACTIONS = ("list", "show", "drop", "prune")


def answer(
    query: str,
    tables: Sequence[str],
    output: Path | None,
    catalogue: Path | None,
    families: Sequence[str],
    settings: Mapping[str, Any],
    client: Any,
) -> None:
    """Print the rows of a query as CSV, or its plan; or write them to ``output``."""
    files = _files(tables)
    if output is not None:
        check_file(output)
    check_settings(settings)
    with progress(sys.stderr, None, settings.get("n_trials")) as tell:
        planner = Planner(Catalogue(catalogue), tuple(families), client, tell, settings)
        found = answered(query, files, {}, planner, output)
    planned = isinstance(found, Plan)
    # A file is as wide as what it holds.
    whole = output is not None
    content = f"{found.explain(verbose=whole)}\n".encode() if planned else csv_of(found)
    write_or_print(content, output)


def about(
    words: Sequence[str], folder: Path | None, unused: str | None, as_json: bool
) -> None:
    """Do what ``mlopt catalogue`` is asked: a list, or something with a model."""
    action, *names = words or ("list",)
    if action not in ACTIONS or len(names) != (action in ("show", "drop")):
        raise ConfigError(
            "`mlopt catalogue` takes list, show NAME, drop NAME or prune; got "
            f"{' '.join(words)!r}."
        )
    models = Catalogue(folder)
    if action == "list":
        sys.stdout.write(_as_json(models) if as_json else _listing(models))
    elif action == "show":
        place = models.path(names[0])
        sys.stdout.write(f"{place}\n{(place / 'plan.txt').read_text()}")
    elif action == "drop":
        sys.stdout.write(f"{models.drop(names[0])} is gone\n")
    else:
        gone = models.prune(_seconds(unused))
        sys.stdout.write("".join(f"{name} is gone\n" for name in gone))


def _seconds(text: str | None) -> float | None:
    seconds = None if text is None else parse_duration(text)
    if text is not None and (seconds is None or seconds < 0):
        raise ConfigError(f"`--unused` must be a time such as 30d or 12h, got {text!r}.")
    return seconds


def _files(tables: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in tables]
    for name, sign, path in pairs:
        if not (name and sign and path):
            raise ConfigError(f"`--table` must be NAME=FILE, got {name + sign + path!r}.")
        if not Path(path).expanduser().is_file():
            raise InputError(f"`--table {name}`: there is no file {path}.")
    return {name: path for name, _, path in pairs}


def _as_json(models: Catalogue) -> str:
    found = [{**asdict(one), "result": models.result(one)} for one in models.entries()]
    return f"{json.dumps(found, indent=2)}\n"


def _listing(models: Catalogue) -> str:
    """A line a model."""
    lines = [_line(models, entry) for entry in models.entries()]
    return "".join(lines) or f"no models in {models.folder}\n"


def _line(models: Catalogue, entry: Entry) -> str:
    result = models.result(entry)
    when = datetime.fromtimestamp(entry.created).astimezone()
    ago = format_seconds(time.time() - entry.created)
    old = "" if entry.current else ", of other versions"
    family, score = result["best_params"]["family"], result["best_score"]
    return (
        f"{entry.name}  {entry.clause}\n"
        f"  {family}, {result['scoring']} {score:.4g} in validation, of "
        f"{result['n_trials']} trials in {format_seconds(result['seconds'])}; "
        f"{when:%Y-%m-%d %H:%M}, {ago} ago{old}\n"
    )
