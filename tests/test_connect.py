"""Which addresses of schedulers are safe to connect to."""

from __future__ import annotations

import asyncio
import gc
import threading

import dask
import distributed
import pytest

import mlopt
from mlopt.cluster import Threads, executor
from mlopt.cluster.connect import check_safe, connect, reached
from mlopt.errors import ConfigError, InputError


@pytest.mark.parametrize(
    "address",
    [
        "tcp://192.0.2.1:8786",
        "192.0.2.1:8786",
        "tcp://[2001:db8::1]:8786",
        "ws://192.0.2.1:8786",
        "ucx://192.0.2.1:8786",
    ],
)
def test_plain_tcp_beyond_this_machine_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match="TLS"), connect(address, patience=0.2):
        pass


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:1", "localhost:1", "tcp://[::1]:1", "tls://192.0.2.1:1"]
)
def test_this_machine_and_tls_are_asked(address: str) -> None:
    with pytest.raises(ConfigError, match="does not answer"):  # noqa: SIM117
        with connect(address, patience=0.2):
            pass


def test_who_trusts_a_network_may_say_so() -> None:
    with dask.config.set({"mlopt.cluster.allow-plain-tcp": True}):
        check_safe("tcp://192.0.2.1:8786")
    with pytest.raises(ConfigError, match="allow-plain-tcp"):
        check_safe("tcp://192.0.2.1:8786")


def test_a_client_that_found_no_scheduler_is_closed_at_once() -> None:
    """Collected later, it may wait for a lock that its collector holds: for ever."""
    gc.collect()
    before = set(map(id, filter(is_client, gc.get_objects())))
    gc.disable()
    try:
        with pytest.raises(ConfigError), connect("tcp://127.0.0.1:1", patience=0.2):
            pass
        left = [one for one in gc.get_objects() if is_client(one) and id(one) not in before]
    finally:
        gc.enable()
    assert not left


def is_client(value: object) -> bool:
    return type(value) is distributed.Client


def test_who_waits_at_an_address_is_nobodys_default() -> None:
    """Two that wait side by side would leave a scheduler behind that is gone."""
    with distributed.LocalCluster(
        n_workers=1,
        processes=False,
        protocol="tcp://",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    ) as cluster:
        address = cluster.scheduler_address
        begun, over = threading.Event(), threading.Event()

        def wait() -> None:
            with reached(address):
                begun.set()
                over.wait(20)

        thread = threading.Thread(target=wait)
        thread.start()
        assert begun.wait(20)
        with reached(address) as client:
            assert client.scheduler.address == address
            over.set()
            thread.join()
            assert isinstance(executor(), Threads)
        assert dask.config.get("scheduler", None) is None


def test_a_client_that_is_asynchronous_is_refused() -> None:
    async def ask() -> None:
        async with (
            distributed.LocalCluster(
                n_workers=0,
                processes=False,
                asynchronous=True,
                protocol="tcp://",
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
            ) as cluster,
            distributed.Client(cluster, asynchronous=True) as client,
        ):
            with pytest.raises(ConfigError, match="synchronous"):
                reached(client)
            with pytest.raises(InputError, match="synchronous"):
                mlopt.Resources.probe(client)

    asyncio.run(ask())
