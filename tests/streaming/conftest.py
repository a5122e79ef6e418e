"""What holds for all streams."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def nothing_left_over() -> Iterator[None]:
    """Every test must end all threads that it started."""
    yield
    ends = time.monotonic() + 5
    while left := [t.name for t in threading.enumerate() if "mlopt-stream" in t.name]:
        assert time.monotonic() < ends, left
        time.sleep(0.01)
