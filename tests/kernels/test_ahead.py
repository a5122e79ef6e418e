"""What is compiled ahead is what would compile at a first call."""

from __future__ import annotations

import importlib
import pkgutil

import pytest
from numba import config
from numba.core.registry import CPUDispatcher

import mlopt.kernels
from mlopt.kernels.ahead import compile_all

compiled_only = pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")


def kernels() -> dict[str, CPUDispatcher]:
    """Every kernel that is kept on disk, by name."""
    found = {}
    for module in pkgutil.iter_modules(mlopt.kernels.__path__):
        if module.name == "__main__":
            continue
        names = vars(importlib.import_module(f"mlopt.kernels.{module.name}"))
        for name, value in names.items():
            if isinstance(value, CPUDispatcher) and hasattr(value._cache, "_cache_file"):
                found[f"{value.__module__}.{name}"] = value
    return found


@compiled_only
def test_every_kernel_is_compiled_ahead() -> None:
    compile_all(processes=1)
    missing = {name for name, kernel in kernels().items() if not kernel.signatures}
    assert len(kernels()) > 20
    # Only other kernels call it, and on disk they hold what they need of it.
    assert missing <= {"mlopt.kernels.slopes.add_slopes"}


@compiled_only
def test_float32_stays_float32() -> None:
    compile_all(processes=1)
    tiled = kernels()["mlopt.kernels.tiles.tiled"]
    assert {str(signature[0].dtype) for signature in tiled.signatures} == {
        "float32",
        "float64",
    }
