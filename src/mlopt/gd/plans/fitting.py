"""What estimators ask of the table of methods: a choice among a few, and its run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlopt import plan as plans
from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.gd.plans.method import Start
from mlopt.gd.plans.methods import BY_NAME
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.ranker import Ranker
from mlopt.gd.plans.running import Alternative, Outcome, raced
from mlopt.gd.plans.solver_plan import passes_of
from mlopt.gd.plans.stop import Stop
from mlopt.gd.plans.task import Problem
from mlopt.plan import Choice
from mlopt.resources import Resources


@dataclass(frozen=True, eq=False)
class Chosen:
    """The method of a fit, and those that may take over from it.

    Attributes
    ----------
    choice : Choice
        As a plan has it.
    ranked : tuple of Alternative
        The chosen one first.
    """

    choice: Choice
    ranked: tuple[Alternative, ...]

    def run(self, max_iter: int, start: Start = None) -> Outcome:
        """Fit, for so many passes at most."""
        most = max_iter + self.ranked[0].method.free
        return raced(self.ranked, max_iter=most, start=start).outcome()


def choose(
    operator: str,
    wanted: str,
    names: Sequence[str],
    problem: Problem,
    stop: Stop,
    resources: Resources,
    left_out: Mapping[str, str] | None = None,
) -> Chosen:
    """The method that is predicted to end first, or ``wanted`` unless that is "auto".

    Parameters
    ----------
    operator : str
        What is fitted, as the user would write it.
    wanted : str
        One of ``names``, or "auto".
    names : sequence of str
        Methods of `mlopt.gd.plans.methods` that fit it.
    problem : Problem
    stop : Stop
    resources : Resources
    left_out : mapping of str to str, optional
        Names that "auto" does not take, and why.

    Raises
    ------
    InputError
        When ``wanted`` cannot be used here, or nothing can.
    """
    left_out = dict(left_out or {}) if wanted == "auto" else {}
    why = {n: w for n in names if (w := BY_NAME[n].unfit(problem.outline, stop))}
    able = tuple(BY_NAME[name] for name in names if name not in {*why, *left_out})
    ranker = Ranker(problem, resources, stop, able)
    found = ranker.ranked(able)
    why |= left_out | ranker.refused
    if not found:
        reasons = "; ".join(f"`{name}`: {text}" for name, text in why.items())
        raise InputError(f"No solver can fit {operator} here. {reasons}.")
    if wanted != "auto":
        first = next((a for a in found if a.name == wanted), None)
        if first is None:
            raise InputError(
                f"`solver` must be one of {sorted(a.name for a in found)} or 'auto' for "
                f"{operator}, got {wanted!r} ({why.get(wanted, 'unknown')})."
            )
        others = [a for a in found if a is not first]
        found = (first,)  # what the user names is not left for another
    else:
        first, *others = found
    rejected = [plans.Alternative(a.name, a.predicted_seconds) for a in others]
    rejected += [plans.Alternative(name, None, text) for name, text in why.items()]
    choice = Choice(
        "fit", operator, first.name, first.predicted_seconds, rejected=tuple(rejected),
        notes=(f"predicted for {passes_of(first)}",),
    )  # fmt: skip
    return Chosen(choice, found)


def prices(
    names: Sequence[str],
    outline: Outline,
    resources: Resources,
    passes: float | None = None,
) -> dict[str, Cost | str]:
    """What methods cost on data of which only the outline is known, or why they cannot.

    Parameters
    ----------
    names : sequence of str
    outline : Outline
    resources : Resources
    passes : float, optional
        As many as the shape lets expect, unless given.
    """
    found: dict[str, Cost | str] = {}
    for name in names:
        method = BY_NAME[name]
        price = method.price(outline, resources)
        count = method.passes(outline.shape) if passes is None else passes
        found[name] = price if isinstance(price, str) else price(count)
    return found
