"""`mlopt predict`: of one file to one, or of many with an output each."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mlopt.errors import ConfigError
from mlopt.scoring.files import is_pattern


def many(data: Sequence[str], output: str | None) -> bool:
    """Whether files get an output each."""
    first = Path(data[0]).expanduser()
    if len(data) > 1 or first.is_dir() or (is_pattern(first) and not first.exists()):
        return True
    return output is not None and (output.endswith(os.sep) or Path(output).is_dir())


def predict_files(
    model: Path,
    data: Sequence[str],
    output: str | None,
    proba: bool,
    memory: str | None,
    client: Any,
    tell: Callable[[str], None],
) -> bool:
    """Predict files into a folder; whether all could be."""
    if output is None:
        raise ConfigError("Several files need `--output DIR`: a folder for predictions.")
    from mlopt.report.files import files_progress
    from mlopt.scoring.predict import predict

    with files_progress(sys.stderr) as observer:
        found = predict(
            model, data, output=output, memory=memory, proba=proba, client=client,
            observer=observer, tell=tell,
        )  # fmt: skip
    sys.stdout.write(f"{found.describe()}\n")
    for source, reason in found.failed.items():
        tell(f"{source} failed: {reason}")
    return not found.failed


def predict_file(
    model: Path, data: str, output: Path | None, proba: bool, tell: Callable[[str], None]
) -> None:
    """Predict one file to another, or to stdout."""
    from mlopt.sweep.formulas import csv_of
    from mlopt.sweep.models import model_file
    from mlopt.sweep.predict import predict_file as predicted
    from mlopt.writing import check_file, write_or_print

    model = model_file(model)
    if output is not None:
        check_file(output, [model, data])
    write_or_print(csv_of(predicted(model, data, proba=proba, tell=tell)), output)
