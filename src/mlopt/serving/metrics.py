"""What a service counts, as text in the format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

# Three steps a decade, so that a quantile read from them is off by at most 2.5 times: from
# a call of a small model to `Limits.deadline`, and from a row to what a large body holds.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096, 16384, 65536)


class Histogram:
    """How often a value was at most each of some bounds."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def saw(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self, name: str) -> Iterator[str]:
        """Cumulated counts, as Prometheus has them."""
        total = 0
        for bound, count in zip((*self.bounds, "+Inf"), self.counts, strict=True):
            total += count
            yield f'{name}_bucket{{le="{bound}"}} {total}'
        yield f"{name}_sum {self.sum:.9g}"
        yield f"{name}_count {total}"


class Metrics:
    """The counters of one service; only its event loop writes to them."""

    def __init__(self) -> None:
        self.answers: Counter[int] = Counter()
        self.reloads: Counter[str] = Counter()
        self.rows = 0
        self.accepted = 0
        self.answered = 0
        self.request = Histogram(SECONDS)
        self.waited = Histogram(SECONDS)
        self.ran = Histogram(SECONDS)
        self.gathered = Histogram(ROWS)

    def text(self, gauges: dict[str, tuple[str, float]]) -> str:
        """Everything, with ``gauges`` as name -> (what it is, value)."""
        return "\n".join([*self._lines(gauges), ""])

    def _lines(self, gauges: dict[str, tuple[str, float]]) -> Iterator[str]:
        yield from _head(
            "mlopt_requests_total", "counter", "Answers of /predict by status."
        )
        for status, count in sorted(self.answers.items()):
            yield f'mlopt_requests_total{{status="{status}"}} {count}'
        yield from _head("mlopt_accepted_total", "counter", "Requests that got credits.")
        yield f"mlopt_accepted_total {self.accepted}"
        yield from _head("mlopt_answered_total", "counter", "Of them, in time.")
        yield f"mlopt_answered_total {self.answered}"
        yield from _head("mlopt_rows_total", "counter", "Rows that were predicted.")
        yield f"mlopt_rows_total {self.rows}"
        yield from _head("mlopt_reloads_total", "counter", "Models that replaced another.")
        for result in ("done", "failed"):
            yield f'mlopt_reloads_total{{result="{result}"}} {self.reloads[result]}'
        for name, what, histogram in (
            (
                "mlopt_request_seconds",
                "From when a request was there to its answer.",
                self.request,
            ),
            (
                "mlopt_wait_seconds",
                "Of it, until its first row was in a call.",
                self.waited,
            ),
            ("mlopt_call_seconds", "A call of the model.", self.ran),
            ("mlopt_call_rows", "Rows in a call.", self.gathered),
        ):
            yield from _head(name, "histogram", what)
            yield from histogram.lines(name)
        for name, (what, value) in gauges.items():
            yield from _head(name, "gauge", what)
            yield f"{name} {value:.9g}"


def _head(name: str, kind: str, what: str) -> tuple[str, str]:
    return f"# HELP {name} {what}", f"# TYPE {name} {kind}"
