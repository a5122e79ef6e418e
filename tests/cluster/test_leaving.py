"""A member that leaves: its plugin goes, unless the worker that closes removes it."""

from __future__ import annotations

import asyncio
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
