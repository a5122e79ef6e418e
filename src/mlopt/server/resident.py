"""A member of a job: rows of some strata, and the loops of those that work on them."""

from __future__ import annotations

import threading
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from mlopt.cluster.context import as_here
from mlopt.cluster.mesh import Site
from mlopt.cluster.parcel import arrays_of, pack, parcel_of, unpack
from mlopt.cluster.wire import Answer, Header, may_be_sent
from mlopt.errors import MemberLostError
from mlopt.limits import single_threaded
from mlopt.server.blocks import CHANGES, Array, Block
from mlopt.server.program import Part, Plan, part_name, state_name
from mlopt.server.roll import Roll
from mlopt.server.service import ShardService
from mlopt.server.shard import MOVED, STAYS
from mlopt.server.tables import Table

_LOOK = 0.2
"""Seconds after which who waits for a part looks whether it should stop."""


class JobService(ShardService):
    """A shard, and beside it cells: rows that only this member works on.

    Parameters
    ----------
    site : Site
    plan : Plan
    """

    def __init__(self, site: Site, plan: Plan) -> None:
        super().__init__(site)
        self.plan = plan
        self.cells: dict[tuple[int, int], Any] = {}
        self.roll = Roll()

    def answer(self, operation: str, header: Header, arrays: Sequence[Array]) -> Answer:
        if operation == "cell":
            cell = tuple(arrays) if header.version else unpack(parcel_of(arrays))
            self.cells[header.block, header.sequence] = cell
            return Header(), []
        if operation == "release":
            return self.roll.release(header.block, self.site.stop.is_set)
        if operation == "report":
            return self.roll.reported()
        began = time.perf_counter()
        said = super().answer(operation, header, arrays)
        if operation in CHANGES:
            self.roll.applied(time.perf_counter() - began)
        return said

    def close(self) -> None:
        super().close()
        self.roll.tell()

    @contextmanager
    def whole(self, name: str) -> Iterator[Part]:
        """A part, or what a stratum keeps, that is here; it may be changed in place."""
        with ExitStack() as stack:
            model: dict[str, Any] = {}
            for one, table in self.plan.of(name).items():
                blocks = [stack.enter_context(self.held(block)) for block in table.blocks]
                arrays = dict(zip(table.kinds, _joined(table, blocks), strict=True))
                shaped = {k: a.reshape(table.kinds[k][0]) for k, a in arrays.items()}
                model[one] = shaped.get("", shaped)
            yield self.plan.whole(name, model)


def _joined(table: Table, blocks: Sequence[list[Array]]) -> list[Array]:
    """The arrays of a table, of which the blocks are rows from then on."""
    if len(blocks) == 1:
        return blocks[0]
    found = []
    for at, (shape, dtype) in enumerate(table.kinds.values()):
        shape = (table.keys.count,) if table.flat else shape
        whole = blocks[0][at].base
        if not (
            isinstance(whole, np.ndarray)
            and (whole.shape, whole.dtype) == (shape, dtype)
            and all(arrays[at].base is whole for arrays in blocks)
        ):
            whole = np.concatenate([arrays[at] for arrays in blocks])
            for block, arrays in zip(table.blocks, blocks, strict=True):
                arrays[at] = whole[table.rows(block)]
        found.append(whole)
    return found


def cell_message(cell: Any) -> tuple[int, Sequence[Array]]:
    """A cell as arrays; and whether they are all that there is to it."""
    plain = type(cell) is tuple and all(type(one) is np.ndarray for one in cell)
    if plain and cell and may_be_sent(cell):
        return 1, cell
    return 0, arrays_of(pack(cell))


def keep_cells(site: Site, stratum: int, *cells: Any) -> None:
    """A task: cells that an executor, or this process, holds are given to the member's
    service."""
    service = site.service
    assert isinstance(service, JobService)
    for part, cell in enumerate(cells):
        service.cells[stratum, part] = cell


Order = deque[tuple[int, int, int]]
"""The cells that a stratum has yet to do: passes before, parts, their places."""


@dataclass
class Done:
    """What a loop did.

    Parameters
    ----------
    losses : mapping of int to float
        By passes before: the sum of the losses of its cells.
    cells : int
    compute, waited : float
        Seconds, of all threads.
    lost : str
        A member that was gone when a part should go there.
    """

    losses: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    cells: int = 0
    compute: float = 0.0
    waited: float = 0.0
    lost: str = ""


def rotate(
    site: Site,
    homes: Sequence[str],
    first: int,
    passes: int,
    threads: int | None,
    steps: Sequence[int] | None = None,
) -> Done:
    """A task: work on this member's strata, and hand each part to who has it next.

    A stratum and a part each have an order in which they come together, whoever works, and
    no other order is kept: nobody waits for a round, or a pass, to end.

    Parameters
    ----------
    site : Site
    homes : sequence of str
        The member of each stratum.
    first : int
        Passes before.
    passes : int
    threads : int, optional
        Below 0 as joblib counts them, of the member's cores. Default: all of these.
    steps : sequence of int, optional
        That each stratum has had, some of them after ``first``: what was interrupted goes
        on. The service's roll has what they have had in the end.
    """
    service = site.service
    assert isinstance(service, JobService)
    if threads is None or threads < 0:
        threads = site.cores + 1 + (threads or -1)
    return _Rotation(site, service, homes, first, passes, steps).run(threads)


