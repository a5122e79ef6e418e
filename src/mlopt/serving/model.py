"""A model that is served: the columns that it needs, and what it is, as a card."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.base import is_classifier, is_clusterer
from sklearn.pipeline import Pipeline

from mlopt.errors import InputError
from mlopt.sweep.learned import Learned, first_step, learned, names_of
from mlopt.sweep.models import load, model_file
from mlopt.sweep.outputs import RESULT, plain
from mlopt.sweep.predict import predictions, texts_of
from mlopt.sweep.tabular import ReadColumns

Kind = Literal["number", "category", "date", "vector", "value"]

SHOWN = 60
"""Values of a category that a schema names: lines of a list on the page, of which a person
can still choose one."""
RESULTS = (
    "scoring",
    "best_score",
    "test_score",
    "best_params",
    "target",
    "rows",
    "n_trials",
)
"""What a card takes from the results of a sweep beside the model."""


@dataclass(frozen=True)
class Column:
    """A column that a request must have.

    Parameters
    ----------
    name : str
    kind : "number", "category", "date", "vector" or "value"
        How the model reads it; "value" where only its own steps know.
    values : tuple
        Of a category: those of the training rows, at most `SHOWN`.
    example : number, str, list of numbers or None
        A value that the model can read.
    learned : Learned
        What its steps know of it.
    """

    name: str
    kind: Kind
    values: tuple[Any, ...] = ()
    example: Any = None
    learned: Learned = field(default_factory=Learned)


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A loaded model that answered a row.

    Parameters
    ----------
    estimator : estimator or None
        None where it is in another process.
    columns : tuple of Column
    reads : ReadColumns or None
        The step that reads tables, where the model begins with it.
    texts : tuple of str
        Columns whose cells in a text stay as they are written.
    token : str
        Of the file's content.
    card : mapping
        What a person should know of it, as plain values.
    stamp : tuple of int
        Tells whether the file has changed since.
    has_probabilities : bool
        Whether it gives a probability a class.
    """

    estimator: Any
    columns: tuple[Column, ...]
    reads: ReadColumns | None
    texts: tuple[str, ...]
    token: str
    card: Mapping[str, Any]
    stamp: tuple[int, ...]
    has_probabilities: bool

    @property
    def names(self) -> tuple[str, ...]:
        """The columns by name."""
        return tuple(column.name for column in self.columns)

    def example(self, rows: int = 1) -> pd.DataFrame:
        """The same row so many times: what its encoders have seen."""
        return pd.DataFrame({c.name: [c.example] * rows for c in self.columns})


def load_served(path: Path) -> ServedModel:
    """Load a model as `mlopt predict` does, and have it answer a row.

    Raises
    ------
    InputError
        What `mlopt.load` refuses; a model without names of columns; one that cannot
        answer.
    """
    file = model_file(path)
    stamp = stamp_of(path)
    estimator = load(file)
    first, names = first_step(estimator), names_of(estimator)
    if names is None:
        raise InputError(
            f"{file} must know the names of its columns to be served; this model was "
            "trained on a matrix without any. Train it on a table."
        )
    reads = first if isinstance(first, ReadColumns) else None
    columns = tuple(_columns(names, reads, estimator))
    token = hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    card = {"file": file.name, "model": token, **_card(estimator), **_results(file)}
    proba = hasattr(estimator, "predict_proba")
    texts = tuple(texts_of(estimator))
    model = ServedModel(estimator, columns, reads, texts, token, card, stamp, proba)
    try:
        predictions(estimator, model.example(), proba=model.has_probabilities)
    except Exception as error:  # whatever steps raise that do not fit each other
        raise InputError(
            f"{file} was loaded, but does not answer a row: {type(error).__name__}: {error}"
        ) from error
    return model


def stamp_of(path: Path) -> tuple[int, ...]:
    """What differs once the file of a model has been replaced or written to; () without."""
    with suppress(OSError, InputError):
        stat = model_file(path).stat()
        return stat.st_ino, stat.st_size, stat.st_mtime_ns
    return ()


def _columns(
    names: Sequence[str], reads: ReadColumns | None, estimator: Any
) -> Iterator[Column]:
    known = learned(estimator)
    dates = {} if reads is None else reads.dates or {}
    vectors = {} if reads is None else reads.vectors or {}
    for name in names:
        found = known.get(name, Learned())
        example = found.example
        kind: Kind = "value"
        if reads is not None:
            kind = "number" if name in reads.numbers else "category"
            kind = "date" if name in dates else kind
            kind = "vector" if name in vectors else kind
        if example is None:
            none: Any = {"category": "", "date": "1970-01-01"}.get(kind, 0.0)
            example = [0.0] * vectors[name] if name in vectors else none
        values = tuple(map(plain, found.values[:SHOWN]))
        example = example if kind == "vector" else plain(example)
        yield Column(name, kind, values, example, found)


def _card(estimator: Any) -> dict[str, Any]:
    steps = estimator.steps if isinstance(estimator, Pipeline) else [("model", estimator)]
    last = steps[-1][1]
    card: dict[str, Any] = {
        "task": _task(estimator),
        "steps": [f"{name}: {type(step).__name__}" for name, step in steps],
        "parameters": {k: plain(v) for k, v in last.get_params(deep=False).items()},
        "loaded": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if is_classifier(estimator):
        card["classes"] = [
            [*map(plain, labels)] if isinstance(labels, np.ndarray) else plain(labels)
            for labels in estimator.classes_  # of several outputs those of each
        ]
    return card


def _task(estimator: Any) -> str:
    if is_classifier(estimator):
        return "classification"
    if is_clusterer(estimator):
        return "clustering"
    return "regression" if hasattr(estimator, "predict") else "transformation"


def _results(file: Path) -> dict[str, Any]:
    """What the sweep that wrote the model said of it."""
    with suppress(OSError, ValueError):
        found = json.loads((file.parent / RESULT).read_text("utf-8"))
        return {name: found[name] for name in RESULTS if found.get(name) is not None}
    return {}
