"""Transformers that count their fits, in this process or over several."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import BaseEstimator, TransformerMixin

import mlopt


class Notes(Counter[tuple[str, int]]):
    """Counts that are no part of what a step does: they go by their name."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def __reduce__(self) -> str:
        return "FITS"


FITS = Notes()
"""(name, rows) of every fit in this process."""


class Counting(TransformerMixin, BaseEstimator):
    """Fits ``step`` and notes it; ``file`` collects the notes of other processes too."""

    def __init__(self, step: Any = None, name: str = "", file: str | None = None) -> None:
        self.step = step
        self.name = name
        self.file = file

    def fit(self, X: Any, y: Any = None, **params: Any) -> Counting:
        with FITS.lock:
            FITS[self.name, X.shape[0]] += 1
        if self.file is not None:
            with Path(self.file).open("a") as notes:
                notes.write(f"{self.name}\n")
        self.step_ = self.step.fit(X, y, **params)
        return self

    def transform(self, X: Any) -> Any:
        return self.step_.transform(X)


mlopt.register(Counting, row_wise=True)


@pytest.fixture
def fits() -> Iterator[Counter[tuple[str, int]]]:
    FITS.clear()
    yield FITS
    FITS.clear()


@pytest.fixture
def counting() -> type[Counting]:
    return Counting
