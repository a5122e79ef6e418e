"""What the kernels reach, beside what this machine can do in the same seconds.

Every table runs its candidates in turn, again and again, and takes the fastest time of
each: on a busy machine all of them see the same quiet moments. One thread.

    python benchmarks/kernels.py [--quick]

* A pass (loss, slope and gradient of B logistic models) as models a second, and as a
  fraction of the rate of a matrix product (BLAS, 384 x 384), counting only the
  ``4 n d B`` operations of its two products; over rows from memory for B = 1 as a
  fraction of the rate at which ``X.sum()`` reads them, beside BLAS's two products.
* An epoch of lockstep SGD per model, beside scikit-learn's ``SGDClassifier``.
* Sizes: products in float64 with float32 rows, by the rows that are converted at a time, on
  two threads; a symmetric matrix mirrored, by its tiles; and products of sparse rows with
  themselves, by the bytes that are added to at a time and by what a row more is taken to
  cost, beside SciPy's product and a matrix that is filled with zeros and mirrored
  (`gram.sums`), and a pass of these rows (`hessian.operations`). The size in use is marked.
"""

from __future__ import annotations

import argparse
import operator
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest.mock import patch

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import SGDClassifier

from mlopt import rows as blocks
from mlopt.cluster import Threads
from mlopt.gd.conjugate_gradients import _block_product
from mlopt.gd.passes import _FEWEST
from mlopt.gd.pricing import sparse_gram_operations
from mlopt.gd.row_products import block_rows
from mlopt.kernels import linear
from mlopt.kernels.linear import linear_pass
from mlopt.kernels.losses import HINGE, LOGISTIC
from mlopt.kernels.sgd import SCHEDULES, Steps, sgd_epoch

Array = NDArray[Any]
_PRODUCT, _MANY = 384, 32
_BLAS = "BLAS's two products alone"
_PEER_EPOCHS = 5
"""So many that what a fit does before its first epoch does not matter."""


