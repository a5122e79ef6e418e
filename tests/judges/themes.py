"""What the differential judge draws, by theme, and how many examples of each."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from tests.judges import pipelines
from tests.judges.pipelines import Case
from tests.judges.tables import (
    ARRAYS,
    DASK,
    MEMORY_FRAMES,
    NUMBERS,
    SPARSE,
    TEXT,
    TEXTS,
    WORDS,
    tables,
)
from tests.judges.widths import WIDEST, widest

_ARRAYS, _SPARSE, _FRAMES = tuple(ARRAYS), tuple(SPARSE), tuple(MEMORY_FRAMES)
_DASK_ARRAYS = tuple(name for name in DASK if "array" in name)
_DASK_FRAMES = tuple(name for name in DASK if "frame" in name)
_SELDOM = ("normal", "one missing", "peak", "missing", "counts")
_MIXED = (*NUMBERS, *WORDS)


def cases(*drawn: Any) -> st.SearchStrategy[Case]:
    """Cases that are not too wide."""
    return pipelines.cases(*drawn).filter(
        lambda case: widest(case.table, case.steps) <= WIDEST
    )


THEMES: dict[str, tuple[int, st.SearchStrategy[Case]]] = {
    "arrays": (40, cases(tables(_ARRAYS, NUMBERS))),
    "sparse": (40, cases(tables(_SPARSE, ("counts", "zeros", "constant")))),
    "frames": (40, cases(tables(_FRAMES, _MIXED))),
    "text": (20, cases(tables(tuple(TEXTS), TEXT))),
    "dask arrays": (30, cases(tables(_DASK_ARRAYS, NUMBERS))),
    "dask frames": (30, cases(tables(_DASK_FRAMES, _MIXED))),
    "functions of all rows": (
        40,
        cases(
            tables((*_DASK_ARRAYS, *_DASK_FRAMES, "pandas", "array"), _SELDOM), "looking"
        ),
    ),
    "chance": (30, cases(tables(("array", "dask array"), ("normal", "wide")), "unseeded")),
}
"""Of `TOTAL` examples so many, and the strategy."""

SEARCHES = 30
"""Examples of searches."""

TOTAL = 300
"""Examples in all, searches among them."""

HERE = 200
"""Examples in all in `make test`, which has eight minutes."""


def effort(examples: int) -> Any:
    """Settings: a fixed set of examples, or as many as `MLOPT_JUDGE_EXAMPLES` asks for.

    The variable counts examples of all themes together; they are then drawn by
    ``--hypothesis-seed``.
    """
    asked = os.environ.get("MLOPT_JUDGE_EXAMPLES")
    count = max(1, int(asked or HERE) * examples // TOTAL)
    return settings(
        max_examples=count,
        derandomize=asked is None,
        database=None,
        deadline=None,
        # A case is small as drawn; to shrink one takes minutes.
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