class _Rotation:
    def __init__(
        self,
        site: Site,
        service: JobService,
        homes: Sequence[str],
        first: int,
        passes: int,
        steps: Sequence[int] | None,
    ) -> None:
        self.site, self.service = site, service
        self.plan, self.done = service.plan, Done()
        here, plan = site.member, self.plan
        # Of each stratum what it does next; of each part who has it next, and who then.
        orders = [
            cells_until(plan.order(a, first), first + passes) for a in range(len(homes))
        ]
        behind = _taken(orders, steps or (), first * plan.parts)
        self.orders = {a: orders[a] for a, home in enumerate(homes) if home == here}
        self.last = (first + passes) * plan.parts
        self.turns: dict[int, deque[tuple[int, str]]] = {}
        for part in range(plan.parts):
            turns: deque[tuple[int, str]] = deque()
            for (done, stratum), (_, then) in pairwise(plan.holders(part, first)):
                if done >= first + passes:
                    break
                if homes[stratum] == here and (done, stratum, part) not in behind:
                    turns.append((stratum, homes[then]))
            self.turns[part] = turns
        self.busy: set[int] = set()
        self.errors: list[BaseException] = []
        self.changing = threading.Lock()
        self.blocks = {
            part: [b for table in plan.of(part_name(part)).values() for b in table.blocks]
            for part in range(plan.parts)
        }

    def run(self, threads: int) -> Done:
        """Until all is done, or `site.stop` is set."""
        with ThreadPoolExecutor(1, "mlopt-rotate") as self.sender:
            count = max(1, min(threads, len(self.orders)))
            others = [
                threading.Thread(target=as_here(), args=(self._guarded,))
                for _ in range(count - 1)
            ]
            for thread in others:
                thread.start()
            self._guarded()
            for thread in others:
                thread.join()
        for stratum, order in self.orders.items():
            self.service.roll.end(stratum, self.last - len(order))
        for error in self.errors:
            if not isinstance(error, MemberLostError):
                raise error
            self.done.lost = str(error)
        return self.done

    def _guarded(self) -> None:
        try:
            with single_threaded():  # also in threads that are not the task's own
                self._work()
        except BaseException as error:
            self.errors.append(error)
            self.service.shard.tell()

    def _work(self) -> None:
        site = self.site
        while not (self.errors or site.stop.is_set()):
            began = time.perf_counter()
            found = self._next()
            while found is None and any(self.orders.values()):
                self.service.shard.wait_for(self._may_go_on, _LOOK)
                if self.errors or site.stop.is_set():
                    return
                found = self._next()
            if found is None:
                return
            stratum, part, passes = found
            start = time.perf_counter()
            loss = self._visit(stratum, part, passes)
            end = time.perf_counter()
            with self.changing:
                self.done.losses[passes] += loss
                self.done.cells += 1
                self.done.waited += start - began
                self.done.compute += end - start
            self._hand_on(stratum, part)

    def _next(self) -> tuple[int, int, int] | None:
        """A stratum, a part and passes, from now on under way: the earliest that can be."""
        with self.changing:
            ready = [
                (order[0][2], stratum, order[0])
                for stratum, order in self.orders.items()
                if order and self._is_ready(stratum, order[0][1])
            ]
            if not ready:
                return None
            _, stratum, (passes, part, _) = min(ready)
            self.busy |= {part, ~stratum}
            return stratum, part, passes

    def _is_ready(self, stratum: int, part: int) -> bool:
        if part in self.busy or ~stratum in self.busy:
            return False
        if self.turns[part][0][0] != stratum:
            return False
        block = self.service.shard.block
        return all(isinstance(block(number), Block) for number in self.blocks[part])

    def _may_go_on(self) -> bool:
        """Whether whoever waits has something to do, or nothing any more."""
        orders = list(self.orders.items())
        if self.errors or not any(order for _, order in orders):
            return True
        try:
            return any(order and self._is_ready(a, order[0][1]) for a, order in orders)
        except IndexError:  # others have just taken the last one
            return True

    def _visit(self, stratum: int, part: int, passes: int) -> float:
        service = self.service
        with (
            service.whole(part_name(part)) as model,
            service.whole(state_name(stratum)) as state,
        ):
            cell = service.cells[stratum, part]
            return self.plan.step.visit(cell, model, state, passes)

    def _hand_on(self, stratum: int, part: int) -> None:
        with self.changing:
            self.orders[stratum].popleft()
            _, then = self.turns[part].popleft()
            self.busy.discard(~stratum)
            if then == self.site.member:
                self.busy.discard(part)
        if then != self.site.member:
            self.sender.submit(self._send, part, then)
        self.service.shard.tell()

    def _send(self, part: int, member: str) -> None:
        try:
            for block in self.blocks[part]:
                said, _ = self.service.hand_over(block, member)
                if STAYS in said.more or said.more.get(MOVED, member) != member:
                    raise MemberLostError(member)
            with self.changing:
                self.busy.discard(part)
        except BaseException as error:
            self.errors.append(error)
        self.service.shard.tell()


def _taken(
    orders: Sequence[Order], steps: Sequence[int], first: int
) -> set[tuple[int, int, int]]:
    """Take the first cells off orders that begin with ``first`` steps; gives which."""
    taken = set()
    for stratum, (order, count) in enumerate(zip(orders, steps, strict=False)):
        for _ in range(count - first):
            passes, part, _ = order.popleft()
            taken.add((passes, stratum, part))
    return taken


def cells_until(order: Iterator[tuple[int, int, int]], last: int) -> Order:
    """The cells of a stratum before pass ``last``."""
    found = deque[tuple[int, int, int]]()
    for one in order:
        if one[0] >= last:
            break
        found.append(one)
    return found
