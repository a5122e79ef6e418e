"""``python -m tests.compat.document`` writes the table into docs/compatibility.md."""

from __future__ import annotations

from pathlib import Path

from tests.compat.expected import documentation

if __name__ == "__main__":
    page = Path(__file__).parents[2] / "docs/compatibility.md"
    head, mark, rest = page.read_text().partition("<!-- the table -->\n\n")
    _, end, tail = rest.partition("\n<!-- end of the table -->")
    page.write_text(head + mark + documentation() + end + tail)
