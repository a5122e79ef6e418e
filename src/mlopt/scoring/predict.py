"""A model on many files at once: read, predict and write overlap, in bounded memory.

::

    files -> blocks of rows -> predict, to CSV -> one file each, in its place when whole

On workers each file goes to one of them, which does all three with its blocks in turn. So
do processes of its own, once what is left takes so long that it pays to start them.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

from mlopt.cluster.hands import Hands, most_processes
from mlopt.cluster.resident import LOST
from mlopt.cluster.threads import count_threads
from mlopt.errors import InputError, InputWarning, MloptError
from mlopt.events import FileDone, Observer, ignore
from mlopt.hearing import unheard_by_all
from mlopt.identity import token_of
from mlopt.interrupts import Interrupts
from mlopt.parameters import bytes_of
from mlopt.plan import Plan
from mlopt.readers.files import NotAlikeError
from mlopt.resources.probe import memory_limit
from mlopt.scoring.blocks import Block
from mlopt.scoring.files import (
    Job,
    Journal,
    digest,
    files_of,
    jobs_of,
    prepare,
    size_of,
)
from mlopt.scoring.hands import CALLS, HERE, Hand, Pace, where_to
from mlopt.scoring.scorer import Done, Scorer, as_found, written
from mlopt.streaming.answer import Feeds
from mlopt.streaming.stream import Stream
from mlopt.sweep.models import load, model_file

OPEN = 3
"""Files at once: one is read, one predicted, one written."""
REMARKS = 20
"""Remarks on a file that are told: lines, so that those of a few files fit a screen."""


@dataclass(frozen=True)
class Predicted:
    """What became of each file.

    Attributes
    ----------
    rows : mapping of Path to int
        Rows of each file that was predicted now, by where its predictions are.
    skipped : mapping of Path to int
        The same of those that were there from an earlier run.
    failed : mapping of Path to str
        Files that could not be predicted, and why.
    seconds : float
    plan_ : Plan or None
        Of the stream; None where there was nothing to do.
    """

    rows: Mapping[Path, int]
    skipped: Mapping[Path, int]
    failed: Mapping[Path, str]
    seconds: float
    plan_: Plan | None

    def describe(self) -> str:
        """How many files and rows, in which time."""
        there = f", {len(self.skipped)} were there" if self.skipped else ""
        rows = sum(self.rows.values())
        return f"{len(self.rows)} files, {rows:,} rows, in {self.seconds:.1f} s{there}"


def predict(
    model: Any,
    paths: str | Path | Iterable[str | Path],
    *,
    output: str | Path,
    memory: int | str | None = None,
    proba: bool = False,
    threads: int | None = None,
    client: Any = None,
    observer: Observer = ignore,
    tell: Callable[[str], object] = lambda text: None,
) -> Predicted:
    """Predict the rows of files, each to a CSV file with a column ``prediction``.

    Public as `mlopt.predict`. A file's predictions are there whole or not at all. The same
    call again goes on: files that are done, and have not changed since, are left out. A
    file that cannot be predicted fails alone.

    Parameters
    ----------
    model : path, or fitted estimator
        A ``.skops`` file, the output folder of a sweep, or what `mlopt.load` gives.
    paths : str, Path, or iterable of them
        Files, patterns as ``data/*.parquet``, folders: CSV, Parquet, JSON lines, LIBSVM,
        ``.npz``. Large ones are read in blocks of rows.
    output : path
        A folder.
    memory : int or str, optional
        Bytes that rows may take in all processes: 2**30 or "1GiB". [default: a quarter of
        what there is]
    proba : bool
        Add ``probability_<class>`` for each class.
    threads : int, optional
        Cores. Where many files are left, as many processes are started beside this one:
        threads wait for Python's lock. [default: all cores]
    client : distributed.Client, optional
        On whose workers files are read, predicted and written, as many at once as they
        have threads, and one more each: they must see the same paths. ``memory`` is then
        that of each worker.
    observer : callable, optional
        Called with a `mlopt.events.FileDone` for each file.
    tell : callable, optional
        Called with remarks on how files were read.

    Returns
    -------
    Predicted

    Raises
    ------
    InputError
        A model that cannot be loaded, paths that mean no file, an output that cannot be
        written to; not what single files do.

    Notes
    -----
    Predictions of a file in blocks are those of the whole to rounding: a product of
    matrices may add up in another order.
    """
    began = time.monotonic()
    estimator, name, own = _loaded(model)
    if proba and not hasattr(estimator, "predict_proba"):
        raise InputError(
            "`proba` needs a model that gives probabilities; this one does not. "
            "Leave it out."
        )
    # of a machine that does other things, too: what is left is theirs, and Python's own
    room = memory_limit() // 4 if memory is None else bytes_of("`memory`", memory, least=1)
    folder = Path(output).expanduser()
    jobs = jobs_of(files_of(paths, folder), folder)
    prepare(jobs, folder, own)
    with Journal(
        folder, digest(name, version("mlopt").encode(), str(proba).encode())
    ) as kept:
        known = {job: kept.has(job) for job in jobs}
        run = _Run(estimator, kept, room, proba, threads, client)
        done, failed = run.go([job for job in jobs if known[job] is None], observer, tell)
    return Predicted(
        rows={one.job.output: one.rows for one in done},
        skipped={job.output: rows for job, rows in known.items() if rows is not None},
        failed=failed,
        seconds=time.monotonic() - began,
        plan_=run.plan,
    )


class _Run:
    """One call: the stages of its streams, and what they share."""

    def __init__(
        self,
        model: Any,
        kept: Journal,
        memory: int,
        proba: bool,
        threads: int | None,
        client: Any,
    ) -> None:
        self._kept, self._adding = kept, threading.Lock()
        self._whole: set[Job] = set()
        self._scorer = scorer = Scorer(model, memory, proba)
        cores = count_threads(threads)
        self._hands: Hands | None = None
        self._feeds: Callable[[Job], Iterator[Any]]
        if client is None:
            # One file is read, one is written, and the cores predict: what may take memory
            # is known beforehand, and does not depend on what else the machine is at.
            stream = Stream(memory=memory, threads=threads, open=OPEN, feeds=cores + OPEN)
            stream = stream.map(scorer.score_part, name="predict", replicas=cores)
            self._stream = stream.gather(self._write, name="write")
            self._feeds = self._parts
            if processes := most_processes(cores):
                share = replace(scorer, memory=memory // processes)
                self._hands = Hands(
                    Hand, share, processes=processes, calls=CALLS, lost=LOST
                )
        else:
            stream = Stream(client=client, threads=threads, partition=1)
            stream = stream.map(scorer.score_file, name="predict")
            self._stream = stream.gather(self._note, name="note")
            self._feeds = self._file
        self.plan: Plan | None = None

    def go(
        self, jobs: list[Job], observer: Observer, tell: Callable[[str], object]
    ) -> tuple[list[Done], dict[Path, str]]:
        """Predict files; what must be read whole after all comes last."""
        began, done, failed = time.monotonic(), list[Done](), dict[Path, str]()
        left = jobs
        with ExitStack() as stack:
            interrupts = stack.enter_context(Interrupts())
            # It is told, with the rows.
            stack.enter_context(unheard_by_all(InputWarning))
            if self._hands is not None:
                self._hands.given_up = lambda: interrupts.heard
                stack.callback(self._hands.close)
            while left:
                again: list[Job] = []
                for one in self._answers(left):
                    job, reason = _what(one)
                    if isinstance(one, Done):
                        done.append(one)
                        for remark in one.remarks[:REMARKS]:
                            tell(f"{job.source}: {remark}")
                    elif isinstance(getattr(one, "__cause__", None), NotAlikeError):
                        again.append(job)
                        continue
                    else:
                        failed[job.source] = reason
                    rows = one.rows if isinstance(one, Done) else 0
                    count = len(done) + len(failed)
                    at = time.monotonic() - began
                    observer(FileDone(at, str(job.source), rows, count, len(jobs), reason))
                left = again
                self._whole |= set(again)
        return done, failed

    def _answers(self, jobs: list[Job]) -> Iterator[Any]:
        """What becomes of files: here, and once processes of its own pay, there."""
        waiting = deque(jobs)
        if self._hands is None or self._whole:
            yield from self._through(self._stream, self._feeds, waiting)
            return
        hands, sizes = self._hands, {job: size_of(job.source) for job in jobs}
        pace, chosen = Pace(sum(sizes.values())), None
        room = self._scorer.memory // hands.processes
        for one in self._through(self._stream, self._feeds, waiting, lambda: hands.there):
            yield one
            pace.saw(sizes[_what(one)[0]])
            if chosen is None and waiting:
                chosen = where_to(pace, hands.processes, max(sizes.values()), room)
                if chosen is not None and chosen.chosen != HERE:
                    hands.start()
        at_once = CALLS * hands.processes
        there = Stream(open=at_once + 1, feeds=at_once + 1)
        there = there.map(
            partial(hands.call, "score_file"), name="predict", replicas=at_once
        )
        there = there.gather(self._note, name="note")
        yield from self._through(there, self._file, waiting)
        if self.plan is not None and chosen is not None:
            self.plan = replace(self.plan, choices=(chosen, *self.plan.choices))

    def _through(
        self,
        stream: Stream,
        feeds: Callable[[Job], Iterator[Any]],
        waiting: deque[Job],
        until: Callable[[], bool] = lambda: False,
    ) -> Iterator[Any]:
        """Answers of a stream to files that wait, until others may have the rest."""

        def requests() -> Iterator[_Request]:
            while waiting and not until():
                yield _Request(waiting.popleft(), feeds)

        if waiting:
            yield from stream.run(requests(), errors="give")
            self.plan = stream.explain()

    def _parts(self, job: Job) -> Iterator[Job | Block]:
        return self._scorer.parts(job, job in self._whole)

    def _file(self, job: Job) -> Iterator[tuple[Job, bool]]:
        # Workers may be in other folders.
        there = Job(job.source.absolute(), job.output.absolute())
        return iter([(there, job in self._whole)])

    def _write(self, feeds: Feeds) -> Done:
        first = next(feeds)
        if not isinstance(first, Done):
            request = feeds.request
            first = written(request.job, chain([first], feeds), request.before)
        return self._noted(first)

    def _note(self, feeds: Feeds) -> Done:
        (done,) = feeds
        return self._noted(replace(done, job=feeds.request.job))

    def _noted(self, done: Done) -> Done:
        with self._adding:
            self._kept.add(done.job, done.rows, done.before)
        return done


@dataclass
class _Request:
    """A file as a request: called for its blocks when it is opened; ``before`` is as in
    `Done`.
    """

    job: Job
    feeds: Callable[[Job], Iterator[Block]]
    before: list[Any] = field(default_factory=list)

    def __call__(self) -> Iterator[Block]:
        self.before = as_found(self.job)
        return self.feeds(self.job)


def _what(one: Any) -> tuple[Job, str]:
    """Which file an answer is of, and why there is none."""
    if isinstance(one, Done):
        return one.job, ""
    cause = one.__cause__ or one
    said = (
        str(cause) if isinstance(cause, MloptError) else f"{type(cause).__name__}: {cause}"
    )
    return one.request.job, " ".join(said.split())


def _loaded(model: Any) -> tuple[Any, bytes, Path | None]:
    """A model, what tells it from others, and its file."""
    if isinstance(model, str | Path):
        path = model_file(Path(model).expanduser())
        return load(path), path.read_bytes(), path
    return model, token_of(model, fitted=True).encode(), None
