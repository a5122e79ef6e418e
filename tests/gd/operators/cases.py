"""Small problems for the tests of the operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from mlopt.cluster import Threads
from mlopt.gd.operators import Batch, MatrixSource
from mlopt.gd.operators.interfaces import Floats
from mlopt.rows import Rows


def problem(n: int = 400, d: int = 5, seed: int = 0) -> tuple[Floats, Floats]:
    """Features, and labels -1 and 1 with noise."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d))
    z = X @ np.linspace(-1, 2, d) + 0.3 + random.standard_normal(n)
    return X, np.where(z > 0, 1.0, -1.0)


def regression(n: int = 400, d: int = 5, seed: int = 1) -> tuple[Floats, Floats]:
    """Features, and values with noise."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((n, d))
    return X, X @ np.linspace(-1, 2, d) + 0.7 + 0.3 * random.standard_normal(n)


def source(X: Any, y: Any, block_rows: int | None = None) -> MatrixSource:
    """In this process, in one thread."""
    return MatrixSource(Rows.of(X, executor=Threads(1), block_rows=block_rows), y)


def batch_of(units: Any) -> Batch:
    """Rows that a matrix gave."""
    assert isinstance(units, Batch)
    return units


def write_csv(
    path: Path, X: Floats, y: Floats, header: bool = False, end: str = "\n"
) -> str:
    """Label first, numbers as Python writes them: they read back as they were."""
    lines = ["label," + ",".join(f"x{j}" for j in range(X.shape[1]))] if header else []
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        lines.append(",".join(map(repr, [label, *row])))
    path.write_text(end.join(lines) + end, newline="")
    return str(path)


def write_libsvm(path: Path, X: Floats, y: Floats) -> str:
    """Zeros left out."""
    lines = []
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        pairs = [f"{j + 1}:{value!r}" for j, value in enumerate(row) if value]
        lines.append(" ".join([f"{label:+g}", *pairs]))
    path.write_text("\n".join(lines) + "\n")
    return str(path)
