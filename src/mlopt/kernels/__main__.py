"""``python -m mlopt.kernels`` compiles every kernel, which their first calls would do."""

from __future__ import annotations

import sys
import time

from mlopt.kernels.ahead import compile_all

if __name__ == "__main__":
    started = time.perf_counter()
    compile_all()
    took = time.perf_counter() - started
    sys.stdout.write(f"kernels are compiled: {took:.0f} s\n")
