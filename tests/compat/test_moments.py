"""Ctrl-C at thirty moments of a sweep: status 130, a word how to go on, no orphan."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.interrupted import OUTPUTS, sweep, write_people

MOMENTS = 30
LOADED = 0.15
"""Seconds after which the interpreter hears signals, on a slow machine."""


@pytest.mark.timeout(1800)
def test_an_interruption_at_any_moment(tmp_path: Path) -> None:
    table = write_people(tmp_path)
    whole = [sweep(table, tmp_path / f"whole-{again}", None) for again in range(2)]
    assert all(one.status == 0 for one in whole), whole[0].err
    # The first finds files that nobody has read yet, and takes longer than what follows.
    shortest = min(one.seconds for one in whole)
    done = 0
    for moment in range(MOMENTS):
        part = (shortest - LOADED) * moment / MOMENTS
        ended = sweep(table, tmp_path / str(moment), LOADED + part)
        assert not ended.orphans
        if ended.status == 0:  # it was done before the signal came
            assert ended.files >= OUTPUTS
            shortest = min(shortest, ended.seconds)  # what else ran here may have ended
            done += 1
            continue
        assert ended.status == 130, (moment, ended.err)
        assert ended.says_how_to_go_on, (moment, ended.err)
    assert done < MOMENTS / 3
