"""A query on the command line: plans and results are printed, predictions one a line."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from mlopt.errors import InputError
from mlopt.query import ast
from mlopt.query.checks import sources_of
from mlopt.query.model import Model
from mlopt.query.parser import parse
from mlopt.query.run import Session
from mlopt.writing import check_file, write_files


def run_and_print(
    text: str,
    output: Path | None = None,
    out: TextIO | None = None,
    err: TextIO | None = None,
) -> Any:
    """Run a query, print what each statement gives, and return what the last one gave.

    Predictions go to ``output``, or to ``out`` and nothing else with them: what there is to
    say about models then goes to ``err``.

    Parameters
    ----------
    text : str
    output : Path, optional
        For the predictions.
    out, err : text file, optional
        Default: stdout and stderr.

    Raises
    ------
    InputError
        With ``output`` the query must have exactly one PREDICT; and see `run`.
    """
    script = parse(text)
    predicts = [one for one in script.statements if isinstance(one, ast.Predict)]
    if output is not None and len(predicts) != 1:
        raise InputError(
            "`output` is for the predictions of one PREDICT; the query has "
            f"{len(predicts)}."
        )
    if output is not None:
        models = [predicts[0].model.value]
        models += [s.path.value for s in script.statements if isinstance(s, ast.Persist)]
        check_file(output, [*sources_of(script), *models])
    out, err = out or sys.stdout, err or sys.stderr
    aside = err if predicts and output is None else out
    value: Any = None
    for _, value in Session().steps(text):
        if isinstance(value, Model):
            aside.write(f"{value.describe()}\n")
        elif isinstance(value, Path):
            aside.write(f"model: {value}\n")
        elif output is None:
            out.write(_lines(value))
        else:
            write_files({output: _lines(value).encode()})
            aside.write(f"predictions: {output}\n")
    return value


def _lines(predictions: Any) -> str:
    return "".join(f"{value}\n" for value in np.asarray(predictions).tolist())
