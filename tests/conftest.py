"""What every test shares: a numba cache of its own, real data when it is there."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parent.parent


def _kernels_digest() -> str:
    sources = sorted((ROOT / "src/mlopt/kernels").glob("*.py"))
    return hashlib.sha256(b"".join(p.read_bytes() for p in sources)).hexdigest()[:12]


# Numba does not see edits to a callee in another file; a new directory for every
# version of the kernels makes stale machine code impossible in tests.
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / f".cache/numba/{_kernels_digest()}"))

# The first call of a kernel compiles it, which is no news about the code.
settings.register_profile("here", deadline=None, max_examples=40)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture
def data() -> Path:
    """The folder of real data beside the project; tests that need it skip without it."""
    folder = ROOT.parent / "shared/data"
    if not folder.is_dir():
        pytest.skip("the real data sets are not beside this checkout")
    return folder
