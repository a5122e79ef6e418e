"""A search over a pipeline on rows that fit in no worker: bytes that reach the client.

The rows are a Dask data frame that is drawn, partition by partition, whenever somebody
reads it. The cluster has a process of its own, so that what this one receives is what a
client receives. A sample that fits is searched in process too, for comparison.

Run it with ``python benchmarks/streaming_search.py --gigabytes 0.5``.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

ROWS = 33_333
"""Of a partition: 8 MB at 28 columns of numbers."""


def width(columns: int) -> int:
    """Bytes of a row: with two columns of categories."""
    return 8 * (columns + 2)


def draw(number: int, rows: int, numbers: int) -> Any:
    """A partition: the same whenever it is asked for."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(number)
    values = rng.standard_normal((rows, numbers))
    values *= 1.0 + np.arange(numbers)
    kind, place = rng.integers(0, 6, rows), rng.integers(0, 12, rows)
    margin = values[:, :8].sum(axis=1) / 8 + (kind == 2) - 0.5 * (place % 3)
    frame = pd.DataFrame(values, columns=[f"x{i}" for i in range(numbers)])
    frame["kind"], frame["place"] = kind, place
    frame["y"] = (margin + rng.standard_normal(rows) > 0).astype(np.int8)
    return frame


def frame_of(gigabytes: float, columns: int) -> Any:
    """The data frame, drawn lazily."""
    import dask.dataframe as dd

    given = {"rows": ROWS, "numbers": columns}
    count = max(2, round(gigabytes * 1e9 / (ROWS * width(columns))))
    meta = draw(0, 2, columns).iloc[:0]
    return dd.from_map(draw, range(count), meta=meta, **given)


def search_of(given: argparse.Namespace) -> Any:
    """Numbers scaled, categories encoded, a logistic regression behind them."""
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    from mlopt import ModelSearchCV

    columns = ColumnTransformer([
        ("numbers", StandardScaler(), [f"x{i}" for i in range(given.columns)]),
        ("categories", OneHotEncoder(), ["kind", "place"]),
    ])  # fmt: skip
    values = [10.0**-k for k in range(given.trials)]
    return ModelSearchCV(
        make_pipeline(columns, LogisticRegression(tol=given.tol)), {"C": values},
        n_trials=given.trials, sampler="grid", bandit=None, cv=given.splits, verbose=1,
    )  # fmt: skip


def serve(pipe: Any, memory: str) -> None:
    """Two workers until somebody says that it is over."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2, threads_per_worker=1, memory_limit=memory, dashboard_address=":0"
    ) as cluster:
        pipe.send(cluster.scheduler_address)
        pipe.recv()


@contextmanager
def workers(memory: str) -> Iterator[Any]:
    """A client of workers that belong to another process."""
    from distributed import Client

    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=serve, args=(there, memory)
    )
    process.start()
    try:
        with Client(here.recv(), set_as_default=True) as client:
            yield client
    finally:
        here.send("over")
        process.join(30)


def received() -> Callable[[], int]:
    """Counts the bytes that this process reads from others from now on."""
    from distributed.comm import tcp

    total, read = [0], tcp.read_bytes_rw

    async def counted(stream: Any, n: int) -> Any:
        total[0] += n
        return await read(stream, n)

    tcp.read_bytes_rw = counted
    return lambda: total[0]


def watch(client: Any, seconds: float = 30.0) -> None:
    """Print what the workers use, every ``seconds``, until the process ends."""

    def look() -> None:
        begin = time.perf_counter()
        while client.status == "running":
            workers = client.sync(client.scheduler.identity, n_workers=-1)["workers"]
            told = [
                f"{w['metrics']['memory'] / 1e6:.0f} MB {w['status']}, "
                f"{w['metrics']['spilled_bytes']['disk'] / 1e6:.0f} MB on disk"
                for w in workers.values()
            ]
            print(f"{time.perf_counter() - begin:.0f} s: " + "; ".join(told), flush=True)
            time.sleep(seconds)

    threading.Thread(target=look, daemon=True).start()


def peak() -> tuple[int, int]:
    """Process and its highest resident bytes: of a worker."""
    return os.getpid(), 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def main() -> None:
    """Search, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=0.5)
    parser.add_argument("--memory", default="600MB")
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--columns", type=int, default=28, help="of numbers")
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--tol", type=float, default=1e-5)
    parser.add_argument("--sample", type=float, default=0.1, help="gigabytes in process")
    parser.add_argument("--watch", action="store_true", help="workers every 30 s")
    given = parser.parse_args()

    if given.sample:
        compare(given)
    data = frame_of(given.gigabytes, given.columns)
    with workers(given.memory) as client:
        if given.watch:
            watch(client)
        before = {pid for pid, _ in client.run(peak).values()}
        count, begin = received(), time.perf_counter()
        search = search_of(given).fit(data.drop(columns="y"), data["y"])
        took, seen = time.perf_counter() - begin, client.run(peak)
        print(search.plan_)
        after = {pid for pid, _ in seen.values()}
        rows = data.npartitions * ROWS
        print(f"{rows} rows, {rows * width(given.columns) / 1e9:.2f} GB of features")
        print(f"seconds {took:.1f}; best {search.best_params_}, {search.best_score_:.6f}")
        print(f"bytes to the client {count()} ({count() / rows:.1f} a row)")
        print(f"highest resident bytes of workers {[b for _, b in seen.values()]}")
        print(f"restarts of workers {len(after - before)}")


def compare(given: argparse.Namespace) -> None:
    """The same search on a sample, in process and on workers."""
    import numpy as np

    data = frame_of(given.sample, given.columns)
    here = data.compute()
    inside = search_of(given).fit(here.drop(columns="y"), here["y"])
    with workers(given.memory):
        outside = search_of(given).fit(data.drop(columns="y"), data["y"])
    one, other = (s.cv_results_["mean_test_score"] for s in (inside, outside))
    some = here.drop(columns="y").iloc[:10_000]
    margins = [s.best_estimator_.decision_function(some) for s in (inside, outside)]
    print(f"{len(here)} rows in process and on workers: scores differ by at most "
          f"{np.abs(one - other).max():.1e}, margins of the best by "
          f"{np.abs(margins[0] - margins[1]).max():.1e}; "
          f"{inside.best_params_} and {outside.best_params_}")  # fmt: skip


if __name__ == "__main__":
    main()