def race(candidates: Mapping[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """The fastest of many runs of each candidate, in seconds."""
    for run in candidates.values():
        run()
    best = dict.fromkeys(candidates, np.inf)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, run in candidates.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


@dataclass(frozen=True)
class Rows:
    """Rows with classes -1 and 1, all of weight 1."""

    X: Any
    y: Array
    ones: Array

    @staticmethod
    def dense(n: int, d: int, dtype: Any) -> Rows:
        rng = np.random.default_rng(0)
        X = np.resize(rng.standard_normal((min(n, 4096), d)).astype(dtype), (n, d))
        return Rows.of(X, rng.random(n) < 0.5)

    @staticmethod
    def csr(n: int, d: int, density: float, dtype: Any) -> Rows:
        rng = np.random.default_rng(0)
        X = sparse.random_array((n, d), density=density, format="csr", dtype=dtype, rng=rng)
        return Rows.of(X, rng.random(n) < 0.5)

    @staticmethod
    def of(X: Any, positive: NDArray[np.bool_]) -> Rows:
        y = np.where(positive, 1, -1).astype(X.dtype)[:, None]
        return Rows(X, y, np.ones_like(y))

    def scan(self, B: int, loss: int = LOGISTIC) -> Callable[[], Any]:
        """A pass of B models."""
        d, dtype = self.X.shape[1], self.X.dtype
        W = (np.random.default_rng(1).normal(size=(d, B)) / d**0.5).astype(dtype)
        b, segments, deltas = np.zeros(B, dtype), _one_segment(B, loss), np.ones(1)
        return lambda: linear_pass(self.X, W, b, self.y, self.ones, segments, deltas)

    def two_products(self, B: int) -> Callable[[], Any]:
        """The products of a pass, alone and whole."""
        n, d = self.X.shape
        W, M = np.ones((d, B), self.X.dtype), np.ones((n, B), self.X.dtype)
        return lambda: (self.X @ W, self.X.T @ M)

    def epoch(self, B: int, loss: int, rate: str) -> Callable[[], Any]:
        """An SGD epoch of B models in random order."""
        (n, d), dtype = self.X.shape, self.X.dtype
        order = np.random.default_rng(2).permutation(n)
        W, b, segments = np.zeros((d, B), dtype), np.zeros(B, dtype), _one_segment(B, loss)
        steps = Steps(
            np.full(B, SCHEDULES[rate]), np.full(B, 1e-4), np.full(B, 0.1),
            np.full(B, 0.5), np.ones(B), np.ones(B),
        )  # fmt: skip
        return lambda: sgd_epoch(
            self.X, order, self.y, self.ones, W, b, segments, np.ones(1), steps
        )

    def peer_epoch(self, loss: str, rate: str) -> Callable[[], Any]:
        """The same for one model of scikit-learn, several epochs in one fit."""
        model = SGDClassifier(
            loss=loss,
            learning_rate=rate,
            alpha=1e-4,
            eta0=0.1,
            tol=None,
            max_iter=_PEER_EPOCHS,
        )
        y = self.y[:, 0]
        return lambda: model.fit(self.X, y)


def _one_segment(B: int, loss: int) -> NDArray[np.int64]:
    return np.array([[0, B, loss, 0, 0, 1]])


def product(dtype: Any) -> Callable[[], Any]:
    A = np.random.default_rng(3).standard_normal((_PRODUCT, _PRODUCT)).astype(dtype)
    return lambda: A @ A


def dense_passes(sizes: list[int], shapes: list[tuple[int, int]], seconds: float) -> None:
    print("\nDense pass, B logistic models: share of the rate of a matrix product")
    print(f"{'dtype':>8} {'n x d':>12} {'GF/s':>6}", *(f"{f'B={B}':>17}" for B in sizes))
    for dtype in (np.float64, np.float32):
        for n, d in shapes:
            rows = Rows.dense(n, d, dtype)
            runs = {"product": product(dtype)} | {str(B): rows.scan(B) for B in sizes}
            times = race(runs, seconds)
            rate = 2 * _PRODUCT**3 / times["product"]
            cells = [
                f"{B / times[str(B)]:8.0f}/s {4 * n * d * B / times[str(B)] / rate:6.0%}"
                for B in sizes
            ]
            print(f"{dtype.__name__:>8} {f'{n}x{d}':>12} {rate / 1e9:6.0f}", *cells)


def from_memory(n: int, d: int, seconds: float) -> None:
    """One model beside reading, many beside a product of matrices; BLAS beside both."""
    print(f"\nRows from memory, {n} x {d}: share of the rate of reading, or of a product")
    for dtype in (np.float64, np.float32):
        rows = Rows.dense(n, d, dtype)
        runs = {"read": rows.X.sum, "log": rows.scan(1), "hinge": rows.scan(1, HINGE)}
        runs[_BLAS] = rows.two_products(1)
        times = race(runs, seconds)
        shares = {name: times["read"] / t for name, t in times.items() if name != "read"}
        limit = f"{rows.X.nbytes / times['read'] / 1e9:.1f} GB/s"
        print(f"{dtype.__name__:>8}  B=1 {limit:>10}", *_percents(shares))
        runs = {"product": product(dtype), "log": rows.scan(_MANY)}
        runs[_BLAS] = rows.two_products(_MANY)
        times = race(runs, seconds)
        rate = 2 * _PRODUCT**3 / times.pop("product")
        shares = {name: 4 * n * d * _MANY / t / rate for name, t in times.items()}
        print(f"{'':>8} B={_MANY} {f'{rate / 1e9:.0f} GF/s':>10}", *_percents(shares))


def _percents(shares: Mapping[str, float]) -> list[str]:
    return [f" {name} {share:.0%}" for name, share in shares.items()]


def sparse_passes(sizes: list[int], n: int, d: int, density: float, seconds: float) -> None:
    print(f"\nCSR pass, {n} x {d}, {density:.2%}: ns a stored number and model")
    for dtype in (np.float64, np.float32):
        rows = Rows.csr(n, d, density, dtype)
        runs = {str(B): rows.scan(B) for B in sizes}
        runs["SciPy's two products, 64"] = rows.two_products(64)
        times = race(runs, seconds)
        cells = [
            f"B={name} {t / rows.X.nnz / int(name.split()[-1]) * 1e9:.2f}"
            for name, t in times.items()
        ]
        print(f"{dtype.__name__:>8}", ", ".join(cells))


def epochs(sizes: list[int], rows: Mapping[str, Rows], seconds: float) -> None:
    print("\nSGD epoch: ns a row and model (times faster than scikit-learn's)")
    for name, r in rows.items():
        for loss, number in (("log_loss", LOGISTIC), ("hinge", HINGE)):
            for rate in ("constant", "invscaling", "optimal"):
                runs = {"peer": r.peer_epoch(loss, rate)}
                runs |= {str(B): r.epoch(B, number, rate) for B in sizes}
                times = race(runs, seconds)
                times["peer"] /= _PEER_EPOCHS
                n = r.X.shape[0]
                cells = [
                    f"B={B} {times[str(B)] / n / B * 1e9:.1f}"
                    f" ({times['peer'] * B / times[str(B)]:.1f}x)"
                    for B in sizes
                ]
                print(
                    f"{name:>13} {loss:>8} {rate:>10} scikit-learn"
                    f" {times['peer'] / n * 1e9:.0f},",
                    ", ".join(cells),
                )


def in_pieces(n: int, d: int, B: int, seconds: float) -> None:
    """Products of least squares in another precision, by the rows of a piece at least.

    On two threads: what a call does in Python, one does at a time.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, d), np.float32)
    rows = blocks.Rows.of(X, executor=Threads(2), block_rows=block_rows(X))
    rows = rows.attach(targets=np.zeros((n, 1)), weights=np.ones((n, 1)))
    W, b = rng.standard_normal((d, B)), np.zeros(B)

    def run(fewest: int) -> None:
        with patch("mlopt.gd.passes._FEWEST", fewest):
            rows.map_reduce(_block_product, operator.add, W, b)

    best = race({str(size): partial(run, size) for size in (64, 256, 512, 1024)}, seconds)
    print(f"pieces of {n} x {d}, B = {B}:", _by_size(best, _FEWEST))


def mirrored(d: int, seconds: float) -> None:
    """A symmetric matrix of which one half is known, by the tiles that are copied."""
    total = np.zeros((d, d))

    def run(tile: int) -> None:
        with patch("mlopt.kernels.linear._TILE", tile):
            linear.mirror(total)

    best = race({str(tile): partial(run, tile) for tile in (32, 64, 128, 512)}, seconds)
    print(f"mirrored, {d} x {d}:", _by_size(best, linear._TILE))


def multiplied(n: int, d: int, density: float, seconds: float) -> None:
    """The Gram matrix of sparse rows, by the rows of it that are filled at a time."""
    rows, ones = Rows.csr(n, d, density, np.float64), np.ones(n)
    X = rows.X

    def run(name: str, size: int) -> None:
        with patch(f"mlopt.kernels.linear.{name}", size):
            linear.sparse_gram(X, ones)

    others = {
        "SciPy": lambda: (X.T @ X).toarray(),
        "nothing": lambda: linear.mirror(np.zeros((d, d))),
    }
    told = (f"{name} {took * 1e3:.2f} ms" for name, took in race(others, seconds).items())
    print(f"products, {n} x {d}, {density}:", *told)
    for name, sizes in (("_BAND", (10**6, 16 * 10**6, 10**12)), ("_COMING", (1, 16))):
        used = getattr(linear, name)
        best = race({str(k): partial(run, name, k) for k in (used, *sizes)}, seconds)
        print(f"    {name}:", _by_size(best, used))
    both = {"products": partial(linear.sparse_gram, X, ones), "pass": rows.scan(_MANY)}
    taken = race(both, seconds)
    each = taken["products"] / sparse_gram_operations(n, X.nnz / n)
    share = taken["pass"] / X.nnz / _MANY / each
    print(f"    a multiplication of a pass of {_MANY}: {share:.0f} operations of these")


def _by_size(best: Mapping[str, float], used: int) -> str:
    return ", ".join(
        f"{size}{'*' if int(size) == used else ''} {took * 1e3:.2f} ms"
        for size, took in best.items()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    quick = parser.parse_args().quick
    seconds = 1.0 if quick else 8.0
    sizes = [1, 8, 64] if quick else [1, 2, 4, 8, 16, 32, 64, 128, 256]
    shapes = [(2000, 100)] if quick else [(2000, 50), (2000, 100), (500, 784)]
    dense_passes(sizes, shapes, seconds)
    from_memory(200_000 if quick else 1_000_000, 50, seconds)
    sparse_passes([1, 8, 64], 5_000 if quick else 20_000, 20_000, 0.0025, seconds)
    rows = {
        f"dense {t.__name__}": Rows.dense(4000, 100, t) for t in (np.float64, np.float32)
    }
    rows |= {"CSR float64": Rows.csr(4000, 20_000, 0.0025, np.float64)}
    epochs([1, 64] if quick else [1, 4, 8, 16, 64, 128], rows, seconds / 2)
    for d in (100, 500, 2000, 8192):
        for B in (1, 10):
            in_pieces(20_000_000 // d, d, B, seconds)
    for d in (50, 500, 2000, 8192):
        mirrored(d, seconds)
    for n, d, density in (
        (150_000, 50, 0.2), (20_000, 800, 0.05), (40_000, 2000, 0.02),
        (27_000, 3400, 0.026), (20_000, 5000, 0.005), (200_000, 1500, 0.002),
    ):  # fmt: skip
        multiplied(n, d, density, seconds)


if __name__ == "__main__":
    main()
