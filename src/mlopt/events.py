"""What happened, as frozen records: progress bars, logs and reports read these."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mlopt.passes import Passes, passes_text


@dataclass(frozen=True)
class Event:
    """Something that happened ``elapsed`` seconds after the run began.

    >>> str(Message(1.25, "read x.csv: 3 rows"))
    '1.2 s: read x.csv: 3 rows'
    """

    elapsed: float

    def said(self) -> str:
        """What happened, in a short sentence; fields by name where nobody reads them."""
        return repr(self)

    def __str__(self) -> str:
        said = self.said()
        return said if said == repr(self) else f"{self.elapsed:.1f} s: {said}"


@dataclass(frozen=True)
class TrialStarted(Event):
    """A configuration was proposed and entered the batch."""

    trial: int
    family: str
    params: Mapping[str, Any] = field(default_factory=dict)

    def said(self) -> str:
        values = (f"{name}={_value(value)}" for name, value in self.params.items())
        return f"trial {self.trial} begins: {', '.join([self.family, *values])}"


@dataclass(frozen=True)
class TrialScored(Event):
    """A trial was looked at after ``passes`` passes over its rows."""

    trial: int
    family: str
    passes: Passes
    score: float
    seconds: float
    replayed: bool = False
    """Whether this comes from the storage: nothing was trained for it in this run."""

    def said(self) -> str:
        return f"trial {self.trial}, {self.family}: {_after(self.score, self.passes)}"


@dataclass(frozen=True)
class TrialPruned(Event):
    """The bandit gave a trial up."""

    trial: int
    passes: Passes
    score: float
    reason: str

    def said(self) -> str:
        return (
            f"trial {self.trial} pruned: {_after(self.score, self.passes)}, {self.reason}"
        )


@dataclass(frozen=True)
class TrialFailed(Event):
    """A trial raised, or scored what is not a number."""

    trial: int
    reason: str

    def said(self) -> str:
        return f"trial {self.trial} failed: {self.reason}"


@dataclass(frozen=True)
class TrialFinished(Event):
    """A trial is fully trained."""

    trial: int
    passes: Passes
    score: float

    def said(self) -> str:
        return f"trial {self.trial} is fully trained: {_after(self.score, self.passes)}"


@dataclass(frozen=True)
class TrialLeft(Event):
    """A trial was not trained to its end when the search ended; its storage has it wait."""

    trial: int
    passes: Passes
    score: float
    reason: str

    def said(self) -> str:
        return f"trial {self.trial} left: {_after(self.score, self.passes)}, {self.reason}"


@dataclass(frozen=True)
class RungDone(Event):
    """One round of the search: everything active was trained on and looked at."""

    rung: int
    active: int
    pruned: int
    finished: int
    failed: int
    passes: Passes
    best_score: float
    best_trial: int

    def said(self) -> str:
        best = f"best {self.best_score:.5g} (trial {self.best_trial})"
        return (
            f"round {self.rung}: {self.active} in training, {self.pruned} pruned, "
            f"{self.finished} finished, {self.failed} failed, "
            f"{passes_text(self.passes)} passes; "
            f"{best if self.best_trial >= 0 else 'no score yet'}"
        )


@dataclass(frozen=True)
class Message(Event):
    """A sentence for the log: what was decided, and why."""

    text: str

    def said(self) -> str:
        return self.text


@dataclass(frozen=True)
class GateWaited(Event):
    """A stage of a stream waited ``seconds`` at a gate for something to work on."""

    gate: str
    seconds: float


@dataclass(frozen=True)
class RequestDone(Event):
    """A request of a stream was answered, or failed for ``reason``.

    ``waited`` are seconds until it was opened, ``ran`` those from then on.
    """

    request: int
    waited: float
    ran: float
    reason: str = ""


@dataclass(frozen=True)
class FileDone(Event):
    """A file was predicted, or could not be for ``reason``; ``done`` of ``files`` are."""

    file: str
    rows: int
    done: int
    files: int
    reason: str = ""


@dataclass(frozen=True)
class Reconfigured(Event):
    """A job on servers has another configuration.

    ``predicted`` are seconds of its epochs, NaN where nothing was measured before.
    """

    before: str
    after: str
    predicted: float
    reason: str


def _after(score: float, passes: Passes) -> str:
    return f"{score:.5g} after {passes_text(passes)} pass{'es' * (passes != 1)}"


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else " ".join(str(value).split())


Observer = Callable[[Event], None]
"""Called with every event, in order, from the thread that drives the run."""


def ignore(event: Event) -> None:
    """The observer that does nothing."""
    del event
