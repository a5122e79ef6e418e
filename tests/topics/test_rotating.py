"""Topics whose documents stay at members while counts of words go round."""

from __future__ import annotations

import os
import pickle
import signal
import threading

import distributed
import numpy as np
import pytest
import scipy.sparse as sp
from tests.clusters import eventually
from tests.topics.test_lda import TOPICS, WORDS, drawn, model

import mlopt.topics.strata
from mlopt.cluster import MeshDask, MeshHere
from mlopt.errors import ClusterError
from mlopt.resources import Resources
from mlopt.server.layouts.pool import Pool
from mlopt.server.layouts.pricing import choose
from mlopt.topics.counting import Priors, table
from mlopt.topics.documents import Documents
from mlopt.topics.pricing import Sweeps
from mlopt.topics.rotating import RotatingGibbs
from mlopt.topics.strata import Strata
from mlopt.topics.training import first_topics

SAMPLERS = "dense", "sparse"


def training(mesh: object, sampler: str = "dense", **given: object) -> RotatingGibbs:
    documents = Documents.of(drawn())
    first = first_topics(len(documents.words), TOPICS, 0)
    settings = {"sampler": sampler, "seed": 0, "mesh": mesh, "threads": 1} | given
    return RotatingGibbs(documents, first, TOPICS, Priors(0.1, 0.01), **settings)  # type: ignore[arg-type]


def assert_exact(found: RotatingGibbs) -> None:
    """Counts of all parts are those of the topics that strata keep."""
    parts, states = found.layout.model()
    strata, number = found.strata, found.number
    again = strata.model(strata.topics(states), number, found.sparse)
    for part, expected in zip(parts, again, strict=True):
        np.testing.assert_array_equal(part["of_all"], expected["of_all"])
        if not found.sparse:
            np.testing.assert_array_equal(part["of_words"], expected["of_words"])
            np.testing.assert_array_equal(
                part["of_words"].sum(axis=0)[:number], part["of_all"]
            )
    tokens = len(found.documents.words)
    counts = table(found.documents, found.topics, number)
    assert sum(part["of_all"].sum() for part in parts) == counts.sum() == tokens


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_topics_are_the_same_on_any_number_of_members(sampler: str) -> None:
    found = []
    for members in (1, 3):
        with MeshHere(members) as mesh:
            one = training(mesh, sampler, side=5)
            one.advance(2)
            state = one.state()
            one.advance(4)
            assert_exact(one)
            found.append(one.topics)
            one.close()
    np.testing.assert_array_equal(found[0], found[1])
    with MeshHere(2) as mesh:
        again = training(mesh, sampler, side=5)
        again.restore(state)
        assert again.passes == 2
        again.advance(4)
        np.testing.assert_array_equal(again.topics, found[0])
        assert_exact(again)
        again.restore({name: state[name] for name in ("topics", "passes")})
        again.advance(4)  # counts anew from the topics alone: another chain
        assert_exact(again)
        again.close()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_member_that_is_lost_changes_no_topic(sampler: str) -> None:
    with MeshHere(1) as mesh:
        alone = training(mesh, sampler, side=4)
        alone.advance(30)
        topics = alone.topics
        alone.close()
    with MeshHere(3) as mesh:
        found = training(mesh, sampler, side=4)
        found.advance(3)
        threading.Timer(0.01, mesh.lose, [mesh.members[1]]).start()
        found.advance(27)
        assert eventually(lambda: len(mesh.members) == 2)
        assert_exact(found)
        np.testing.assert_array_equal(found.topics, topics)
        for member in mesh.members:
            mesh.lose(member)
        with pytest.raises(ClusterError, match="nothing"):
            found.advance(1)
        found.close()


def test_what_rotates_predicts_words_as_the_sequential_sampler_does() -> None:
    train, held = drawn(400), drawn(100, seed=1)
    values = [
        model(max_iter=60, layout=layout).fit(train).perplexity(held)
        for layout in ("threads", "rotate")
    ]
    assert values[1] < 1.02 * values[0]


@pytest.mark.parametrize("layout", ["rotate", "threads"])
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("first", [1, 7])
def test_passes_of_several_fits_are_those_of_one(
    layout: str, sampler: str, first: int
) -> None:
    X = drawn()
    settings = {"layout": layout, "warm_start": True, "sampler": sampler}
    whole = model(max_iter=16, **settings).fit(X)
    parts = model(max_iter=first, **settings).fit(X)
    parts = pickle.loads(pickle.dumps(parts)).set_params(max_iter=10).fit(X)
    parts.set_params(max_iter=10).fit(X).set_params(max_iter=16).fit(X)
    np.testing.assert_array_equal(parts.components_, whole.components_)


def test_an_estimator_goes_on_in_another_layout() -> None:
    X = drawn()
    found = model(max_iter=5, warm_start=True, layout="threads", sampler="sparse").fit(X)
    found.set_params(max_iter=9, layout="rotate").fit(X)
    found.set_params(max_iter=12, sampler="dense").fit(X)
    found.set_params(max_iter=20, layout="threads").fit(X)
    assert found.components_.sum() == pytest.approx(X.sum() + 0.01 * TOPICS * WORDS)
    assert found.perplexity(drawn(seed=1)) < 30


