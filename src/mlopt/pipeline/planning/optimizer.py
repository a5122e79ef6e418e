"""Runs the rules: in order, by name, timed, checked, remembered."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mlopt.errors import InputError
from mlopt.options import switch
from mlopt.pipeline.graph.operators import Operator
from mlopt.pipeline.graph.walking import Sinks, show, walk
from mlopt.pipeline.rules.base import Context, Draft, Rule
from mlopt.pipeline.rules.choose_ways import choose_ways
from mlopt.pipeline.rules.convert_layouts import convert_layouts
from mlopt.pipeline.rules.count_terms import count_terms
from mlopt.pipeline.rules.drop_unused import drop_unused
from mlopt.pipeline.rules.fuse_rows import fuse_rows
from mlopt.pipeline.rules.keep_results import keep_results
from mlopt.pipeline.rules.share_work import share_work

FIRST: dict[str, Rule] = {"count_terms": count_terms}
"""Rules that run before samples are taken: what they make is tried, and has a price."""

RULES: dict[str, Rule] = {
    **FIRST,
    "drop_unused": drop_unused,
    "share_work": share_work,
    "choose_ways": choose_ways,
    "convert_layouts": convert_layouts,
    "keep_results": keep_results,
    "fuse_rows": fuse_rows,
}
"""By name, as in ``optimize={"without": [name]}``, in the order in which they run."""


@dataclass(frozen=True)
class Applied:
    """One rule's turn.

    Attributes
    ----------
    before, after : Draft
        The same object when nothing changed.
    broken : bool
        Whether it would have changed what the pipeline computes, and so was left out.
    """

    rule: str
    seconds: float
    before: Draft
    after: Draft
    broken: bool = False

    @property
    def changed(self) -> bool:
        """Whether the rule did anything."""
        return self.after is not self.before


def optimize(
    draft: Draft,
    context: Context,
    rules: Mapping[str, Rule] = RULES,
    *,
    without: Collection[str] = (),
) -> tuple[Draft, tuple[Applied, ...]]:
    """The draft after every rule that is not left out, and what each did.

    A rule that would change what is computed, which is an error of mlopt, is left out, too;
    with `mlopt.strict` in `dask.config` that raises an AssertionError.
    """
    log, strict = [], switch("mlopt.strict", False)
    for name, rule in rules.items():
        if name in without:
            continue
        begin = time.perf_counter()
        new = rule(draft, context)
        took = time.perf_counter() - begin
        broken = not is_same(draft, new)
        if broken and strict:
            raise AssertionError(f"Rule `{name}` changed what the pipeline computes.")
        new = draft if broken else new
        log.append(Applied(name, took, draft, new, broken))
        draft = new
    return draft, tuple(log)


def first_rules(
    sinks: Sinks, without: Collection[str] = ()
) -> tuple[Sinks, tuple[Applied, ...]]:
    """The graph after the rules that run before samples are taken, and what each did."""
    draft, log = optimize(Draft(sinks), Context(None, 0), FIRST, without=without)
    return draft.sinks, log


def left_out(optimize: Any) -> frozenset[str]:
    """Names of the rules not to run, from the argument ``optimize`` of a pipeline.

    Parameters
    ----------
    optimize : bool, collection of str, or {"without": collection of str}
        True: all run. False: none do. Names: these do not.

    Raises
    ------
    InputError
        For anything else, or a name that no rule has.
    """
    if isinstance(optimize, bool):
        return frozenset() if optimize else frozenset(RULES)
    names = optimize.get("without") if isinstance(optimize, dict) else optimize
    if isinstance(names, str):
        names = [names]
    if not isinstance(names, Collection) or (
        isinstance(optimize, dict) and len(optimize) > 1
    ):
        raise InputError(
            '`optimize` must be True, False, or {"without": names of rules}, got '
            f"{optimize!r}."
        )
    if unknown := sorted(set(names) - set(RULES)):
        raise InputError(f"`optimize` names no rule: {unknown}. Rules: {', '.join(RULES)}.")
    return frozenset(names)


def is_same(before: Draft, after: Draft) -> bool:
    """A rule may change how, never what: the sinks must still mean the same."""
    return [sink.meaning for sink in before.sinks] == [sink.meaning for sink in after.sinks]


def describe(
    draft: Draft, words: Callable[[Operator], str] = lambda op: op.describe()
) -> str:
    """The plan as text; what is kept carries a star."""
    kept = [op.token in draft.kept for op in walk(draft.sinks)]
    lines = show(draft.sinks, words).splitlines()
    return "\n".join(
        f"{line} *" if star else line for line, star in zip(lines, kept, strict=True)
    )


def history(log: Sequence[Applied]) -> list[str]:
    """The plan as text before the first rule, and after each that changed it."""
    if not log:
        return []
    known: dict[str, str] = {}

    def words(op: Operator) -> str:
        if op.token not in known:
            known[op.token] = op.describe()
        return known[op.token]

    found = [f"before the rules:\n{describe(log[0].before, words)}"]
    for one in log:
        took = f"{one.rule}, {1e3 * one.seconds:.1f} ms"
        after = f":\n{describe(one.after, words)}" if one.changed else ": no change"
        if one.broken:
            after = ": left out, since it would change what is computed"
        found.append(f"rule {took}{after}")
    return found
