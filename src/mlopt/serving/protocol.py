"""Uvicorn's protocol of HTTP, with one write for an answer in place of two.

Head and body are written one after the other. Each is a system call, after which the event
loop waits for the interpreter while the thread that predicts has it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol


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
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def close(self) -> None:
        """Write what is kept, and close."""
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))


class Protocol(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
    """That of httptools where it is installed, else of h11."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Write through `Together`."""
        super().connection_made(Together(transport, self.loop))
