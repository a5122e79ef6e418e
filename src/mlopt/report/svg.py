"""Small pieces of inline SVG: scales, ticks, marks. The page brings the colours."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from mlopt.report.history import shown


@dataclass(frozen=True)
class Scale:
    """From values in [low, high] to places in [start, stop], linear or logarithmic."""

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The place of a value; values outside stick to the edge."""
        low, high, x = self.low, self.high, min(max(value, self.low), self.high)
        if self.log:
            low, high, x = math.log10(low), math.log10(high), math.log10(x)
        share = (x - low) / (high - low) if high > low else 0.5
        return self.start + share * (self.stop - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        """Round values inside the range."""
        if self.log:
            return _powers(self.low, self.high, about)
        if self.high <= self.low:
            return [self.low]
        step = _round_step((self.high - self.low) / about)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        # Steps are whole powers of ten, or twice or five times that.
        digits = -math.floor(math.log10(step) + 1e-9)
        return [round(k * step, digits) for k in range(first, last + 1)]


def scale_over(
    values: Iterable[float],
    start: float,
    stop: float,
    *,
    log: bool = False,
    pad: float = 0.04,
) -> Scale:
    """A scale that holds all finite ``values`` with some air around."""
    # Of 1e308 and -1e308 the difference is not finite any more.
    finite = [v for v in values if math.isfinite(4 * v)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if log and low > 0:
        # The quotient of 1e200 and 1e-200 is not finite either; that of their powers is.
        factor = high**pad / low**pad if high > low else 2.0
        least, most = sys.float_info.min, sys.float_info.max
        return Scale(
            max(low / factor, least), min(high * factor, most), start, stop, log=True
        )
    room = (high - low) * pad or abs(high) * 0.05 or 1.0
    return Scale(low - room, high + room, start, stop)


def element(tag: str, *inside: str, **attributes: Any) -> str:
    """One element; ``class_`` is class, other underscores are hyphens, floats are short."""
    text = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return f"<{tag}{text}>{''.join(inside)}</{tag}>"


def title(text: str) -> str:
    """What appears when the pointer rests."""
    return f"<title>{escape(text)}</title>"


def label(
    x: float, y: float, text: str, *, class_: str = "tick", anchor: str = "middle"
) -> str:
    """A piece of text."""
    return element("text", escape(text), x=x, y=y, class_=class_, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def steps(points: Sequence[tuple[float, float]], class_: str) -> str:
    """A line that keeps its height until the next point."""
    if not points:
        return ""
    moves = [f"M{points[0][0]:.1f},{points[0][1]:.1f}"]
    moves += [f"H{x:.1f}V{y:.1f}" for x, y in points[1:]]
    return element("path", d="".join(moves), class_=class_)


def chart(width: int, height: int, *inside: str, name: str) -> str:
    """A picture that fills its column; ``name`` is what screen readers say."""
    return element(
        "svg",
        *inside,
        viewBox=f"0 0 {width} {height}",
        role="img",
        aria_label=name,
        preserveAspectRatio="xMidYMid meet",
    )


def x_axis(scale: Scale, bottom: float, top: float, caption: str, about: int = 6) -> str:
    """Ticks, hairlines and a caption below."""
    parts = []
    for value in scale.ticks(about):
        x = scale(value)
        parts.append(line(x, top, x, bottom, "grid"))
        parts.append(label(x, bottom + 17, _tick(value)))
    middle = (scale.start + scale.stop) / 2
    parts.append(label(middle, bottom + 36, caption, class_="caption"))
    return "".join(parts)


def y_axis(scale: Scale, left: float, right: float) -> str:
    """Ticks and hairlines from left to right."""
    parts = []
    for value in scale.ticks():
        y = scale(value)
        parts.append(line(left, y, right, y, "grid"))
        parts.append(label(left - 8, y + 4, _tick(value), anchor="end"))
    return "".join(parts)


def _tick(value: float) -> str:
    return shown(value) if abs(value) >= 1e4 or 0 < abs(value) < 1e-3 else f"{value:.10g}"


def _attribute(value: Any) -> str:
    return (
        f"{value:.2f}".rstrip("0").rstrip(".")
        if isinstance(value, float)
        else escape(str(value))
    )


def _round_step(rough: float) -> float:
    """The nearest of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return power * min((1, 2, 5, 10), key=lambda m: abs(m - rough / power))


def _powers(low: float, high: float, about: int) -> list[float]:
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    every = max(1, round((last - first) / about))
    powers = [10.0**k for k in range(first, last + 1, every)]
    if len(powers) >= 2:
        return powers
    middle = [m * 10.0**k for k in range(first - 1, last + 1) for m in (1, 2, 5)]
    return [value for value in middle if low <= value <= high]
