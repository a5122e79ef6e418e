"""A scheduler knows jobs by where their files are: names may be those of several."""

from __future__ import annotations

import distributed

from mlopt.cluster import detached


def test_jobs_of_one_name_are_forgotten_one_by_one() -> None:
    with distributed.Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None
    ) as client:
        assert detached.remembered(client) == []
        for folder in ("/a/nightly", "/b/nightly"):
            detached.remember(client, folder)
        detached.forget(client, "/a/nightly")
        detached.forget(client, "/c/nightly")
        assert detached.remembered(client) == ["/b/nightly"]
        detached.remember(client, "/a/nightly")
        assert sorted(detached.remembered(client)) == ["/a/nightly", "/b/nightly"]
