"""How kernels are compiled: once for a machine, without the GIL, true to nan and inf."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from filelock import FileLock
from numba import config, njit, types
from numba.core import event
from numba.extending import intrinsic
from numpy.typing import NDArray

from mlopt.kernels import compiling

# No fast math. With it a function that two kernels share rounds differently in each of
# them, and which copy runs depends on what this process has compiled and what it has read
# from disk. Where speed needs it, sums run over lanes and products are fused explicitly.
# Division by zero gives inf or nan as in NumPy: the check that Python's rule needs would
# keep loops from being vectorised.
_OPTIONS = {"nogil": True, "error_model": "numpy"}
# A function that Python never calls needs no wrapper, which takes a quarter of the time.
_PART = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class _Watch(event.Listener):
    """Tells `compiling` of every function of ours that is not read from disk."""

    def on_start(self, event: Any) -> None:
        if _is_ours(event):
            compiling.begin()

    def on_end(self, event: Any) -> None:
        if _is_ours(event):
            compiling.end()


def _is_ours(event: Any) -> bool:
    home = event.data["dispatcher"].py_func.__module__ or ""
    return bool(home.partition(".")[0] == __name__.partition(".")[0])


event.register("numba:compile", _Watch())


def _digest() -> str:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(p.read_bytes() for p in sources)).hexdigest()


_DIGEST = _digest()
_kernels: list[Any] = []


def kernel(function: Callable[..., Any]) -> Any:
    """Compile ``function`` at its first call, and keep the machine code on disk."""
    try:
        jitted = njit(cache=True, forceinline=False, **_OPTIONS)(function)
    except RuntimeError:  # no folder can be written to: each process compiles anew
        jitted = njit(forceinline=False, **_OPTIONS)(function)
    # Numba's disk cache looks at the file of the function only, and would go on with
    # the old machine code when a callee in another file changes.
    with suppress(AttributeError):
        cache = jitted._cache
        file = cache._cache_file
        file._source_stamp = (file._source_stamp, _DIGEST)
        # Nor is what an index names and nobody could save the code of another source.
        file._data_name_pattern = f"{_DIGEST[:8]}-{file._data_name_pattern}"
        cache.load_overload = compiling.loading()(cache.load_overload)
        cache.save_overload = _saving(cache)
    _kernels.append(jitted)
    return jitted


def _saving(cache: Any) -> Callable[..., None]:
    """How ``cache`` saves: one process at a time, and a disk that is full is no error.

    Two that saved at once would make the index of one name the code of the other.
    """
    save = cache.save_overload

    def save_overload(signature: Any, compiled: Any) -> None:
        with suppress(OSError, NotImplementedError):  # or a file system without locks
            folder = Path(cache.cache_path)
            folder.mkdir(parents=True, exist_ok=True)
            with FileLock(folder / "kernels.lock"):
                save(signature, compiled)

    return save_overload


def missing(*modules: str) -> int:
    """Kernels of these modules that neither this process nor its disk has compiled."""
    return sum(
        _home(jitted.py_func) in modules and not (jitted.signatures or _on_disk(jitted))
        for jitted in _kernels
        if not config.DISABLE_JIT
    )


def _home(function: Callable[..., Any]) -> str:
    return (function.__module__ or "").rpartition(".")[2]


def _on_disk(jitted: Any) -> bool:
    with suppress(AttributeError, OSError):
        return bool(jitted._cache._cache_file._load_index())
    return False


def part(function: Callable[..., Any]) -> Any:
    """Compile ``function`` when a kernel that calls it is compiled.

    It must not make arrays: it does not count references to those that it is given, which
    would take longer than a step of many loops.
    """
    return njit(forceinline=False, _nrt=False, **_PART, **_OPTIONS)(function)


def allocating(function: Callable[..., Any]) -> Any:
    """As `part`, for a function that makes arrays."""
    return njit(forceinline=False, **_PART, **_OPTIONS)(function)


def inlined(function: Callable[..., Any]) -> Any:
    """As `part`, and inlined into its callers before LLVM simplifies them.

    An argument that is a constant at the call, such as the number of a loss, then
    removes the branches that depend on it.
    """
    return njit(forceinline=True, _nrt=False, **_PART, **_OPTIONS)(function)


@intrinsic
def _no_inlining(typing: Any) -> tuple[Any, Callable[..., Any]]:
    def generate(context: Any, build: Any, signature: Any, args: Any) -> Any:
        build.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.none(), generate


def _nothing() -> None:
    """What `stay_apart` does without compilation."""


stay_apart = _nothing if config.DISABLE_JIT else _no_inlining
"""Called in a kernel, keeps LLVM from inlining that kernel into another.

A loop with many constants must be a function of its own: inside another loop LLVM loads
each of them again in every iteration, which takes half as long again."""


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array in C order, as one that cannot be written to.

    Read-only and writable arrays are two types to Numba: with inputs always read-only,
    memory-mapped data do not compile every kernel once more.
    """
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view
