"""What is asked of members, without a way to ask: generators that somebody drives.

A generator yields a `Call` and is sent the answer, or thrown `MemberLostError` when there
is none, which does not say whether it was done. It yields None to be resumed a little
later. So each protocol is written once: threads and sockets drive it in earnest (`drive`),
tests by a scheduler that draws what happens when.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

from mlopt.cluster.mesh import Peers
from mlopt.cluster.wire import Answer, Header
from mlopt.errors import ClusterError, InputError, MemberLostError
from mlopt.server.blocks import Array

Present = Callable[[str], bool]
"""Whether a member is there still."""

BREATH = 0.001
"""Seconds until one tries again: a message takes .02 to 1 ms (`docs/mesh.md`), and who is
behind with the news is told within a few."""
_LONGEST = 0.05
"""Seconds between two tries at most: who waits for a block that is restored, which takes a
second or more, asks some twenty times."""


class Call(NamedTuple):
    """An operation of one member."""

    member: str
    operation: str
    header: Header = Header()
    arrays: Sequence[Array] = ()


Asking = Generator[Call | None, Any, Answer]


def surely(call: Call, present: Present) -> Asking:
    """Ask until there is an answer: for what may be done twice.

    Raises
    ------
    MemberLostError
        The member is gone.
    """
    while True:
        try:
            said: Answer = yield call
            return said
        except MemberLostError:
            if not present(call.member):
                raise
        yield None


def drive(
    asking: Generator[Call | None, Any, Any],
    peers: Peers,
    into: Sequence[Array] | None = None,
    patience: float | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Any:
    """Do what a generator asks for, and give what it returns.

    Parameters
    ----------
    asking : generator
    peers : Peers
    into : sequence of ndarray, optional
        Where the arrays of answers are put.
    patience : float, optional
        Seconds that it may be resumed without any answer.
    stopped : callable
        Whether nobody waits for it any more.

    Raises
    ------
    ClusterError
        There was no answer in time, there is nobody to give one, or it is stopped.
    """
    breath, since = BREATH, time.monotonic()
    try:
        call = next(asking)
        while True:
            if call is None:
                waited = time.monotonic() - since
                if stopped() or (patience is not None and waited > patience):
                    asking.throw(ClusterError(f"There was no answer for {waited:.0f} s."))
                if not peers.members:
                    asking.throw(
                        ClusterError(
                            "The pool has shrunk to nothing: there is no member to ask."
                        )
                    )
                time.sleep(breath)
                breath = min(2 * breath, _LONGEST)
                call = next(asking)
                continue
            try:
                said = _answer(peers, call, into)
            except MemberLostError as error:
                call = asking.throw(error)
            else:
                breath = BREATH
                call = asking.send(said)
                since = since if call is None else time.monotonic()
    except StopIteration as end:
        return end.value
    finally:
        asking.close()  # whoever is interrupted waits for its turn no more


def _answer(peers: Peers, call: Call, into: Sequence[Array] | None) -> Answer:
    try:
        return peers.ask(*call, into=into)
    except InputError:
        if into is None:
            raise
        return peers.ask(*call)  # it says where the block is instead
