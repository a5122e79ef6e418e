"""Durations as people write them: ``1h30m``, ``30s``, ``500ms``, ``2 min``."""

from __future__ import annotations

import re

_UNITS = {
    ("ms", "msec", "millisecond", "milliseconds"): 1e-3,
    ("s", "sec", "secs", "second", "seconds"): 1.0,
    ("m", "min", "mins", "minute", "minutes"): 60.0,
    ("h", "hr", "hrs", "hour", "hours"): 3600.0,
    ("d", "day", "days"): 86400.0,
}
_SECONDS = {name: seconds for names, seconds in _UNITS.items() for name in names}
_NUMBER = r"\d+(?:\.\d*)?(?:e[+-]?\d+(?=[a-z\s]))?|\.\d+"
_UNIT = "|".join(sorted(_SECONDS, key=len, reverse=True))
_PART = re.compile(rf"({_NUMBER})\s*({_UNIT})(?![a-z])", re.ASCII)
_WHOLE = re.compile(rf"-?\s*(?:(?:{_NUMBER})\s*(?:{_UNIT})(?![a-z])\s*)+", re.ASCII)
_WORDS = re.compile(rf"-?[\d.][\w.+-]*|{_UNIT}", re.ASCII)


def looks_like_part(word: str) -> bool:
    """Whether a word may belong to a duration: a number, a unit, or both together."""
    return bool(_WORDS.fullmatch(word.lower()))


def parse_duration(text: str) -> float | None:
    """Seconds, or None where the text is no duration."""
    lower = text.strip().lower()
    if not _WHOLE.fullmatch(lower):
        return None
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(lower))
    return -seconds if lower.startswith("-") else seconds


def format_duration(seconds: float) -> str:
    """The inverse of `parse_duration`, exactly: "1h30m", "500ms"."""
    short = f"{1e3 * seconds:g}ms"
    if seconds < 1 and parse_duration(short) == seconds:
        return short
    if seconds != int(seconds) or seconds > 1e9:
        return f"{seconds!r}s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"
