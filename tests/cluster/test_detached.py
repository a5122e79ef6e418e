"""Tasks that outlive their client come in the order in which they were sent."""

from __future__ import annotations

import threading
from typing import Any

import distributed
from tests.clusters import eventually

from mlopt.cluster.at_scheduler import DRIVERS
from mlopt.cluster.detached import detach, detached

GO = threading.Event()


def waiting(drive: Any) -> None:
    del drive
    GO.wait(60)


def test_first_come_first_served_however_fast_they_are_sent() -> None:
    GO.clear()
    keys = [f"{DRIVERS}{name}" for name in "zyxwv"]
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False,
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        distributed.Client(cluster) as client,
    ):  # fmt: skip
        try:
            for key in keys:
                detach(client, key, waiting)
            assert detached(client) == keys
        finally:
            GO.set()
            # Their clients are threads of this process: they go before their scheduler.
            assert eventually(lambda: not detached(client), 30.0)
