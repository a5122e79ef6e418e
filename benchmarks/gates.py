"""What gates cost and what credits give: streams whose stages sleep, so that one may know.

Printed are

* CPU a feed of one gate, put and taken, with 1 to 256 batches open, in one thread and
  between two; and of a handover between two stages of a stream (the price
  `stream.handover`, what fusing saves); of a partition that goes to one of two workers
  and back (the price `stream.partition`),
* two balanced phases with 1 to 8 open requests: throughput as a share of the ideal,
  latency from opening on beside that of one, feeds under way beside their bound,
* streams of 1 to 4 phases of equal length with as many open requests.

usage: gates.py [--phase 0.2] [--requests 24] [--repeats 3]
"""

from __future__ import annotations

import argparse
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

from mlopt import Stream
from mlopt.cluster import local_cluster
from mlopt.events import Event, RequestDone
from mlopt.streaming.credits import Ledger
from mlopt.streaming.gate import Gate

FEEDS = 100_000


def put(gate: Gate, batch: int, index: int, feed: Any) -> None:
    """As a stage does that has made a feed."""
    with gate.lock:
        if gate.ledger.put(batch, index, feed):
            gate.wake()


def one_thread(batches: int) -> float:
    """CPU seconds a feed, put and taken by the same thread."""
    gate = Gate(Ledger())
    for batch in range(batches):
        put(gate, batch, 0, None)
    began = time.process_time()
    for feed in range(FEEDS):
        put(gate, feed % batches, 1 + feed // batches, feed)
        gate.take()
    return (time.process_time() - began) / FEEDS


def two_threads(batches: int) -> float:
    """CPU seconds a feed, of the process, put by one thread and taken by another."""
    gate = Gate(Ledger())

    def take() -> None:
        for _ in range(FEEDS):
            gate.take()

    taker = threading.Thread(target=take)
    began = time.process_time()
    taker.start()
    for feed in range(FEEDS):
        put(gate, feed % batches, feed // batches, feed)
    taker.join()
    return (time.process_time() - began) / FEEDS


def handover(stages: int = 5, requests: int = 40, feeds: int = 100) -> tuple[float, float]:
    """CPU seconds a feed that a stage takes beside its function, and a handover."""

    def took(replicas: Any, count: int) -> float:
        stream = Stream(threads=1)
        for number in range(count):
            stream = stream.map(lambda feed: feed, replicas=replicas, name=str(number))
        with stream:
            list(stream.run([range(feeds)] * 4))  # until it has been planned
            began = time.process_time()
            list(stream.run([range(feeds)] * requests))
            return (time.process_time() - began) / (requests * feeds)

    apart = (took(1, stages) - took(1, 1)) / (stages - 1)
    fused = (took("auto", stages) - took("auto", 1)) / (stages - 1)
    return fused, apart - fused


def partition(client: Any, requests: int = 10, feeds: int = 200) -> float:
    """CPU seconds of the driver and the workers for a partition of one number."""

    def took() -> float:
        return time.process_time() + sum(client.run(time.process_time).values())

    with Stream(client=client, partition=1).map(abs) as stream:
        list(stream.run([range(feeds)] * 4))
        began = took()
        list(stream.run([range(feeds)] * requests))
        return (took() - began) / (requests * feeds)


def run(stream: Stream, requests: int, feeds: int, open: int) -> tuple[float, float, int]:
    """Requests a second between the first answer and the last, seconds of one from opening
    on, and feeds under way at most.
    """
    done: list[tuple[float, float]] = []

    def hear(event: Event) -> None:
        if isinstance(event, RequestDone):
            done.append((event.elapsed, event.ran))

    stream._observer = hear
    with stream:
        list(stream.run([range(feeds)] * requests))
        peak = int(stream.gauges()["stream"]["peak"])
    ends = [at for at, _ in done]
    # In the steady state: the first have nothing in front of them, the last nothing behind.
    ran = [seconds for _, seconds in done][open:-open]
    return (len(ends) - 1) / (ends[-1] - ends[0]), statistics.median(ran), peak


def sleeping(seconds: float) -> Callable[[Any], Any]:
    """A stage that takes so long, and no CPU."""

    def stage(feed: Any) -> Any:
        time.sleep(seconds)
        return feed

    return stage


def phases(count: int, phase: float, feeds: int, open: int) -> Stream:
    """Phases of equal length: feeds by two threads, then whole requests by one."""
    stream = Stream(open=open, feeds=open * (feeds + 1))
    stream = stream.map(sleeping(2 * phase / feeds), replicas=2, name="align")
    for number in range(1, count):
        stream = stream.aggregate().map(sleeping(phase), replicas=1, name=f"merge {number}")
    return stream


def main() -> None:
    """Print all of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--phase", type=float, default=0.2)
    parser.add_argument("--requests", type=int, default=24)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()

    print("CPU a feed of one gate, put and taken; microseconds, median of 5")
    for batches in (1, 16, 256):
        alone = statistics.median(one_thread(batches) for _ in range(5))
        between = statistics.median(two_threads(batches) for _ in range(5))
        print(f"  {batches:>4} open: one thread {1e6 * alone:.2f}, two {1e6 * between:.2f}")
    found = [handover() for _ in range(5)]
    stage, handed = (1e6 * statistics.median(one) for one in zip(*found, strict=True))
    print(f"  of a stage, beside its function: {stage:.1f}; of a handover: {handed:.1f}")

    with local_cluster(2) as client:
        moved = 1e6 * statistics.median(partition(client) for _ in range(5))
    print(f"  of a partition to a worker and back: {moved:.0f}")

    feeds, ideal = 8, 1 / given.phase
    print(
        f"two balanced phases of {given.phase} s, {feeds} feeds; median of {given.repeats}"
    )
    base = 0.0
    for open in (1, 2, 3, 4, 6, 8):
        runs = [
            run(phases(2, given.phase, feeds, open), given.requests, feeds, open)
            for _ in range(given.repeats)
        ]
        rate, ran, _ = map(statistics.median, zip(*runs, strict=True))
        peak = max(peak for _, _, peak in runs)
        base = base or ran
        print(
            f"  {open} open: {rate / ideal:.3f} of the ideal, latency {ran:.3f} s "
            f"({ran / base:.2f}x), at most {peak} feeds of {open * (feeds + 1)}"
        )
        assert peak <= open * (feeds + 1)
    print("P phases, P open: throughput beside that of P phases with one open")
    for count in (1, 2, 3, 4):
        many, _, _ = run(
            phases(count, given.phase, feeds, count), given.requests, feeds, count
        )
        one, _, _ = run(phases(count, given.phase, feeds, 1), given.requests // 2, feeds, 1)
        print(f"  {count} phases: {many / one:.2f}x, {many / one / count:.3f} P")


if __name__ == "__main__":
    main()
