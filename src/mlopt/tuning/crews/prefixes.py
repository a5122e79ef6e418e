"""Preprocessing shared by candidates and folds: every step is fitted once a split.

::

    split 0:  data -> scale -> pca(10) -> rows of the models with C = 0.1, 1, 10
                            -> pca(20) -> rows of the models with C = 0.1, 1, 10

A *place* is the token of a chain of steps and a split. Its training and test rows stay
where the executor made them. What a trial in training still needs is kept, the rest only
as long as trials may come that want it, and all of it within a budget: places that nobody
needs go first, then those used longest ago, later steps before earlier ones. Where views of
all splits have no room, scans take turns: one view is there, and made anew for each.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import sklearn
from scipy import sparse
from sklearn.utils import _safe_indexing

from mlopt.cluster import Handle
from mlopt.errors import ClusterError
from mlopt.pipeline.blocks import tables
from mlopt.pipeline.budget import budget_bytes
from mlopt.pipeline.by_split import Chain, Streamed
from mlopt.rows import Rows
from mlopt.rows.block import as_csr
from mlopt.tuning.crews.chain import Parts, apply_step, fit_step, params_of
from mlopt.tuning.crews.fitting import Failed, cut_params, own_rows
from mlopt.tuning.crews.own import own_params
from mlopt.tuning.crews.plain import is_plain
from mlopt.tuning.crews.problem import Labels, Problem, View
from mlopt.tuning.crews.splits import Split

VIEW_MEMORY = 0.25
"""Part of the memory that preprocessed rows may take."""

Place = tuple[str, int | None]
"""The token of a chain, and a split; None for the views of all splits."""


@dataclass(eq=False)
class Kept:
    """What is at a place: a handle on (training rows, test rows), or the views.

    ``nbytes`` is None while it is being made.
    """

    value: Any
    nbytes: int | None = None


@dataclass(eq=False)
class InTurns(Sequence[View]):
    """Views of all splits, of which the last that was asked for is there."""

    make: Callable[[int], View]
    size: int
    last: tuple[int, View] | None = None

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, split: Any) -> Any:
        if self.last is None or self.last[0] != split:
            self.last = None  # before there is another
            self.last = split, self.make(split)
        return self.last[1]


@dataclass(eq=False)
class Prefixes:
    """The preprocessed rows of a search.

    Parameters
    ----------
    problem : Problem
    memory : int
        Bytes of preprocessed rows that may be kept.
    """

    problem: Problem
    memory: int
    fitted: Counter[str] = field(default_factory=Counter)
    """How often each step was fitted, by its name, to rows that are here."""
    _kept: OrderedDict[Place, Kept] = field(default_factory=OrderedDict)
    _readers: dict[int, tuple[Parts, bool]] = field(default_factory=dict)
    _sizes: dict[Handle, Place] = field(default_factory=dict)
    _more: bool = True

    @property
    def nbytes(self) -> int:
        """Bytes kept, as far as they are known."""
        return sum(kept.nbytes or 0 for kept in self._kept.values())

    @property
    def places(self) -> tuple[Place, ...]:
        """What is kept, the next to go first."""
        return tuple(self._kept)

    def fits(self) -> Counter[str]:
        """How often each step was fitted so far, by its name."""
        X = self.problem.X
        return self.fitted + (X.fits if isinstance(X, Streamed) else Counter())

    def expect(self, reader: int, parts: Parts, *, batched: bool) -> None:
        """A trial will read the rows behind ``parts``: as views, or split by split."""
        self._readers[reader] = parts, batched

    def leave(self, reader: int) -> None:
        """A trial has read for the last time."""
        self._readers.pop(reader, None)
        self._tidy()

    def retain(self, readers: set[int], *, more: bool) -> None:
        """Only these trials go on; ``more`` says whether others may come."""
        self._readers = {r: read for r, read in self._readers.items() if r in readers}
        self._more = more
        self._tidy()

    def close(self) -> None:
        """Let go of everything, what is being made too."""
        self._readers.clear()
        self._sizes.clear()
        for place in self.places:
            self._forget(place)

    def layout(self, parts: Parts) -> list[tuple[int, ...]]:
        """The splits of each view that `views` gives."""
        every = range(len(self.problem.splits))
        return [(split,) for split in every] if parts.steps else [tuple(every)]

    def holds(self, key: str) -> bool:
        """Whether the views behind ``key`` are still kept, all of them."""
        place = (key, None)
        return place in self._kept and not isinstance(self._kept[place].value, InTurns)

    def views(self, parts: Parts) -> Sequence[View]:
        """The views behind ``parts``: one for all splits, or one a split.

        Where there is no room for all of these, each is made when it is asked for.
        """
        place = (parts.key, None)
        if place not in self._kept:
            views, nbytes = self._make_views(parts)
            self._kept[place] = Kept(views, nbytes)
        self._kept.move_to_end(place)
        value: Sequence[View] = self._kept[place].value
        self._tidy(newest=place)
        return value

    def _drop_halves(self, parts: Parts, splits: Sequence[int]) -> None:
        """The views hold the same rows once more: only others may still need the parts."""
        wanted = self._wanted(parts.key)
        for split in splits:
            place = (parts.key, split)
            if place in self._kept and place not in wanted:
                self._forget(place)

    def rows(self, parts: Parts, split: int) -> Handle:
        """A handle on (training rows, test rows) of a split behind ``parts``."""
        handle = self._rows(parts, split, len(parts.steps))
        for place in self._path(parts, split):
            if place in self._kept:
                self._kept.move_to_end(place)
        return handle

    @property
    def unsettled(self) -> tuple[Handle, ...]:
        """Handles to wait for beside others; give each to `settle` when it is there."""
        return tuple(self._sizes)

    def settle(self, handle: Handle) -> bool:
        """Whether ``handle`` was one of the `unsettled`: its place counts from now on."""
        if handle not in self._sizes:
            return False
        place = self._sizes.pop(handle)
        try:
            nbytes = self.problem.executor.result(handle)
        except ClusterError:
            raise
        except Exception:  # a step failed: those who read its rows are told why
            return True
        if place in self._kept:
            self._kept[place].nbytes = nbytes
            self._tidy()
        return True

    def forget(self, parts: Parts, split: int) -> None:
        """Make the rows of a split anew when they are next asked for."""
        for place in self._path(parts, split):
            if place in self._kept:
                self._forget(place)

    def _rows(self, parts: Parts, split: int, depth: int) -> Handle:
        place, submit = (parts.tokens[depth], split), self.problem.executor.submit
        if place in self._kept:
            return self._kept[place].value
        rows = self.problem.splits[split]
        handle = self._by_blocks(parts, rows) if depth == len(parts.steps) else None
        if handle is None and depth == 0:
            handle = submit(cut_rows, self.problem.features, rows, parts.pairwise)
        elif handle is None:
            before = self._rows(parts, split, depth - 1)
            name, step = parts.steps[depth - 1]
            self.fitted[name] += 1
            start = self.problem.executor.beside if is_plain(step) else submit
            handle = start(transform, before, self.problem.labels, name, step, rows)
        if depth or not parts.steps:  # the cut alone is quick to make again
            self._kept[place] = Kept(handle)
            self._sizes[submit(count_bytes, handle)] = place
        return handle

    def _by_blocks(self, parts: Parts, split: Split) -> Handle | None:
        """(training rows, test rows) behind steps fitted in ways of our own.

        None where these are not asked for, a step has fit parameters, or one raises: step
        by step, as scikit-learn does it, tells on which of the rows.
        """
        executor, X = self.problem.executor, self.problem.streamed(parts)
        given = any(params_of(name, self.problem.fit_params) for name in parts.names)
        if X is None or X.lazy or given:
            return None
        try:
            blocks = X.blocks(X.chain(parts.key, parts.steps), split.train)
            executor.map(tables.count_rows, blocks)  # all of them are there
        except ClusterError:
            raise
        except Exception:
            return None
        return executor.submit(cut_blocks, blocks, split)

    def _make_views(self, parts: Parts) -> tuple[Sequence[View], int]:
        """The views, and the bytes that they hold."""
        if (streamed := self.problem.streamed(parts)) is not None:
            return self._streamed(streamed, parts)
        if not parts.steps:
            return [self.problem.whole], self.problem.whole.rows.nbytes
        views: list[View] = []
        count, at_once = len(self.problem.splits), self._side_by_side()
        while len(views) < count:
            some = range(len(views), min(len(views) + at_once, count))
            views += self._stacked(parts, some)
            held = sum(view.rows.nbytes for view in views)
            each = held // len(views)
            if count * each > self.memory and count > 1:
                make = partial(self._one, parts)
                return InTurns(make, count, (0, views[0])), each
        return views, held

    def _side_by_side(self) -> int:
        """Splits whose views are made at a time: steps may give as many bytes as X has."""
        most = self.memory // max(1, tables.count_bytes(self.problem.gathered))
        return max(1, min(most, self.problem.executor.threads))

    def _one(self, parts: Parts, split: int) -> View:
        return self._stacked(parts, (split,))[0]

    def _streamed(self, X: Streamed, parts: Parts) -> tuple[list[View], int]:
        """In the order of the data, which stay where they are."""
        chain = X.chain(parts.key, parts.steps)
        train = [split.train for split in self.problem.splits]
        kept = keeps(self.problem, chain, len(train), self.memory)
        rows = X.rows(chain, train, kept=kept)
        views = [View(one, (number,)) for number, one in enumerate(rows)]
        return views, sum(one.nbytes for one in rows) if kept else 0

    def _stacked(self, parts: Parts, splits: Sequence[int]) -> list[View]:
        executor = self.problem.executor
        handles = [self.rows(parts, split) for split in splits]
        stacked = [executor.submit(stack, handle) for handle in handles]
        views = []
        for number, handle in zip(splits, stacked, strict=True):
            split = self.problem.splits[number]
            if self.problem.near is None:
                rows = Rows.held(handle, executor=executor)
            else:
                matrix = executor.result(handle)
                rows = Rows.of(matrix, executor=self.problem.scanned(matrix))
            order = np.concatenate([split.train, split.test])
            views.append(View(rows, (number,), order, len(split.train)))
        for handle in self.unsettled:
            self.settle(handle)
        self._drop_halves(parts, splits)
        return views

    def _path(self, parts: Parts, split: int) -> Iterator[Place]:
        """The places of a chain, last step first."""
        return ((token, split) for token in reversed(parts.tokens))

    def _wanted(self, viewed: str = "") -> set[Place]:
        """What trials in training read, or what it is made from where it is not there.

        Those who read views behind the key ``viewed`` need nothing else.
        """
        chains = {(parts.key, batched): parts for parts, batched in self._readers.values()}
        wanted: set[Place] = set()
        for (key, batched), parts in chains.items():
            if batched and (key == viewed or self.holds(key)):
                wanted.add((key, None))
                continue
            for split in range(len(self.problem.splits)):
                for place in self._path(parts, split):
                    wanted.add(place)
                    if place in self._kept:
                        break
        return wanted

    def _tidy(self, newest: Place | None = None) -> None:
        """Let go of what nobody needs, and of the oldest until the rest fits."""
        if self._more and self.nbytes <= self.memory:
            return
        wanted = self._wanted()
        # What is being made is waited for by somebody.
        made = [place for place in self.places if self._kept[place].nbytes is not None]
        idle = [place for place in made if place not in wanted]
        busy = [place for place in made if place in wanted and place != newest]
        for place in [*idle, *busy]:
            needless = not self._more and place not in wanted
            if place != newest and (needless or self.nbytes > self.memory):
                self._forget(place)

    def _forget(self, place: Place) -> None:
        kept = self._kept.pop(place)
        if place[1] is not None:
            self.problem.executor.release(kept.value)


def memory_of_views(problem: Problem) -> int:
    """Bytes of preprocessed rows that may be kept, here or on workers."""
    if problem.budget is not None:
        return problem.budget
    if isinstance(problem.X, Streamed):
        return budget_bytes("auto", problem.executor)
    return int(VIEW_MEMORY * problem.resources.memory)


def keeps(problem: Problem, chain: Chain, views: int, memory: int | None = None) -> bool:
    """Whether there is room for the rows behind ``chain``, so often."""
    room = memory_of_views(problem) if memory is None else memory
    return problem.n * chain.row_bytes * views <= room


def cut_rows(X: Any, split: Split, pairwise: bool = False) -> tuple[Any, Any]:
    """(training rows, test rows) of the data.

    Of a matrix of ``pairwise`` values, such as kernels, with the columns of training rows.
    """
    if not pairwise:
        return _safe_indexing(X, split.train), _safe_indexing(X, split.test)
    columns = split.train
    return X[np.ix_(split.train, columns)], X[np.ix_(split.test, columns)]


def cut_blocks(blocks: Sequence[Any], split: Split) -> tuple[Any, Any]:
    """(training rows, test rows) of the data in blocks."""
    return cut_rows(tables.stack(blocks), split)


def transform(
    rows: tuple[Any, Any] | Failed, labels: Labels, name: str, step: Any, split: Split
) -> tuple[Any, Any] | Failed:
    """(training rows, test rows) after a ``step`` fitted on the training rows.

    Where it raises on the test rows alone, `Failed` stands for these: the models that
    follow are fitted, and cannot be scored.
    """
    if isinstance(rows, Failed):
        return rows
    y = None if labels.y is None else _safe_indexing(labels.y, split.train)
    params = params_of(name, labels.fit_params)
    params = own_params(cut_params(params, labels.n, split.train))
    with sklearn.config_context(**labels.config):
        try:
            train, test = own_rows(step, *rows)
            fitted, train = fit_step(step, train, y, params, name)
        except Exception as error:  # the trials that need these rows fail, no others
            return Failed(error)
        if isinstance(test, Failed):
            return train, test
        try:
            return train, apply_step(fitted, test, name)
        except Exception as error:
            return train, Failed(error)


def stack(rows: tuple[Any, Any] | Failed) -> Any:
    """Training rows above test rows, as one matrix."""
    if isinstance(rows, Failed):
        raise rows.error
    train, test = rows
    if isinstance(test, Failed):
        raise test.error
    train, test = as_matrix(train), as_matrix(test)
    both = sparse.vstack if sparse.issparse(train) else np.concatenate
    return both([train, test])


def as_matrix(X: Any) -> Any:
    """Plain numbers: a CSR matrix stays sparse, a data frame becomes an array."""
    return as_csr(X) if sparse.issparse(X) else np.asarray(X)


def count_bytes(rows: tuple[Any, Any] | Failed) -> int:
    """Bytes of training and test rows."""
    if isinstance(rows, Failed):
        return 0
    return sum(tables.count_bytes(part) for part in rows if not isinstance(part, Failed))
