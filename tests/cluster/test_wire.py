"""Messages over a pair of sockets: what went comes, and nonsense is named."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mlopt.cluster.wire import (
    ANSWER,
    ASK,
    REFUSAL,
    Header,
    Message,
    pack,
    receive,
    send,
)
from mlopt.errors import InputError, WireError

MOST = 1 << 20

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    here, there = socket.socketpair()
    with here, there:
        yield here, there


def through(pair: Pair, message: Message, **how: Any) -> Message:
    """The message, from one end to the other."""
    packed = pack(message, MOST)
    sender = threading.Thread(target=send, args=(pair[0], packed))
    sender.start()
    came = receive(pair[1], MOST, **how)
    sender.join()
    assert came is not None
    return came


INT64 = st.integers(-(2**63), 2**63 - 1)
DTYPES = st.sampled_from(
    ["?", "i1", "<i8", ">i4", "u2", "<f2", ">f8", "c16", "M8[ns]", "m8[s]", "U3", "S5"]
)
ARRAYS = DTYPES.flatmap(
    lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=4, min_side=0))
)
JSON = st.dictionaries(
    st.text(max_size=4), st.one_of(st.none(), INT64, st.text(max_size=9))
)


@given(st.tuples(INT64, INT64, INT64, INT64), JSON, st.lists(ARRAYS, max_size=4), INT64)
def test_what_goes_comes(
    numbers: tuple[int, int, int, int],
    more: dict[str, Any],
    arrays: list[np.ndarray],
    epoch: int,
) -> None:
    here, there = socket.socketpair()
    with here, there:
        came = through(
            (here, there), Message(ASK, "add", epoch, Header(*numbers, more), arrays)
        )
    assert came[:3] == (ASK, "add", epoch)
    assert came.header == Header(*numbers, more)
    assert [(a.dtype, a.shape) for a in came.arrays] == [(a.dtype, a.shape) for a in arrays]
    for array, sent in zip(came.arrays, arrays, strict=True):
        assert array.tobytes() == sent.tobytes()
        assert array.flags.aligned
        assert array.flags.writeable


@pytest.mark.parametrize("order", ["C", "F", "strided"])
def test_memory_of_any_order_goes(pair: Pair, order: str) -> None:
    X = np.arange(60_000.0).reshape(200, 300)
    X = X[::2, ::-1] if order == "strided" else np.asarray(X, order=order)  # type: ignore[call-overload]
    (came,) = through(pair, Message(ASK, "add", 1, Header(), [X])).arrays
    np.testing.assert_array_equal(came, X)


def test_an_answer_comes_into_the_memory_that_is_given(pair: Pair) -> None:
    sent, place = np.arange(50_000.0), np.empty(50_000)
    came = through(pair, Message(ANSWER, "get", 1, Header(), [sent]), into=[place])
    assert came.arrays[0] is place
    np.testing.assert_array_equal(place, sent)
    refused = through(pair, Message(REFUSAL, "TaskError", 1, Header()), into=[place])
    assert not refused.arrays


READONLY = np.zeros(3)
READONLY.flags.writeable = False


@pytest.mark.parametrize(
    "into", [[np.zeros(4)], [np.zeros(3, "f4")], [], [READONLY], [np.zeros(6)[::2]]]
)
def test_memory_that_does_not_fit_is_refused(pair: Pair, into: list[np.ndarray]) -> None:
    with pytest.raises(InputError, match="`into`"):
        through(pair, Message(ANSWER, "get", 1, Header(), [np.ones(3)]), into=into)


RECORDS = np.zeros(2, [("a", "i4")])


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (Message(ASK, "add", 1, Header(), [np.zeros(MOST)]), "in pieces"),
        (Message(ASK, "add", 1, Header(), [np.array([None])]), "numbers"),
        (Message(ASK, "add", 1, Header(), [RECORDS]), "numbers"),
        (Message(ASK, "add", 1, Header(), [np.zeros((1,) * 7)]), "6 dimensions"),
        (Message(ASK, "add", 1, Header(), [np.zeros(1)] * 256), "255"),
        (Message(ASK, "a" * 17, 1, Header()), "16 letters"),
        (Message(ASK, "", 1, Header()), "16 letters"),
        (Message(ASK, "add", 1, Header(block=2**63)), "64 bits"),
        (Message(ASK, "add", 1, Header(more={"a": {1}})), "JSON"),
        (Message(ASK, "add", 1, Header(more={"a": "b" * MOST})), "bytes"),
    ],
)
def test_what_cannot_go_is_named(message: Message, words: str) -> None:
    with pytest.raises(InputError, match=words):
        pack(message, MOST)


def crafted(**changes: Any) -> bytes:
    """A message of one array, with parts changed."""
    parts: dict[str, Any] = {
        "magic": b"mlm1", "kind": ASK, "count": 1, "text": b"", "dtype": b"<f8",
        "ndim": 1, "shape": (2, 0, 0, 0, 0, 0), "data": bytes(16),
    } | changes  # fmt: skip
    array = struct.pack("<8sQ6q", parts["dtype"], parts["ndim"], *parts["shape"])
    length = changes.get("length", len(parts["text"]))
    fixed = struct.pack(
        "<4sBBxxI4x16s5q64s", parts["magic"], parts["kind"], parts["count"], length,
        b"add", 1, 2, 3, 4, 5, array,
    )  # fmt: skip
    return bytes(fixed) + bytes(parts["text"]) + bytes(parts["data"])


def test_the_format_is_the_one_that_is_written_down(pair: Pair) -> None:
    pair[0].sendall(crafted(text=b'{"a":1}'))
    message = receive(pair[1], MOST)
    assert message is not None
    assert message[:4] == (ASK, "add", 1, Header(2, 3, 4, 5, {"a": 1}))
    np.testing.assert_array_equal(message.arrays[0], np.zeros(2))


@pytest.mark.parametrize(
    "changes",
    [
        {"magic": b"HTTP"},
        {"kind": 4},
        {"length": 1 << 21},
        {"text": b"[1]"},
        {"text": b"{"},
        {"text": b'{"a":' + b"[" * 100_000},
        {"dtype": b"|O"},
        {"dtype": b"|O8"},
        {"dtype": b"<f3"},
        {"dtype": b"i4,O"},
        {"dtype": b"|V8"},
        {"dtype": b"<U0"},
        {"dtype": b"\xff\xfe"},
        {"ndim": 7},
        {"ndim": 2**63},
        {"shape": (-1, 0, 0, 0, 0, 0)},
        {"shape": (2**62, 0, 0, 0, 0, 0)},
        {"ndim": 2, "shape": (2**62, 2**62, 0, 0, 0, 0)},
        {"ndim": 3, "shape": (2**62, 2**62, 0, 0, 0, 0)},
    ],
)
def test_nonsense_is_named_before_memory_is_taken(
    pair: Pair, changes: dict[str, Any]
) -> None:
    sender = threading.Thread(target=pair[0].sendall, args=(crafted(**changes),))
    sender.start()
    with pytest.raises(WireError):
        receive(pair[1], MOST)
    pair[1].close()
    sender.join()


@pytest.mark.parametrize("cut", [1, 135, 136, 150])
def test_a_torn_message_is_no_message(pair: Pair, cut: int) -> None:
    pair[0].sendall(crafted()[:cut])
    pair[0].close()
    with pytest.raises(ConnectionError):
        receive(pair[1], MOST)


def test_a_line_that_is_closed_between_messages_ends(pair: Pair) -> None:
    pair[0].sendall(crafted())
    pair[0].close()
    assert receive(pair[1], MOST) is not None
    assert receive(pair[1], MOST) is None


@pytest.mark.parametrize("kind", ["f8", "c16", ">f8", "g", "e", "M8[s]"])
def test_numbers_of_any_kind_come_in_pieces(pair: Pair, kind: str) -> None:
    """As over TLS, or after a signal."""
    sent = (np.arange(100_000) % 1000).astype(kind)
    there, here = pair
    here.settimeout(10)  # it gives what is there
    message = pack(Message(ASK, "add", 1, Header(), [sent]), 1 << 28)
    thread = threading.Thread(target=send, args=(there, message), daemon=True)
    thread.start()
    got = receive(here, 1 << 28)
    thread.join()
    assert got is not None
    np.testing.assert_array_equal(got.arrays[0], sent)
