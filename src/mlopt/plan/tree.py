"""A plan is a frozen tree of choices; a choice keeps the alternatives it rejected."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mlopt.errors import InputError
from mlopt.plan.estimate import Estimate
from mlopt.plan.html import render_html
from mlopt.plan.text import render_text


@dataclass(frozen=True)
class Alternative:
    """What was not chosen.

    Parameters
    ----------
    name : str
    seconds : float, optional
        Predicted. None where it cannot be: ``reason`` then says why. A prediction that
        is not finite counts as none.
    reason : str
    """

    name: str
    seconds: float | None = None
    reason: str = ""

    def __post_init__(self) -> None:
        _settle(self, seconds=_finite(self.seconds))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {"name": self.name, "seconds": self.seconds, "reason": self.reason}


@dataclass(frozen=True)
class Choice:
    """One decision: for this step and its operator, this way of doing it.

    Parameters
    ----------
    step : str
        The user's own name of the step.
    operator : str
        What is to be done.
    chosen : str
        How it is done.
    predicted, measured : float, optional
        Seconds.
    rejected : tuple of Alternative
    notes : tuple of str
        What else was decided, as sentences: "kept in memory: output (80 MiB)".
    children : tuple of Choice
        The decisions within.
    runs, ran : mapping of str to float
        How often it is to be done, and how often it was: "fit", "apply" (to all rows),
        "score".
    """

    step: str
    operator: str
    chosen: str
    predicted: float | None = None
    measured: float | None = None
    rejected: tuple[Alternative, ...] = ()
    notes: tuple[str, ...] = ()
    children: tuple[Choice, ...] = ()
    runs: Mapping[str, float] = field(default_factory=dict)
    ran: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _settle(
            self,
            predicted=_finite(self.predicted),
            measured=_finite(self.measured),
            rejected=tuple(self.rejected),
            notes=tuple(self.notes),
            children=tuple(self.children),
            runs={name: float(count) for name, count in self.runs.items()},
            ran={name: float(count) for name, count in self.ran.items()},
        )

    def walk(self, path: str = "") -> Iterator[tuple[str, Choice]]:
        """This choice and all within, each with its path of steps: ``"clf/batch"``."""
        here = f"{path}/{self.step}" if path else self.step
        yield here, self
        for child in self.children:
            yield from child.walk(here)

    def with_measured(self, seconds: Mapping[str, float], path: str = "") -> Choice:
        """A copy with what the steps took; see `Plan.with_measured`."""
        here = f"{path}/{self.step}" if path else self.step
        took = seconds.get(here, seconds.get(self.step, self.measured))
        children = tuple(child.with_measured(seconds, here) for child in self.children)
        return replace(self, measured=took, children=children)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "step": self.step,
            "operator": self.operator,
            "chosen": self.chosen,
            "predicted": self.predicted,
            "measured": self.measured,
            "rejected": [alternative.to_dict() for alternative in self.rejected],
            "notes": list(self.notes),
            "children": [child.to_dict() for child in self.children],
            "runs": dict(self.runs),
            "ran": dict(self.ran),
        }


@dataclass(frozen=True)
class Plan:
    """Everything that was decided about one run, and afterwards what it took.

    Law: what `to_dict` gives is all that there is to it.

    Parameters
    ----------
    title : str
    choices : tuple of Choice
        In the order in which the steps run.
    predicted, measured : float, optional
        Seconds in all.
    memory, memory_budget : int, optional
        Bytes kept, and bytes that may be kept.
    notes : tuple of str
        About the plan as a whole.
    details : tuple of str
        How it came about: shown only where all is asked for.
    estimates : tuple of Estimate
        What was foreseen, before anything ran and as corrected by what ran first.
    """

    title: str
    choices: tuple[Choice, ...] = ()
    predicted: float | None = None
    measured: float | None = None
    memory: int | None = None
    memory_budget: int | None = None
    notes: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    estimates: tuple[Estimate, ...] = ()

    def __post_init__(self) -> None:
        _settle(
            self,
            choices=tuple(self.choices),
            predicted=_finite(self.predicted),
            measured=_finite(self.measured),
            memory=None if self.memory is None else int(self.memory),
            memory_budget=None if self.memory_budget is None else int(self.memory_budget),
            notes=tuple(self.notes),
            details=tuple(self.details),
            estimates=tuple(self.estimates),
        )

    def walk(self) -> Iterator[tuple[str, Choice]]:
        """Every choice with its path, depth first."""
        for choice in self.choices:
            yield from choice.walk()

    def with_measured(
        self, seconds: Mapping[str, float] | None = None, total: float | None = None
    ) -> Plan:
        """A copy that says what was measured beside what was predicted.

        Parameters
        ----------
        seconds : mapping of str to float, optional
            What each step took, by its name or, where names repeat, by its path
            ("clf/solver").
        total : float, optional
            What the whole run took.

        Raises
        ------
        InputError
            If a name is no step of this plan.
        """
        seconds = seconds or {}
        known = {name for path, choice in self.walk() for name in (path, choice.step)}
        if unknown := sorted(set(seconds) - known):
            steps = ", ".join(path for path, _ in self.walk())
            raise InputError(
                f"`seconds` names no step of the plan: {unknown}. Steps: {steps}."
            )
        choices = tuple(choice.with_measured(seconds) for choice in self.choices)
        return replace(
            self, choices=choices, measured=self.measured if total is None else total
        )

    def explain(self, verbose: bool = False) -> str:
        """The plan as text: a tree, what was chosen first, then what was rejected.

        Parameters
        ----------
        verbose : bool, default=False
            Show every rejected alternative with its reason, shorten nothing, and say how
            the plan came about.
        """
        return render_text(self, verbose=verbose)

    def __str__(self) -> str:
        return self.explain()

    def _repr_html_(self) -> str:
        return render_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; the names of the keys are stable."""
        return {
            "title": self.title,
            "predicted": self.predicted,
            "measured": self.measured,
            "memory": self.memory,
            "memory_budget": self.memory_budget,
            "notes": list(self.notes),
            "details": list(self.details),
            "estimates": [estimate.to_dict() for estimate in self.estimates],
            "choices": [choice.to_dict() for choice in self.choices],
        }


