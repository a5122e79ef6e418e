"""Results as files: each is complete or not there, and an old one stays until then."""

from __future__ import annotations

import io
import json
import math
import os
import platform
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from mlopt.errors import InputError
from mlopt.readers.table import listed
from mlopt.report.history import FAIL, PRUNED, WAITING, TrialRow
from mlopt.report.page import render
from mlopt.report.tables import frame_of
from mlopt.sweep.beside import KEYS
from mlopt.sweep.config import Config
from mlopt.sweep.findings import PACKAGES, findings_of
from mlopt.sweep.formulas import csv_of
from mlopt.sweep.models import MODEL, dump_model
from mlopt.sweep.result import SweepResult
from mlopt.writing import check_outputs, check_writable, finish_files, write_files

RESULT = "result.json"
NAMES = frozenset(
    {
        MODEL, "model.joblib", "trials.parquet", "trials.csv", "plan.txt", "plan.json",
        "report.html", RESULT,
    }
)  # fmt: skip
"""All files that a sweep may write."""


def write(result: SweepResult, folder: Path) -> None:
    """Write everything a sweep found into ``folder``.

    All files are made first and put into place then; ``result.json`` is not there while
    they move, so that where it is, all are of one run. A file of an earlier run that this
    one does not make is removed; a model, or one of another study, is kept as
    ``earlier-model.skops``.

    Raises
    ------
    Exception
        No file takes the model, as one of a type that nobody reviewed; all else is written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    finish_files(folder)
    plan = json.dumps(result.plan.to_dict(), indent=2)
    models, refused = dict[str, bytes](), list[Exception]()
    try:
        models = _model_files(result)
    except Exception as error:  # of a type that nobody reviewed, or that skops cannot write
        refused = [error]
    files = {
        **models,
        **_trial_files(result.trials, result.config),
        "plan.txt": f"{result.plan.explain(verbose=True)}\n".encode(),
        "plan.json": f"{plan}\n".encode(),
        "report.html": render(findings_of(result)).encode(),
        RESULT: f"{json.dumps(summary(result), indent=2)}\n".encode(),
    }
    if _before(folder).get("study") not in (None, result.search.study_name):
        for name in [name for name in files if name.startswith("model.")]:
            with suppress(FileNotFoundError):
                files[f"earlier-{name}"] = (folder / name).read_bytes()
    for name in NAMES - files.keys():
        _set_aside(folder / name)
    last = folder / RESULT
    write_files({folder / name: content for name, content in files.items()}, last=last)
    if refused:
        raise refused[0]


def write_trials(rows: Sequence[TrialRow], config: Config, folder: Path) -> None:
    """Write the trials of a sweep without a model, unless results are there already."""
    if rows and not (folder / RESULT).exists():
        files = _trial_files(rows, config)
        write_files({folder / name: content for name, content in files.items()})


def check_folder(folder: Path, inputs: Iterable[Any]) -> None:
    """Refuse an output folder that results could not be written to, or that holds the data
    or files of those names that no sweep wrote; end what a killed process began there.

    Raises
    ------
    InputError
    """
    paths = [path for path in inputs if isinstance(path, str | Path)]
    check_outputs([folder / name for name in NAMES], paths)
    check_writable(folder)
    finish_files(folder)
    if _before(folder):
        return
    there = (name for name in sorted(NAMES) if os.path.lexists(folder / name))
    if foreign := [name for name in there if not _has_trials(folder / name)]:
        raise InputError(
            f"`output` must not hold files of others that a sweep would replace, but "
            f"`{folder}` has {listed(foreign)}: name another folder."
        )


def _before(folder: Path) -> dict[str, Any]:
    """What an earlier sweep said of itself in ``folder``; empty without one."""
    with suppress(OSError, ValueError):
        found = json.loads((folder / RESULT).read_text("utf-8"))
        return found if isinstance(found, dict) and "study" in found else {}
    return {}


def _has_trials(path: Path) -> bool:
    """Whether a file has trials of a sweep, which without a model writes nothing else."""
    if not path.name.startswith("trials."):
        return False
    try:
        frame = (
            pd.read_csv(path, nrows=0) if path.suffix == ".csv" else pd.read_parquet(path)
        )
    except (OSError, ValueError):  # not of that format
        return False
    return [*frame][:2] == ["number", "family"]


def replaces(result: SweepResult, folder: Path) -> str:
    """A sentence on what `write` would replace in ``folder`` of another study."""
    before = _before(folder)
    if before.get("study") in (None, result.search.study_name):
        return ""
    try:
        return (
            f"this replaces the results of {before['n_trials']} trials of "
            f"{', '.join(before['families'])}: best {before['scoring']} "
            f"{before['best_score']:.5g}; their study stays in the storage"
        )
    except (ValueError, KeyError, TypeError):
        return ""


def summary(result: SweepResult) -> dict[str, Any]:
    """The content of ``result.json``: plain values with stable names."""
    search, prepared = result.search, result.prepared
    states = [row.state for row in result.trials]
    return {
        "best_score": result.best_score,
        "best_params": {name: plain(value) for name, value in result.best_params.items()},
        "scoring": prepared.scoring,
        "n_trials": len(states),
        "n_pruned": states.count(PRUNED),
        "n_failed": states.count(FAIL),
        "n_unfinished": states.count(WAITING),
        "passes": search.passes_,
        "models_trained": int(search.models_trained_),
        "seconds": round(result.seconds, 3),
        "test_score": result.test_score,
        "baseline": result.baseline,
        "test_scores": dict(result.checked.scores) if result.checked else {},
        "task": prepared.target.task,
        "target": prepared.target.name,
        **{key: getattr(result.config.data, key) for key in KEYS},
        "rows": len(prepared.y),
        "test_rows": len(prepared.y_test),
        "families": list(prepared.families),
        "interrupted": result.interrupted,
        "seed": result.config.search.seed,
        "study": search.study_name,
        "versions": {name: version(name) for name in PACKAGES}
        | {"python": platform.python_version()},
    }


def plain(value: Any) -> Any:
    """A value that JSON holds: it has no infinity and no NaN."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str | None) else repr(value)


def _set_aside(path: Path) -> None:
    """A model may have taken hours; other files come from what is stored."""
    if path.name.startswith("model."):
        with suppress(FileNotFoundError):
            path.replace(path.with_name(f"earlier-{path.name}"))
    else:
        path.unlink(missing_ok=True)


def _model_files(result: SweepResult) -> dict[str, bytes]:
    if result.model is None:
        return {}
    files = {MODEL: dump_model(result.model)}
    if result.config.output.joblib:
        import joblib

        buffer = io.BytesIO()
        joblib.dump(result.model, buffer, compress=3)
        files["model.joblib"] = buffer.getvalue()
    return files


def _trial_files(rows: Sequence[TrialRow], config: Config) -> dict[str, bytes]:
    frame = frame_of(rows)
    mixed = [c for c in frame if frame[c].dropna().map(type).nunique() > 1]
    frame[mixed] = frame[mixed].map(str, na_action="ignore")
    buffer = io.BytesIO()
    if config.output.trials == "csv":
        return {"trials.csv": csv_of(frame)}
    frame.to_parquet(buffer, index=False)
    return {"trials.parquet": buffer.getvalue()}
