"""Kernels of topics draw as the model says, and count what they draw."""

from __future__ import annotations

from itertools import pairwise, product
from math import lgamma
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mlopt.kernels.gibbs import LANES, infer, list_topics, sweep
from mlopt.kernels.grouping import grouped

Array = NDArray[Any]

WORDS = np.array([0, 1, 0, 2, 0], np.int32)
STARTS = np.array([0, 2, 2, 5])
V, K, ALPHA, BETA = 3, 2, 0.7, 0.4


def model_of(way: str, words: Array, topics: Array, topics_in_all: int) -> Any:
    vocabulary = max(V, int(words.max()) + 1)
    if way == "dense":
        width = -(-topics_in_all // LANES) * LANES
        table = np.zeros((vocabulary, width), np.int32)
        np.add.at(table, (words, topics), 1)
        return (table,)
    tokens, begins = grouped(words, vocabulary)
    kept, counts = np.zeros(len(words), np.int32), np.zeros(len(words), np.int32)
    sizes = np.zeros(vocabulary, np.int32)
    list_topics(tokens, begins, topics, begins, kept, counts, sizes)
    return begins, kept, counts, sizes


def table_of(model: Any, topics_in_all: int) -> Array:
    if len(model) == 1:
        found: Array = model[0][:, :topics_in_all]
        return found
    begins, kept, counts, sizes = model
    table = np.zeros((len(sizes), topics_in_all), int)
    for word, size in enumerate(sizes):
        own = slice(begins[word], begins[word] + size)
        assert (np.diff(counts[own]) <= 0).all()
        assert (counts[own] > 0).all()
        np.add.at(table[word], kept[own], counts[own])
    return table


def exact() -> dict[tuple[int, ...], float]:
    """How likely all topics together are: Griffiths and Steyvers, equations 2 and 3."""
    weights = {}
    for topics in product(range(K), repeat=len(WORDS)):
        weight = 0.0
        for k in range(K):
            own = [w for w, t in zip(WORDS, topics, strict=True) if t == k]
            weight += sum(lgamma(own.count(w) + BETA) for w in range(V))
            weight -= lgamma(len(own) + V * BETA)
            for a, b in pairwise(STARTS):
                weight += lgamma(topics[a:b].count(k) + ALPHA)
        weights[topics] = np.exp(weight)
    whole = sum(weights.values())
    return {topics: weight / whole for topics, weight in weights.items()}


@pytest.mark.parametrize("way", ["dense", "sparse"])
def test_sweeps_draw_topics_as_often_as_they_are_likely(way: str) -> None:
    topics = np.zeros(len(WORDS), np.int32)
    model, of_all = model_of(way, WORDS, topics, K), np.bincount(topics, minlength=K)
    sweeps, seen = 20_000, dict.fromkeys(exact(), 0)
    for number in range(sweeps):
        sweep(
            WORDS, STARTS, topics, model, of_all, alpha=ALPHA, beta=BETA, seed=(3, number)
        )
        seen[tuple(topics.tolist())] += 1
    for drawn, share in exact().items():
        # Sweeps that follow each other are alike: some ten count as one.
        off = 5 * np.sqrt(10 * share / sweeps)
        assert seen[drawn] / sweeps == pytest.approx(share, abs=off)


@pytest.mark.parametrize("way", ["dense", "sparse"])
@pytest.mark.parametrize("number", [1, 3, 8, 19])
def test_what_is_counted_is_what_was_drawn(way: str, number: int) -> None:
    random = np.random.default_rng(number)
    words = random.integers(12, size=400).astype(np.int32)
    starts = np.array([0, 0, 100, 101, 399, 400])
    topics = random.integers(number, size=400).astype(np.int32)
    model, of_all = (
        model_of(way, words, topics, number),
        np.bincount(topics, minlength=number),
    )
    for turn in range(5):
        sweep(words, starts, topics, model, of_all, alpha=0.1, beta=0.1, seed=(turn,))
    expected = np.zeros((12, number), int)
    np.add.at(expected, (words, topics), 1)
    np.testing.assert_array_equal(table_of(model, number), expected)
    np.testing.assert_array_equal(of_all, expected.sum(axis=0))


def test_shares_of_a_document_are_the_most_likely_ones() -> None:
    random = np.random.default_rng(0)
    of_topics = random.dirichlet(np.ones(9), size=3).T.copy()
    words, counts = np.array([0, 4, 8, 2], np.int32), np.array([3.0, 1, 2, 5])
    out = np.empty((2, 3))
    infer(words, counts, np.array([0, 0, 4]), of_topics, 0.5, 10_000, 1e-14, out)
    np.testing.assert_allclose(out[0], 1 / 3)
    share = out[1]
    spread = share * of_topics[words]
    spread = counts @ (spread / spread.sum(axis=1, keepdims=True)) + 0.5
    np.testing.assert_allclose(share, spread / spread.sum(), rtol=1e-10)
    assert share.sum() == pytest.approx(1)
