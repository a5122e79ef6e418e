"""Models in text files that people can read, and that give the same bits again.

::

    mlopt linear model, format 1
    task: "classification"
    loss: "logistic"
    dtype: "float64"
    classes: ["no", "yes"]
    width: 3
    columns: [2, 3]
    features: 2
    ---
    "intercept" -1.2999999999999998
    "age" 0.10000000000000001
    "height" -0.5
    end

A line ``named: false`` says that the file for training had no header: names are made up;
one ``numbered_from: 0`` that it was a LIBSVM file with a column 0; one ``decimal: ","``
that its numbers had decimal commas, "." that they had decimal points.
After the line of dashes: the intercept, then one line a feature, each with its name and one
number a plane, of 17 significant digits. The last line says that the file is complete.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError
from mlopt.query.model import Features, Model
from mlopt.query.words import Task
from mlopt.writing import write_files

_FIRST = "mlopt linear model, format "
_FORMAT = 1
_RULE, _LAST = "---", "end"


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The lines before the numbers."""

    task: Task
    loss: str
    dtype: str
    classes: list[bool | int | float | str] | None
    width: int
    columns: list[int]
    features: int
    named: bool = True
    numbered_from: int | None = None
    decimal: str | None = None


def check_replaceable(path: Path) -> None:
    """Refuse to write a model over something else, such as the data.

    Raises
    ------
    InputError
        The file is there, and is neither a model nor empty.
    """
    if not path.is_file():
        return
    with path.open("rb") as file:
        start = file.read(len(_FIRST))
    if start and start != _FIRST.encode():
        raise InputError(
            f"{path} must be a model or not be there yet, but holds something else: name "
            "another file, or delete it."
        )


def write_model(model: Model, path: Path) -> None:
    """Write a model, replacing the file if there is one.

    Raises
    ------
    OSError
        The file cannot be written; an old one is then as it was.
    """
    write_files({path: dumps(model).encode()})


def read_model(path: Path) -> Model:
    """Read what `write_model` wrote.

    Raises
    ------
    InputError
        The file is not there, is no model, is of a later format, or is not complete.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"The model {path} cannot be read: {error.strerror}.") from None
    try:
        return loads(content.decode())
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path} must be a model that PERSIST wrote: {error}") from None


def dumps(model: Model) -> str:
    """A model as text."""
    features, classes = model.features, model.classes
    header = Header(
        task=model.task,
        loss=model.loss,
        dtype=str(model.coef.dtype),
        classes=None if classes is None else classes.tolist(),
        width=features.width,
        columns=list(features.columns),
        features=len(features.names),
        named=features.named,
        numbered_from=features.numbered_from,
        decimal=features.decimal,
    )
    lines = [f"{_FIRST}{_FORMAT}"]
    lines += [
        f"{key}: {json.dumps(value)}" for key, value in msgspec.to_builtins(header).items()
    ]
    rows = model.coef.reshape(len(model.coef), -1)
    lines += [_RULE, _row("intercept", np.atleast_1d(model.intercept))]
    lines += [_row(name, row) for name, row in zip(features.names, rows, strict=True)]
    return "\n".join([*lines, _LAST, ""])


def loads(text: str) -> Model:
    """A model from its text.

    Raises
    ------
    ValueError
        With what is wrong, as a sentence.
    """
    lines = text.split("\n")
    if not lines[0].startswith(_FIRST):
        raise ValueError(f"its first line must be `{_FIRST}{_FORMAT}`.")
    if lines[0] != f"{_FIRST}{_FORMAT}":
        raise ValueError(
            f"it is of format {lines[0].removeprefix(_FIRST)[:20]}, this version reads "
            f"format {_FORMAT}."
        )
    if _RULE not in lines or lines[-2:] != [_LAST, ""]:
        raise ValueError(f"it is cut off: it must end with a line `{_LAST}`.")
    rule = lines.index(_RULE)
    header = _header(lines[1:rule])
    names, values = _rows(lines[rule + 1 : -2], rule + 2, header)
    return _model(header, names, values)


def _row(name: str, values: NDArray[Any]) -> str:
    return f"{json.dumps(name, ensure_ascii=False)} {' '.join(f'{v:.17g}' for v in values)}"


def _header(lines: Sequence[str]) -> Header:
    try:
        pairs = [line.split(": ", 1) for line in lines]
        header = msgspec.convert({k: json.loads(v) for k, v in pairs}, Header)
    except (ValueError, msgspec.ValidationError) as error:
        raise ValueError(f"its header is damaged ({error}).") from None
    if header.dtype not in ("float64", "float32"):
        raise ValueError(f"its dtype must be float64 or float32, got {header.dtype!r}.")
    if (header.classes is None) != (header.task == "regression"):
        raise ValueError(
            "it must have classes for classification, and none for regression."
        )
    if header.classes is not None and len(header.classes) < 2:
        raise ValueError("it must have two classes at least.")
    return header


def _rows(
    lines: Sequence[str], first: int, header: Header
) -> tuple[tuple[str, ...], NDArray[Any]]:
    if len(lines) != header.features + 1:
        raise ValueError(
            f"it must have an intercept and {header.features} features, but has "
            f"{len(lines)} lines of numbers."
        )
    planes = len(header.classes) if header.classes and len(header.classes) > 2 else 1
    names, values = [], np.empty((len(lines), planes), header.dtype)
    decoder = json.JSONDecoder()
    for number, line in enumerate(lines):
        try:
            name, end = decoder.raw_decode(line)
            values[number] = np.array([float(v) for v in line[end:].split()]).reshape(
                planes
            )
        except ValueError:
            raise ValueError(
                f"line {first + number} must have a name and {planes} numbers, is "
                f"`{line[:60]}`."
            ) from None
        names.append(str(name))
    if not np.isfinite(values).all():
        raise ValueError("its numbers must be finite.")
    return tuple(names[1:]), values


def _model(header: Header, names: tuple[str, ...], values: NDArray[Any]) -> Model:
    single = values.shape[1] == 1
    coef = values[1:, 0] if single else values[1:]
    return Model(
        task=header.task,
        loss=header.loss,
        coef=np.ascontiguousarray(coef),
        intercept=values[0, 0] if single else values[0],
        features=Features(
            names,
            tuple(header.columns),
            header.width,
            header.named,
            header.numbered_from,
            header.decimal,
        ),
        classes=None if header.classes is None else np.asarray(header.classes),
    )
