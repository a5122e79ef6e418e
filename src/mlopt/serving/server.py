"""The process: a socket, signals, and an end that loses nothing.

::

    SIGHUP            load the model's file anew
    SIGTERM, SIGINT   refuse what is new, answer what was let in, end; a second: at once
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import uvicorn

from mlopt.errors import ConfigError
from mlopt.serving.answering import settle
from mlopt.serving.app import Limits, build_app, refusal
from mlopt.serving.protocol import Protocol
from mlopt.serving.service import Service
from mlopt.serving.turns import SHARE, Turns

TOKEN = "MLOPT_TOKEN"
"""The environment's variable with the token."""
LINGER = 0.2
"""Seconds for which refusals go on after the last answer: a request may be on its way."""

TURN = 0.0005
"""Seconds that a thread keeps the interpreter while another wants it. The event loop does
after each system call: with Python's 5 ms, ten refusals while a call runs take 50 ms.
"""

LAST_PORT = (1 << 16) - 1
"""A port of TCP has 16 bits."""
BACKLOG = 2048
"""Connections that may wait to be accepted, as Uvicorn has it."""


@dataclass(frozen=True)
class Where:
    """Where to listen, and who may ask.

    Parameters
    ----------
    host : str
    port : int
        0 for any that is free.
    token : str
        Empty where none is needed: on loopback only.

    Raises
    ------
    ConfigError
        No port, or a host that is not this machine's alone, and no token.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    token: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.port <= LAST_PORT:  # the resolver takes it modulo that
            raise ConfigError(
                f"--port must be 0, for any that is free, to {LAST_PORT}; got {self.port}."
            )
        if not self.token and not _is_loopback(self.host):
            raise ConfigError(
                f"A service on {self.host} is open to other machines and must have a "
                f"token: name a file of it by --token-file, or set {TOKEN}."
            )

    def listening(self) -> socket.socket:
        """A socket that listens there."""
        found = socket.getaddrinfo(
            self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        made = socket.socket(found[0][0])
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(found[0][4])
            made.listen(BACKLOG)  # who hears of it may ask at once
        except OSError as error:
            made.close()
            raise OSError(
                f"Cannot listen on {self.host} port {self.port}: {error.strerror}. Is a "
                "service there already? --port 0 takes any that is free."
            ) from error
        return made


def read_token(file: Path | None) -> str:
    """The token of a file, or of the environment; empty where there is neither.

    Raises
    ------
    ConfigError
        A file without one, or that cannot be read.
    """
    if file is None:
        return os.environ.get(TOKEN, "").strip()
    try:
        token = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"The token file {file} cannot be read: {error}.") from None
    if not token or not token.isascii() or not token.isprintable():
        raise ConfigError(f"The token file {file} must hold one line of printable ASCII.")
    return token


def serve(
    service: Service,
    where: Where,
    limits: Limits,
    tell: Callable[[str], object],
    *,
    watch: float = 1.0,
) -> None:
    """Answer until a signal comes.

    Parameters
    ----------
    service : Service
    where : Where
    limits : Limits
    tell : callable
        Called with sentences for the log.
    watch : float
        Seconds between two looks at the model's file.
    """
    sys.setswitchinterval(TURN)
    settle()
    with contextlib.closing(where.listening()) as listening:
        name, port = listening.getsockname()[:2]
        shown = f"[{name}]" if ":" in name else name
        tell(
            f"{service.path} answers at http://{shown}:{port}: "
            f"{len(service.model.columns)} columns; Ctrl-C ends it, once all is answered"
        )
        turns = Turns()
        service.arrived = lambda: turns.since
        with asyncio.Runner(loop_factory=partial(asyncio.SelectorEventLoop, turns)) as run:
            run.run(_run(service, listening, where, limits, tell, watch))


async def _run(
    service: Service,
    listening: socket.socket,
    where: Where,
    limits: Limits,
    tell: Callable[[str], object],
    watch: float,
) -> None:
    server = Server(
        uvicorn.Config(
            build_app(service, limits, where.token),
            http=cast(type[asyncio.Protocol], partial(Protocol, partial(refusal, service))),
            proxy_headers=False,  # who asks changes nothing
            lifespan="off",
            access_log=False,
            log_level="warning",
            server_header=False,
            backlog=SHARE,  # connections that asyncio accepts in one turn
        )
    )
    end = asyncio.Event()
    loop = asyncio.get_running_loop()
    background: set[asyncio.Task[Any]] = {loop.create_task(service.watch(watch))}

    def stop() -> None:
        if end.is_set():
            server.force_exit = server.should_exit = True
        end.set()

    def reload() -> None:
        task = loop.create_task(service.reload())
        background.add(task)
        task.add_done_callback(background.discard)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGHUP, reload)
    running = asyncio.ensure_future(server.serve([listening]))
    ended = asyncio.ensure_future(end.wait())
    await asyncio.wait([running, ended], return_when=asyncio.FIRST_COMPLETED)
    if not running.done():
        tell(f"{service.queue.open_requests} requests are open and will be answered")
        await asyncio.wait([running, asyncio.ensure_future(_drain(service))],
                           return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
        server.should_exit = True
    await running
    for task in [*background, ended]:
        task.cancel()
    service.close()
    counts = service.metrics
    tell(
        f"ended: {counts.accepted} requests were let in, {counts.answered} of them answered"
    )


async def _drain(service: Service) -> None:
    await service.drain()
    await asyncio.sleep(LINGER)


class Server(uvicorn.Server):
    """Uvicorn's, that leaves signals to us: it would end before all is answered."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen as before: asyncio took the connections of a turn for those that wait."""
        await super().startup(sockets)
        for listening in sockets or []:
            listening.listen(BACKLOG)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Nothing."""
        yield


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return False