def test_an_estimator_that_rotates_goes_on_where_it_was() -> None:
    X = drawn()
    settings = {"layout": "rotate", "warm_start": True}
    found = model(max_iter=5, **settings).fit(X)
    assert found.components_.sum() == pytest.approx(X.sum() + 0.01 * TOPICS * WORDS)
    found.set_params(max_iter=40).fit(X)
    assert found.n_iter_ == 40
    assert found.perplexity(drawn(seed=1)) < 30


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_few_documents_and_words_have_fewer_strata(sampler: str) -> None:
    X = sp.csr_array([[0, 9, 0], [0, 0, 0], [0, 5, 1], [0, 0, 0]])
    documents = Documents.of(X)
    strata = Strata.of(documents, 0, 16)
    assert strata.side <= 3
    topics = np.arange(15, dtype=np.int32) % 2
    parts = strata.model(topics, 2, False)
    np.testing.assert_array_equal(strata.topics(strata.states(topics, parts)), topics)
    assert sum(part["of_words"].sum() for part in parts) == 15
    assert all(len(part["of_words"]) for part in parts)
    found = model(max_iter=3, layout="rotate", sampler=sampler).fit(X)
    assert found.components_.sum() == pytest.approx(15 + 0.01 * TOPICS * 3)


def test_parts_of_many_blocks_are_joined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlopt.server.blocks, "LARGEST", 1000)
    with MeshHere(2) as mesh:
        found = training(mesh, side=3)
        found.advance(4)
        assert_exact(found)
        topics = found.topics
        found.close()
    monkeypatch.undo()
    with MeshHere(2) as mesh:
        whole = training(mesh, side=3)
        whole.advance(4)
        np.testing.assert_array_equal(whole.topics, topics)
        whole.close()


def test_tokens_alone_say_who_draws_which_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    X = drawn()
    few = model(max_iter=3).fit(X)
    (choice,) = few.plan_.choices
    assert choice.chosen == "threads"
    assert "one after the other" in choice.rejected[0].reason
    monkeypatch.setattr(mlopt.topics.training, "SHARD", int(X.sum()) // 2)
    many, threads, rotate = (
        model(max_iter=3, layout=layout).fit(X) for layout in ("auto", "threads", "rotate")
    )
    np.testing.assert_array_equal(many.components_, rotate.components_)
    assert not np.array_equal(many.components_, threads.components_)
    (choice,) = many.plan_.choices
    assert (choice.chosen, choice.notes) == ("rotate", ("1 member in this process",))
    assert choice.predicted is not None
    assert choice.measured is not None
    assert [one.name for one in choice.rejected] == ["threads"]
    assert "are the same wherever they are" in choice.rejected[0].reason


def test_many_tokens_rotate_on_workers_or_here(monkeypatch: pytest.MonkeyPatch) -> None:
    words = np.arange(2**20, dtype=np.int32) % 1000
    documents = Documents(words, np.arange(0, 2**20 + 1, 2**8), 1000)
    first = words % TOPICS
    begin = {"topics": first, "passes": 0}
    given = documents, begin, TOPICS, Priors(0.1, 0.01), "dense", 0
    pool = Pool(members=2, here=1, apart=True)
    places = {}
    for sweeps in (1, 10**6):
        for shard in (len(first), len(first) // 2):
            monkeypatch.setattr(mlopt.topics.training, "SHARD", shard)
            prices = Sweeps(*given, sweeps).prices(pool, False)
            choice, chosen = choose("auto", "", prices)
            assert (choice.chosen == "rotate") == (shard < len(first))
            places[sweeps, shard] = chosen.place
    few, many = len(first), len(first) // 2
    assert places[1, few] == places[10**6, few] == "1 thread"
    assert places[1, many] == "1 member in this process"
    assert places[10**6, many] == "2 workers"


@pytest.mark.cluster
@pytest.mark.slow
def test_a_worker_that_is_killed_changes_no_topic() -> None:
    with MeshHere(1) as here:
        alone = training(here, side=4)
        alone.advance(400)
        topics = alone.topics
        alone.close()
    with (
        distributed.LocalCluster(
            2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
        ) as cluster,
        distributed.Client(cluster) as client,
        MeshDask(client) as mesh,
    ):
        found = training(mesh, side=4)
        found.advance(1)
        pids = list(client.run(os.getpid).values())
        threading.Timer(0.3, os.kill, [pids[1], signal.SIGKILL]).start()
        found.advance(399)
        assert found.layout.lost > 0
        assert_exact(found)
        np.testing.assert_array_equal(found.topics, topics)
        found.close()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_machines_that_are_twice_as_quick_are_predicted_half_the_time(sampler: str) -> None:
    documents = Documents.of(drawn())
    topics = first_topics(len(documents.words), TOPICS, 0)
    work = Sweeps(
        documents,
        {"topics": topics, "passes": 0},
        TOPICS,
        Priors(0.1, 0.01),
        sampler,
        0,
        20,
    )
    usual, quick = (
        work.prices(Pool(resources=Resources(python=rate)), False)[0].seconds
        for rate in (1.0, 2.0)
    )
    assert usual is not None
    assert quick is not None
    assert usual == pytest.approx(2 * quick)
