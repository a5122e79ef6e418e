"""The stream that users build, look at and run."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from numbers import Real
from typing import Any, Literal, Self

from mlopt.cluster.mesh_here import mesh
from mlopt.cluster.threads import count_threads
from mlopt.errors import DeadlineError, InputError, StreamClosedError
from mlopt.events import Observer, ignore
from mlopt.parameters import bytes_of, is_count
from mlopt.plan import Plan
from mlopt.streaming.answer import Answer, Feeds, check_request
from mlopt.streaming.credits import BARRIER
from mlopt.streaming.explain import plan_of
from mlopt.streaming.running import Running
from mlopt.streaming.spread import Spread
from mlopt.streaming.stage import Stage, stage_of
from mlopt.streaming.tune import Room


class Stream:
    """Many requests at once through the same stages, in bounded memory.

    A request is a sequence of feeds, or a function that gives one, made lazily: what waits
    is the request, never its feeds. Each is answered as if it were alone: its results are
    in the order of its feeds, aggregates hold feeds of one request only, and what fails,
    fails alone. `map`, `aggregate` and `gather` give a new stream; nothing starts before
    `run` or `submit`.

    Parameters
    ----------
    open : int or "auto"
        Requests that may be under way at once.
    feeds : int or "auto"
        Feeds that may be under way at once, those that stages work on included.
    memory : int or str, optional
        Bytes that feeds may take, as 2**30 or "1GiB": limits the two above.
    threads : int, optional
        Cores to plan for; None or -1 for all that this process may use.
    observer : callable, optional
        Called with `mlopt.events.GateWaited` and `RequestDone`, one at a time, from
        threads of the stream.
    client : distributed.Client or Mesh, optional
        On whose workers stages run; sources and `gather` run here. `open` and `feeds` are
        then those of all workers, `memory` is that of each process, the cores of a worker
        are its threads. What a stage needs must be picklable, and a feed goes through a
        stage again where its worker is lost. A mesh is this stream's alone.
    partition : int or "auto"
        Feeds of a request that go to a worker together: a multiple of all aggregates.

    Notes
    -----
    What is "auto" is chosen after the first feeds, from what the stages took; `explain`
    says how. Until then each stage has one thread. Stages run with BLAS in one thread.

    References
    ----------
    Whitlock, Larus, Bugnion, "Extending TensorFlow's Semantics with Pipelined Execution".

    Examples
    --------
    >>> from mlopt import Stream
    >>> stream = Stream().map(abs).aggregate(2).map(sum)
    >>> list(stream.run([[1, -2, 3], [-4]], ordered=True))
    [[3, 3], [4]]
    """

    def __init__(
        self,
        *,
        open: int | Literal["auto"] = "auto",
        feeds: int | Literal["auto"] = "auto",
        memory: int | str | None = None,
        threads: int | None = None,
        observer: Observer = ignore,
        client: Any = None,
        partition: int | Literal["auto"] = "auto",
    ) -> None:
        self._client, self._partition = client, _credits("partition", partition)
        room = None if memory is None else bytes_of("`memory`", memory, least=1)
        self._room = Room(
            count_threads(threads), room, _credits("open", open), _credits("feeds", feeds)
        )
        self._observer = observer
        self._stages: tuple[Stage, ...] = ()
        self._gather: Stage | None = None
        self._size: int | None = None
        self._running: Running | None = None
        self._last: Running | None = None
        self._kept = self._closed = False
        self._runs = 0
        self._starting = threading.Lock()

    def map(
        self,
        function: Callable[[Any], Any],
        *,
        replicas: int | Literal["auto"] = "auto",
        name: str | None = None,
    ) -> Stream:
        """A stage that makes one feed of each.

        Parameters
        ----------
        function : callable
            Without state; called from several threads at once unless ``replicas`` is 1.
        replicas : int or "auto"
            Threads.
        name : str, optional
            For plans and errors. [default: that of the function]

        Raises
        ------
        InputError
            It yields or awaits: a stage must not change the number of feeds.
        """
        self._check_open_end()
        stage = stage_of(function, name, replicas, self._size)
        taken = {one.name for one in self._stages}
        if stage.name in taken:
            if name is not None:
                raise InputError(f"Stages must have different names; two are `{name}`.")
            numbers = range(2, len(taken) + 3)
            names = (f"{stage.name} {n}" for n in numbers)
            stage = replace(stage, name=next(one for one in names if one not in taken))
        made = self._copy()
        made._stages, made._size = (*self._stages, stage), None
        return made

    def aggregate(self, size: int | None = None) -> Stream:
        """The next stage gets lists of ``size`` neighbouring feeds of one request, the last
        of them shorter; all feeds of a request at once where ``size`` is None.
        """
        self._check_open_end()
        if self._size is not None:
            raise InputError("`aggregate` must be followed by `map`: it is given twice.")
        if size is not None and not is_count(size):
            raise InputError(f"`size` of an aggregate must be at least 1, got {size!r}.")
        made = self._copy()
        made._size = BARRIER if size is None else int(size)
        return made

    def gather(
        self, function: Callable[[Feeds], Any], *, name: str | None = None
    ) -> Stream:
        """What makes the answer to a request of an iterator over its results, in order.

        Results are there as they come, so that a request may be larger than the memory;
        ``feeds.request`` is what was submitted. Without `gather` the answer is the list of
        all results. The last thing in a stream.
        """
        self._check_open_end()
        if self._size is not None:
            raise InputError("`aggregate` must be followed by `map`, got `gather`.")
        made = self._copy()
        made._gather = stage_of(function, name, "auto", None)
        return made

    def explain(self, sample: Any = None) -> Plan:
        """The plan: replicas, credits, what they should give, and what was measured.

        Parameters
        ----------
        sample : request, optional
            Goes through the stages, but not to `gather`, to measure them; its results are
            thrown away. Without one the plan holds what is known of requests so far, which
            is all there is while a stream with `gather` is open.
        """
        self._check_stages()
        if sample is not None and self._running is not None:
            if self._gather is not None:
                raise InputError(
                    "`sample` must be left out while a stream with `gather` is open: the "
                    "plan holds what was measured of its requests. Or close it first."
                )
            list(self.run([sample]))
        elif sample is not None:
            trial = self._copy()
            trial._gather, trial._observer = None, ignore
            list(trial.run([sample]))
            self._last = trial._last
        state = self._running or self._last
        return plan_of(self._stages, self._gather, self._room, state)

    def run(
        self,
        requests: Iterable[Any],
        *,
        ordered: bool = False,
        errors: Literal["raise", "give"] = "raise",
        deadline: float | None = None,
    ) -> Iterator[Any]:
        """Answers to requests, as they come.

        Requests are asked for as they can be opened, so that there may be any number.

        Parameters
        ----------
        requests : iterable of requests
        ordered : bool
            In the order of requests, not of completion.
        errors : {"raise", "give"}
            What becomes of requests that failed: "raise" gives the other answers first, and
            then raises an `ExceptionGroup`; "give" gives the error as the answer.
        deadline : float, optional
            Seconds that each may take, its time of waiting included.

        Raises
        ------
        ExceptionGroup
            Of `StageError`, `DeadlineError` and the like.
        """
        if errors not in ("raise", "give"):
            raise InputError(f"`errors` must be 'raise' or 'give', got {errors!r}.")
        deadline = _seconds(deadline)
        self._check_stages()
        return self._answers(iter(requests), ordered, errors == "give", deadline)

    def submit(self, request: Any, *, deadline: float | None = None) -> Answer:
        """A future of the answer; starts the stream, which then runs until `close`.

        Parameters
        ----------
        request : iterable, or callable that gives one
        deadline : float, optional
            Seconds; then it fails with a `DeadlineError`, and what it holds is freed.

        Raises
        ------
        InputError
            It is no request.
        StreamClosedError
        """
        check_request(request)
        deadline = _seconds(deadline)
        self._kept = True
        return self._started().submit(request, deadline)

    def gauges(self) -> dict[str, dict[str, float]]:
        """By gate: batches open, feeds waiting, at most so far, taken, seconds waited; and
        of the stream the credits in use and in all, on workers also the bytes that were
        sent to them and back. Empty while nothing runs.
        """
        return {} if self._running is None else self._running.gauges()

    def close(self, drain: bool = True, timeout: float | None = None) -> None:
        """End all threads; `submit` is refused from now on.

        Parameters
        ----------
        drain : bool
            Answer first what was submitted; else it fails with a `StreamClosedError`.
        timeout : float, optional
            Seconds that this may take.

        Raises
        ------
        DeadlineError
            Time was up, or a stage did not come back.
        """
        with self._starting:
            self._closed = True
            running, self._running = self._running, None
            self._last = running or self._last
        if running is None:
            return
        try:
            running.close(drain, timeout)
        except DeadlineError:
            raise
        except BaseException as error:  # Ctrl-C: nobody waits for answers any more
            _end(lambda: running.close(drain=False, timeout=None), error)
            raise

    def __enter__(self) -> Self:
        self._started()
        self._kept = True
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        _end(lambda: self.close(drain=error is None), error)

    def _answers(
        self, requests: Iterator[Any], ordered: bool, give: bool, deadline: float | None
    ) -> Iterator[Any]:
        running = self._started(runs=1)
        asked: deque[Answer] = deque()
        there: queue.SimpleQueue[Any] = queue.SimpleQueue()
        failed: list[Exception] = []
        more = True
        try:
            while more or asked:
                # One waits for each that is open, so that none is late to begin.
                while more and len(asked) < 2 * running.flow.allowance.batches:
                    try:
                        request = next(requests)
                    except StopIteration:
                        more = False
                        break
                    check_request(request)
                    answer = running.submit(request, deadline)
                    asked.append(answer)
                    if not ordered:
                        answer.add_done_callback(there.put)
                if not asked:
                    break
                answer = asked[0] if ordered else there.get()
                error = answer.exception()
                asked.remove(answer)
                if error is None:
                    yield answer.result()
                elif give:
                    yield error
                elif isinstance(error, Exception):
                    failed.append(error)
                del answer, error
            if failed:
                raise ExceptionGroup(f"{len(failed)} requests failed", failed)
        except BaseException as error:
            _end(lambda: self._end_run(running, asked), error)
            raise
        self._end_run(running, asked)

    def _end_run(self, running: Running, asked: Iterable[Answer]) -> None:
        """Cancel what nobody waits for; the last run of a stream ends it."""
        for one in list(asked):
            one.cancel()
        with self._starting:
            self._runs -= 1
            last = not self._runs and not self._kept and self._running is running
            if last:
                self._last, self._running = running, None
        if last:
            running.close(drain=False, timeout=None)

    def _started(self, runs: int = 0) -> Running:
        """What is at work; of several threads that ask first, one starts it."""
        self._check_stages()
        with self._starting:
            if self._closed:
                raise StreamClosedError("The stream is closed: make another one.")
            if self._running is None:
                self._running = self._start()
            self._runs += runs
            return self._running

    def _start(self) -> Running:
        given = self._stages, self._gather, self._room, self._observer
        if self._client is None:
            return Running(*given)
        members = mesh(self._client)
        owned = members is not self._client
        try:
            return Spread(*given, members, owned, self._partition)
        except BaseException:
            if owned:
                members.close()
            raise

    def _copy(self) -> Stream:
        made = Stream(observer=self._observer, client=self._client)
        made._partition = self._partition
        made._room, made._stages, made._size = self._room, self._stages, self._size
        return made

    def _check_open_end(self) -> None:
        if self._gather is not None:
            raise InputError("`gather` must be the last thing in a stream.")

    def _check_stages(self) -> None:
        if not self._stages or self._size is not None:
            raise InputError(
                "A stream must end with a stage: call `map` after the last `aggregate`."
            )


def _seconds(given: Any) -> float | None:
    if given is None:
        return None
    if not (isinstance(given, Real) and float(given) > 0):
        raise InputError(f"`deadline` must be more than 0 seconds, got {given!r}.")
    return float(given)


def _credits(name: str, given: int | str) -> int | None:
    if given == "auto":
        return None
    if not is_count(given):
        raise InputError(
            f"`{name}` must be 'auto' or at least 1, got {given!r}: without a credit "
            "nothing would ever begin."
        )
    return int(given)


def _end(close: Callable[[], None], error: BaseException | None) -> None:
    """Close; a stage that does not come back is a note to the error that came before."""
    try:
        close()
    except DeadlineError as late:
        if error is None:
            raise
        error.add_note(str(late))
