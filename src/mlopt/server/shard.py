"""The blocks of one member, and how a block changes its owner: a state machine.

::

    source                              target
    "own"      ------------------->     what is asked of the block waits from here on
    no change any more: who asks
      is sent to the target
    "data"     ------------------->     is there; those who wait are answered
    lets go    <-------------------     acknowledged

Ownership goes first: there is no moment at which two members change a block, and only who
asks for that block waits. The source keeps the arrays until they are acknowledged. Every
message about owners has the block's version, and what is older than what is known is not
listened to: it was on its way too long. Source: Cruise, section IV-B3.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from mlopt.cluster.wire import Answer, Header
from mlopt.errors import ClusterError, MemberLostError
from mlopt.server.asking import Asking, Call, Present, surely
from mlopt.server.blocks import CHANGES, Array, Block, Change
from mlopt.server.ownership import Owner, Owners, heard, told

MOVED, BUSY, STAYS, UNKNOWN = "moved", "busy", "stays", "unknown"
"""What an answer says, beside done: another member has the block (and which); it is being
handed over; it is here, as whom it should go to is lost; nobody is known to own it."""


class Shard:
    """What a member holds and answers; no threads of its own, and no sockets.

    Laws: no operation is done twice, wherever its block is when it is asked for again; a
    block that is here and not `gone` has the newest version of all that there are.

    Parameters
    ----------
    member : str

    Attributes
    ----------
    owners : Owners
        Of all blocks, as this member has heard.
    """

    def __init__(self, member: str) -> None:
        self.member, self.owners = member, Owners()
        self._blocks: dict[int, Block] = {}
        # Blocks that are ours and not here yet: by which version, and who has them.
        self._arriving: dict[int, Owner] = {}
        self._leaving: dict[int, Block] = {}
        self._news, self._ended = threading.Condition(), False
        self._answers: dict[str, Callable[[Header, Sequence[Array]], Answer | None]] = {
            "get": self._get, "copy": self._copy, "left": self._left,
            "put": self._put, "own": self._own, "data": self._data, "owners": self._hear,
            "holdings": self._holdings,
        }  # fmt: skip

    def answer(
        self, operation: str, header: Header, arrays: Sequence[Array]
    ) -> Answer | None:
        """Answer what was asked; None while the block is on its way: ask again then."""
        if (found := self._answers.get(operation)) is not None:
            return found(header, arrays)
        if (change := CHANGES.get(operation)) is not None:
            return self._update(change, header, arrays)
        raise ClusterError(f"A shard knows no `{operation}`.")

    def wait(self, number: int, seconds: float) -> None:
        """Until a block that is on its way has come, or gone elsewhere, or `end`."""
        self.wait_for(lambda: number not in self._arriving, seconds)

    def wait_for(self, true: Callable[[], bool], seconds: float) -> None:
        """Until it comes true by a block that comes, or by `tell`, or `end`."""
        with self._news:
            self._news.wait_for(lambda: self._ended or true(), seconds)

    def tell(self) -> None:
        """Those who wait look again."""
        with self._news:
            self._news.notify_all()

    def end(self) -> None:
        """Nobody who waits need wait any more."""
        with self._news:
            self._ended = True
            self._news.notify_all()

    def block(self, number: int) -> Block | Answer | None:
        """A block that is here; else what to say of it, None for "wait".

        It may be ``gone`` by the time that its lock is held: look again then.
        """
        with self._news:
            if (found := self._blocks.get(number)) is not None:
                return found
            return None if number in self._arriving else self._elsewhere(number)

    def here(self) -> list[int]:
        """The blocks that are here: training on them needs no message."""
        with self._news:
            return sorted(self._blocks)

    def blocks(self) -> dict[int, Block]:
        """The blocks that are here, by their numbers."""
        with self._news:
            return dict(self._blocks)

    def hand_over(self, number: int, target: str, present: Present) -> Asking:
        """Make ``target`` the owner of a block that is here.

        Gives the block's new version, and for how many seconds at most nobody could use
        it; or says who has it, or that it is being handed over already. If the target is
        lost on the way, the block stays here.
        """
        while not isinstance(found := self.block(number), Block):
            if found is not None:
                return found
            yield None
        block = found
        with block.lock:
            if block.gone:
                return self._elsewhere(number)
            if target == self.member:
                return Header(number, block.version), []
            if block.leaving:
                return Header(number, more={BUSY: True}), []
            arrays = block.arrays  # which are not put away from now on
            block.leaving, version = True, block.version + 1
        try:
            more = {"from": self.member}
            own = Call(target, "own", Header(number, version, more=more))
            said, _ = yield from surely(own, present)
        except MemberLostError:
            self._stay(number, block, version + 1)
            return Header(number, block.version, more={STAYS: True}), []
        if MOVED in said.more:  # it knows better than we do
            self._learn(number, Owner(said.more[MOVED], said.version))
            return said, []
        if not self._depart(number, block, Owner(target, version)):
            return self._elsewhere(number)
        began = time.perf_counter()
        packed = block.packed(arrays)
        try:
            yield from surely(
                Call(target, "data", Header(number, version), packed), present
            )
        except MemberLostError:
            # These arrays may be the newest that are left: see `snapshots.restore`.
            return self._elsewhere(number)
        with self._news:
            self._leaving.pop(number, None)
        stalled = time.perf_counter() - began
        return Header(number, version, more={"stalled": stalled}), []

    # --- what is asked

    def _update(
        self, change: Change, header: Header, arrays: Sequence[Array]
    ) -> Answer | None:
        number, _, client, sequence, _ = header
        while isinstance(block := self.block(number), Block):
            with block.lock:
                if not block.gone:
                    block.update(client, sequence, change, arrays)
                    return Header(number, block.version), []
        return block

    def _get(self, header: Header, arrays: Sequence[Array]) -> Answer | None:
        del arrays
        while isinstance(block := self.block(header.block), Block):
            with block.lock:
                if not block.gone:
                    return Header(header.block, block.version), block.copies()
        return block

    def _copy(self, header: Header, arrays: Sequence[Array]) -> Answer | None:
        """All that a block is; nothing if it is as it was after ``sequence`` changes."""
        del arrays
        while isinstance(block := self.block(header.block), Block):
            with block.lock:
                if block.gone:
                    continue
                said = Header(header.block, block.version, sequence=block.changes)
                same = block.changes == header.sequence
                return said, [] if same else block.packed(block.copies())
        return block

    def _put(self, header: Header, arrays: Sequence[Array]) -> Answer:
        """A block that nobody has, or whose owner is lost, is here from now on."""
        number, version = header.block, header.version
        with self._news:
            if self._is_stale(number, version):
                return self._elsewhere(number)
            # What it was waiting for has come after all.
            if header.more.get("unless") == self._version_here(number):
                return self._elsewhere(number)
            self._settle(number, version, arrays)
        return Header(number, version), []

    def _own(self, header: Header, arrays: Sequence[Array]) -> Answer:
        del arrays
        number, version = header.block, header.version
        with self._news:
            known = self.owners.get(number)
            if self._is_stale(number, version):
                assert known is not None
                # Also what comes twice: it was ours, and may have gone on.
                again = known == Owner(self.member, version)
                return Header(number, version) if again else _moved(number, known), []
            self._drop(number)
            self._arriving[number] = Owner(header.more["from"], version)
            self.owners.learn(number, Owner(self.member, version))
        return Header(number, version), []

    def _data(self, header: Header, arrays: Sequence[Array]) -> Answer:
        number, version = header.block, header.version
        with self._news:
            arriving = self._arriving.get(number)
            if arriving is not None and arriving.version == version:
                self._settle(number, version, arrays)
        # Else it has come before, or too late: the source may let go of it.
        return Header(number, version), []

    def _hear(self, header: Header, arrays: Sequence[Array]) -> Answer:
        for number, owner in heard((header, arrays)).items():
            self._learn(number, owner)
        return Header(), []

    def _holdings(self, header: Header, arrays: Sequence[Array]) -> Answer:
        """Who owns what, as far as that is sure; what is on its way, and from whom."""
        del header, arrays
        with self._news:
            known = self.owners.all()
            # The source owns it until it says otherwise: whoever heard that it does not
            # would have it dropped there.
            said, arrays = told({b: known[b] for b in known.keys() - self._arriving})
            coming = [(number, *owner) for number, owner in self._arriving.items()]
            more = {"arriving": coming, "leaving": sorted(self._leaving)}
        return said._replace(more={**said.more, **more}), arrays

    def _left(self, header: Header, arrays: Sequence[Array]) -> Answer:
        """A block as it was handed over to a member that did not acknowledge it."""
        del arrays
        with self._news:
            block = self._leaving.get(header.block)
        if block is None:
            return Header(header.block, more={UNKNOWN: True}), []
        said = Header(header.block, block.version, sequence=block.changes)
        return said, block.packed(block.copies())

    # --- how owners change

    def _is_stale(self, number: int, version: int) -> bool:
        return version <= self.owners.version(number)

    def _version_here(self, number: int) -> int:
        block = self._blocks.get(number)
        return 0 if block is None else block.version

    def _elsewhere(self, number: int) -> Answer:
        owner = self.owners.get(number)
        if owner is None:
            return Header(number, more={UNKNOWN: True}), []
        return _moved(number, owner), []

    def _settle(self, number: int, version: int, arrays: Sequence[Array]) -> None:
        self._drop(number)
        self._blocks[number] = Block.unpacked(version, arrays)
        self._arriving.pop(number, None)
        self._leaving.pop(number, None)
        self.owners.learn(number, Owner(self.member, version))
        self._news.notify_all()

    def _drop(self, number: int) -> None:
        """Somebody has a newer version of a block that is here."""
        if (block := self._blocks.pop(number, None)) is not None:
            with block.lock:
                block.gone = True

    def _learn(self, number: int, owner: Owner) -> None:
        with self._news:
            if not self.owners.learn(number, owner) or owner.member == self.member:
                return
            self._drop(number)
            self._arriving.pop(number, None)
            self._leaving.pop(number, None)
            self._news.notify_all()

    def _depart(self, number: int, block: Block, owner: Owner) -> bool:
        """The moment at which a block changes its owner."""
        with self._news, block.lock:
            if block.gone:
                return False
            block.gone = True
            self._leaving[number] = self._blocks.pop(number)
            self.owners.learn(number, owner)
            return True

    def _stay(self, number: int, block: Block, version: int) -> None:
        """The target was lost before it could have the block."""
        with self._news, block.lock:
            block.leaving = False
            if not block.gone and self.owners.learn(number, Owner(self.member, version)):
                block.version = version


def _moved(number: int, owner: Owner) -> Header:
    more: dict[str, Any] = {MOVED: owner.member}
    return Header(number, owner.version, more=more)