def _finite(seconds: float | None) -> float | None:
    """As a plain float; JSON has no infinity, and no NumPy scalars."""
    return float(seconds) if seconds is not None and math.isfinite(seconds) else None


def _settle(record: Any, **values: Any) -> None:
    """Replace fields of a frozen record while it is being made."""
    for name, value in values.items():
        object.__setattr__(record, name, value)


def decide(
    operator: str,
    wanted: str,
    seconds: Mapping[str, float],
    why: Mapping[str, str],
    step: str = "fit",
) -> Choice:
    """The way that takes the fewest seconds, or ``wanted`` unless that is "auto".

    Parameters
    ----------
    operator : str
        What is fitted, as the user would write it.
    wanted : str
        A name among ``seconds``, or "auto".
    seconds : mapping of str to float
        Predicted.
    why : mapping of str to str
        Names of ways without a prediction, and why these cannot be used.

    Raises
    ------
    InputError
        When ``wanted`` is unknown or cannot be used here, or when nothing can.
    """
    if not seconds:
        reasons = "; ".join(f"`{name}`: {text}" for name, text in why.items())
        raise InputError(f"No solver can fit {operator} here. {reasons}.")
    chosen = min(seconds, key=seconds.__getitem__) if wanted == "auto" else wanted
    if chosen not in seconds:
        raise InputError(
            f"`solver` must be one of {sorted(seconds)} or 'auto' for {operator}, got "
            f"{wanted!r} ({why.get(chosen, 'unknown')})."
        )
    others = [Alternative(n, value) for n, value in seconds.items() if n != chosen]
    others += [Alternative(name, None, text) for name, text in why.items()]
    return Choice(step, operator, chosen, seconds[chosen], rejected=tuple(others))
