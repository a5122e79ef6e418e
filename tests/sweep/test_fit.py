"""One model with its default settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mlopt.sweep.config import Config, Family, override
from mlopt.sweep.fit import fit_one, only_family
from mlopt.tuning import alone
from mlopt.tuning.boosting import fit_boosted


@pytest.fixture
def config(table: pd.DataFrame, tmp_path: Path) -> Config:
    path = tmp_path / "people.csv"
    table.to_csv(path, index=False)
    return override(Config(), path=str(path), target="buys")


@pytest.mark.slow
def test_boosted_trees_tried_both_ways_are_those_of_one_fit(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    grown: list[Any] = []

    def counted(model: Any, X: Any, y: Any, arguments: Any) -> Any:
        grown.append(model)
        return fit_boosted(model, X, y, arguments)

    monkeypatch.setattr(alone, "fit_boosted", counted)
    tried = fit_one(config, "hist_gradient_boosting")
    assert len(grown) == 1

    monkeypatch.setattr(alone, "can_be_tried", lambda model, rows: False)
    plain = fit_one(config, "hist_gradient_boosting")
    rows = pd.read_csv(config.data.path)
    np.testing.assert_array_equal(
        tried.model.predict_proba(rows), plain.model.predict_proba(rows)
    )
    assert tried.score == plain.score


def test_a_fit_is_of_the_family_that_is_named_or_configured() -> None:
    off, on = Family(enabled=False), Family()
    forests = Config(families={"linear": off, "random_forest": on, "extra_trees": on})
    assert only_family(forests, None) == "random_forest"
    assert only_family(forests, "linear") == "linear"
    assert only_family(Config(), None) == "linear"


def test_a_fit_needs_no_rows_for_the_folds_of_a_search(
    table: pd.DataFrame, tmp_path: Path
) -> None:
    path = tmp_path / "people.csv"
    few = table.assign(buys=np.where(np.arange(len(table)) < 5, "maybe", table["buys"]))
    few.to_csv(path, index=False)
    config = override(Config(), path=str(path), target="buys", cv=20)
    assert set(fit_one(config, "linear").model.classes_) == {"maybe", "no", "yes"}
