"""When a job that outlives its client begins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from mlopt.cluster import detached


def test_a_job_that_the_scheduler_has_not_listed_yet_waits_for_those_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = iter([
        (["one", "two"], 2), (["one", "two", "mine"], 2), (["two", "mine"], 2), ([], 2),
    ])  # fmt: skip
    monkeypatch.setattr(detached, "ask", lambda *_: next(said))
    monkeypatch.setattr(detached, "_TURN", 0.0)
    drive = SimpleNamespace(client=None, _key="mine")
    detached._wait_for_turn(cast(Any, drive))
    assert next(said) == ([], 2)  # it began as one of two
