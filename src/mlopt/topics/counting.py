"""What tokens and their topics say: counts, and how likely the tokens are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError
from mlopt.kernels.gibbs import LANES, list_topics
from mlopt.prices import price
from mlopt.topics.documents import Documents

Array = NDArray[Any]

SPARSE = price("gibbs.sparse")
_TOKENS = 2**14
"""Looked at together, so that their shares of topics stay in the caches."""


@dataclass(frozen=True)
class Priors:
    """Of topics in documents, and of words in topics."""

    alpha: float
    beta: float


def is_sparse(sampler: str, number: int) -> bool:
    """Whether a sampler looks at those of the topics that there are, and at no others."""
    return number > SPARSE if sampler == "auto" else sampler == "sparse"


def check_priors(priors: Priors, documents: Documents, number: int, sampler: str) -> None:
    """Refuse priors with which chances of topics are too small, or too large, for a number.

    Such a token would have the last topic, whatever is likely.

    Raises
    ------
    InputError
    """
    alpha, beta, n = priors.alpha, priors.beta, len(documents.words)
    single = np.finfo(np.float64 if is_sparse(sampler, number) else np.float32)
    least, most = float(single.tiny), float(single.max)
    all_words = documents.vocabulary * beta
    # A topic that neither the document nor the word has; and one that has all tokens.
    nothing = alpha / (n + all_words)
    share = max(1.0, alpha / all_words) if all_words else math.inf
    if min(nothing, beta, nothing * beta) < least or number * share * (n + beta) > most:
        raise InputError(
            "`doc_topic_prior` and `topic_word_prior` must leave chances of topics that "
            f"{single.dtype} holds, {least:.1g} to {most:.1g}; got {alpha:g} and {beta:g}. "
            "Take less extreme ones."
        )


def table(documents: Documents, topics: Array, width: int) -> Array:
    """Tokens of each word that are of each topic, int64 (words, width)."""
    cells = documents.words * np.int64(width) + topics
    V = documents.vocabulary
    return np.bincount(cells, minlength=V * width).reshape(V, width)


def padded_table(documents: Documents, topics: Array, number: int) -> Array:
    """The same as the dense sampler has it, int32."""
    return table(documents, topics, -(-number // LANES) * LANES).astype(np.int32)


def rooms_of(documents: Documents, number: int) -> Array:
    """Where the room for the topics of each word begins, int64 (words + 1,)."""
    _, begins = documents.by_word
    return np.concatenate(([0], np.cumsum(np.clip(np.diff(begins), 1, number))))


def lists(documents: Documents, topics: Array, number: int) -> tuple[Array, ...]:
    """The topics of each word by falling count: see `list_topics`.

    Returns
    -------
    rooms, kept, counts, sizes : ndarray
    """
    tokens, begins = documents.by_word
    rooms = rooms_of(documents, number)
    kept, counts = np.zeros(rooms[-1], np.int32), np.zeros(rooms[-1], np.int32)
    sizes = np.zeros(documents.vocabulary, np.int32)
    list_topics(tokens, begins, topics, rooms, kept, counts, sizes)
    return rooms, kept, counts, sizes


def likelihood(documents: Documents, topics: Array, number: int, priors: Priors) -> float:
    """The mean logarithm of how likely tokens are, given the topics that there are."""
    of_words = table(documents, topics, number) + priors.beta
    shares = of_words / of_words.sum(axis=0)
    rows = np.repeat(np.arange(documents.count), np.diff(documents.starts))
    cells = rows * np.int64(number) + topics
    own = np.bincount(cells, minlength=documents.count * number)
    mine = own.reshape(-1, number) + priors.alpha
    mine = mine / mine.sum(axis=1, keepdims=True)
    likely = 0.0
    for begin in range(0, len(rows), _TOKENS):
        some = slice(begin, begin + _TOKENS)
        pairs = mine[rows[some]], shares[documents.words[some]]
        likely += float(np.log(np.einsum("tk,tk->t", *pairs)).sum())
    return likely / max(1, len(rows))
