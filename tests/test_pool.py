"""Threads that are left behind."""

from __future__ import annotations

import subprocess
import sys
from contextvars import ContextVar

import numpy as np
import pytest

from mlopt.cluster.pool import Pool

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


_tenant: ContextVar[str] = ContextVar("tenant", default="nobody")


def _renamed(name: str) -> str:
    before = _tenant.get()
    _tenant.set(name)
    return before


def test_calls_have_the_variables_of_who_submits_them() -> None:
    pool = Pool(1, "test", lambda: None)
    mine = _tenant.set("me")
    try:
        with np.errstate(divide="raise"):
            raised = pool.submit(np.divide, np.ones(1), np.zeros(1))
        assert pool.submit(_renamed, "another").result() == "me"
        assert pool.submit(_tenant.get).result() == "me"  # nobody else sees what one sets
        with pytest.raises(FloatingPointError):
            raised.result()
    finally:
        _tenant.reset(mine)
        pool.shutdown()
    assert _tenant.get() == "nobody"
