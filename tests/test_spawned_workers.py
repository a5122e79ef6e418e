"""A program that starts its own workers: they begin with nothing loaded, as a user's do.

The workers of the other tests are forks of a process that has loaded the libraries.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.cluster

PROGRAM = """
import distributed
import numpy as np
from scipy.stats import loguniform
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mlopt


class Doubled(StandardScaler):
    '''A step that no worker can import.'''

    def transform(self, X, copy=None):
        return 2.0 * super().transform(X, copy)


def main():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y = (X[:, 0] > 0).astype(int)
    model = make_pipeline(Doubled(), LogisticRegression())
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        search = mlopt.ModelSearchCV(model, {"C": loguniform(0.1, 10)}, n_trials=4)
        print("score", search.fit(X, y).best_score_ > 0.9)
        print("pipeline", mlopt.optimize(model).fit(X, y).score(X, y) > 0.9)


if __name__ == "__main__":
    main()
"""


def test_workers_that_a_program_starts_learn_all_they_need(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    found = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert found.returncode == 0, found.stderr[-2000:]
    assert found.stdout.split() == ["score", "True", "pipeline", "True"]
