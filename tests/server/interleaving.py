"""Shards and clients under a scheduler that draws what happens when; no threads, no clocks.

Every message takes its time: what is done next is drawn from all that could be. A message
may be lost: its answer, itself, or it comes when who sent it has given it up. Each update
adds 1 at a place of its own, so that what was lost or done twice is seen, not only a sum.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from mlopt.cluster.wire import Answer, Header
from mlopt.errors import MemberLostError
from mlopt.server.asking import Asking, Call
from mlopt.server.blocks import Block
from mlopt.server.client import Client
from mlopt.server.ownership import Owner, Owners
from mlopt.server.shard import MOVED, Shard

STEPS = 60_000
"""Events of a run, far beyond what one of ours has."""

Process = Generator[Call | None, Any, Any]


@dataclass
class Run:
    """Clients that update blocks, which move all the time; all depends on ``seed``."""

    seed: int
    lose: float = 0.1
    shard: Callable[[str], Shard] = Shard
    client: Callable[[int, Owners], Client] = Client
    members: str = "ABC"
    blocks: int = 3
    clients: int = 4
    updates: int = 12
    moves: int = 0
    acknowledged: set[tuple[int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.shards = {name: self.shard(name) for name in self.members}
        self.events: list[Callable[[], None]] = []
        self.working = 0
        size = self.clients * self.updates
        for number in range(self.blocks):
            owner = Owner(self.random.choice(self.members), 1)
            packed = Block([np.zeros(size, np.int64)], 1)
            for name, shard in self.shards.items():
                if name == owner.member:
                    arrays = packed.packed(packed.arrays)
                    shard.answer("put", Header(number, 1), arrays)
                shard.owners.learn(number, owner)

    # --- processes

    def go(self) -> None:
        """Until nothing can happen; then all that must have."""
        for number in range(self.clients):
            self._begin(self._works(number))
        self._begin(self._moves())
        for _ in range(STEPS):
            if not self.events:
                break
            at = self.random.randrange(len(self.events))
            self.events[at], self.events[-1] = self.events[-1], self.events[at]
            self.events.pop()()
        assert not self.events, "it does not come to an end"
        self.check()

    def _works(self, number: int) -> Process:
        """A client: every other update waits for none of those before it."""
        self.working += 1
        client = self.client(number + 1, Owners(self._known()))
        pending = 0

        def done(block: int, place: int) -> None:
            nonlocal pending
            pending -= 1
            self.acknowledged.add((block, place))

        mine: list[set[int]] = [set() for _ in range(self.blocks)]
        for at in range(self.updates):
            block, place = self.random.randrange(self.blocks), number * self.updates + at
            delta = np.zeros(self.clients * self.updates, np.int64)
            delta[place] = 1
            mine[block].add(place)
            pending += 1
            self._begin(client.update(block, [delta]), partial(done, block, place))
            if at % 2:
                # Until what was sent has had its turn, in part.
                for _ in range(self.random.randrange(9)):
                    yield None
                yield from self._reads(client, block, mine[block])
        while pending:
            yield None
        self.working -= 1

    def _reads(self, client: Client, block: int, mine: set[int]) -> Process:
        _, (array,) = yield from client.get(block)
        assert all(array[place] == 1 for place in mine), "a client does not see its writes"

    def _moves(self) -> Process:
        """The driver: moves blocks as long as anybody works."""
        driver = self.client(99, Owners(self._known()))
        yield None
        while self.working:
            block, target = (
                self.random.randrange(self.blocks),
                self.random.choice(self.members),
            )
            yield from driver.move(block, target)
            self.moves += 1

    def _known(self) -> dict[int, Owner]:
        return self.shards[self.members[0]].owners.all()

    def _begin(self, process: Process, done: Callable[[], None] = lambda: None) -> None:
        self.events.append(partial(self._go_on, process, done, None))

    def _go_on(
        self, process: Process, done: Callable[[], None], said: Any, lost: bool = False
    ) -> None:
        try:
            call = process.throw(MemberLostError("lost")) if lost else process.send(said)
        except StopIteration:
            done()
            return
        if call is None:
            self.events.append(partial(self._go_on, process, done, None))
            return
        back = partial(self._go_on, process, done)
        deliver = partial(self._deliver, _sent(call))
        fate = "fine"
        if self.random.random() < self.lose:
            fate = self.random.choice(["unheard", "unanswered", "late"])
        if fate in ("unheard", "late"):
            self.events.append(partial(back, None, True))
        if fate == "unanswered":
            self.events.append(
                partial(deliver, lambda said: self._answer(back, None, True))
            )
        elif fate == "late":
            self.events.append(partial(deliver, lambda said: None))
        elif fate == "fine":
            self.events.append(partial(deliver, lambda said: self._answer(back, said)))

    def _answer(self, back: Callable[..., None], *said: Any) -> None:
        self.events.append(partial(back, *said))

    def _deliver(self, call: Call, answer: Callable[[Any], None]) -> None:
        shard = self.shards[call.member]
        if call.operation == "move":
            target = call.header.more["target"]
            moving = shard.hand_over(call.header.block, target, lambda member: True)
            self._begin(_then(moving, answer))
            return
        said: Any = shard.answer(call.operation, call.header, call.arrays)
        if isinstance(said, Generator):  # of those who do not do it at once
            self._begin(_then(said, answer))
        elif said is None:
            self.events.append(partial(self._deliver, call, answer))
        else:
            answer(_copied(said))

    # --- what must hold

    def check(self) -> None:
        """Every update was done once, and every block has one owner whom all find."""
        total = np.zeros(self.clients * self.updates, np.int64)
        for number in range(self.blocks):
            found = [one for one in self.shards.values() if number in one.here()]
            assert len(found) == 1, f"block {number} is at {[one.member for one in found]}"
            for member in self.members:
                assert self._owner_by_way_of(number, member) == found[0].member
            block = found[0].block(number)
            assert isinstance(block, Block)
            array = block.arrays[0]
            for place in np.flatnonzero(array):
                assert (number, int(place)) in self.acknowledged, "done for nobody"
            total += array
        assert total.sum() == len(self.acknowledged) == self.clients * self.updates, (
            f"{total.sum()} of {self.clients * self.updates} updates"
        )
        assert (total == 1).all(), "an update was lost, another done twice"
        for shard in self.shards.values():
            assert not shard._arriving, "somebody waits for what does not come"
            assert not shard._leaving, "somebody keeps what is elsewhere"

    def _owner_by_way_of(self, number: int, member: str) -> str:
        for _ in self.members:
            said = self.shards[member].block(number)
            if isinstance(said, Block):
                break
            assert said is not None
            member = said[0].more[MOVED]
        return member


def _then(process: Process, answer: Callable[[Any], None]) -> Asking:
    said: Answer = yield from process
    answer(_copied(said))
    return said


def _sent(call: Call) -> Call:
    return call._replace(arrays=[array.copy() for array in call.arrays])


def _copied(said: Answer) -> Answer:
    return said[0], [array.copy() for array in said[1]]
