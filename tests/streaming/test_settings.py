"""Streams as users set them: their configuration, few feeds, a sample while they run."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn

from mlopt import Stream
from mlopt.cluster import MeshHere
from mlopt.errors import InputError


def test_stages_have_the_configuration_of_who_starts_the_stream() -> None:
    def configured(_: int) -> tuple[bool, str]:
        return sklearn.get_config()["assume_finite"], np.geterr()["divide"]

    with sklearn.config_context(assume_finite=True), np.errstate(divide="raise"):
        found = list(Stream().map(configured).run([[1, 2]]))
    assert found == [[(True, "raise")] * 2]


@pytest.mark.parametrize(("feeds", "size"), [(1, None), (15, 10)])
def test_few_feeds_are_room_enough_for_one_request(feeds: int, size: int | None) -> None:
    stream = Stream(feeds=feeds).map(abs)
    if size is not None:
        stream = stream.aggregate(size).map(sum)
    given = range(30) if size else [-1]
    sums = [sum(range(k, k + 10)) for k in (0, 10, 20)]
    assert list(stream.run([given])) == [sums if size else [1]]


def test_a_sample_to_an_open_stream_is_measured_there() -> None:
    with Stream().map(abs) as stream:
        assert "measured" in stream.explain(range(20)).explain()
        assert stream.submit([-1]).result(20) == [1]
    with Stream().map(abs).gather(list) as stream:
        stream.submit([-1]).result(20)
        with pytest.raises(InputError, match="`sample` must be left out"):
            stream.explain([-2])


def test_a_sample_to_an_open_stream_leaves_its_stations() -> None:
    with MeshHere(2) as here, Stream(client=here).map(abs) as stream:
        assert stream.submit([-1]).result(20) == [1]
        stream.explain([-3])
        assert stream.submit([-1]).result(20) == [1]
