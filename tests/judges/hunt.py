"""Look for differences and go on: ``python -m tests.judges.hunt --examples 500 --seed 1``.

Prints the differences by theme and place, the shortest case of each. Run it with another
checkout's ``src`` on PYTHONPATH to see what the judge finds there.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
import traceback
from collections import defaultdict
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from tests.judges.differential import judge, shown
from tests.judges.outcomes import Difference
from tests.judges.searches import judge_search, searches
from tests.judges.themes import SEARCHES, THEMES, TOTAL

import mlopt

ALL: dict[str, tuple[int, Any, Any]] = {
    name: (*theme, judge) for name, theme in THEMES.items()
}
ALL["searches"] = (SEARCHES, searches(), judge_search)


def hunt(theme: str, examples: int, start: int) -> dict[str, list[tuple[str, Any]]]:
    """Differences by place: what differed and the case."""
    found: dict[str, list[tuple[str, Any]]] = defaultdict(list)

    @seed(start)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(ALL[theme][1])
    def look(case: Any) -> None:
        try:
            ALL[theme][2](case)
        except Difference as difference:
            place = re.sub(r"\[\d+\]|\['.*?'\]|again: ", "", difference.where)
            what = re.sub(r"[\d.]+(e[+-]?\d+)?", "#", difference.what)[:60]
            found[f"{place} | {what}"].append((str(difference), case))
        except Exception as error:
            frame = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{type(error).__name__} in {frame.name}"
            found[place].append((str(error)[:300], case))

    look()
    return found


def main() -> int:
    """0 when nothing differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=TOTAL)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--themes", nargs="*", default=list(ALL))
    asked = parser.parse_args()
    print(f"mlopt of {mlopt.__file__}")
    total = 0
    for theme in asked.themes:
        count = max(1, asked.examples * ALL[theme][0] // TOTAL)
        begin = time.perf_counter()
        found = hunt(theme, count, asked.seed)
        number = sum(map(len, found.values()))
        total += number
        took = time.perf_counter() - begin
        print(f"== {theme}: {number} of {count} differ, {took:.0f} s")
        for place, many in sorted(found.items(), key=lambda item: -len(item[1])):
            text, case = min(many, key=lambda one: len(str(one[1])))
            recipe = shown(case) if theme in THEMES else case
            print(f"-- {len(many)} x {place}\n   {text}\n   {recipe}")
        sys.stdout.flush()
    print(f"{total} differences")
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
