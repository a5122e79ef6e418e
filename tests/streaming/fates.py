"""Requests of which some are cancelled and some come too late, beside the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any

from hypothesis import strategies as st
from tests.clusters import eventually

from mlopt import Stream
from mlopt.errors import DeadlineError
from mlopt.streaming.flow import Flow

FATES = st.sampled_from(["", "", "cancel", "late"])


def is_idle(flow: Flow) -> bool:
    """Whether no request is waiting or under way."""
    return not flow.ingress.batches and not flow.allowance.used


def going_on(
    stream: Stream, requests: Sequence[Any], fates: Sequence[str]
) -> Iterator[tuple[int, BaseException | None, Future[Any]]]:
    """Of each request that its fate has not ended: its place, what it raised, its answer.

    In the end the stream must be idle and hold no credit.
    """
    answers = [
        stream.submit(one, deadline=1e-9 if fate == "late" else 60)
        for one, fate in zip(requests, fates, strict=True)
    ]
    for fate, answer in zip(fates, answers, strict=True):
        if fate == "cancel":
            answer.cancel()
    for at, (fate, answer) in enumerate(zip(fates, answers, strict=True)):
        wrong = None if answer.cancelled() else answer.exception(30)
        if answer.cancelled() or isinstance(wrong, DeadlineError):
            assert fate == ("cancel" if answer.cancelled() else "late")
        else:
            yield at, wrong, answer
    running: Any = stream._running
    assert running is not None
    assert eventually(lambda: is_idle(running.flow) and not running.flow.dead)
    assert running.flow.allowance.total == 0
