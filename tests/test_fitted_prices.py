"""The price list is fitted by a script: here to runs that a machine might have had."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from mlopt.gd import Task, plan, pricing
from mlopt.gd.plans import gathered, lbfgs, primal_coordinate
from mlopt.prices import PRICES

SCRIPT = Path(__file__).parent.parent / "benchmarks/prices.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("prices_script", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["prices_script"] = module  # its dataclasses look there
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def bindings(script: ModuleType) -> Iterator[Any]:
    """What sets prices; they are as before at the end."""
    found, before = script.Bindings(), {name: one.value for name, one in PRICES.items()}
    yield found
    found.set(before)
    assert before["lbfgs.step"] == lbfgs._STEP


@pytest.mark.slow
def test_a_price_changes_wherever_it_was_asked_for(bindings: Any) -> None:
    bindings.set({"lbfgs.step": 1.0, "sequential.epoch": 2.0, "primal.visit.sparse": 3.0})
    assert lbfgs._STEP == 1.0
    assert gathered.EPOCH.python == vars(primal_coordinate)["EPOCH"].python == 2.0
    assert primal_coordinate._VISIT[1] == 3.0
    bindings.set({"pass.read": 4.0})  # asked for beside others in one line
    assert pricing._READ == 4.0


@pytest.mark.slow
def test_prices_follow_what_was_measured(script: ModuleType, bindings: Any) -> None:
    """Runs that took what a dearer list says lead to prices that say so."""
    rng = np.random.default_rng(0)
    methods = ["lbfgs", "primal-coordinate-descent"]
    seen = []
    for n, d in ((200, 5), (20_000, 10)):
        X = rng.standard_normal((n, d))
        found = plan(
            Task("logistic", l2=1e-3), X, X[:, 0] > 0, methods=methods, speculation=False
        )
        seen += [
            script.Seen(found.ranker, method, passes, 1.0)
            for method in found.ranker.methods
            for passes in (2, 40)
        ]
    dearer = {"lbfgs.step": 5 * PRICES["lbfgs.step"].value,
              "primal.visit.dense": 5 * PRICES["primal.visit.dense"].value}  # fmt: skip
    before = {name: PRICES[name].value for name in dearer}
    bindings.set(dearer)
    runs = [replace(one, seconds=one.priced()) for one in seen]
    bindings.set(before)
    far = [abs(np.log(one.priced() / one.seconds)) for one in runs]
    values = script.fitted(runs)
    near = [abs(np.log(one.priced() / one.seconds)) for one in runs]
    assert max(far) > 1.0
    assert max(near) < 0.3
    assert values["lbfgs.step"] > 2 * before["lbfgs.step"]
    assert values["dual.step.dense"] == PRICES["dual.step.dense"].value  # nothing was told
