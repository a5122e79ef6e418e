"""Updates in a moving store happen exactly once, whatever happens when; and the tests
notice where they would not.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np
import pytest
from tests.server.interleaving import Run

from mlopt.cluster.wire import Answer, Header
from mlopt.errors import MemberLostError
from mlopt.server.asking import Asking, Call, Present, surely
from mlopt.server.blocks import Array, Block, Change
from mlopt.server.client import Client
from mlopt.server.ownership import Owner, told
from mlopt.server.shard import Shard
from mlopt.server.snapshots import Copies, Copy

JUDGED = "MLOPT_JUDGE_EXAMPLES" in os.environ
RUNS = 1000 if JUDGED else 300
"""Of each kind; all of them in `make compat`."""
HUNTED = 200


@pytest.mark.parametrize("lose", [0.0, 0.1])
def test_updates_of_moving_blocks_happen_exactly_once(lose: float) -> None:
    moves = 0
    for seed in range(RUNS):
        run = Run(seed, lose)
        run.go()
        moves += run.moves
    assert moves > 5 * RUNS


def test_blocks_of_a_lost_member_go_back_to_their_copies_and_no_others() -> None:
    restored = 0
    for seed in range(RUNS):
        run = Run(seed, kill=True)
        run.go()
        restored += len(run.restored)
    assert restored > RUNS / 2


def relayed(
    asking: Asking,
    sent: Callable[[Call], Call] = lambda call: call,
    lost: Callable[[Call], Answer | None] = lambda call: None,
) -> Asking:
    """A protocol whose calls are changed, and that may end where there is no answer."""
    try:
        call = next(asking)
        while True:
            try:
                said = yield call if call is None else sent(call)
            except MemberLostError as error:
                assert call is not None
                if (instead := lost(call)) is not None:
                    return instead
                call = asking.throw(error)
            else:
                call = asking.send(said)
    except StopIteration as end:
        found: Answer = end.value
        return found


class CopiesFirst(Shard):
    """The block goes on being changed while its copy is on the way."""

    def hand_over(self, number: int, target: str, present: Present) -> Asking:
        block = self.block(number)
        if not isinstance(block, Block):
            return block or (Header(number, more={"busy": True}), [])
        if target == self.member or block.leaving:
            return Header(number, block.version, more={"busy": block.leaving}), []
        block.leaving, version = True, block.version + 1
        packed = block.packed(block.copies())
        own = Header(number, version, more={"from": self.member})
        yield from surely(Call(target, "own", own), present)
        yield from surely(Call(target, "data", Header(number, version), packed), present)
        self._depart(number, block, Owner(target, version))
        self._leaving.clear()
        return Header(number, version), []


class ForgetsFirst(Shard):
    """The source lets go of a block before it is acknowledged."""

    def hand_over(self, number: int, target: str, present: Present) -> Asking:
        def lost(call: Call) -> Answer | None:
            if call.operation != "data":
                return None
            self._leaving.clear()
            return Header(number, call.header.version), []

        return relayed(super().hand_over(number, target, present), lost=lost)


class LeavesIds(Shard):
    """A block comes without the operations that were done to it."""

    def _settle(self, number: int, version: int, arrays: Sequence[Array]) -> None:
        super()._settle(
            number, version, [arrays[0], np.empty((0, 2), np.int64), *arrays[2:]]
        )


class ChangesSlowly(Shard):
    """A block is read, and what it becomes written a little later."""

    def _update(self, change: Change, header: Header, arrays: Sequence[Array]) -> Any:
        return self._slowly(change, header, arrays)

    def _slowly(
        self, change: Change, header: Header, arrays: Sequence[Array]
    ) -> Generator[None, None, Answer]:
        while not isinstance(block := self.block(header.block), Block):
            if block is not None:
                return block
            yield None
        if block.done.get(header.client, 0) < header.sequence:
            before = block.copies()
            yield None
            change(before, arrays)
            block.arrays[:] = before
            block.done[header.client] = header.sequence
        return Header(header.block, block.version), []


class TakesStale(Shard):
    """What was under way too long is listened to."""

    def _is_stale(self, number: int, version: int) -> bool:
        return False

    def _data(self, header: Header, arrays: Sequence[Array]) -> Answer:
        self._settle(header.block, header.version, arrays)
        return Header(header.block, header.version), []


class AsksAnew(Client):
    """What is asked for again has another number."""

    def _ask(self, *asked: Any) -> Asking:
        tries = itertools.count(self.number, 1000)

        def sent(call: Call) -> Call:
            return call._replace(header=call.header._replace(client=next(tries)))

        return relayed(super()._ask(*asked), sent)


class GivesUp(Client):
    """What is not answered is taken for done."""

    def _ask(self, *asked: Any) -> Asking:
        def lost(call: Call) -> Answer | None:
            return (Header(), []) if call.operation == "add" else None

        return relayed(super()._ask(*asked), lost=lost)


class ReadsAtOnce(Client):
    """A block is read though an update of it is under way."""

    def get(self, block: int) -> Asking:
        return self._ask(block, "get", 0, [])


class Hurries(Client):
    """Several operations on a block are under way, and pass each other."""

    def _may(self, block: int, turn: object) -> bool:
        return True


class CopiesArrays(Copies):
    """A copy has not what was done to the block before."""

    def keep(self, block: int, copy: Copy) -> None:
        changes, ids, *arrays = copy.packed
        super().keep(block, copy._replace(packed=[changes, ids[:0], *arrays]))


class HearsTooMuch(Shard):
    """A target says that it owns what is still on its way."""

    def _holdings(self, header: Header, arrays: Sequence[Array]) -> Answer:
        said, _ = super()._holdings(header, arrays)
        other, arrays = told(self.owners.all())
        return other._replace(more={**said.more, **other.more}), arrays


MUTANTS: dict[str, dict[str, Any]] = {
    "copies, then hands over": {"shard": CopiesFirst, "lose": 0.0},
    "asks again without ids": {"client": AsksAnew},
    "leaves the ids behind": {"shard": LeavesIds},
    "applies not atomically": {"shard": ChangesSlowly, "lose": 0.0},
    "takes a lost answer for done": {"client": GivesUp},
    "takes in what is stale": {"shard": TakesStale},
    "forgets before it is acknowledged": {"shard": ForgetsFirst},
    "reads before its writes are done": {"client": ReadsAtOnce, "lose": 0.0},
    "has several operations under way": {"client": Hurries, "lose": 0.0},
    "copies arrays without ids": {"copies": CopiesArrays, "kill": True},
    "says that it has what comes": {"shard": HearsTooMuch, "kill": True},
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_wrong_store_is_found(mutant: str) -> None:
    found: list[Exception] = []
    for seed in range(HUNTED):
        try:
            Run(seed, **{"lose": 0.1, **MUTANTS[mutant]}).go()
        except Exception as error:
            found.append(error)
            if not JUDGED:
                break
    assert found, f"no run of {HUNTED} tells that a store {mutant}"
    strange = AttributeError | NameError | TypeError | KeyError
    assert not isinstance(found[0], strange), found[0]
