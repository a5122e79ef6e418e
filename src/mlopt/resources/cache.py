"""Measured rates and calibrations on disk, so that a machine is measured once."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import sys
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from mlopt.prices import VERSION
from mlopt.resources.calibration import Calibration
from mlopt.resources.descriptor import Resources
from mlopt.writing import write_files

WEEK = 7 * 24 * 3600.0
SOON = 600.0
"""Seconds until what others disturbed is measured again: as a job that was at work ends."""
PROBE = 2
"""Raised when there is more to measure: what was kept before then does not do."""
FORMULAS = f"1, {VERSION}"
"""Of costs and their prices: factors say nothing of others."""


def identity(threads: int) -> dict[str, str]:
    """What the rates depend on."""
    return {
        "host": platform.node(),
        "processor": _processor(),
        "threads": str(threads),
        "numpy": np.__version__,
    }


@cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
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


def path(key: Mapping[str, str], kind: str = "resources") -> Path:
    """The file that holds the rates of ``key``, or its calibration."""
    digest = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:16]
    return directory() / f"{kind}-{digest}.json"


def load(key: Mapping[str, str], *, disturbed: bool = False) -> dict[str, float] | None:
    """The rates stored for ``key``, or None: absent, damaged, or too old.

    Parameters
    ----------
    key : mapping
    disturbed : bool, default=False
        Whether rates that others disturbed do for as long as others.
    """
    try:
        record = json.loads(path(key).read_text("utf-8"))
        lasts = SOON if record.get("disturbed") and not disturbed else WEEK
        fresh = record["probe"] == PROBE and 0 <= time.time() - record["time"] < lasts
        rates = {name: float(record["rates"][name]) for name in record["rates"]}
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError):
        return None
    sound = set(rates) <= set(Resources.names()) and all(
        math.isfinite(rate) and rate > 0 for rate in rates.values()
    )
    return rates if fresh and sound and rates else None


def store(
    key: Mapping[str, str], rates: Mapping[str, float], *, disturbed: bool = False
) -> bool:
    """Keep ``rates``; False where nothing can be written, which costs only time."""
    record = {
        "time": time.time(),
        "probe": PROBE,
        "disturbed": disturbed,
        "machine": dict(key),
        "rates": dict(rates),
    }
    return write(key, "resources", record)


def load_calibration(key: Mapping[str, str]) -> Calibration:
    """The calibration stored for ``key``; an empty one where it is absent or damaged.

    It does not age, and holds for any number of threads: factors are relative to rates of
    one thread.
    """
    try:
        record = json.loads(path(of_one_thread(key), "calibration").read_text("utf-8"))
        if record["formulas"] != FORMULAS:
            return Calibration()
        return Calibration.from_dict(record["factors"])
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError):
        return Calibration()


def store_calibration(key: Mapping[str, str], calibration: Calibration) -> bool:
    """Keep ``calibration``; False where nothing can be written."""
    factors = calibration.to_dict()
    record = {"machine": dict(key), "formulas": FORMULAS, "factors": factors}
    return write(of_one_thread(key), "calibration", record)


def of_one_thread(key: Mapping[str, str]) -> dict[str, str]:
    """What holds for any number of threads."""
    return {name: value for name, value in key.items() if name != "threads"}


def write(key: Mapping[str, str], kind: str, record: Mapping[str, Any]) -> bool:
    """To the file of `path`: readers see the old one or the new one, never a part."""
    try:
        target = path(key, kind)
        target.parent.mkdir(parents=True, exist_ok=True)
        write_files({target: json.dumps(record, indent=1).encode()})
    except (OSError, RuntimeError):  # RuntimeError: no home directory
        return False
    return True
