"""A few processes beside this one: how they end."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.clusters import eventually

from mlopt.cluster.hands import Hands

pytestmark = pytest.mark.cluster


def never(folder: Path) -> None:
    """What takes long to make."""
    (folder / str(os.getpid())).touch()
    time.sleep(60)


def test_processes_that_still_start_end_when_they_are_closed(tmp_path: Path) -> None:
    hands = Hands(never, tmp_path, processes=2)
    hands.start()
    assert eventually(lambda: len([*tmp_path.iterdir()]) == 2)
    numbers = [int(path.name) for path in tmp_path.iterdir()]
    hands.close()
    assert not any(Path(f"/proc/{number}").exists() for number in numbers)
