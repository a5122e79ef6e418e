"""An answer is one write to its socket, and a refusal before any parsing."""

from __future__ import annotations

import asyncio
import socket
from typing import Any
from unittest.mock import Mock, call

import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from mlopt.serving.protocol import Refusing, Together, body_length


def test_head_and_body_are_one_write_and_none_is_lost_at_the_end() -> None:
    async def play() -> list[bytes]:
        inner = Mock()
        inner.is_closing.return_value = False
        transport = Together(inner, asyncio.get_running_loop())
        transport.write(b"head ")
        transport.write(b"body")
        await asyncio.sleep(0)
        transport.write(b"last")
        transport.close()
        assert inner.method_calls[-2:] == [call.write(b"last"), call.close()]
        await asyncio.sleep(0)
        return [one.args[0] for one in inner.write.call_args_list]

    assert asyncio.run(play()) == [b"head body", b"last"]


def protocol_of(base: type, app: Any, **settings: Any) -> Any:
    """A protocol of uvicorn's that refuses as ours does."""
    config = uvicorn.Config(app, lifespan="off", ws="none", **settings)
    config.load()
    given = {"config": config, "server_state": ServerState(), "app_state": {}}
    return type("Made", (Refusing, base), {})(lambda: b"refused", **given)


HEAD = b"POST /predict HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n"
WHOLE = HEAD + b"\r\nbody"


@pytest.mark.parametrize("http", ["httptools", "h11"])
@pytest.mark.parametrize(
    ("chunks", "refused", "asked"),
    [
        ([WHOLE], 1, 0),
        ([WHOLE, WHOLE], 2, 0),
        ([HEAD + b"\r\n", b"bo", b"dy", WHOLE], 2, 0),
        ([WHOLE.replace(b"/predict", b"/predict?proba=true")], 1, 0),
        ([b"GET /ready HTTP/1.1\r\nHost: a\r\n\r\n"], 0, 1),
        ([WHOLE.replace(b"/predict", b"/predicted")], 0, 1),
        ([WHOLE + WHOLE], 1, 1),  # the second as any other
        ([HEAD[:30], HEAD[30:] + b"\r\nbody"], 0, 1),
        ([WHOLE.replace(b"Content-Length: 4", b"Transfer-Encoding: chunked")[:-4]], 0, 1),
        ([HEAD + b"Connection: keep-alive\r\n\r\nbody"], 1, 0),
        ([HEAD + b"Connection: close\r\n\r\nbody"], 0, 1),
    ],
)
def test_without_credit_a_request_is_refused_when_its_head_has_come(
    http: str, chunks: list[bytes], refused: int, asked: int
) -> None:
    paths = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        paths.append(scope["path"])

    base = {"h11": H11Protocol, "httptools": HttpToolsProtocol}[http]

    async def play() -> bytes:
        inner = Mock()
        inner.is_closing.return_value = False
        inner.get_extra_info.return_value = None
        protocol = protocol_of(base, app, proxy_headers=False)
        protocol.connection_made(inner)
        for chunk in chunks:
            protocol.data_received(chunk)
        await asyncio.sleep(0)
        protocol.connection_lost(None)
        return b"".join(one.args[0] for one in inner.write.call_args_list)

    written = asyncio.run(play())
    assert written.count(b"refused") == refused
    assert len(paths) == asked


def test_a_connection_that_is_refused_now_and_then_is_kept_and_a_silent_one_is_closed() -> (
    None
):
    timers: list[tuple[float, Any]] = []
    loop = Mock()
    loop.time.return_value = 0.0

    def call_later(after: float, what: Any) -> Mock:
        timers.append((loop.time.return_value + after, what))
        return Mock()

    loop.call_later.side_effect = call_later

    async def play() -> None:
        protocol = protocol_of(H11Protocol, Mock(), timeout_keep_alive=5)
        protocol.loop = loop
        inner = Mock()
        inner.is_closing.return_value = False
        inner.get_extra_info.return_value = None
        protocol.connection_made(inner)
        answered = protocol.timeout_keep_alive_task = Mock()  # as after an answer
        for second in range(9):
            loop.time.return_value = float(second)
            while timers and timers[0][0] <= second:
                timers.pop(0)[1]()
            protocol.data_received(WHOLE)
        answered.cancel.assert_called_once()
        assert len(timers) == 1
        assert not inner.close.called
        while timers:
            loop.time.return_value, what = timers.pop(0)
            what()
        assert inner.close.called
        assert loop.time.return_value == 8.0 + 5.0

    asyncio.run(play())


@pytest.mark.parametrize("http", [HttpToolsProtocol, H11Protocol])
def test_a_silent_connection_is_not_closed_while_a_request_waits_to_be_read(
    http: type,
) -> None:
    async def play() -> list[bool]:
        near, far = socket.socketpair()
        with near, far:
            protocol = protocol_of(http, Mock())
            inner = Mock()
            inner.is_closing.return_value = False
            inner.get_extra_info.side_effect = {"socket": near}.get
            protocol.connection_made(inner)
            far.send(WHOLE)
            protocol.timeout_keep_alive_handler()
            closed = [inner.close.called]
            protocol.data_received(near.recv(1 << 16))
            protocol.timeout_keep_alive_handler()
            return [*closed, inner.close.called]

    assert asyncio.run(play()) == [False, True]


@pytest.mark.parametrize("http", [HttpToolsProtocol, H11Protocol])
def test_a_connection_that_has_been_closed_needs_not_be_closed_for_its_silence(
    http: type,
) -> None:
    async def play() -> None:
        near, far = socket.socketpair()
        with far:
            protocol = protocol_of(http, Mock())
            inner = Mock()
            inner.is_closing.return_value = True
            inner.get_extra_info.side_effect = {"socket": near}.get
            protocol.connection_made(inner)
            near.close()
            protocol.timeout_keep_alive_handler()
            assert not inner.close.called

    asyncio.run(play())


@pytest.mark.parametrize(
    "lines",
    [
        b"Content-Length: 4\r\nContent-Length: 5",
        b"X: 1\nContent-Length: 4",
        b"Content-Length: +4",
        b"Expect: 100-continue\r\nContent-Length: 4",
    ],
)
def test_a_head_that_does_not_plainly_say_where_it_ends_is_left_to_the_parser(
    lines: bytes,
) -> None:
    assert body_length(b"POST /predict HTTP/1.1\r\n" + lines) == -1
