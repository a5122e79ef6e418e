"""mlopt's pipelines do what scikit-learn's do, whatever is drawn."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, note
from tests.judges.differential import judge, shown
from tests.judges.themes import THEMES, effort


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("theme", THEMES)
def test_a_pipeline_learns_and_gives_what_scikit_learn_s_does(theme: str) -> None:
    examples, strategy = THEMES[theme]

    @effort(examples)
    @given(strategy)
    def look(case: Any) -> None:
        note(shown(case))
        judge(case)

    look()
