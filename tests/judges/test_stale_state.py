"""A run depends on what it is given, never on a run before it.

The pairs are made by `tests.judges.stale` in forks of another process.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from tests import forks
from tests.judges.runs import RUNS

ROOT = Path(__file__).parent.parent.parent

FINE = {"same", "refused"}
KINDS = [
    ["pipeline", "pipeline on dask", "pipeline with a disk"],
    ["search", "stored search"],
]
if "MLOPT_JUDGE_EXAMPLES" in os.environ:  # two minutes of one core: for `make compat`
    KINDS += [["search of pipelines", "stored search of pipelines"], ["sweep", "query"]]


@pytest.mark.timeout(7200)  # thirty pairs of searches, beside whatever else runs
@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the judge forks")
@pytest.mark.parametrize("kinds", KINDS, ids=" and ".join)
def test_a_second_run_with_one_thing_changed_equals_that_of_a_fresh_process(
    kinds: list[str],
) -> None:
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    run = forks.run(
        [sys.executable, "-m", "tests.judges.stale", *kinds],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )
    assert run.returncode == 0, run.stderr[-2000:]
    pairs = [json.loads(line) for line in run.stdout.splitlines()]
    assert len(pairs) == sum(1 + len(RUNS[kind][1]) for kind in kinds)
    wrong = [pair for pair in pairs if pair["verdict"] not in FINE]
    assert not wrong
