"""Turns of the event loop: few sockets each, in order, and nobody who is gone."""

from __future__ import annotations

import asyncio
import contextlib
import selectors
import socket
import time
from collections.abc import Iterator

from mlopt.serving.turns import READ, Turns


@contextlib.contextmanager
def pairs(number: int) -> Iterator[list[tuple[socket.socket, socket.socket]]]:
    with contextlib.ExitStack() as stack:
        made = [socket.socketpair() for _ in range(number)]
        for one in made:
            stack.enter_context(one[0])
            stack.enter_context(one[1])
        yield made


def test_a_turn_has_a_share_of_what_is_ready_and_all_have_their_turn() -> None:
    with Turns() as turns, pairs(3 * READ) as made:
        for number, (near, far) in enumerate(made):
            turns.register(near, selectors.EVENT_READ, number)
            far.send(b"x")
        found = [[key.data for key, _ in turns.select(0)] for _ in range(3)]
        assert [len(turn) for turn in found] == [READ] * 3
        assert {number for turn in found for number in turn} == set(range(3 * READ))


def test_who_asks_again_waits_behind_those_that_have_not_had_their_turn() -> None:
    with Turns() as turns, pairs(2 * READ) as made:
        for near, far in made:
            turns.register(near, selectors.EVENT_READ, near)
            far.send(b"x")
        first = {key.data for key, _ in turns.select(0)}
        second = {key.data for key, _ in turns.select(0)}
        assert not first & second


def test_a_connection_that_is_closed_or_changed_is_not_given_as_it_was() -> None:
    with Turns() as turns, pairs(READ + 2) as made:
        for number, (near, far) in enumerate(made):
            turns.register(near, selectors.EVENT_READ, number)
            far.send(b"x")
        taken = {key.data for key, _ in turns.select(0)}
        gone, changed = set(range(READ + 2)) - taken
        turns.unregister(made[gone][0])
        turns.modify(made[changed][0], selectors.EVENT_WRITE, "other")
        found = {key.data for _ in range(2) for key, _ in turns.select(0)}
        assert found == taken | {"other"}


def test_what_came_while_the_loop_was_busy_counts_from_when_it_had_looked_before() -> None:
    seen = []

    async def play() -> None:
        loop = asyncio.get_running_loop()
        near, far = socket.socketpair()
        with near, far:
            near.setblocking(False)
            read = loop.create_future()
            loop.add_reader(near, read.set_result, None)
            await asyncio.sleep(0)
            begun = loop.time()
            far.send(b"x")
            time.sleep(0.02)
            loop.call_soon(lambda: None)  # or it would have been waited for
            await read
            loop.remove_reader(near)
            seen.extend([begun - turns.since, loop.time() - begun])

    turns = Turns()
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(turns)) as runner:
        runner.run(play())
    late, taken = seen
    assert 0 <= late < taken
    assert taken >= 0.02
