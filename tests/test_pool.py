"""Threads that are left behind."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys, time
from mlopt.cluster.pool import Pool

pool = Pool(1, "test", lambda: None)
pool.submit(time.sleep, 60)
while not pool._threads:
    time.sleep(0.001)
sys.setprofile(lambda *told: None)
pool.abandon()
(lambda: print("went on"))()
"""


def test_a_process_that_is_profiled_leaves_a_call_that_hangs() -> None:
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert found.stdout == "went on\n"
