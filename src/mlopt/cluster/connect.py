"""A client of a cluster that is already there, and what is left when it is gone."""

from __future__ import annotations

import gc
import ipaddress
import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import dask
import distributed

from mlopt.errors import ConfigError
from mlopt.options import switch

PLAIN_TCP = "mlopt.cluster.allow-plain-tcp"
"""The setting of `dask.config` that allows ``tcp://`` beyond this machine."""
_SAFE = ("tls", "wss", "inproc")
"""What others on the network can neither read nor change."""


@contextmanager
def dask_default_kept() -> Iterator[None]:
    """Put back where Dask computes by default, at the end of the block.

    A client changes it, and does not undo that when its constructor fails or when it is
    closed within its own block: every later ``compute()`` would ask for a client. Blocks
    must nest.
    """
    before = dask.config.get("scheduler", None)
    try:
        yield
    finally:
        if before is None:
            dask.config.config.pop("scheduler", None)
        else:
            dask.config.set(scheduler=before)


def check_safe(address: str) -> None:
    """Refuse what others on the network could read, and run code through."""
    scheme, _, place = address.rpartition("://")
    if scheme in _SAFE or switch(PLAIN_TCP, False):
        return
    host = place.rpartition(":")[0].strip("[]")
    if not _is_loopback(host):
        raise ConfigError(
            f"`scheduler` must be on this machine or use TLS (tls://HOST:PORT), got "
            f"{address!r}: whoever is on such a line can run code on all workers. In a "
            f"network that you trust, set {PLAIN_TCP!r} in Dask's configuration, or "
            "DASK_MLOPT__CLUSTER__ALLOW_PLAIN_TCP=true."
        )


def _is_loopback(host: str) -> bool:
    try:
        found = {entry[4][0] for entry in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):  # no such host: who connects will say so
        return True
    return all(
        ipaddress.ip_address(str(one).partition("%")[0]).is_loopback for one in found
    )


@contextmanager
def connect(
    address: str, *, patience: float = 10.0, default: bool = True
) -> Iterator[distributed.Client]:
    """The client of the scheduler at ``address``, closed at the end of the block.

    Parameters
    ----------
    address : str
        As in "tcp://10.0.0.1:8786".
    patience : float, default=10
        Seconds to wait for an answer.
    default : bool, default=True
        Whether it is Dask's default, and the active one of all threads, until then.

    Yields
    ------
    distributed.Client

    Raises
    ------
    ConfigError
        When no scheduler answers, or what is sent could be read and changed on its way:
        ``tcp://`` beyond this machine, unless ``mlopt.cluster.allow-plain-tcp`` of
        `dask.config` says so.
    """
    check_safe(address)
    with dask_default_kept():
        try:
            # What fails here is closed when it is collected, and would bring back then what
            # was the default before it.
            with distributed.Client(address, timeout=patience, set_as_default=False):
                pass
            client = distributed.Client(address, timeout=patience, set_as_default=default)
        except (OSError, TimeoutError, TypeError, ValueError) as error:
            failed = type(error).__name__
        else:
            failed = ""
        if failed:
            # Its `__del__` takes a lock: collected while that is held, it waits for ever.
            gc.collect()
            raise ConfigError(
                f"`scheduler` must be the address of a Dask scheduler that runs; "
                f"{address!r} does not answer ({failed}). Start one with "
                "`dask scheduler`; tls:// needs certificates in Dask's configuration."
            )
        with client:
            yield client


def reached(scheduler: Any) -> AbstractContextManager[Any]:
    """A client, of an address (`connect`), or the one that is given, or the active one.

    Raises
    ------
    ConfigError
        There is none, or the line to it is not safe: as of `connect`.
    """
    if isinstance(scheduler, str):
        return connect(scheduler, default=False)
    try:
        client = scheduler or distributed.default_client()
    except ValueError:
        raise ConfigError(
            "A scheduler is needed: give its address, as in 'tcp://127.0.0.1:8786', or "
            "make a `distributed.Client`."
        ) from None
    if not isinstance(client, distributed.Client):
        raise ConfigError(
            "`scheduler` must be the address of a Dask scheduler, or a client of one; got "
            f"{client!r:.80}. Of a cluster give its `scheduler_address`."
        )
    if client.scheduler is None or client.status == "closed":
        raise ConfigError(
            "`scheduler` must be a client that is open, and this one is closed: make "
            "another, or give the address."
        )
    if client.asynchronous:
        raise ConfigError(
            "`scheduler` must be a synchronous client: make it with "
            "`Client(asynchronous=False)`, or give the address."
        )
    check_safe(client.scheduler.address)
    return nullcontext(client)
