"""Tokens and n-grams by number are what dictionaries of strings find."""

from __future__ import annotations

import itertools
import re
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mlopt.kernels.terms import choose_columns, code_grams, count_rows, recognise_grams
from mlopt.kernels.tokens import code_tokens

# One kind: small letters, of at least two.
FOLDS = np.array([[b if chr(b) in "abcdefghij" else 0 for b in range(256)]], np.uint8)
texts = st.lists(st.text("abc -", max_size=40), max_size=6)
long_words = st.lists(
    st.sampled_from(["abcdefg", "abcdefgh", "abcdefghi", "gh"]), max_size=9
)


def coded(documents: list[str], known: int = 0) -> tuple[np.ndarray, np.ndarray, list[str]]:
    starts = np.cumsum([0, *map(len, documents)])
    text = np.frombuffer("".join(documents).encode(), np.uint8)
    kinds = np.zeros(len(documents), np.uint8)
    codes, bounds, pool = code_tokens(text, starts, kinds, FOLDS, np.array([2]), known)
    return codes, bounds, pool.decode().split("\n")[:-1]


def spelled(documents: list[str]) -> list[list[str]]:
    codes, bounds, names = coded(documents)
    words = [names[code] for code in codes]
    return [words[a:b] for a, b in itertools.pairwise(bounds)]


@given(st.one_of(texts, st.lists(long_words.map(" ".join), max_size=4)))
def test_tokens_are_those_of_the_regular_expression(documents: list[str]) -> None:
    assert spelled(documents) == [re.findall("[a-j]{2,}", text) for text in documents]


def test_many_distinct_tokens_outgrow_the_first_table() -> None:
    letters = np.array([*"abcdefghij"])
    words = ["".join(letters[[int(c) for c in str(i)]]) for i in range(10, 9000)]
    documents = [" ".join(words[i : i + 50]) for i in range(0, len(words), 50)]
    assert [w for row in spelled(documents) for w in row] == words


def test_later_documents_name_no_new_tokens_where_some_are_known() -> None:
    codes, bounds, names = coded(["aa bb", "bb cc aa", "cc"], known=1)
    assert names == ["aa", "bb"]
    assert codes.tolist() == [0, 1, 1, -1, 0, -1]
    assert bounds.tolist() == [0, 2, 5, 6]


@given(st.lists(st.lists(st.integers(0, 3), max_size=8), max_size=5), st.integers(1, 4))
def test_pairs_are_counted_in_each_document(rows: list[list[int]], d: int) -> None:
    tokens = np.array([t for row in rows for t in row], np.int32)
    bounds = np.cumsum([0, *map(len, rows)])
    codes, keys = code_grams(tokens, tokens, bounds, 2, 1024)
    np.testing.assert_array_equal(
        codes, recognise_grams(tokens, tokens, bounds, 2, keys, 1024)
    )
    indptr, indices, counts, found = count_rows(codes[None], bounds, len(keys))
    wanted = np.zeros((len(rows), len(keys)), int)
    for i, row in enumerate(rows):
        for (a, b), times in Counter(itertools.pairwise(row)).items():
            wanted[i, keys.tolist().index(a << 32 | b)] = times
    csr = sparse.csr_array((counts, indices, indptr), wanted.shape)
    np.testing.assert_array_equal(csr.toarray(), wanted)
    np.testing.assert_array_equal(found, np.c_[(wanted > 0).sum(0), wanted.sum(0)])

    columns = np.full(len(keys), -1, np.int32)
    columns[:d] = np.arange(min(d, len(keys)))[::-1]
    heads, of, data = choose_columns(indptr, indices, counts, columns, d)
    kept = np.zeros((len(rows), d), int)
    kept[:, columns[:d]] = wanted[:, :d]
    chosen = sparse.csr_array((data, of, heads), kept.shape)
    assert chosen.has_canonical_format
    np.testing.assert_array_equal(chosen.toarray(), kept)
