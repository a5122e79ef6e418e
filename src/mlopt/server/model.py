"""What workers and servers give together, by the mode that runs: pure formulas.

Symbols: w workers and s servers; ``C`` seconds of a mini-batch on a worker, ``P`` seconds
of a pull that nobody hinders, ``Z`` seconds of each server for one pull and one push, ``A``
those for the push. A mini-batch of the whole cluster takes

::

    lockstep, pulls in turn    compute + (pull | w serve)       (C + max(P + w A, w Z)) / w
    lockstep, pulls at once    compute + pull + (w - 1) serve   (C + P + A + (w - 1) Z) / w
    async, bounded             (compute + pull) | serve         max((C + P + A) / w, Z)
    prefetch                   compute | pull | serve           max(C / w, (P + A) / w, Z)

where machines are alike. Where they are not, the k kinds of machines have counts
``(..., k)``; mini-batches are as large as a worker is fast where workers wait for each
other (lockstep, bounded), and all of one size elsewhere.

Lee et al., "Automating System Configuration of Distributed Machine Learning" (Cruise,
ICDCS 2019), equations (1) to (5): their (4) and (5) are the first line. A pull is of the
whole model, and a push does not wait. docs/server.md has how near `simulate` comes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from mlopt.errors import InputError

Floats = NDArray[np.float64]

Mode = Literal["lockstep", "bounded", "async", "prefetch"]
"""Whether workers wait for each other after each mini-batch, only for those that are
`Work.staleness` behind, or never; "prefetch": they pull while they compute."""
MODES: tuple[Mode, ...] = ("lockstep", "bounded", "async", "prefetch")

Pulls = Literal["auto", "in turn", "at once"]
"""Whether a worker asks one server after the other, each worker beginning with another
one, or all at once; "auto": in turn in lockstep, where all that pull at once stand in each
other's way, else at once."""


class Kind(NamedTuple):
    """Machines that are alike.

    Attributes
    ----------
    compute : float
        Seconds of one mini-batch on one of them as a worker.
    bandwidth : float
        Bytes a second of its link, each way.
    """

    compute: float
    bandwidth: float


@dataclass(frozen=True)
class Work:
    """What a mini-batch moves, and how workers wait.

    Parameters
    ----------
    pulled : float
        Bytes that a worker pulls for one mini-batch, from all servers together.
    batches : float, default=1
        Mini-batches of an epoch.
    message : float, default=0
        Seconds of one ask beside its bytes: a worker pays it for each server, a server
        for each ask.
    applying : float, default=0
        Seconds that one server would take to apply the push of one mini-batch.
    mode : {"lockstep", "bounded", "async", "prefetch"}, default="async"
    pulls : {"auto", "in turn", "at once"}, default="auto"
    staleness : int, default=2
        Mini-batches that a worker of "bounded" may be ahead of the slowest. With 1 workers
        wait for each other, up to 16% (benchmarks/server_planner.py); with 2 hardly.
    noise : float, default=0
        Deviation of the seconds of a mini-batch, as a share of them.
    row_blocks, model_blocks : int, default=0
        In how many pieces the rows and the model can be dealt; 0: as finely as one likes,
        as rows are where who is done takes the next mini-batch, whoever's it was.

    Raises
    ------
    InputError
    """

    pulled: float
    batches: float = 1.0
    message: float = 0.0
    applying: float = 0.0
    mode: Mode = "async"
    pulls: Pulls = "auto"
    staleness: int = 2
    noise: float = 0.0
    row_blocks: int = 0
    model_blocks: int = 0

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InputError(f"`mode` must be one of {MODES}, got {self.mode!r}.")
        for name, value in vars(self).items():
            if not isinstance(value, str) and not 0 <= value < math.inf:
                raise InputError(f"`{name}` must be finite and at least 0, got {value!r}.")

    @property
    def in_turn(self) -> bool:
        """Whether a worker asks one server after the other."""
        if self.pulls == "auto":
            return self.mode == "lockstep"
        return self.pulls == "in turn"

    @property
    def ahead(self) -> float:
        """Mini-batches that a worker may be ahead of the slowest."""
        ahead = {"lockstep": 0.0, "bounded": float(self.staleness)}
        return ahead.get(self.mode, math.inf)


class Parts(NamedTuple):
    """Seconds per mini-batch of the cluster, each ``(...,)``.

    Attributes
    ----------
    worker : ndarray
        What workers take where no server is busy with others: compute, pull.
    compute : ndarray
        What of it they compute.
    queue : ndarray
        What they wait for each other's pulls, if these all come at once.
    serve : ndarray
        What servers take.
    """

    worker: Floats
    compute: Floats
    queue: Floats
    serve: Floats

    @property
    def seconds(self) -> Floats:
        """Of one mini-batch of the cluster; infinite without workers, or servers."""
        return np.maximum(self.worker + self.queue, self.serve)


def capacity(kinds: Floats, work: Work) -> Floats:
    """Bytes a second of the model that servers of each kind send and update, ``(k,)``.

    A server holds as much of the model as it has of this, so that all are busy for as long.
    """
    per_byte = work.applying / work.pulled if work.pulled else 0.0
    served: Floats = 1.0 / (1.0 / kinds[:, 1] + per_byte)
    return served


