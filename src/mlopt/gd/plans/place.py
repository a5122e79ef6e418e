"""Where rows are while a method goes over them: on workers, or brought to this process.

What is asked of workers takes a round trip, and a task for every block: rows that arrive
in the time of a few passes are gone over here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from mlopt.costs import Cost
from mlopt.gd.plans.method import Method, Price
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.proof import proof_cost
from mlopt.gd.plans.stop import CoefficientError
from mlopt.gd.pricing import handing, scan
from mlopt.locking import cached_property
from mlopt.options import plans_always
from mlopt.prices import price
from mlopt.resources import Resources
from mlopt.resources.probe import memory_limit
from mlopt.rows import SHARE

_AROUND = price("run.around")


@dataclass(frozen=True, eq=False)
class Place:
    """What prices depend on there.

    Attributes
    ----------
    outline : Outline
    resources : Resources
    sending : Cost
        To bring rows of workers to this process; empty where they stay.
    refused : str
        Why methods cannot have all rows in one piece; "" where they can.
    only_in_one_piece : bool
        Whether only what needs the rows so may run there.
    """

    outline: Outline
    resources: Resources
    sending: Cost = field(default_factory=Cost)
    refused: str = ""
    only_in_one_piece: bool = False

    @property
    def brings(self) -> bool:
        """Whether rows of workers come to this process before."""
        return not self.sending.empty

    def price(self, method: Method) -> Price | str:
        """Of so many passes, or why a method cannot be used."""
        before, shape = self.sending, self.outline.shape
        if method.in_one_piece:
            if self.refused:
                return self.refused
            if shape.blocks > 1:
                before += Cost(memory=2.0 * shape.nbytes)
        counted = method.calibrated(self.outline, self.resources)
        if isinstance(counted, str) or before.empty:
            return counted
        return lambda passes: counted(passes) + before

    def least(self, method: Method) -> float:
        """Seconds that a method certainly takes, as `Method.least`."""
        here = self.resources
        return self.sending.seconds(here) + method.least(self.outline, here)

    @cached_property
    def around(self) -> float:
        """Seconds for sums of weights before the passes and the objective after them."""
        if isinstance(self.outline.stop, CoefficientError):
            return 0.0  # nobody asks for the objective
        here, shape = self.resources, self.outline.shape
        read, python = scan(shape, here, 0.0), _AROUND + handing(shape.blocks, here)
        asked = Cost(tasks=2.0 * read.tasks, round_trips=2.0 * read.round_trips)
        calls = Cost(memory=read.memory, python=python)
        return (asked + calls).seconds(here, here.threads)

    @cached_property
    def proof(self) -> float:
        """Seconds for a look at how far from the minimum weights may be."""
        here = self.resources
        return proof_cost(self.outline.shape, here).seconds(here, here.threads)


def places(
    outline: Outline, resources: Resources, *, comes: bool = False
) -> tuple[Place, ...]:
    """Where rows may be: where they are, and those of workers here.

    They come here if half of the memory has room: for methods that need them in one piece,
    and for others, if they may (``comes``), where a copy is little beside that of a worker,
    too, unless the user wants plans for what is there in any case (`mlopt.plan`).
    """
    if not resources.remote:
        return (Place(outline, resources),)
    shape, limit = outline.shape, memory_limit()
    why = "its steps follow each other, so it needs all rows in one process"
    if shape.nbytes > limit // 2:
        size = f"{shape.nbytes} bytes, and half of this one's memory is {limit // 2}"
        return (Place(outline, resources, refused=f"{why}: {size}"),)
    little = SHARE * min(limit, resources.memory / resources.workers)
    return (
        Place(outline, resources, refused=why),
        Place(
            replace(outline, shape=replace(shape, blocks=1)),
            resources.one_process,
            replace(scan(shape, resources, 0.0), network=float(shape.nbytes)),
            only_in_one_piece=plans_always() or not comes or shape.nbytes > little,
        ),
    )


Way = tuple[Place, Price]
Ways = Sequence[Way]


def ways(method: Method, found: Iterable[Place]) -> tuple[Ways, str]:
    """Where a method can be used, with its price there; and why not elsewhere."""
    able, why = list[Way](), ""
    for place in found:
        if place.only_in_one_piece and not method.in_one_piece:
            continue
        price = place.price(method)
        if isinstance(price, str):
            why = why or price
        else:
            able.append((place, price))
    return able, why
