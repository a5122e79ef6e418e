"""Measured rates on disk, so that only the first process on a machine has to measure."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from mlopt.resources.descriptor import Resources

WEEK = 7 * 24 * 3600.0


def identity(threads: int) -> dict[str, str]:
    """What the rates depend on."""
    return {
        "host": platform.node(),
        "processor": _processor(),
        "threads": str(threads),
        "numpy": np.__version__,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def directory() -> Path:
    """The user's cache directory, where this platform keeps it."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData/Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "mlopt"


def path(key: Mapping[str, str]) -> Path:
    """The file that holds the rates of ``key``."""
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    return directory() / f"resources-{digest}.json"


def load(key: Mapping[str, str], max_age: float = WEEK) -> dict[str, float] | None:
    """The rates stored for ``key``, or None: absent, damaged, or older than ``max_age``."""
    try:
        record = json.loads(path(key).read_text())
        fresh = 0 <= time.time() - record["time"] < max_age
        rates = {name: float(record["rates"][name]) for name in record["rates"]}
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError):
        return None
    sound = set(rates) <= set(Resources.names()) and all(
        math.isfinite(rate) and rate > 0 for rate in rates.values()
    )
    return rates if fresh and sound and rates else None


def store(key: Mapping[str, str], rates: Mapping[str, float]) -> bool:
    """Keep ``rates``; False where nothing can be written, which costs only time.

    Readers see the old file or the new one, never a part.
    """
    record = {"time": time.time(), "machine": dict(key), "rates": dict(rates)}
    try:
        target = path(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".resources-")
        try:
            with os.fdopen(handle, "w") as file:
                json.dump(record, file, indent=1)
            Path(temporary).replace(target)
        except OSError:
            Path(temporary).unlink(missing_ok=True)
            raise
    except (OSError, RuntimeError):  # RuntimeError: no home directory
        return False
    return True
