"""What tests ask of a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def task_keys(client: Any) -> set[str]:
    """Of all tasks that the scheduler knows."""
    found: set[str] = client.run_on_scheduler(_keys)
    return found


def _keys(dask_scheduler: Any) -> set[str]:
    return {str(key) for key in dask_scheduler.tasks}


def eventually(true: Callable[[], bool], seconds: float = 10.0) -> bool:
    """Whether it comes true in time."""
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()
