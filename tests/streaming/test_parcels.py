"""What a stream sends to workers must be picklable, and what is not is named."""

from __future__ import annotations

import threading

import pytest

from mlopt import Stream
from mlopt.cluster import local_cluster
from mlopt.errors import InputError


@pytest.mark.cluster
@pytest.mark.slow
def test_a_stage_that_cannot_go_to_workers_is_named() -> None:
    lock = threading.Lock()
    with local_cluster(1) as client:
        stream = Stream(client=client).map(abs, name="read")
        stream = stream.map(lambda x: (lock, x), name="bad")
        named = r"Stage `bad` cannot go to workers\. .*locks"
        with pytest.raises(InputError, match=named), stream:
            stream.run([[1]])
