"""The table of differences from scikit-learn: small, explained and documented."""

from __future__ import annotations

from pathlib import Path

from tests.compat.expected import EXPECTED, FILES, documentation

MOST = 120
"""Entries, lest the table become where failures go to rest."""


def test_the_table_is_small_and_gives_a_reason_for_each() -> None:
    every = [one for differences in EXPECTED.values() for one in differences]
    assert len(every) <= MOST
    assert set(EXPECTED) <= set(FILES)
    assert len({(file, one.test) for file in EXPECTED for one in EXPECTED[file]}) == len(
        every
    )
    for one in every:
        assert len(one.reason.split()) > 2, one
        assert "analysed" not in one.reason


def test_every_difference_is_documented() -> None:
    page = Path(__file__).parent.parent / "docs/compatibility.md"
    rest = page.read_text().partition("<!-- the table -->\n\n")[2]
    told = rest.partition("\n<!-- end of the table -->")[0]
    assert told == documentation(), (
        "After a change of tests/compat/expected.py write docs/compatibility.md anew: "
        "`python -m tests.compat.document`."
    )
