"""Tasks under the names of a user's collection are that collection's own."""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mlopt
from mlopt.cluster import local_cluster

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def test_the_scheduler_is_given_one_task_of_a_name() -> None:
    """Merged with what reads it a task is another one, of which Dask warns."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(4000, 3)), columns=list("abc"))
    frame["k"] = rng.choice(list("xyz"), 4000)
    y = (frame["a"] > 0).astype(int)
    steps = make_column_transformer((OneHotEncoder(), ["k"]), remainder=StandardScaler())
    with local_cluster(2) as client:
        rows, targets = (dd.from_pandas(one, npartitions=8) for one in (frame, y))
        for _ in range(2):
            mlopt.make_pipeline(steps, LogisticRegression()).fit(rows, targets)
        told = [text for _, text in client.get_scheduler_logs()]
    assert not [text for text in told if "run_spec" in text]


def test_nor_does_a_search_give_another_task_the_name_of_one() -> None:
    """Blocks of a split are computed as they are, or in one task with their text."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(900, 3)), columns=list("abc"))
    frame["k"] = rng.choice(list("xyz"), 900)
    y = (frame["a"] > 0).astype(int)
    steps = make_column_transformer((OneHotEncoder(), ["k"]), remainder=StandardScaler())
    pipeline = make_pipeline(steps, LogisticRegression())
    with local_cluster(2) as client:
        search = mlopt.ModelSearchCV(
            pipeline,
            {"logisticregression__C": [0.01, 1.0]},
            cv=3,
            sampler="grid",
            bandit=None,
            n_trials=None,
        )
        search.fit(dd.from_pandas(frame, npartitions=3), y)
        told = [text for _, text in client.get_scheduler_logs()]
    assert not [text for text in told if "run_spec" in text]
