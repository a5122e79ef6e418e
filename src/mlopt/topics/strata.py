"""Tokens in cells: strata of documents down, blocks of words across.

::

              block 0   block 1     of each document the tokens of a block are neighbours,
    stratum 0  d0 d1     d0 d1      and so are their topics, which the stratum keeps;
    stratum 1  d2 d3     d2 d3      counts of a block's words are a part of the model

Words go to blocks at random, so that cells hold about as many tokens each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.kernels.grouping import grouped
from mlopt.prices import count
from mlopt.server.program import Part
from mlopt.server.strata import Cut
from mlopt.topics.counting import lists, padded_table, rooms_of
from mlopt.topics.documents import Documents

Array = NDArray[Any]
Cell = tuple[Array, ...]
"""Stratum, block and words in all; words of tokens, numbered in their block; `some` of
`mlopt.kernels.gibbs.sweep`; where documents begin; for lists where their rooms begin."""

STRATUM = count("gibbs.stratum")
LEAST, MOST = 4, 16
"""Strata: so few leave two members a part to work on while another is on its way; of as
many as the most members can work at a time."""


def sides_of(n: int) -> int:
    """Strata of so many tokens, and blocks of words, unless there are too few of these."""
    return min(MOST, max(LEAST, n // STRATUM))


@dataclass(frozen=True, eq=False)
class Strata:
    """All tokens, and in which order each stratum has them.

    Parameters
    ----------
    documents : Documents
        Words numbered block by block.
    words : Cut
    parts : sequence of (slice, slice)
        Documents and tokens of each stratum.
    orders, segments : sequence of int64 ndarray
        Of a stratum: its tokens as it has them, and where those of each document and block
        begin among them.
    """

    documents: Documents
    words: Cut
    parts: Sequence[tuple[slice, slice]]
    orders: Sequence[Array]
    segments: Sequence[Array]

    @staticmethod
    def of(documents: Documents, seed: int, side: int | None = None) -> Strata:
        """Cut tokens.

        Parameters
        ----------
        documents : Documents
        seed : int
        side : int, optional
            How many strata, and blocks, at most. Default: from the number of tokens alone,
            so that the result of a training depends on no machine.
        """
        n = len(documents.words)
        side = min(side or sides_of(n), MOST, documents.vocabulary)
        parts = documents.shards(side)
        # Documents without words need no stratum.
        parts = [(rows, own) for rows, own in parts if own.stop > own.start]
        counts = np.bincount(documents.words, minlength=documents.vocabulary)
        words = Cut.of(counts, len(parts), seed, 1)
        placed = words.place[documents.words].astype(np.int32)
        documents = Documents(placed, documents.starts, documents.vocabulary)
        blocks = np.searchsorted(words.edges[1:-1], placed, side="right")
        orders, segments = [], []
        for rows, tokens in parts:
            lengths = np.diff(documents.starts[rows.start : rows.stop + 1])
            keys = np.repeat(np.arange(len(lengths)) * len(parts), lengths) + blocks[tokens]
            order, begins = grouped(keys, len(lengths) * len(parts))
            orders.append(order)
            segments.append(begins)
        return Strata(documents, words, parts, orders, segments)

    @property
    def side(self) -> int:
        """How many strata there are, and blocks."""
        return len(self.parts)

    def cells(self, number: int, sparse: bool) -> list[list[Cell]]:
        """Of each stratum and block."""
        rooms = self._rooms(number) if sparse else [()] * self.side
        return [
            [self._cell(stratum, block, rooms[block]) for block in range(self.side)]
            for stratum in range(self.side)
        ]

    def states(self, topics: Array, model: Sequence[Part]) -> list[Part]:
        """What strata keep: topics, and what each has last seen of all blocks."""
        seen = np.stack([part["of_all"] for part in model])
        return [
            {"topics": topics[tokens][order], "seen": seen.copy()}
            for (_, tokens), order in zip(self.parts, self.orders, strict=True)
        ]

    def topics(self, states: Sequence[Part]) -> Array:
        """Of all tokens, as documents have them."""
        out = np.empty(len(self.documents.words), np.int32)
        for (_, tokens), order, state in zip(self.parts, self.orders, states, strict=True):
            out[tokens][order] = state["topics"]
        return out

    def model(self, topics: Array, number: int, sparse: bool) -> list[Part]:
        """The counts of each block's words, exactly."""
        edges, documents = self.words.edges, self.documents
        tokens, begins = documents.by_word
        found: list[Part] = []
        if sparse:
            rooms, kept, counts, sizes = lists(documents, topics, number)
        else:
            of_words = padded_table(documents, topics, number)
        for block in range(self.side):
            words = slice(edges[block], edges[block + 1])
            own = topics[tokens[begins[words.start] : begins[words.stop]]]
            part = {"of_all": np.bincount(own, minlength=number).astype(np.int64)}
            if sparse:
                room = slice(rooms[words.start], rooms[words.stop])
                part |= {"kept": kept[room], "counts": counts[room], "sizes": sizes[words]}
            else:
                part["of_words"] = of_words[words]
            found.append(part)
        return found

    def _cell(self, stratum: int, block: int, room: tuple[Array, ...]) -> Cell:
        (_, tokens), order = self.parts[stratum], self.orders[stratum]
        begins, side = self.segments[stratum], self.side
        first, lengths = begins[block:-1:side], np.diff(begins)[block::side]
        upto = np.concatenate(([0], np.cumsum(lengths)))
        places = np.arange(upto[-1]) + np.repeat(first - upto[:-1], lengths)
        words = self.documents.words[tokens][order[places]] - self.words.edges[block]
        where = np.array([stratum, block, self.documents.vocabulary])
        starts = begins[::side].copy()
        return where, words.astype(np.int32), upto, first.copy(), starts, *room

    def _rooms(self, number: int) -> list[tuple[Array, ...]]:
        rooms = rooms_of(self.documents, number)
        return [(rooms[a : b + 1] - rooms[a],) for a, b in pairwise(self.words.edges)]
