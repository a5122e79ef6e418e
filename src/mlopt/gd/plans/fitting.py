"""What estimators ask of the table of methods: a choice among a few, and its run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mlopt.costs import Cost
from mlopt.gd.choosing import decide
from mlopt.gd.plans.forecast import typical
from mlopt.gd.plans.method import Start
from mlopt.gd.plans.methods import BY_NAME
from mlopt.gd.plans.outline import Outline
from mlopt.gd.plans.ranker import Ranker
from mlopt.gd.plans.running import Alternative, Outcome, raced
from mlopt.gd.plans.stop import CoefficientError, Stop
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

    def run(self, max_iter: int | None = None, start: Start = None) -> Outcome:
        """Fit, for so many passes at most."""
        most = None if max_iter is None else max_iter + self.ranked[0].method.free
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
        Names that "auto" takes only where nothing else can be used, and why.

    Raises
    ------
    InputError
        When ``wanted`` cannot be used here, or nothing can.
    """
    why = {n: w for n in names if (w := BY_NAME[n].unfit(problem.outline, stop))}
    aside = dict(left_out or {}) if wanted == "auto" else {}
    able = tuple(BY_NAME[name] for name in names if name not in why)
    ranker = Ranker(problem, resources, stop, able)
    preferred = ranker.ranked(m for m in able if m.name not in aside)
    found = {one.name: one for one in preferred or ranker.ranked(able)}
    seconds = {name: one.predicted_seconds for name, one in found.items()}
    set_aside = {name: text for name, text in aside.items() if name not in found}
    choice = decide(operator, wanted, seconds, set_aside | why | ranker.refused)
    first = found[choice.chosen]
    if first.passes.expected != 1:
        choice = replace(choice, notes=(f"predicted for {first.passes_in_words}",))
    if wanted != "auto" or isinstance(stop, CoefficientError):
        # What the user names, or has a patience of its own, is not left for another.
        return Chosen(choice, (first,))
    return Chosen(choice, (first, *(one for one in found.values() if one is not first)))


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
        As many as shape and criterion let expect, unless given.
    """
    found: dict[str, Cost | str] = {}
    for name in names:
        price = BY_NAME[name].calibrated(outline, resources)
        count = passes_to_expect(name, outline) if passes is None else passes
        found[name] = price if isinstance(price, str) else price(count)
    return found


def passes_to_expect(name: str, outline: Outline) -> float:
    """Of a method, where nothing is known of the data but their shape."""
    method = BY_NAME[name]
    if isinstance(outline.stop, CoefficientError):
        return typical(method, outline, outline.stop).expected
    return method.passes(outline.shape)
