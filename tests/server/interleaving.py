"""Shards and clients under a scheduler that draws what happens when; no threads, no clocks.

Every message takes its time: what is done next is drawn from all that could be. A message
may be lost: its answer, itself, or it comes when who sent it has given it up. Each update
adds 1 at a place of its own, so that what was lost or done twice is seen, not only a sum.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator
from contextlib import suppress
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
from mlopt.server.snapshots import Copies, Copy, restore

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
    copies: Callable[[], Copies] = Copies
    kill: bool = False
    """Whether a member is lost on the way, and its blocks restored from copies."""
    moves: int = 0
    begun: dict[tuple[int, int], int] = field(default_factory=dict)
    acknowledged: set[tuple[int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        self.shards = {name: self.shard(name) for name in self.members}
        self.events: list[Callable[[], None]] = []
        self.working = self.clock = 0
        self.dead: set[str] = set()
        self.kept = self.copies()
        self.restored: dict[int, int] = {}
        """When each block went back to its copy, if it did."""
        size = self.clients * self.updates
        for number in range(self.blocks):
            owner = Owner(self.random.choice(self.members), 1)
            packed = Block([np.zeros(size, np.int64)], 1)
            for name, shard in self.shards.items():
                if name == owner.member:
                    arrays = packed.packed(packed.copies())
                    shard.answer("put", Header(number, 1), arrays)
                shard.owners.learn(number, owner)
            self.kept.keep(number, Copy(1, 0, packed.packed(packed.copies())))
        self.driver = Owners(self.shards[self.members[0]].owners.all())

    # --- processes

    def go(self) -> None:
        """Until nothing can happen; then all that must have."""
        for number in range(self.clients):
            self._begin(self._works(number))
        self._begin(self._moves())
        if self.kill:
            self._begin(self._loses())
        for self.clock in range(STEPS):
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
        client = self.client(number + 1, self._owners_of(number))
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
            self.begun[block, place] = self.clock
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
        sure = [array[place] == 1 for place in mine if self._is_sure(block, place)]
        assert all(sure), "a client does not see its writes"

    def _moves(self) -> Process:
        """The driver: moves blocks as long as anybody works."""
        driver = self.client(99, self.driver)
        yield None
        while self.working:
            block = self.random.randrange(self.blocks)
            target = self.random.choice(self._present())
            with suppress(MemberLostError):  # just now
                yield from driver.move(block, target)
                self.moves += 1

    def _loses(self) -> Process:
        """The driver: makes copies; a member is lost, and blocks are restored."""
        driver = self.client(98, self.driver)
        for _ in range(self.random.randrange(2 * self.blocks)):
            yield from self.kept.taken(driver, self.random.randrange(self.blocks))
        self.dead.add(lost := self.members[-1])
        for _ in range(self.random.randrange(200)):
            yield None
        blocks = range(self.blocks)
        choose = self.random.choice(self._present())
        for again in range(4):  # as if others were lost who have nothing
            restoring = restore(
                blocks, self._present, driver.owners, self.kept, lambda block: choose
            )
            restored = yield from restoring
            assert self.restored.keys() >= set(restored)
            assert not (again and restored)
            assert lost not in {driver.owners.all()[block].member for block in blocks}

    def _owners_of(self, number: int) -> Owners:
        """A client may be a member; then it hears what that hears."""
        beside = self.shards[self.members[number % (len(self.members) - 1)]].owners
        return beside if self.kill else Owners(beside.all())

    def _present(self) -> list[str]:
        return [member for member in self.members if member not in self.dead]

    def _is_sure(self, block: int, place: int) -> bool:
        """Whether an update cannot have been undone."""
        return self.begun[block, place] > self.restored.get(block, -1)

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
            unheard = partial(self._answer, back, None)
            self.events.append(partial(deliver, lambda said: unheard()))
        elif fate == "late":
            self.events.append(partial(deliver, lambda said: None))
        elif fate == "fine":
            self.events.append(partial(deliver, partial(self._answer, back)))

    def _answer(self, back: Callable[..., None], said: Answer | None) -> None:
        self.events.append(partial(back, said, said is None))

    def _deliver(self, call: Call, answer: Callable[[Any], None]) -> None:
        if call.member in self.dead:
            answer(None)
            return
        shard = self.shards[call.member]
        if call.operation == "move":
            target = call.header.more["target"]
            moving = shard.hand_over(
                call.header.block, target, lambda member: member not in self.dead
            )
            self._begin(self._living(call.member, _then(moving, answer), answer))
            return
        said: Any = shard.answer(call.operation, call.header, call.arrays)
        if call.operation == "put":
            self.restored[call.header.block] = self.clock
        if isinstance(said, Generator):  # of those who do not do it at once
            self._begin(_then(said, answer))
        elif said is None:
            self.events.append(partial(self._deliver, call, answer))
        else:
            answer(_copied(said))

    def _living(
        self, member: str, process: Process, answer: Callable[[Any], None]
    ) -> Process:
        """A process of a member, which ends with it."""
        said, lost = None, None
        try:
            while member not in self.dead:
                call = process.send(said) if lost is None else process.throw(lost)
                said, lost = None, None
                try:
                    said = yield call
                except MemberLostError as error:
                    lost = error
            answer(None)
        except StopIteration:
            return

    # --- what must hold

    def check(self) -> None:
        """Every update was done once, and every block has one owner whom all find."""
        total = np.zeros(self.clients * self.updates, np.int64)
        for number in range(self.blocks):
            living = [self.shards[member] for member in self._present()]
            found = [one for one in living if number in one.here()]
            assert len(found) == 1, f"block {number} is at {[one.member for one in found]}"
            for member in self._present():
                assert self._owner_by_way_of(number, member) == found[0].member
            block = found[0].block(number)
            assert isinstance(block, Block)
            array = block.arrays[0]
            for place in np.flatnonzero(array):
                assert (number, int(place)) in self.acknowledged, "done for nobody"
            total += array
        count = self.clients * self.updates
        assert len(self.acknowledged) == count
        assert (total <= 1).all(), "an update was done twice"
        lost = [one for one in self.begun if not total[one[1]] and self._is_sure(*one)]
        assert not lost, f"{len(lost)} of {count} updates were lost"
        for shard in living:
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
