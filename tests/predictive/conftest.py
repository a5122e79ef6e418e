"""Small tables, and settings with which a search takes a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def quick(tmp_path: Path) -> dict[str, Any]:
    return {
        "families": ["linear"],
        "n_trials": 2,
        "cv": 3,
        "catalogue": tmp_path / "models",
    }


@pytest.fixture(scope="session")
def photos() -> pd.DataFrame:
    """Pictures without tags; every seventh has no light."""
    rng = np.random.default_rng(0)
    rows = 400
    frame = pd.DataFrame(
        {
            "image": [f"{i}.png" for i in range(rows)],
            "light": rng.normal(size=rows),
            "tone": rng.choice(["warm", "cold"], rows),
            "likes": rng.integers(0, 1000, rows),
        }
    )
    frame.loc[::7, "light"] = np.nan
    return frame


@pytest.fixture(scope="session")
def labelled(photos: pd.DataFrame) -> pd.DataFrame:
    """Others with tags; every ninth has none."""
    frame = photos[["light", "tone"]].sample(frac=1, random_state=1, ignore_index=True)
    plant = (frame["light"].fillna(0) > 0) & (frame["tone"] == "warm")
    frame["tag"] = np.where(plant, "Plant", "Ört")
    frame.loc[::9, "tag"] = None
    return frame
