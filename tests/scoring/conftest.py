"""A model, and files to predict."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.scoring.people import people

from mlopt.sweep.config import Config, override
from mlopt.sweep.fit import fit_one
from mlopt.sweep.models import dump_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of people, as `mlopt fit` writes it."""
    folder = tmp_path_factory.mktemp("model")
    people(400, 0).to_csv(folder / "train.csv", index=False)
    config = override(Config(), path=str(folder / "train.csv"), target="buys")
    path = folder / "model.skops"
    path.write_bytes(dump_model(fit_one(config, "linear").model))
    return path


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A folder of tables in several formats."""
    folder = tmp_path / "data"
    folder.mkdir()
    for number in range(6):
        people(50 + number, number).to_csv(folder / f"p{number}.csv", index=False)
    people(80, 7).to_parquet(folder / "p7.parquet")
    people(80, 8).to_csv(folder / "p8.csv.gz", index=False)
    people(80, 9).to_json(folder / "p9.jsonl", orient="records", lines=True)
    return folder
