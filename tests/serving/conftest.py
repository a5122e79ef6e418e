"""A model that no test of the service writes to."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.serving.served import write_model


@pytest.fixture(scope="session")
def model_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """See `write_model`."""
    return write_model(tmp_path_factory.mktemp("served") / "model.skops")
