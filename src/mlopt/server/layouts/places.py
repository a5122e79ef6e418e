"""Where an estimator's training may run: on threads of this process, and on members."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

from mlopt.cluster import Mesh, MeshHere, Threads, mesh
from mlopt.errors import ClusterError
from mlopt.kernels.compiling import notes, worked
from mlopt.plan import Choice, Plan
from mlopt.prices import price
from mlopt.server.layouts.pool import Pool
from mlopt.server.layouts.pricing import Priced, choose

_MUCH = price("layout.much")
Pricing = Callable[[Pool, bool], Sequence[Priced]]


def priced(
    wanted: str, pool: Pool, where: Any, pricing: Pricing, asked: bool = False
) -> Sequence[Priced]:
    """Layouts, by as much as it is worth to measure for that.

    Parameters
    ----------
    wanted : str
        Unless it is "auto" nothing is chosen, and nothing is measured for that.
    pool : Pool
    where : Client, Executor or Mesh, optional
        Whose pool it is.
    pricing : callable
        ``pricing(pool, measure)``: layouts, of which the first needs no members, by steps
        that are timed or without.
    asked : bool, default=False
        Whether seconds are asked for, where there is nothing to choose too.
    """
    found = pricing(pool, False)
    able = [one for one in found if not one.why] if wanted == "auto" else []
    # The number of servers is one more.
    choices = len(able) + any(one.servers > 0 for one in able)
    if asked or (choices > 1 and pool.members > 1 and _is_much(found)):
        found = pricing(pool, True)
        if pool.apart and _is_much(found):
            found = pricing(pool.probed(where), True)
    return found


def _is_much(found: Sequence[Priced]) -> bool:
    """Whether one process would take long, or nobody knows, or it cannot."""
    seconds = found[0].seconds
    return seconds is None or not seconds <= _MUCH


class Open(NamedTuple):
    """A layout that was chosen, and members that are other processes, if it needs these."""

    choice: Choice
    chosen: Priced
    mesh: Mesh | None


def opened(wanted: str, operator: str, found: Sequence[Priced], where: Any = None) -> Open:
    """Choose, and have the members that are needed for it.

    Of workers that cannot be members, as where nobody can connect to them, "auto" takes
    what does without.

    Raises
    ------
    InputError
        No layout can be had.
    ClusterError
        Workers that are asked for cannot be members.
    """
    choice, chosen = choose(wanted, operator, found)
    if not chosen.apart:
        return Open(choice, chosen, None)
    try:
        return Open(choice, chosen, mesh(where))
    except ClusterError as error:
        if wanted != "auto":
            raise
        why = f"workers cannot be members: {error}"
    left = [
        one._replace(seconds=None, why=one.why or why) if one.apart else one
        for one in found
    ]
    return Open(*choose(wanted, operator, left), None)


class Places:
    """Closed by whoever made it, and with it the members that were asked for.

    Parameters
    ----------
    layout : str
        That is wanted, or "auto".
    n_jobs : int, optional
        Threads of this process.

    Attributes
    ----------
    threads : Threads
    pool : Pool
    choice : Choice or None
        What `choose` came to.
    """

    def __init__(self, layout: str, n_jobs: int | None = None) -> None:
        self.layout, self.threads = layout, Threads(n_jobs)
        self.pool = Pool.of(n_jobs=n_jobs)
        self.choice: Choice | None = None
        self._mesh: Mesh | None = None
        self._began = time.perf_counter()

    def choose(self, operator: str, pricing: Pricing) -> Priced:
        """Choose a layout; what is done from now on is what was predicted.

        Parameters
        ----------
        operator : str
            What is done.
        pricing : callable
            See `priced`.
        """
        found = priced(self.layout, self.pool, None, pricing)
        self._began = time.perf_counter()
        self.choice, chosen, self._mesh = opened(self.layout, operator, found)
        return chosen

    @property
    def mesh(self) -> Mesh:
        """The members of the layout that was chosen; this process, if it needs none."""
        if self._mesh is None:
            self._mesh = MeshHere(1)
        return self._mesh

    def plan(self, estimator: object) -> Plan:
        """What was chosen, and what it took up to now."""
        choices = () if self.choice is None else (self.choice,)
        predicted = None if self.choice is None else self.choice.predicted
        plan = Plan(f"fit {estimator}", choices, predicted, notes=notes(self._began))
        seconds = worked(self._began)
        took = {one.step: seconds for one in choices}
        return plan.with_measured(took, total=seconds)

    def close(self) -> None:
        """Let go of threads and members."""
        if self._mesh is not None:
            self._mesh.close()
        self.threads.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
