"""The items of HAVING and USING: each optional, once, and with a value that can work."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from mlopt.errors import did_you_mean
from mlopt.query import ast
from mlopt.query.cursor import Cursor
from mlopt.query.durations import looks_like_part, parse_duration
from mlopt.query.text import Span, alternatives
from mlopt.query.words import ALGORITHMS, HAVING, RESERVED, SAMPLERS, USING

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)


def having(cursor: Cursor) -> ast.Having:
    """TIME, EPSILON and MAX_ITER, separated by commas."""
    return ast.Having(**_items(cursor, "HAVING", _HAVING))


def using(cursor: Cursor) -> ast.Using:
    """ALGORITHM, CONVERGENCE, STEP and SAMPLER, separated by commas."""
    return ast.Using(**_items(cursor, "USING", _USING))


def _items(
    cursor: Cursor, clause: str, known: Mapping[str, Callable[[Cursor, str], Any]]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    while True:
        item = cursor.keyword
        if item not in known:
            raise _unknown_item(cursor, clause, known)
        if item.lower() in found:
            raise cursor.error(f"{item} stands twice: give it once.")
        cursor.advance()
        found[item.lower()] = known[item](cursor, item)
        if not cursor.accept(","):
            break
        if cursor.at_end or cursor.keyword in RESERVED:
            break
    if cursor.keyword in known:
        raise cursor.error(f"expected `,` between items of {clause}, found {cursor.token}.")
    return found


def _unknown_item(cursor: Cursor, clause: str, known: Mapping[str, Any]) -> Exception:
    for other, items in (("HAVING", HAVING), ("USING", USING)):
        if other != clause and cursor.keyword in items:
            return cursor.error(f"{cursor.keyword} is an item of {other}, not of {clause}.")
    return cursor.unexpected(f"{alternatives(known)} after {clause}", known)


def _time(cursor: Cursor, item: str) -> float:
    span, words = cursor.token.span, []
    while cursor.token.kind == "word" and looks_like_part(cursor.token.value):
        words.append(cursor.token.value)
        span = span.to(cursor.advance().span)
    if not words:
        raise cursor.unexpected("a duration after TIME, such as 1h30m, 30s or 500ms")
    text = " ".join(words)
    seconds = parse_duration(text)
    if seconds is None:
        number = _NUMBER.fullmatch(text)
        unit = f" It has no unit: write `{text}s` or `{text}m`." if number else ""
        raise cursor.error(
            f"expected a duration after TIME, such as 1h30m, 30s or 500ms, found `{text}`."
            f"{unit} Units: ms, s, m, h, d.",
            span,
        )
    return _positive(cursor, item, seconds, text, span)


def _number(cursor: Cursor, item: str) -> float:
    token = cursor.token
    if token.kind != "word" or not _NUMBER.fullmatch(token.value):
        raise cursor.unexpected(f"a number after {item}, such as 0.01 or 1e-3")
    cursor.advance()
    return _positive(cursor, item, float(token.value), token.value, token.span)


def _whole(cursor: Cursor, item: str) -> int:
    token = cursor.token
    if token.kind != "word" or not _WHOLE.fullmatch(token.value):
        raise cursor.unexpected(f"a whole number after {item}, such as 1000")
    cursor.advance()
    return int(_positive(cursor, item, int(token.value), token.value, token.span))


def _positive(cursor: Cursor, item: str, value: float, given: str, span: Span) -> float:
    if value > 0 and math.isfinite(value):
        return value
    raise cursor.error(f"{item} must be positive and finite, got {given}.", span)


def _algorithm(cursor: Cursor, item: str) -> ast.Name:
    token = cursor.token
    known = {name.lower(): name for name in ALGORITHMS}
    if token.kind != "word" or token.value.lower() not in known:
        hint = did_you_mean(token.value, ALGORITHMS) if token.kind == "word" else ""
        raise cursor.error(
            f"expected an algorithm, found {token}.{hint} Algorithms: "
            f"{', '.join(ALGORITHMS)}."
        )
    cursor.advance()
    return ast.Name(known[token.value.lower()], span=token.span)


def _call(cursor: Cursor, item: str) -> ast.Call:
    name = cursor.name(f"a function after {item}, such as `f()`")
    cursor.expect("(", f"`()` after `{name.value}`: {item} takes a function")
    cursor.expect(")", "`)`: the function is given from Python, without arguments here")
    return ast.Call(name.value, span=name.span.to(cursor.last))


def _step(cursor: Cursor, item: str) -> float | ast.Call:
    if cursor.following.is_symbol("("):
        return _call(cursor, item)
    return _number(cursor, item)


def _sampler(cursor: Cursor, item: str) -> ast.Name | ast.Call:
    token = cursor.token
    if cursor.following.is_symbol("(") and token.value.lower() not in SAMPLERS:
        return _call(cursor, item)
    if token.kind != "word" or token.value.lower() not in SAMPLERS:
        raise cursor.unexpected(
            f"{alternatives(SAMPLERS)}, or a function such as `s()`, after {item}", SAMPLERS
        )
    cursor.advance()
    if cursor.accept("("):
        cursor.expect(")", "`)`")
    return ast.Name(token.value.lower(), span=token.span)


_HAVING = dict(zip(HAVING, (_time, _number, _whole), strict=True))
_USING = dict(zip(USING, (_algorithm, _call, _step, _sampler), strict=True))
