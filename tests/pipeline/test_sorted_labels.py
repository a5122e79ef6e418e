"""Labels that are sorted by chunk, rare, or all alike in a sample are fitted."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mlopt
from mlopt.cluster import Threads
from mlopt.pipeline.blocks.cut import cut
from mlopt.pipeline.profiling.sampling import take_sample

N, CHUNK = 24_000, 1000


def sorted_by(share: float) -> tuple[Any, Any]:
    """Rows of which the last ``share`` are of the second class."""
    rng = np.random.default_rng(0)
    y = (np.arange(N) >= (1 - share) * N).astype(int)
    return rng.normal(size=(N, 4)) + y[:, None] * [2.0, 0.0, 1.0, 0.0], y


def lazy(X: Any, y: Any) -> tuple[Any, Any]:
    return da.from_array(X, chunks=(CHUNK, 4)), da.from_array(y, chunks=CHUNK)


STEPS = {
    "selected": lambda: [SelectFromModel(LogisticRegression()), LogisticRegression()],
    "discriminant": lambda: [StandardScaler(), LinearDiscriminantAnalysis()],
    "projected": lambda: [LinearDiscriminantAnalysis(), LogisticRegression()],
}


@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("share", [0.5, 0.3, 1 / 24, 2 / N])
def test_sorted_labels_are_fitted(steps: str, share: float) -> None:
    X, y = sorted_by(share)
    found = mlopt.make_pipeline(*STEPS[steps]()).fit(*lazy(X, y))
    expected = make_pipeline(*STEPS[steps]()).fit(X, y)
    assert np.mean(found.predict(X) == expected.predict(X)) > 0.999


def test_samples_of_chunks_come_from_the_first_to_the_last() -> None:
    X = da.from_array(np.arange(float(N)).reshape(-1, 1), chunks=(100, 1))
    threads = Threads(1)
    blocks = cut(X, threads)
    (rows,) = take_sample({"X": blocks}, threads, 512).rows.values()
    threads.close()
    assert rows.min() < 100
    assert rows.max() >= N - 100
    assert len(np.unique(rows // 1000)) >= 20
