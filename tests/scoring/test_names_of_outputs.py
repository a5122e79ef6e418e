"""Where predictions are written, and the names of their columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import mlopt
from mlopt.scoring.files import jobs_of


def test_nothing_is_written_outside_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "project"
    here.mkdir()
    monkeypatch.chdir(here)
    out = here / "out"
    jobs = jobs_of([Path("../data/x.csv"), Path("local/y.csv")], out)
    assert [job.output for job in jobs] == [
        out / "data" / "x.csv",
        out / "project" / "local" / "y.csv",
    ]
    assert [job.source for job in jobs] == [Path("../data/x.csv"), Path("local/y.csv")]


def test_labels_of_two_lines_name_columns_once(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60_000, 3)), columns=["a", "b", "c"])
    labels = np.where(frame["a"] > 0, "one\nline", "another")
    model = LogisticRegression().fit(frame, labels)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "out"
    mlopt.predict(model, tmp_path / "rows.csv", output=out, proba=True, memory="8MiB")
    found = pd.read_csv(out / "rows.csv")
    assert len(found) == len(frame)
    assert "probability_one\nline" in found.columns
