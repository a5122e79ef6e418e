"""Topics of tokens, drawn one after the other: collapsed Gibbs sampling.

A token of word w in document d is of topic k with a probability proportional to::

    (in d of k + alpha) (of w of k + beta) / (of k + V beta)

where the token itself is not counted. Tokens lie document by document, so that what a
document has of each topic is counted when it begins, and held nowhere else. Of each
document some neighbours may be drawn alone: those whose words are of one block.

Two ways to draw from it. *Dense*: all K products, in lanes. *Sparse*: the product is a sum
of three, which are zero for most topics but for the last one::

    w k (d k + alpha) / (k + V beta)    over the topics that the word has
    d k beta / (k + V beta)             over those that the document has
    alpha beta / (k + V beta)           over all; its sum changes with two topics a token

Sources: Griffiths and Steyvers, "Finding scientific topics", PNAS 101, 2004; Yao, Mimno and
McCallum, "Efficient methods for topic model inference on streaming document collections",
KDD 2009.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.compiled import inlined, kernel, read_only
from mlopt.kernels.permutation import GAMMA, mixed, state_of
from mlopt.kernels.simd import lane_count, load, prefetch, total

Array = NDArray[Any]

LANES = lane_count(np.dtype(np.float32).itemsize)
"""Topics of a row of counts come in multiples of this."""
_AHEAD = 4
"""Tokens: so far ahead of its turn the counts of a word are asked for."""
_ELEVEN = np.uint64(11)
_UNIT = 1.0 / 2.0**53


@inlined
def _drawn(state: Array) -> float:
    """A number in [0, 1)."""
    state[0] += GAMMA
    return float(mixed(state[0]) >> _ELEVEN) * _UNIT


@inlined
def _numbers(word: Any, topic: Any) -> Any:
    return np.int64(word), np.int64(topic)


@inlined
def _counted(topics: Array, begin: int, end: int, own: Array) -> None:
    for k in range(own.shape[0]):
        own[k] = 0
    for t in range(begin, end):
        own[topics[t]] += 1


@kernel
def _sweep_dense(
    words: Array, starts: Array, topics: Array, upto: Array, first: Array, of_words: Array,
    of_all: Array, alpha: float, beta: float, vocabulary: float, seed: Array,
) -> None:  # fmt: skip
    K, width = of_all.shape[0], of_words.shape[1]
    own = np.zeros(width, np.int64)
    part = np.zeros(width, np.float32)  # (d k + alpha) / (k + V beta)
    p = np.zeros(width, np.float32)
    sums = np.zeros(width // LANES, np.float32)
    low, n = np.float32(beta), words.shape[0]
    state = np.full(1, state_of(seed))
    for d in range(starts.shape[0] - 1):
        if upto[d] == upto[d + 1]:
            continue
        _counted(topics, starts[d], starts[d + 1], own)
        for k in range(K):
            part[k] = (own[k] + alpha) / (of_all[k] + vocabulary)
        shift = first[d] - upto[d]
        for i in range(upto[d], upto[d + 1]):
            if i + _AHEAD < n:
                prefetch(of_words, np.int64(words[i + _AHEAD]) * width)
            t = i + shift
            w, k = _numbers(words[i], topics[t])
            own[k] -= 1
            of_all[k] -= 1
            of_words[w, k] -= 1
            part[k] = (own[k] + alpha) / (of_all[k] + vocabulary)
            row = of_words[w]
            for j in range(width):
                p[j] = part[j] * (np.float32(row[j]) + low)
            mass = np.float32(0.0)
            for b in range(sums.shape[0]):
                sums[b] = total(load(p, b * LANES))
                mass += sums[b]
            u = np.float32(_drawn(state)) * mass
            b = 0
            while b < sums.shape[0] - 1 and u >= sums[b]:
                u -= sums[b]
                b += 1
            k = b * LANES
            last = min(k + LANES, K) - 1
            while k < last and u >= p[k]:
                u -= p[k]
                k += 1
            topics[t] = k
            own[k] += 1
            of_all[k] += 1
            of_words[w, k] += 1
            part[k] = (own[k] + alpha) / (of_all[k] + vocabulary)


@inlined
def _sink(kept: Array, counts: Array, at: int, end: int) -> None:
    """One fewer at ``at``: to behind those that have more now."""
    while at + 1 < end and counts[at + 1] > counts[at]:
        counts[at], counts[at + 1] = counts[at + 1], counts[at]
        kept[at], kept[at + 1] = kept[at + 1], kept[at]
        at += 1


@inlined
def _rise(kept: Array, counts: Array, at: int, begin: int) -> None:
    """One more at ``at``: to before those that have fewer now."""
    while at > begin and counts[at - 1] < counts[at]:
        counts[at], counts[at - 1] = counts[at - 1], counts[at]
        kept[at], kept[at - 1] = kept[at - 1], kept[at]
        at -= 1


@inlined
def _of_word(u: float, kept: Array, counts: Array, at: int, end: int, part: Array) -> Any:
    """The topic where ``u`` is used up, of those of a word."""
    while at < end - 1 and u >= counts[at] * part[kept[at]]:
        u -= counts[at] * part[kept[at]]
        at += 1
    return np.int64(kept[at])


@inlined
def _of_document(
    u: float, here: Array, size: int, own: Array, of_all: Array, beta: float,
    vocabulary: float,
) -> Any:  # fmt: skip
    """The same, of those of a document."""
    for at in range(size - 1):
        k = np.int64(here[at])
        mass = own[k] * beta / (of_all[k] + vocabulary)
        if u < mass:
            return k
        u -= mass
    return np.int64(here[size - 1])


@inlined
def _of_all(u: float, both: float, of_all: Array, vocabulary: float) -> Any:
    """The same, of all."""
    k = 0
    while k < of_all.shape[0] - 1 and u >= both / (of_all[k] + vocabulary):
        u -= both / (of_all[k] + vocabulary)
        k += 1
    return k


@inlined
def _listed(here: Array, place: Array, own: Array) -> int:
    """The topics that a document has, and how many."""
    size = 0
    for k in range(own.shape[0]):
        if own[k] > 0:
            here[size], place[k] = k, size
            size += 1
    return size


@inlined
def _where(kept: Array, at: int, end: int, k: int) -> int:
    while at < end and kept[at] != k:
        at += 1
    return at


@inlined
def _counted_in(kept: Array, counts: Array, begin: int, end: int, k: Any) -> int:
    """One token more of topic ``k`` in the list of a word; where that ends then."""
    at = _where(kept, begin, end, k)
    if at == end:
        kept[at], counts[at] = k, 0
        end += 1
    counts[at] += 1
    _rise(kept, counts, at, begin)
    return end


@inlined
def _recounted(
    k: int, by: int, own: Array, of_all: Array, part: Array, flat: float, mine: float,
    alpha: float, beta: float, vocabulary: float,
) -> tuple[float, float]:  # fmt: skip
    """``by`` tokens more of topic ``k``; what the sums over all and over those that the
    document has are then."""
    over = 1.0 / (of_all[k] + vocabulary)
    flat, mine = flat - alpha * beta * over, mine - own[k] * beta * over
    own[k] += by
    of_all[k] += by
    over = 1.0 / (of_all[k] + vocabulary)
    part[k] = (own[k] + alpha) * over
    return flat + alpha * beta * over, mine + own[k] * beta * over


@kernel
def list_topics(
    tokens: Array, begins: Array, topics: Array, rooms: Array, kept: Array, counts: Array,
    sizes: Array,
) -> None:  # fmt: skip
    """The topics of each word by falling count.

    Parameters
    ----------
    tokens : int64 ndarray (n,)
        Those of one word side by side.
    begins : int64 ndarray (V + 1,)
        Where a word's tokens begin.
    topics : int32 ndarray (n,)
        Of each token.
    rooms : int64 ndarray (V + 1,)
        Where the room for a word's topics begins: for as many as it has tokens, or all.
    kept, counts : int32 ndarray (rooms[V],)
        Written: topics, and how many tokens of the word each has.
    sizes : int32 ndarray (V,)
        Written: how many topics a word has.
    """
    for w in range(sizes.shape[0]):
        begin, end = rooms[w], rooms[w]
        for t in range(begins[w], begins[w + 1]):
            end = _counted_in(kept, counts, begin, end, topics[tokens[t]])
        sizes[w] = end - begin


@kernel
def _sweep_sparse(
    words: Array, starts: Array, topics: Array, upto: Array, first: Array, rooms: Array,
    kept: Array, counts: Array, sizes: Array, of_all: Array, alpha: float, beta: float,
    vocabulary: float, seed: Array,
) -> None:  # fmt: skip
    K, both = of_all.shape[0], alpha * beta
    own = np.zeros(K, np.int64)
    part = np.empty(K)  # (d k + alpha) / (k + V beta)
    here, place = np.empty(K, np.int32), np.empty(K, np.int32)
    state = np.full(1, state_of(seed))
    for d in range(starts.shape[0] - 1):
        if upto[d] == upto[d + 1]:
            continue
        _counted(topics, starts[d], starts[d + 1], own)
        flat, mine, size = 0.0, 0.0, _listed(here, place, own)
        # Summed anew for each document: what is added and taken away leaves roundings.
        for k in range(K):
            over = 1.0 / (of_all[k] + vocabulary)
            part[k], flat = (own[k] + alpha) * over, flat + both * over
            mine += own[k] * beta * over
        shift = first[d] - upto[d]
        for i in range(upto[d], upto[d + 1]):
            t = i + shift
            w, k = _numbers(words[i], topics[t])
            flat, mine = _recounted(
                k, -1, own, of_all, part, flat, mine, alpha, beta, vocabulary
            )
            if own[k] == 0:
                size -= 1
                here[place[k]], place[here[size]] = here[size], place[k]
            begin, end, theirs = rooms[w], rooms[w] + sizes[w], 0.0
            found = _where(kept, begin, end, k)
            counts[found] -= 1
            for at in range(begin, end):
                theirs += counts[at] * part[kept[at]]
            _sink(kept, counts, found, end)
            if counts[end - 1] == 0:
                end -= 1
            u = _drawn(state) * (theirs + mine + flat)
            if u < theirs:
                k = _of_word(u, kept, counts, begin, end, part)
            elif u < theirs + mine and size > 0:
                k = _of_document(u - theirs, here, size, own, of_all, beta, vocabulary)
            else:
                k = _of_all(u - theirs - mine, both, of_all, vocabulary)
            if own[k] == 0:
                here[size], place[k] = k, size
                size += 1
            flat, mine = _recounted(
                k, 1, own, of_all, part, flat, mine, alpha, beta, vocabulary
            )
            sizes[w] = _counted_in(kept, counts, begin, end, k) - begin
            topics[t] = k


def sweep(
    words: Array,
    starts: Array,
    topics: Array,
    model: tuple[Array, ...],
    of_all: Array,
    *,
    alpha: float,
    beta: float,
    seed: tuple[int, ...],
    vocabulary: int | None = None,
    some: tuple[Array, Array] | None = None,
) -> None:
    """Draw the topic of every token anew, in place; or of some.

    Parameters
    ----------
    words : int32 ndarray (n,)
        Of each token, document by document.
    starts : int64 ndarray (documents + 1,)
        Where documents begin.
    topics : int32 ndarray (n,)
        Of each token; changed.
    model : (of_words,) or (rooms, kept, counts, sizes)
        What each word has of each topic; changed. As a table, int32 (V, width) with width
        a multiple of `LANES` and zeros beyond K: topics are drawn the dense way. Or as
        lists, see `list_topics`: the sparse way.
    of_all : int64 ndarray (K,)
        Tokens of each topic; changed.
    alpha, beta : float
        Priors of a topic in a document, and of a word in a topic.
    seed : ints
        The topics depend on it and on nothing else.
    vocabulary : int, optional
        Words in all, where the model is of some. Default: those of the model.
    some : (upto, first), optional
        Of each document neighbours alone: its words are ``words[upto[d] : upto[d + 1]]``,
        their topics begin at ``topics[first[d]]``; int64 (documents + 1,), (documents,).
    """
    way = _sweep_dense if len(model) == 1 else _sweep_sparse
    V = vocabulary or len(model[-1])
    model = model if len(model) == 1 else (read_only(model[0]), *model[1:])
    upto, first = map(read_only, some or (starts, starts[:-1]))
    words, starts = read_only(words), read_only(starts)
    drawn = np.array(seed, np.int64).view(np.uint64)
    with np.errstate(over="ignore"):  # which is what mixes, also without compilation
        way(
            words, starts, topics, upto, first, *model, of_all, alpha, beta, V * beta, drawn
        )


@kernel
def infer(
    words: Array, counts: Array, starts: Array, of_topics: Array, alpha: float, most: int,
    tol: float, out: Array,
) -> None:  # fmt: skip
    """What documents have of each topic, for given topics.

    Each token is spread over the topics as they are likely for it, and what a document has
    of a topic is the mean of that, with the prior; again until nothing changes.

    Parameters
    ----------
    words : int32 ndarray (m,)
    counts : float64 ndarray (m,)
    starts : int64 ndarray (documents + 1,)
    of_topics : float64 ndarray (V, K)
        The share of a word in each topic.
    alpha : float
    most : int
        Rounds at most.
    tol : float
        The sum of changes of a document's shares below which they are done.
    out : float64 ndarray (documents, K)
        Written: shares that add up to 1.
    """
    K = of_topics.shape[1]
    share, following = np.empty(K), np.empty(K)
    for d in range(starts.shape[0] - 1):
        share[:] = 1.0 / K
        n = counts[starts[d] : starts[d + 1]].sum()
        for _ in range(most if n > 0 else 0):
            following[:] = alpha
            for i in range(starts[d], starts[d + 1]):
                row, mass = of_topics[words[i]], 0.0
                for k in range(K):
                    mass += share[k] * row[k]
                weight = counts[i] / mass
                for k in range(K):
                    following[k] += weight * share[k] * row[k]
            change = 0.0
            for k in range(K):
                now = following[k] / (n + K * alpha)
                change += abs(now - share[k])
                share[k] = now
            if change < tol:
                break
        out[d] = share
