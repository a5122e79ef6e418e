"""One small sweep, run once: several tests look at what came of it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mlopt import events
from mlopt.sweep.result import SweepResult
from mlopt.sweep.run import sweep


def people(rows: int = 400, seed: int = 0) -> pd.DataFrame:
    """A table of numbers, categories and gaps, with a target that follows from them."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": random.integers(18, 80, rows),
            "wage": random.lognormal(3, 1, rows),
            "city": random.choice(["rome", "oslo", "bern"], rows),
            "since": pd.date_range("2020-01-01", periods=rows, freq="31h").astype(str),
        }
    )
    odds = 0.08 * (frame["age"] - 50) + (frame["city"] == "oslo") + random.normal(size=rows)
    frame.loc[::13, "wage"] = np.nan
    return frame.assign(buys=np.where(odds > 0, "yes", "no"))


@pytest.fixture
def table() -> pd.DataFrame:
    """See `people`."""
    return people()


class Swept:
    """A result, where it was written, and what was told on the way."""

    def __init__(self, result: SweepResult, folder: Path, told: list[events.Event]) -> None:
        self.result = result
        self.folder = folder
        self.told = told


@pytest.fixture(scope="session")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """A sweep over two families, written to a folder."""
    folder = tmp_path_factory.mktemp("swept")
    told: list[events.Event] = []
    result = sweep(
        people(),
        target="buys",
        n_trials=10,
        timeout=60.0,
        families=["linear", "extra_trees"],
        output=folder,
        joblib=True,
        observer=told.append,
    )
    return Swept(result, folder, told)
