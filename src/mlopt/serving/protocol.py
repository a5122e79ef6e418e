"""Uvicorn's protocol of HTTP, with one write for an answer, and refusals at once.

Head and body are written one after the other. Each is a system call, after which the event
loop waits for the interpreter while the thread that predicts has it.

Where there is no credit, a request is refused when its head has come, before it is parsed
and becomes a task: overload is many of them, and the event loop must not be their queue.
What is left of its body is thrown away as it comes.
"""

from __future__ import annotations

import asyncio
import re
import selectors
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

ASKED = (b"POST /predict ", b"POST /predict?")
"""How the head of a request begins that may be refused."""
MOST_HEAD = 1 << 12
"""Bytes of a head that is looked at; a longer one is refused once Uvicorn has parsed it.
The heads that `body_length` remembers take 1 MB at most."""
FRAMING = re.compile(
    rb"\r\n(content-length|transfer-encoding|expect|upgrade|connection)[ \t]*:"
    rb"[ \t]*([^\r\n]*)",
    re.IGNORECASE,
)
"""Headers that say where a request ends, or what becomes of its connection."""


class Together:
    """A transport that writes at once what is written within a turn of the event loop."""

    def __init__(
        self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Keep it until the turn of the event loop is over."""
        if not self._parts:
            self._loop.call_soon(self.flush)
        self._parts.append(data)

    def write_now(self, data: bytes) -> None:
        """Write what is kept, and this."""
        if self._parts:
            self._parts.append(data)
            self.flush()
        elif not self._transport.is_closing():
            self._transport.write(data)

    def close(self) -> None:
        """Write what is kept, and close."""
        self.flush()
        self._transport.close()

    def flush(self) -> None:
        """Write what is kept."""
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))


@lru_cache(maxsize=256)
def body_length(head: bytes) -> int:
    """Bytes of the body of a request; -1 where its head does not plainly say.

    Parameters
    ----------
    head : bytes
        From the first byte to before the empty line.

    Examples
    --------
    >>> body_length(b"POST /predict HTTP/1.1\\r\\nContent-Length: 12")
    12
    >>> body_length(b"POST /predict HTTP/1.1\\r\\nTransfer-Encoding: chunked")
    -1
    """
    if head.count(b"\r\n") != head.count(b"\n") or b" HTTP/1.1\r\n" not in head:
        return -1
    found = [(name.lower(), value.strip().lower()) for name, value in FRAMING.findall(head)]
    lengths = [value for name, value in found if name == b"content-length"]
    others = {pair for pair in found if pair[0] != b"content-length"}
    if len(lengths) > 1 or others - {(b"connection", b"keep-alive")}:
        return -1
    length = lengths[0] if lengths else b"0"
    return int(length) if length.isdigit() else -1


class Refusing(asyncio.Protocol):
    """What goes before a protocol of Uvicorn, whose the attributes are.

    Parameters
    ----------
    refusal : callable
        The whole answer to a request that is refused, empty while none is.
    options : object
        Of Uvicorn's protocol.
    """

    loop: asyncio.AbstractEventLoop
    transport: Any
    cycle: Any
    flow: Any
    timeout_keep_alive: float
    timeout_keep_alive_task: asyncio.TimerHandle | None
    _unset_keepalive_if_required: Callable[[], None]

    def __init__(self, refusal: Callable[[], bytes], **options: Any) -> None:
        super().__init__(**options)
        self._refusal = refusal
        self._plain = True  # where requests begin and end is known
        self._left = 0  # bytes of a request that are still to come
        self._refused = False
        self._heard = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Write through `Together`."""
        written: Any = Together(transport, self.loop)
        super().connection_made(written)

    def data_received(self, data: bytes) -> None:
        """Refuse what begins here, or go on with it."""
        if self._plain:
            if not self._left:
                self._begin(data)
            rest = self._left - len(data)
            self._left = max(0, rest)
            self._plain = self._plain and rest >= 0
            if self._refused:
                if rest < 0:  # the next request, with this one: Uvicorn's, as all after it
                    self._refused = False
                    super().data_received(data[rest:])
                return
        super().data_received(data)

    def _begin(self, data: bytes) -> None:
        end = data.find(b"\r\n\r\n", 0, MOST_HEAD)
        length = body_length(data[:end]) if end >= 0 else -1
        self._plain = length >= 0
        self._left = end + 4 + length if self._plain else 0
        alone = self.cycle is None or self.cycle.response_complete
        answer, heard = b"", not self.flow.write_paused
        if self._plain and alone and heard and data.startswith(ASKED):
            answer = self._refusal()
        self._refused = bool(answer)
        if answer:
            self._heard = self.loop.time()
            if self._timer is None or self.timeout_keep_alive_task is not self._timer:
                self._unset_keepalive_if_required()
                self._wait(self.timeout_keep_alive)
            self.transport.write_now(answer)

    def _wait(self, seconds: float) -> None:
        self._timer = self.loop.call_later(seconds, self._idle)
        self.timeout_keep_alive_task = self._timer

    def _idle(self) -> None:
        """Close a connection that was silent: one timer for any number of refusals."""
        self._timer, left = None, self._heard + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._wait(left)
        else:
            self.timeout_keep_alive_handler()

    def timeout_keep_alive_handler(self) -> None:
        """Close, unless a request is there that has not had its turn to be read."""
        if not _readable(self.transport.get_extra_info("socket")):
            super().timeout_keep_alive_handler()  # type: ignore[misc]


def _readable(one: Any) -> bool:
    if one is None or one.fileno() < 0:  # closed: a bad request ends its connection
        return False
    with selectors.DefaultSelector() as selector:
        selector.register(one.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))


class Protocol(Refusing, AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """That of httptools where it is installed, else of h11."""
