"""The inverse of what plans give as JSON: all that there is to a plan is in it."""

from __future__ import annotations

from typing import Any

from mlopt.plan import Alternative, Choice, Estimate, Plan


def plan_of(record: dict[str, Any]) -> Plan:
    """The plan that gave this ``record``."""
    choices = tuple(map(choice_of, record["choices"]))
    estimates = tuple(Estimate(**one) for one in record["estimates"])
    return Plan(**{**record, "choices": choices, "estimates": estimates})


def choice_of(record: dict[str, Any]) -> Choice:
    """The choice that gave this ``record``."""
    rejected = tuple(Alternative(**one) for one in record["rejected"])
    children = tuple(map(choice_of, record["children"]))
    return Choice(**{**record, "rejected": rejected, "children": children})
