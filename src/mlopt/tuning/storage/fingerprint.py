"""What a study is of, part by part, and how two studies differ.

A part is text for people and the token of its content, ``"(569, 30) #1c99...": equal parts
are interchangeable. The part of something whose content cannot be told is None: it is like
nothing else, so that a study of it does not go on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mlopt.identity import identified

Fingerprint = Mapping[str, str | None]

_MARK = " #"
_LONGEST = 60
"""Letters of a value in a message; it is the names that count."""
_LEADING = 20
"""Letters shown in front of where two long values begin to differ."""
_SHOWN = 3
"""Differences in a message, which is one line of a terminal or two."""


def part(value: Any, text: str = "") -> str | None:
    """The part of a fingerprint that ``value`` is."""
    token = identified(value)
    return None if token is None else f"{text}{_MARK}{token}"


def part_of_data(value: Any) -> str | None:
    """The same, shown by its shape."""
    if value is None:
        return "none"
    return part(value, str(getattr(value, "shape", "")) or type(value).__name__)


def part_of_setting(value: Any) -> str | None:
    """The same, shown as plain text where it is that, by its type otherwise."""
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    return part(value, type(value).__name__)


def unknown(before: Fingerprint, now: Fingerprint) -> list[str]:
    """Names of the parts of which nobody can tell whether they are the same."""
    return [name for name in now if name in before and None in (before[name], now[name])]


def differences(before: Fingerprint, now: Fingerprint, whose: str = "this study") -> str:
    """What differs, in few words; empty when nothing does.

    Parts of a family are named ``"family: part"``: a family that is not in both is one
    difference, whatever its parts.
    """
    told: dict[str, str] = {}
    differs = f"differs from that of {whose}"
    for name in {**before, **now}:
        if before.get(name) == now.get(name) and name in before and name in now:
            continue
        family, inner, _ = name.partition(": ")
        if inner and not _has(now, family):
            told[family] = f"`{family}` is left out"
        elif inner and not _has(before, family):
            told[family] = f"`{family}` is new"
        else:
            change = _change(before.get(name, "absent"), now.get(name, "absent"))
            told[name] = f"`{name}` {differs}: {change}"
            differs = "too"
    listed = list(told.values())
    if len(listed) > _SHOWN:
        listed = [*listed[:_SHOWN], f"and {len(listed) - _SHOWN} more"]
    return "; ".join(listed)


def _has(fingerprint: Fingerprint, family: str) -> bool:
    return any(name.startswith(f"{family}: ") for name in fingerprint)


def _change(before: str | None, now: str | None) -> str:
    was, _, _ = (before or "").partition(_MARK)
    there, _, _ = (now or "").partition(_MARK)
    if was == there:
        return f"other content ({_short(there)})" if there else "other content"
    pairs = enumerate(zip(was, there, strict=False))
    same = next((at for at, (a, b) in pairs if a != b), min(len(was), len(there)))
    return f"was {_short(was, same)}, is now {_short(there, same)}"


def _short(text: str, same: int = 0) -> str:
    """A part of a long text: where it goes on after the letters that are the same."""
    begin = same - _LEADING if same + _LEADING > _LONGEST else 0
    part = f"...{text[begin:]}" if begin else text
    return part if len(part) <= _LONGEST else f"{part[: _LONGEST - 3]}..."
