"""What a refusal of `mlopt serve` takes in the server itself, under three times its load.

    python benchmarks/turns.py [--seconds 4] [--rounds 3] [--clients 1000]

Clients see the waits of the whole machine, their own among them. Here the event loop of the
server says of each turn, and of each refusal from the moment that its socket was ready to
the end of its write,

* the seconds by the clock, and of these those without waits for a core (schedstat),
* processor seconds, and the rest: waits for the interpreter's lock, and for the system,
* processor seconds of the collector of garbage, by generation.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from serving import Served, free_port, overload, prepared

MAIN = threading.get_ident()
Clocks = tuple[float, float, float]
"""Seconds by the clock, of waits for a core, of the processor."""


class Watch:
    """Clocks of the event loop's thread."""

    def __init__(self) -> None:
        self.file = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        self.woke: Clocks | None = None
        self.ready = 0
        self.turns: list[Clocks] = []
        self.refusals: list[Clocks] = []
        self.collected: dict[int, list[float]] = {0: [], 1: [], 2: []}
        self.began = 0.0
        self.calls: dict[bool, list[tuple[float, int]]] = {False: [], True: []}

    def now(self) -> Clocks:
        queued = 1e-9 * int(os.pread(self.file, 64, 0).split()[1])
        return time.perf_counter(), queued, time.thread_time()

    def since(self) -> Clocks:
        assert self.woke is not None
        a, b, c = (n - w for n, w in zip(self.now(), self.woke, strict=True))
        return a, b, c

    def install(self) -> None:
        """Around the selector, the refusals and the collector."""
        from mlopt.serving.protocol import Refusing
        from mlopt.serving.turns import Turns
        from mlopt.serving.waits import Waits

        select, begin, took = Turns.select, Refusing._begin, Waits.took

        def watched(selector, timeout=None):
            if self.ready:
                self.turns.append(self.since())
            found = select(selector, timeout)
            self.woke, self.ready = self.now(), len(found)
            return found

        def refusing(protocol, data):
            begin(protocol, data)
            if protocol._refused:
                self.refusals.append(self.since())

        def collecting(phase, info):
            if threading.get_ident() != MAIN or self.woke is None:
                return
            if phase == "start":
                self.began = time.thread_time()
            else:
                taken = time.thread_time() - self.began
                self.collected[info["generation"]].append(1e3 * taken)

        def taking(waits, rows, seconds):
            took(waits, rows, seconds)
            self.calls[waits.measured.pressed].append((1e3 * seconds, rows))

        Turns.select, Waits.took = watched, taking
        Refusing._begin = refusing
        gc.callbacks.append(collecting)
        atexit.register(self.say)

    def say(self) -> None:
        for name, rows in (("turns", self.turns), ("refusals", self.refusals)):
            if not rows:
                continue
            wall, queued, cpu = 1e3 * np.array(rows).T
            own = np.maximum(wall - queued, 0)
            parts = {"clock": wall, "without waits for cores": own, "processor": cpu,
                     "lock and system": np.maximum(own - cpu, 0)}  # fmt: skip
            said = "; ".join(
                f"{part} {np.median(v):.1f}, {np.quantile(v, 0.99):.1f}, {v.max():.1f}"
                for part, v in parts.items()
            )
            print(
                f"WATCH {len(rows)} {name}, ms at p50, p99, most: {said}", file=sys.stderr
            )
        for pressed, calls in self.calls.items():
            seconds, rows = np.array(calls or [(0.0, 0)]).T
            name = "with refusals" if pressed else "in calm"
            print(f"WATCH {len(calls)} calls {name}, ms of the slowest request: "
                  f"p50 {np.median(seconds):.1f}, p99 {np.quantile(seconds, 0.99):.1f}; "
                  f"rows open: {np.median(rows):.0f}", file=sys.stderr)  # fmt: skip
        for generation, took in self.collected.items():
            if took:
                print(f"WATCH {len(took)} collections of generation {generation}: at most "
                      f"{max(took):.1f} ms", file=sys.stderr)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", type=int, default=1000)
    parser.add_argument("--before", type=Path, help="sources to compare with, in turn")
    given = parser.parse_args()
    sources = [Path(os.environ["PYTHONPATH"].split(":")[0])] if given.before else [None]
    with tempfile.TemporaryDirectory() as temporary:
        model, requests = prepared(Path(temporary))
        for _ in range(given.rounds):
            for source in [given.before, *sources] if given.before else sources:
                if source is not None:
                    os.environ["PYTHONPATH"] = str(source)
                play(model, requests, given)


def play(model: Path, requests: Path, given: argparse.Namespace) -> None:
    """One server, at its usual load and at three times as much."""
    port = free_port()
    command = [sys.executable, __file__, "--watched", "serve", str(model)]
    server = Served([*command, "--port", str(port)], port, "/ready")
    print(f"\n{os.environ.get('PYTHONPATH', '')}")
    overload(server, requests, given.seconds, 64, given.clients)
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(60)
    print("\n".join(s for s in server.said().splitlines() if s.startswith("WATCH")))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--watched"]:
        from mlopt.cli import main as run

        Watch().install()
        run(sys.argv[2:])
    else:
        main()
