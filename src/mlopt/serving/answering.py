"""Calls of the model: in this process, or in one of its own.

In one of its own the model has an interpreter's lock to itself: the event loop would give
it away at each system call, and wait for it while the model computes.
"""

from __future__ import annotations

import contextlib
import gc
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from mlopt.cluster.apart import Apart
from mlopt.errors import InputWarning, MemberLostError
from mlopt.hearing import unheard
from mlopt.serving.bodies import Rows, frame_of
from mlopt.serving.model import ServedModel, load_served
from mlopt.sweep.predict import predictions, unreadable_cells

Piece = tuple[Rows, int]
"""Rows of a request, and the number of the first of them, from 0."""
Given = tuple[dict[str, list[Any]], list[str]]
"""Columns of predictions, and remarks."""
Called = tuple[float, list[Given | Exception]]
"""Seconds, and what each piece was given."""


@dataclass(frozen=True, eq=False)
class Answering:
    """A model that can be called, by whoever has this; then its process forgets it.

    Parameters
    ----------
    model : ServedModel
        What is known of it, without the estimator.
    call : callable
        ``call(pieces, proba)`` gives `Called`; raises where its process is lost.
    tried : callable
        Seconds that a call of so many rows takes when nothing else is done.
    """

    model: ServedModel
    call: Callable[[Sequence[Piece], bool], Called]
    tried: Callable[[int], float]


class Caller:
    """Where models are, and are called.

    Parameters
    ----------
    apart : bool
        In a process of its own.

    Raises
    ------
    MemberLostError
        The process could not start.
    """

    def __init__(self, apart: bool) -> None:
        # One call at a time of a model, while another one is loaded.
        self._apart = Apart(_Models, True, calls=2) if apart else None
        models = None if apart else _Models()
        self._ask: Callable[..., Any] = (
            self._apart.call
            if self._apart is not None
            else lambda method, *args: getattr(models, method)(*args)
        )

    @property
    def number(self) -> int:
        """The number of the process."""
        return os.getpid() if self._apart is None else self._apart.number

    def load(self, path: Path) -> Answering:
        """A model.

        Raises
        ------
        InputError
            As of `load_served`.
        MemberLostError
            The process has ended.
        """
        number, model = self._ask("load", path)
        call, tried = (partial(self._ask, name, number) for name in ("call", "tried"))
        made = Answering(model, call, tried)
        weakref.finalize(made, self._forget, number)
        return made

    def close(self) -> None:
        """End the process."""
        if self._apart is not None:
            self._apart.close()

    def _forget(self, number: int) -> None:
        def forget() -> None:
            with contextlib.suppress(MemberLostError):
                self._ask("forget", number)

        # All who call may be at work, and who lets go of a model must not wait for them.
        threading.Thread(target=forget, daemon=True).start()


FULL = 100
"""Collections of the middle generation before a full one. Python's 10 are two a second
under overload, each 10 to 20 ms of CPU with 1000 connections (`benchmarks/turns.py`): of
100 requests two wait for one."""


def settle() -> None:
    """Spare the collector of garbage all that is there now and stays: libraries, models.

    It goes through everything now and then, in .1 s, and nothing is answered meanwhile.
    """
    gc.set_threshold(*gc.get_threshold()[:2], FULL)
    gc.unfreeze()
    gc.collect()
    gc.freeze()


class _Models:
    """Models by numbers, in a process that is theirs alone or not."""

    def __init__(self, alone: bool = False) -> None:
        self._alone = alone
        self._models: dict[int, _Model] = {}
        self._numbers = count()

    def load(self, path: Path) -> tuple[int, ServedModel]:
        number, made = next(self._numbers), _Model(load_served(path))
        self._models[number] = made
        if self._alone:
            settle()
        return number, replace(made.model, estimator=None)

    def forget(self, number: int) -> None:
        del self._models[number]

    def tried(self, number: int, rows: int) -> float:
        return self._models[number].tried(rows)

    def call(self, number: int, pieces: Sequence[Piece], proba: bool) -> Called:
        return self._models[number].call(pieces, proba)


@dataclass(frozen=True)
class _Model:
    model: ServedModel

    def tried(self, rows: int) -> float:
        """See `Answering`; others, or threads of its own, may make one clock run longer."""
        example = self.model.example(rows)
        began = time.perf_counter(), time.process_time()
        predictions(self.model.estimator, example)
        return min(time.perf_counter() - began[0], time.process_time() - began[1])

    def call(self, pieces: Sequence[Piece], proba: bool) -> Called:
        """Predict; rows that the model refuses fail their own request alone."""
        begin = time.perf_counter()
        results: list[Given | Exception]
        try:
            results = list(self._predicted(pieces, proba))
        except BaseException as error:  # a step may even want to end the process
            if len(pieces) == 1:
                told = error if isinstance(error, Exception) else RuntimeError(repr(error))
                results = [told]
            else:  # one request's rows must not fail the others'
                results = [self.call([piece], proba)[1][0] for piece in pieces]
        return time.perf_counter() - begin, results

    def _predicted(self, pieces: Sequence[Piece], proba: bool) -> list[Given]:
        frame = frame_of([rows for rows, _ in pieces], self.model)
        with unheard(InputWarning):  # it is said, with the rows
            found = predictions(self.model.estimator, frame, proba=proba)
        columns = {str(name): found[name].tolist() for name in found}
        ends = np.cumsum([rows.length for rows, _ in pieces])
        strange = bool(unreadable_cells(self.model.estimator, frame))
        given = []
        for (rows, begin), last in zip(pieces, ends.tolist(), strict=True):
            first = last - rows.length
            rows_here = frame.iloc[first:last]
            said = unreadable_cells(self.model.estimator, rows_here) if strange else []
            if begin:
                said = [f"counted from row {begin + 1:,}: {remark}" for remark in said]
            given.append(({n: values[first:last] for n, values in columns.items()}, said))
        return given
