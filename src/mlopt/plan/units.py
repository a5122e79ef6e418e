"""Seconds and bytes as people read them: two digits, and a unit that fits."""

from __future__ import annotations

import math

BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def format_seconds(seconds: float | None) -> str:
    """``0.0123`` as "12 ms", ``90`` as "1.5 min"; None as "?"."""
    if seconds is None or math.isnan(seconds):
        return "?"
    if math.isinf(seconds):
        return "for ever"
    if seconds < 0.9995:
        milliseconds = 1e3 * seconds
        return (
            f"{milliseconds:.0f} ms" if milliseconds >= 9.95 else f"{milliseconds:.2g} ms"
        )
    if seconds < 59.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    if seconds < 3570:
        return _short(seconds / 60, "min")
    return _short(seconds / 3600, "h")


def _short(value: float, unit: str) -> str:
    return f"{value:.1f} {unit}" if value < 9.95 else f"{value:.0f} {unit}"


def format_bytes(count: float | None) -> str:
    """``3 * 2**20`` as "3.0 MiB"; None as "?"."""
    if count is None:
        return "?"
    exponent = _byte_exponent(count)
    return f"{_in_unit(count, exponent)} {BYTE_UNITS[exponent]}"


def format_share(part: float, whole: float) -> str:
    """Bytes of a budget, in one unit where that says enough: "0.4 of 2.0 GiB"."""
    exponent = _byte_exponent(whole)
    if part and part / 1024**exponent < 0.05:
        return f"{format_bytes(part)} of {format_bytes(whole)}"
    return f"{_in_unit(part, exponent)} of {format_bytes(whole)}"


def _byte_exponent(count: float) -> int:
    exponent = 0
    # 999.5 is where three digits would become four.
    while count / 1024**exponent >= 999.5 and exponent < len(BYTE_UNITS) - 1:
        exponent += 1
    return exponent


def _in_unit(count: float, exponent: int) -> str:
    value = count / 1024**exponent
    return f"{value:.1f}" if exponent and value < 9.95 else f"{value:.0f}"
