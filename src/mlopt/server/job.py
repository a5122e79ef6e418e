"""A user's own training: a step that says what a block of rows adds to a model."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal

from mlopt.cluster import Executor, Mesh, MeshHere, executor, mesh
from mlopt.cluster.threads import Threads, count_threads
from mlopt.errors import ClusterError, InputError, InputWarning
from mlopt.events import Observer, ignore
from mlopt.parameters import check_count
from mlopt.plan import Choice, Plan
from mlopt.server.elastic import Policy
from mlopt.server.given import (
    ALONE,
    Kept,
    cells_of,
    check_state,
    check_where,
    is_finite,
    is_in_parts,
    parts_of,
)
from mlopt.server.layouts.layout import Layout
from mlopt.server.layouts.loading import Work
from mlopt.server.layouts.places import opened, priced
from mlopt.server.layouts.pool import Pool, client_of
from mlopt.server.layouts.pricing import Priced, choose, usual
from mlopt.server.layouts.rotate import Rotate
from mlopt.server.layouts.rounds import Rounds
from mlopt.server.layouts.servers import Servers
from mlopt.server.program import Adds, Program
from mlopt.server.workers import MODES, Mode

LayoutName = Literal["auto", "threads", "rounds", "rotate", "servers"]
LAYOUTS: tuple[LayoutName, ...] = ("auto", "threads", "rounds", "rotate", "servers")


@dataclass(frozen=True)
class Result:
    """What a job came to.

    Parameters
    ----------
    model : ndarray, mapping of str to ndarray, or a list of them
        As it was given.
    passes : int
    seconds : float
        Wall time of `Job.run`.
    layout : str
        That was used.
    lost : int
        Members that were lost on the way.
    """

    model: Any
    passes: int
    seconds: float
    layout: str
    lost: int


class Job:
    """Trains a model by steps on blocks of rows, each of which adds something to it.

    Parameters
    ----------
    step : callable
        ``step(block, model)`` returns what is to be added to the model: of its shapes. It
        cannot change the model that it is given, nor rows that are cut here. A block has
        ``X`` and ``extra``, what was attached to its rows (see `mlopt.rows.Block`).
    model : ndarray, mapping of str to ndarray, or a sequence of mappings
        To begin with; it is not changed. A sequence is a model in parts.
    rows : array-like (n, d), Rows, or a sequence
        Rows are cut into blocks. A sequence is taken as blocks, whatever they are (in this
        process as they are, not copies); if the model is in parts, a sequence of sequences:
        strata, each with a block for each part. A step is then given one part.
    y : array-like of shape (n,), optional
        ``block.extra["y"]``.
    mode : {"async", "bounded", "lockstep"}, optional
        For servers: whether workers wait for each other never, when others are more than
        ``staleness`` steps behind, or after each step. To give one says that what steps add
        may be summed so late; without, servers are asynchronous where they are asked for.
    layout : {"auto", "threads", "rounds", "rotate", "servers"}, default="auto"
        "threads": one process, one step after the other for each part of the model.
        "rounds": in each pass all steps on the same model, then their sum. "rotate": parts
        go from member to member. "servers": some members hold the model, others work.
        "auto" is what takes the least predicted time of those that can be had and are known
        to come to what is wanted: "threads" and "rotate", which give the same to the bit;
        "servers" if a ``mode`` is given; "rounds" if that is "lockstep". A few steps on
        copies are timed for that where there are members.
    passes : int, default=1
        Over the rows.
    staleness : int, default=1
    servers : int, optional
        How many members. Default: three tenths of them; where "auto" chooses servers, as
        many as take the least predicted time.
    policy : Policy, optional
        For "servers": change who works and who serves while they run, where what was
        measured says that it gains, until a worker is done. Then, or without, who is done
        takes strata of others.
    observer : callable, optional
        Told of each change.
    where : Client, Executor or Mesh, optional
        Default: the active client's workers, else this process.
    members : int, default=1
        In this process, if it is there.
    n_jobs : int, optional
        Threads of each member for "threads" and "rotate"; below 0 as in joblib. Default:
        all cores.

    Attributes
    ----------
    passes : int
        Done so far, by all blocks.
    steps : tuple of int
        Of each block that are in `model`, also after an error or an interrupt.
    layout_ : str
        That is used.
    plan_ : Plan
        Once it has run: the layout that was chosen, and rejected ones, with predicted and
        measured seconds; each configuration of "servers" that followed is a line.

    Raises
    ------
    InputError
        A layout or a setting that cannot be had; a model that holds no numbers.

    Notes
    -----
    Pickled, as for `mlopt.submit`, a job is as far as it is; its members stay.

    Examples
    --------
    >>> import numpy as np
    >>> from mlopt.server import Job
    >>> def step(block, model):
    ...     return 0.1 * (block.X.mean(axis=0) - model)
    >>> X = np.random.default_rng(0).normal(3, 1, (1000, 2))
    >>> result = Job(step, np.zeros(2), X, passes=100).run()
    >>> np.abs(result.model - X.mean(axis=0)).max() < 0.01
    np.True_
    """

    def __init__(
        self,
        step: Callable[[Any, Any], Any],
        model: Any,
        rows: Any,
        *,
        y: Any = None,
        mode: Mode | None = None,
        layout: LayoutName = "auto",
        passes: int = 1,
        staleness: int = 1,
        servers: int | None = None,
        policy: Policy | None = None,
        observer: Observer = ignore,
        where: Any = None,
        members: int = 1,
        n_jobs: int | None = None,
    ) -> None:
        if mode is not None and mode not in MODES:
            raise InputError(f"`mode` must be one of {MODES}, got {mode!r}.")
        if layout not in LAYOUTS:
            raise InputError(f"`layout` must be one of {LAYOUTS}, got {layout!r}.")
        if not callable(step):
            raise InputError(f"`step` must be callable, got {step!r:.60}.")
        if policy is not None and not isinstance(policy, Policy):
            raise InputError(f"`policy` must be a mlopt.server.Policy, got {policy!r:.60}.")
        if not callable(observer):
            raise InputError(f"`observer` must be callable, got {observer!r:.60}.")
        check_where(where)
        count_threads(n_jobs)  # which refuses 0
        self.limit, self.mode = check_count("passes", passes, least=0), mode
        self.staleness = check_count("staleness", staleness, least=0)
        self.servers = None if servers is None else check_count("servers", servers)
        self._policy, self._observer = policy, observer
        self._where, self._n_jobs = where, n_jobs
        self._members = check_count("members", members)
        self._in_parts = is_in_parts(model)
        self._alone = not (self._in_parts or isinstance(model, Mapping))
        parts = parts_of(model)
        cells, held = cells_of(rows, y, self._in_parts, where)
        self.program = Program(Adds(step, self._alone), parts, cells, executor=held)
        self._wanted, self.layout_ = layout, str(layout)
        self._title = f"job {getattr(step, '__name__', type(step).__name__)}"
        self._mesh: Mesh | None = None
        self._layout: Layout | None = None
        self._kept = Kept(0, self.program.parts)
        self._choice: Choice | None = None
        self._seconds, self._changes = 0.0, tuple[Choice, ...]()

    @property
    def passes(self) -> int:
        """Passes over the rows so far."""
        return (self._kept if self._layout is None else self._layout).passes

    @property
    def steps(self) -> tuple[int, ...]:
        """Steps of each block, or stratum of blocks, that are in the model.

        Of all as many, unless servers were interrupted while some were far ahead.
        """
        if self._layout is not None:
            return self._layout.steps
        even = (self.passes * len(self.program.parts),) * len(self.program.cells)
        return self._kept.steps or even

    @property
    def done(self) -> bool:
        """Whether all passes are done."""
        return self.passes >= self.limit

    @property
    def model(self) -> Any:
        """The model now, also after an error; as it was given."""
        self._keep()
        parts = [
            {name: array.copy() for name, array in part.items()}
            for part in self._kept.parts
        ]
        if self._in_parts:
            return parts
        return parts[0][ALONE] if self._alone else parts[0]

    def run(self) -> Result:
        """Do all passes that are left.

        Raises
        ------
        InputError
            A step returned what cannot be added to the model.
        TaskError
            A server was sent whole numbers whose sums do not fit the model.
        TaskKilledError
            Three members were lost, one after another, with the same step of a block.
        ClusterError
            No member is left. What was learnt so far is in `model`.

        Warns
        -----
        InputWarning
            The model has NaN or infinity, and had none.
        """
        began, lost, sound = time.monotonic(), 0, is_finite(self.program.parts)
        try:
            self.advance(max(0, self.limit - self.passes))
        finally:
            try:
                model = self.model
            finally:
                lost = 0 if self._layout is None else self._layout.lost
                self._let_go()
        if sound and not is_finite(self._kept.parts):
            warnings.warn(
                f"the model has NaN or infinity after {self.passes} passes: `step` "
                "returned it, or its steps are too long.",
                InputWarning,
                stacklevel=2,
            )
        seconds = time.monotonic() - began
        return Result(model, self.passes, seconds, self.layout_, lost)

    def advance(self, passes: int) -> None:
        """Do so many more passes; see `run`. `close` lets go of the members."""
        passes, began = check_count("passes", passes, least=0), time.monotonic()
        if not passes and self._choice is not None:
            return  # the plan stays that of what was done
        try:
            if self._layout is None:
                self._seconds = 0.0  # what is chosen now is for what is left
                try:
                    self._layout = self._laid_out()
                except BaseException:
                    self._let_go()  # of members that it would have had
                    raise
            if passes:
                self._layout.advance(passes)
        finally:
            self._seconds += time.monotonic() - began

    def explain(self) -> Plan:
        """The layout that would be chosen, and rejected ones with their predicted seconds.

        A few steps are timed on copies; nothing else is done. Of a job that has run, what
        was chosen and measured.

        Returns
        -------
        Plan
        """
        if self._choice is not None:
            return self.plan_
        choice, _ = choose(self._called_for, *self._priced(asked=True))
        return Plan(self._title, (choice,), choice.predicted)

    @property
    def plan_(self) -> Plan:
        """What was chosen, predicted and measured."""
        if self._choice is None:
            raise AttributeError("`plan_` is there once the job has run: see `explain`.")
        changes = self._changes if self._layout is None else self._layout.changes()
        choice = replace(self._choice, measured=self._seconds, children=changes)
        return Plan(self._title, (choice,), choice.predicted, self._seconds)

    def state(self) -> dict[str, Any]:
        """A checkpoint."""
        model = self.model
        return {"model": model, "passes": self.passes, "steps": self.steps}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`.

        Raises
        ------
        InputError
            It is none of a job like this one.
        """
        kept = check_state(state, self.program)
        self._let_go()
        self._kept = kept

    def close(self) -> None:
        """Let go of members; what was learnt stays in `model`."""
        try:
            with suppress(ClusterError):  # nobody has it any more: it is what was kept
                self._keep()
        finally:
            self._let_go()

    def _keep(self) -> None:
        layout = self._layout
        if layout is not None and self._kept.steps != layout.steps:
            found, _ = layout.model()
            self._kept = Kept(layout.passes, found, layout.steps)

    def _let_go(self) -> None:
        layout, self._layout = self._layout, None
        if layout is not None:
            self._changes = layout.changes()
            layout.close()
        if self._mesh is not None and self._mesh is not self._where:
            self._mesh.close()
        self._mesh = None

    def __getstate__(self) -> dict[str, Any]:
        self._keep()
        return vars(self) | {"_layout": None, "_mesh": None}

    def _laid_out(self) -> Layout:
        passes, parts, _ = self._kept
        program, steps = self.program.starting(parts), self.steps
        wanted, found = self._called_for, self._priced()
        self._choice, chosen, self._mesh = opened(wanted, *found, self._where)
        self.layout_ = chosen.layout
        if self.layout_ == "rounds":
            return Rounds(program, self._executor(), passes=passes)
        if self.layout_ == "threads":
            self._mesh = MeshHere(1)
        elif self._mesh is None:
            where = self._where if isinstance(self._where, Mesh) else self._executor()
            self._mesh = mesh(where, self._members)
        if isinstance(self._mesh, MeshHere):
            program = program.gathered()
        if self.layout_ == "servers":
            return Servers(
                program, self._mesh, passes=passes, steps=steps, mode=self.mode or "async",
                staleness=self.staleness, servers=self.servers or chosen.servers or None,
                policy=self._policy, observer=self._observer,
            )  # fmt: skip
        return Rotate(program, self._mesh, passes=passes, threads=self._n_jobs)

    def _executor(self) -> Executor:
        if self.program.executor is not None:
            return self.program.executor
        if isinstance(self._where, MeshHere):
            return Threads(self._n_jobs)
        if isinstance(self._where, Mesh):
            return executor(client_of(self._where), self._n_jobs)
        if isinstance(self._where, Executor):
            return self._where
        return executor(self._where, self._n_jobs)

    @property
    def _called_for(self) -> str:
        # Others than servers know no blocks that are further than others.
        return "servers" if len({*self.steps}) > 1 else self._wanted

    def _priced(self, asked: bool = False) -> tuple[str, Sequence[Priced]]:
        """What is to be done, and layouts; ``asked`` how long each would take."""
        passes, parts, _ = self._kept
        where, wanted, servers = self._where, self._called_for, self.servers
        pool = Pool.of(where, members=self._members, n_jobs=self._n_jobs)
        if wanted == "servers" and servers is None:  # then nothing need be measured
            servers = usual(pool.members)
        work = Work(
            self.program.starting(parts), max(0, self.limit - passes), passes, self.mode,
            self.staleness, servers,
        )  # fmt: skip
        return str(work), priced(wanted, pool, where, work.prices, asked)
