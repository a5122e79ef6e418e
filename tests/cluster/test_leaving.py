"""A member that leaves: its plugin goes, unless the worker that closes removes it."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from distributed import Status

from mlopt.cluster.mesh_worker import MemberPlugin


@pytest.mark.parametrize(
    ("status", "removed"), [(Status.running, ["m"]), (Status.closing, [])]
)
def test_a_worker_that_closes_removes_plugins_by_itself(
    status: Status, removed: list[str]
) -> None:
    calls: list[str] = []

    async def remove(name: str) -> None:
        calls.append(name)

    def at_once(call: Any) -> None:
        asyncio.run(call())

    worker = SimpleNamespace(
        contact_address="tcp://127.0.0.1:1",
        plugins={},
        status=status,
        loop=SimpleNamespace(add_callback=at_once),
        plugin_remove=remove,
    )
    worker.plugins["m"] = MemberPlugin(worker, "m", b"secret", 1000)
    worker.plugins["m"]._leave()
    assert calls == removed


def test_a_loop_that_ends_before_the_door_is_closed_raises_nothing() -> None:
    async def closes() -> None:
        loop = asyncio.get_running_loop()
        worker = SimpleNamespace(
            contact_address="tcp://127.0.0.1:1", loop=loop, log_event=lambda *_: None
        )
        plugin = MemberPlugin(worker, "m", b"secret", 1000)
        began, may_end = threading.Event(), threading.Event()

        def depart() -> None:
            began.set()
            may_end.wait(10)

        plugin._depart = depart  # type: ignore[method-assign]
        going = asyncio.ensure_future(plugin.teardown(worker))
        await asyncio.to_thread(began.wait, 10)
        going.cancel()
        await asyncio.wait([going], timeout=10)
        may_end.set()
        assert going.done()
        assert not going.cancelled()

    asyncio.run(closes())