def parts(kinds: ArrayLike, workers: ArrayLike, servers: ArrayLike, work: Work) -> Parts:
    """Seconds of one mini-batch of the cluster, for many configurations at once.

    Parameters
    ----------
    kinds : array-like of shape (k, 2)
        `Kind` of each.
    workers, servers : array-like of shape (..., k)
        How many of each kind.
    work : Work
    """
    kinds_: Floats = np.asarray(kinds, float)
    W, S = np.asarray(workers, float), np.asarray(servers, float)
    C, bandwidth = kinds_.T
    with np.errstate(divide="ignore", invalid="ignore"):
        w, s = W.sum(-1), S.sum(-1)
        serve = np.where(s > 0, work.pulled / (S @ capacity(kinds_, work)), math.inf)
        serve = serve * _coarse(work.model_blocks, s) + work.message
        applied = work.applying / s
        pull = np.maximum(work.pulled / bandwidth, (serve - applied)[..., None])
        pull = pull + (work.message * s + applied)[..., None]
        if work.mode == "lockstep" and work.in_turn:
            others = (w - 1) * applied
            pull = np.maximum(pull + others[..., None], (w * serve)[..., None])
        if work.ahead < math.inf:
            # Mini-batches of sizes that let all end at once: w of the usual size together.
            speed = (W / C).sum(-1)
            compute = 1.0 / speed
            if work.mode == "lockstep":
                compute = compute * (1 + work.noise * slowest(w))
            worker = compute + _sum(W, pull / C) / (w * speed)
        else:
            each = np.maximum(C, pull) if work.mode == "prefetch" else C + pull
            rate = _sum(W, 1.0 / each)
            worker, compute = 1.0 / rate, _sum(W, C / each) / (w * rate)
        waves = work.mode == "lockstep" and not work.in_turn
        queue = np.where(waves & (w > 0), (w - 1) * serve / w, 0.0)
        worker = worker * _coarse(work.row_blocks, w)  # inf times 0 where nobody works
    nobody = (w == 0) | (s == 0)
    compute, queue = np.where(nobody, 0.0, compute), np.where(nobody, 0.0, queue)
    return Parts(np.where(nobody, math.inf, worker), compute, queue, serve)


def slowest(w: ArrayLike) -> Floats:
    """By how many deviations the slowest of ``w`` is expected to be above the mean.

    For normal deviations (Blom, 1958), and none for one.
    """
    counts: Floats = np.maximum(np.asarray(w, float), 1.0)
    above: Floats = np.maximum(0.0, ndtri((counts - 0.375) / (counts + 0.25)))
    return above


def _coarse(blocks: int, members: Floats) -> Any:
    """How much more the one with the most blocks has than its share."""
    return np.ceil(blocks / np.maximum(members, 1)) * members / blocks if blocks else 1.0


def _sum(counts: Floats, each: Floats) -> Any:
    """Over kinds; nobody of a kind that would take for ever adds nothing."""
    return np.where(counts > 0, counts * each, 0.0).sum(-1)


def seconds(kinds: ArrayLike, workers: ArrayLike, servers: ArrayLike, work: Work) -> Any:
    """Seconds of an epoch; see `parts`.

    Examples
    --------
    >>> from mlopt.server.model import Kind, Work, seconds
    >>> work = Work(pulled=60.5e6, batches=1000, mode="async")
    >>> [float(round(seconds([Kind(1.0, 1e8)], [w], [32 - w], work), 1)) for w in (16, 24)]
    [100.3, 75.6]
    """
    return work.batches * parts(kinds, workers, servers, work).seconds


def balance(n: int, compute: float, pull: float, work: Work) -> float:
    """Workers among ``n`` machines that are alike, if they could be cut: the closed form.

    The best whole number is a neighbour of it, or the end of the range, where messages
    cost nothing: seconds of a mini-batch fall before it and rise after.

    Parameters
    ----------
    n : int
    compute, pull : float
        Seconds of a mini-batch, and of the whole model over one link.
    work : Work
        Its mode, and seconds of applying.

    References
    ----------
    Cruise, equation (5), whose closed form the paper omits: in lockstep with pulls in turn
    ``s / w = sqrt(pull / compute)``, and never more servers than workers.

    Examples
    --------
    >>> from mlopt.server.model import Work, balance
    >>> [round(balance(32, 1.0, k, Work(1.0, mode="lockstep"))) for k in (.034, .605)]
    [27, 18]
    """
    applying = work.applying
    if work.mode == "lockstep":
        # All are of the form x / w + y / s, and least at s / w = sqrt(y / x).
        if not work.in_turn:
            pull *= (n - 1) / n
            x, y = compute + pull, applying + pull
        elif applying > compute + pull:  # fewer workers than servers: nobody queues
            x, y = compute + pull, applying
        else:
            x, y = compute, min(compute, applying + pull)
        return n / (1 + math.sqrt(y / x)) if x else n / 2
    # The servers' seconds grow and the workers' fall: both are equal at the best.
    serve = pull + applying
    if work.mode == "prefetch":
        crossings = [(compute, 0.0), (pull, applying)]
    else:
        crossings = [(compute + pull, applying)]
    return max((n * own + extra) / (own + serve) for own, extra in crossings if own)
