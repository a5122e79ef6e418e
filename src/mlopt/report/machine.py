"""What a machine can do, as a table for people."""

from __future__ import annotations

import math

from mlopt.plan import format_bytes, format_seconds
from mlopt.resources import Resources
from mlopt.resources.experience import Experience


def describe(resources: Resources) -> str:
    """A line a resource, with its unit; and then what is remembered of fits."""
    rows = (
        ("workers", f"{resources.workers}", "processes that share the work"),
        ("threads", f"{resources.threads}", "of one worker"),
        ("memory", format_bytes(resources.memory), "of all workers"),
        ("float64 products", _rate(resources.gemm_f64, "flop/s"), "one thread"),
        ("float32 products", _rate(resources.gemm_f32, "flop/s"), "one thread"),
        ("memory reads", _rate(resources.bandwidth, "B/s"), "one thread"),
        ("memory reads", _rate(resources.bandwidth_all, "B/s"), "all threads of a worker"),
        ("disk reads", _rate(resources.disk, "B/s"), ""),
        ("network", _rate(resources.network, "B/s"), "between two workers"),
        ("a task", format_seconds(resources.task), "that one more costs its scheduler"),
        ("small calls", f"{resources.python:.2f}", "speed; 1 where costs were measured"),
        ("a round trip", format_seconds(resources.round_trip), "task out, answer back"),
    )
    lines = (f"{name:<18}{value:>14}   {note}".rstrip() for name, value, note in rows)
    return "\n".join([*lines, *_remembered(resources.experience)])


def _remembered(found: Experience | None) -> list[str]:
    """How predictions are corrected: a line for a method and a kind of problems."""
    if found is None:
        return ["", "nothing is remembered of fits"]
    if not found.entries:
        return ["", "no fit is remembered yet"]
    head = f"{'measured / predicted':<34}{'fits':>6}{'mean':>8}{'used':>8}"
    lines = (
        f"{method:<34}{ratio.count:>6}{math.exp(ratio.mean):>8.2f}{ratio.factor():>8.2f}"
        f"   {what}: {kind}"
        for (method, what, kind), ratio in found.entries
    )
    return ["", head, *lines]


def _rate(value: float, unit: str) -> str:
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= factor:
            return f"{value / factor:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"
