"""Doors and lines on loopback: who gets in, and who is kept waiting by others' faults."""

from __future__ import annotations

import contextlib
import gc
import os
import socket
import threading
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import pytest
from tests.clusters import eventually, in_thread

from mlopt.cluster.lines import Door, Line, Lines
from mlopt.cluster.wire import (
    ANSWER,
    ASK,
    TELL,
    Header,
    Message,
    Packed,
    pack,
    receive,
    send,
)
from mlopt.errors import ClusterError, InputError, MemberLostError, TaskError, WireError

SECRET, MOST = b"one two three", 1 << 25


class Desk:
    """What is behind the door of the tests."""

    def __init__(self) -> None:
        self.told: list[Header] = []
        self.left = threading.Event()
        self.waiting, self.go = threading.Event(), threading.Event()
        self.door = Door(
            "127.0.0.1", "desk", SECRET, MOST,
            answer=self.answer, told=self.told.append, left=self.left.set,
        )  # fmt: skip

    def answer(self, asked: Message) -> Packed:
        if asked.operation == "fail":
            raise TaskError("no such block")
        if asked.operation == "wait":
            self.waiting.set()
            self.go.wait(30)
        arrays = [np.zeros(MOST // 8)] if asked.operation == "much" else asked.arrays
        return pack(Message(ANSWER, "", asked.epoch, asked.header, arrays)._replace(
            operation=asked.operation), MOST)  # fmt: skip


@pytest.fixture
def desk() -> Iterator[Desk]:
    one = Desk()
    yield one
    one.go.set()
    one.door.close()


@pytest.fixture
def lines() -> Iterator[Lines]:
    one = Lines(SECRET, MOST)
    yield one
    one.close()


def ask(lines: Lines, desk: Desk, operation: str = "echo", value: int = 7) -> int:
    message = Message(ASK, operation, 1, Header(block=value), [np.ones(2)])
    return lines.ask("desk", desk.door.address, message)[0].block


def test_lines_are_used_again_by_whoever_asks_next(desk: Desk, lines: Lines) -> None:
    for _ in range(3):
        thread = threading.Thread(target=ask, args=(lines, desk))
        thread.start()
        thread.join()
    assert ask(lines, desk) == 7
    assert len(desk.door._open) == 1


def test_a_refusal_is_the_error_it_names_and_the_line_goes_on(
    desk: Desk, lines: Lines
) -> None:
    with pytest.raises(TaskError, match="no such block"):
        ask(lines, desk, "fail")
    assert ask(lines, desk) == 7
    assert len(desk.door._open) == 1


@pytest.mark.parametrize(("secret", "member"), [(b"guess", "desk"), (SECRET, "chair")])
def test_another_secret_and_another_member_are_refused(
    desk: Desk, secret: bytes, member: str
) -> None:
    with pytest.raises(WireError, match="secret"):
        Line(member, desk.door.address, secret)
    assert eventually(lambda: not desk.door._open)


def test_who_only_pretends_to_know_the_secret_hears_nothing(desk: Desk) -> None:
    """Zeros, what the door said, and what an earlier asker said, are no proof."""
    with socket.create_connection(desk.door.address) as line:
        nonce = line.recv(16)
        line.sendall(nonce + b"a" + nonce * 2)
        assert line.recv(32) == bytes(32)
        with contextlib.suppress(OSError):
            send(line, pack(Message(ASK, "echo", 1, Header()), MOST))
        with contextlib.suppress(ConnectionError):
            assert line.recv(1) == b""


def test_a_door_that_does_not_know_the_secret_is_told_nothing(lines: Lines) -> None:
    """Somebody may listen where a member was."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        heard: list[bytes] = []

        def pretend() -> None:
            line, _ = listening.accept()
            with line:
                line.sendall(bytes(16))
                heard.append(line.recv(100))
                line.sendall(os.urandom(32))
                heard.append(line.recv(100))

        thread = threading.Thread(target=pretend)
        thread.start()
        with pytest.raises(WireError, match="secret"):
            lines.ask("desk", listening.getsockname(), Message(ASK, "echo", 1, Header()))
        thread.join()
    assert len(heard[0]) == 49
    assert heard[1] == b""


def test_a_door_without_a_secret_does_not_open() -> None:
    with pytest.raises(InputError, match="secret"):
        Door("127.0.0.1", "desk", b"", MOST, answer=None, told=None, left=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("torn", [b"mlm1", b"GET / HTTP/1.1\r\n" + b" " * 72])
def test_a_torn_or_foreign_header_ends_that_line_alone(
    desk: Desk, lines: Lines, torn: bytes
) -> None:
    ask(lines, desk)
    bad = Line("desk", desk.door.address, SECRET)
    bad.socket.sendall(torn)
    with contextlib.suppress(OSError):  # it may be closed already
        bad.socket.shutdown(socket.SHUT_WR)
        answer = receive(bad.socket, MOST)
        assert answer is None or answer.operation == "WireError"
    bad.close()
    assert eventually(lambda: len(desk.door._open) == 1)
    assert ask(lines, desk) == 7


def test_a_message_that_is_too_large_is_refused_by_name(desk: Desk) -> None:
    line = Line("desk", desk.door.address, SECRET)
    large = pack(Message(ASK, "echo", 1, Header(), [np.zeros(MOST)]), MOST * 8)
    line.socket.sendall(large.head)
    answer = receive(line.socket, MOST)
    assert answer is not None
    assert answer.operation == "WireError"
    assert str(MOST) in answer.header.more["text"]
    line.close()


def test_a_slow_reader_keeps_nobody_waiting(desk: Desk, lines: Lines) -> None:
    slow = Line("desk", desk.door.address, SECRET)
    send(slow.socket, pack(Message(ASK, "much", 1, Header()), MOST))
    # and one who stops in the middle of what it says
    half = Line("desk", desk.door.address, SECRET)
    half.socket.sendall(b"mlm1")
    # and one who does not even say who it is
    with socket.create_connection(desk.door.address):
        assert [ask(lines, desk, value=n) for n in range(20)] == list(range(20))
    answer = receive(slow.socket, MOST)
    assert answer is not None
    assert answer.arrays[0].nbytes == MOST
    slow.close()
    half.close()


def test_a_line_that_breaks_tells_who_waits(desk: Desk, lines: Lines) -> None:
    ends: list[Callable[[], None]] = [partial(lines.drop, "desk"), desk.door.close]
    for end in ends:
        thread, ended = in_thread(lambda: ask(lines, desk, "wait"))
        assert desk.waiting.wait(10)
        desk.waiting.clear()
        end()
        thread.join(10)
        assert [type(error) for error in ended] == [MemberLostError]
    with pytest.raises(MemberLostError, match="cannot be reached"):
        ask(lines, desk)


def test_lines_that_were_dropped_are_not_used_again(desk: Desk, lines: Lines) -> None:
    ask(lines, desk)
    lines.drop("desk")
    assert ask(lines, desk) == 7
    lines.close()
    with pytest.raises(ClusterError, match="closed"):
        ask(lines, desk)
    assert eventually(lambda: not desk.door._open)


def test_an_answer_that_does_not_fit_leaves_no_half_of_it(desk: Desk, lines: Lines) -> None:
    message = Message(ASK, "echo", 1, Header(), [np.ones(2)])
    with pytest.raises(InputError, match="`into`"):
        lines.ask("desk", desk.door.address, message, into=[np.ones(3)])
    assert ask(lines, desk) == 7


def test_only_the_driver_tells_and_its_leaving_counts(desk: Desk) -> None:
    said = pack(Message(TELL, "mesh", 1, Header(block=3)), MOST)
    asker = Line("desk", desk.door.address, SECRET)
    send(asker.socket, said)
    send(asker.socket, pack(Message(ASK, "echo", 1, Header()), MOST))
    assert receive(asker.socket, MOST) is not None
    asker.close()
    assert not desk.told
    assert eventually(lambda: not desk.door._open)
    assert not desk.left.is_set()

    driver = Line("desk", desk.door.address, SECRET, driver=True)
    send(driver.socket, said)
    assert eventually(lambda: desk.told == [Header(block=3)])
    driver.close()
    assert desk.left.wait(10)


def test_lines_that_nobody_holds_are_closed(desk: Desk) -> None:
    lines = Lines(SECRET, MOST)
    ask(lines, desk)
    del lines
    gc.collect()
    assert eventually(lambda: not desk.door._open)
