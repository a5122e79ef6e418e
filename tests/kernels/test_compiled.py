"""How kernels are compiled, cached and called."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import config
from numpy.typing import NDArray

from mlopt.kernels import compiled
from mlopt.kernels.linear import Pass, linear_pass
from mlopt.kernels.losses import LOGISTIC

compiled_only = pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled")

MODULE = """
from mlopt.kernels.compiled import kernel

@kernel
def one_more(x):
    return x + 1
"""


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location("kernels_of_a_test", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@compiled_only
def test_machine_code_is_kept_until_any_file_of_kernels_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    hits = []
    for digest in ("old", "old", "new"):
        monkeypatch.setattr(compiled, "_DIGEST", digest)
        function = load(path).one_more
        assert function(1) == 2
        hits.append(sum(function.stats.cache_hits.values()))
    assert hits == [0, 1, 0]


def scan(n: int) -> Pass:
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(n, 60)), rng.normal(size=(60, 40))
    y, ones = np.where(rng.random((n, 1)) < 0.5, 1.0, -1.0), np.ones((n, 1))
    segments = np.array([[0, 40, LOGISTIC, 0, 0, 1]])
    return linear_pass(X, W, np.zeros(40), y, ones, segments, np.ones(1))


@compiled_only
def test_a_pass_lets_other_threads_run() -> None:
    scan(10)
    X = np.ones((200_000, 20))
    W, ones = np.ones((20, 40)), np.ones((200_000, 1))
    segments = np.array([[0, 40, LOGISTIC, 0, 0, 1]])
    arguments = X, W, np.zeros(40), ones, ones, segments, np.ones(1)
    thread = threading.Thread(target=linear_pass, args=arguments)
    thread.start()
    looks = 0
    while thread.is_alive():
        time.sleep(1e-4)
        looks += 1
    # Holding the GIL, it would be over at the first look.
    assert looks > 3


def test_passes_in_several_threads_do_not_disturb_each_other() -> None:
    alone = scan(500)
    with ThreadPoolExecutor(4) as pool:
        for together in pool.map(scan, [500] * 8):
            np.testing.assert_array_equal(alone.gradient, together.gradient)
            np.testing.assert_array_equal(alone.loss, together.loss)


def test_read_only_views_share_memory_with_contiguous_arrays() -> None:
    array: NDArray[Any] = np.arange(6.0).reshape(2, 3)
    view = compiled.read_only(array)
    assert np.shares_memory(view, array)
    assert array.flags.writeable
    assert not view.flags.writeable
    assert compiled.read_only(array.T).flags.c_contiguous


PROCESS = """
import hashlib
import numpy as np
from mlopt.kernels.linear import LOGISTIC, MULTINOMIAL
from mlopt.kernels.pointwise import losses_and_slopes
from mlopt.kernels.slopes import add_slopes

rng = np.random.default_rng(0)
Z, sums = rng.normal(size=(4, 700)), np.zeros((2, 4))
y, weights = rng.integers(0, 3, (700, 1)).astype(float), rng.random((700, 1))
targets = np.hstack([np.where(y == 1, 1.0, -1.0), y])
segments = np.array([[0, 1, LOGISTIC, 0, 0, 1], [1, 4, MULTINOMIAL, 1, 0, 3]])
empty = np.empty((700, 0)), segments, np.ones(2), sums, np.zeros(2)
# Two kernels that share functions: of which copy is each of them made?
found = losses_and_slopes("logistic", Z[0], targets[:, 0])
add_slopes(Z, rng.normal(size=4), targets, weights, *empty)
print(hashlib.sha256(b"".join(a.tobytes() for a in (Z, sums, *found))).hexdigest())
"""


@compiled_only
@pytest.mark.slow
def test_code_from_the_cache_rounds_as_freshly_compiled_code(tmp_path: Path) -> None:
    variables = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-c", PROCESS]
    runs = [
        subprocess.run(command, env=variables, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert list(tmp_path.rglob("*.nbc"))
    assert runs[0].stdout == runs[1].stdout


def test_without_a_folder_to_keep_code_in_kernels_compile_for_the_process() -> None:
    code = (
        "from mlopt.kernels.compiled import kernel\n"
        "twice = kernel(lambda x: 2 * x)\n"
        "print(twice(21))\n"
    )
    only = {
        "NUMBA_CACHE_LOCATOR_CLASSES": "UserProvidedCacheLocator",
        "NUMBA_CACHE_DIR": "",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, **only},
    )  # fmt: skip
    assert done.stdout == "42\n", done.stderr


def test_a_disk_that_is_full_fails_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numba.core.caching.IndexDataCacheFile.save", full)

    @compiled.kernel
    def thrice(x: float) -> float:
        return 3 * x

    assert thrice(14.0) == 42
