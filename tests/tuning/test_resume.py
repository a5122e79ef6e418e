"""A search that was killed goes on as if nothing had happened."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

SCRIPT = """
import json, sys, time
import numpy as np
from scipy.stats import loguniform
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier
import mlopt
from mlopt import events

storage, slow, sampler = sys.argv[1], float(sys.argv[2]), sys.argv[3]
trained = []

def observe(event):
    if isinstance(event, events.RungDone):
        print("rung", flush=True)
        time.sleep(slow)
    if isinstance(event, events.TrialScored) and not event.replayed:
        trained.append(event.trial)

X, y = make_classification(400, 6, random_state=0)
search = mlopt.ModelSearchCV(
    {"line": (LogisticRegression(), {"C": [0.01, 0.1, 1.0, 10.0]}),
     "tree": (DecisionTreeClassifier(), {"max_depth": list(range(1, 9))})},
    n_trials=12, cv=3, sampler=sampler, batch_size=3, observer=observe,
    storage=storage if storage != "none" else None,
).fit(X, y)
table = search.cv_results_
print(json.dumps({
    "params": [str(p) for p in table["params"]],
    "scores": np.nan_to_num(table["mean_test_score"], nan=-1).tolist(),
    "states": table["state"].tolist(),
    "trained": sorted(set(trained)),
}))
"""


def start(tmp_path: Path, storage: str, slow: float, sampler: str) -> subprocess.Popen[str]:
    script = tmp_path / "search.py"
    script.write_text(SCRIPT)
    return subprocess.Popen(
        [sys.executable, str(script), storage, str(slow), sampler],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(tmp_path: Path, storage: str, sampler: str) -> dict[str, Any]:
    with start(tmp_path, storage, 0.0, sampler) as process:
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    found: dict[str, Any] = json.loads(out.strip().splitlines()[-1])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["random", "grid"])
def test_a_killed_search_resumes_to_the_same_result(tmp_path: Path, sampler: str) -> None:
    storage = str(tmp_path / "study.db")
    whole = finish(tmp_path, "none", sampler)
    with start(tmp_path, storage, 1.0, sampler) as process:
        assert process.stdout is not None
        for _ in range(3):
            assert process.stdout.readline().strip() == "rung"
        time.sleep(0.5)  # the rung is written behind
        process.kill()
    resumed = finish(tmp_path, storage, sampler)

    assert resumed["params"] == whole["params"]
    assert resumed["scores"] == whole["scores"]
    assert resumed["states"] == whole["states"]
    assert len(resumed["trained"]) < len(whole["trained"])


def test_a_finished_search_again_trains_nothing(tmp_path: Path) -> None:
    storage = str(tmp_path / "study.db")
    first = finish(tmp_path, storage, "random")
    again = finish(tmp_path, storage, "random")

    assert again["scores"] == first["scores"]
    assert again["trained"] == []
