"""Documents as numbered tokens, cut exactly as scikit-learn's vectorizers cut them.

Documents are cut by a kernel under the default pattern, all others by the estimator's own
functions, and the kernel numbers what these return. What cannot be put
into lines of text (tokens with spaces in them, n-grams of characters, results of an
analyzer of the user's) is numbered by a Python dictionary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mlopt.errors import InputError
from mlopt.kernels.tokens import code_tokens

Array = NDArray[Any]

_DEFAULT_PATTERN = r"(?u)\b\w\w+\b"
_PLAIN, _PLAIN_LOWER, _WORDS, _LINES = range(4)
"""Kinds of documents: ASCII text as it is, and in small letters; text in which a character
beyond ASCII belongs to a token; and a token a line."""
# Characters beyond ASCII in no token of the default pattern: no letters, or single ones.
_OUTSIDE = re.compile(r"[^\0-\x7f](?:(?<!\w)|(?<!\w\w)(?!\w))")
# Tokens with none of these are told apart, and sorted, in n-grams as by themselves.
_BREAKS = re.compile("[\0- ]")


def _folds() -> Array:
    """The class of each byte for each kind of document."""
    word = [b if chr(b).isalnum() or b == ord("_") else 0 for b in range(128)]
    lower = [ord(chr(b).lower()) for b in word]
    beyond = list(range(128, 256))
    lines = [b * (b != ord("\n")) for b in range(256)]
    return np.array([word + [0] * 128, lower + [0] * 128, word + beyond, lines], np.uint8)


_FOLDS = _folds()
# In lines an empty token is a token, too.
_LEAST = np.array([2, 2, 2, 0])


@dataclass(frozen=True)
class Coded:
    """Documents as numbers of tokens.

    Attributes
    ----------
    tokens : tuple
        Distinct, ascending.
    codes : ndarray of int32, shape (N,)
        Positions in ``tokens``; -1 for a token that is not among them.
    bounds : ndarray of int64, shape (documents + 1,)
        ``codes[bounds[i]:bounds[i + 1]]`` is document ``i``.
    whole : bool
        Whether a token is a term, n-grams being made already.
    """

    tokens: tuple[Any, ...]
    codes: Array
    bounds: Array
    whole: bool = False


@dataclass(frozen=True)
class _Text:
    """UTF-8 of documents, and which kind each is."""

    pieces: list[bytes]
    kinds: list[int]


def code_documents(
    estimator: Any, documents: Iterable[Any], known: Sequence[str] | None = None
) -> Coded:
    """Cut and number documents, stop words left out.

    Parameters
    ----------
    estimator : CountVectorizer, TfidfVectorizer or HashingVectorizer
    documents : iterable of str or bytes
    known : sequence of str, optional
        Tokens, ascending and with the stop words among them, that get numbers; all others
        get -1. Ignored where tokens are whole terms.

    Raises
    ------
    Exception
        What scikit-learn raises; a note names the document.
    """
    if isinstance(documents, str):
        raise InputError(
            "Iterable over raw text documents expected, string object received."
        )
    rows = documents if isinstance(documents, list) else list(documents)
    text = _read(estimator, rows, known) if _has_lines(estimator) else None
    if text is None:
        return _ascending(*_by_dictionary(estimator, rows), whole=True)
    tokens, codes, bounds = _by_kernel(text, known)
    stop = estimator.get_stop_words()
    if stop is not None:
        codes, bounds = _without(np.array([t in stop for t in tokens], bool), codes, bounds)
    if known is not None:
        return Coded(tuple(tokens), codes, bounds)
    return _ascending(tokens, codes, bounds)


def breaks(token: str) -> bool:
    """Whether an n-gram with this token may be taken for another one."""
    return _BREAKS.search(token) is not None


def _has_lines(estimator: Any) -> bool:
    return estimator.analyzer == "word" and estimator.tokenizer is None


def _read(
    estimator: Any, documents: list[Any], known: Sequence[str] | None
) -> _Text | None:
    """The text that the kernel reads; None when a token would break the lines, or it is
    more than the kernel can number.
    """
    preprocess, tokenize = estimator.build_preprocessor(), estimator.build_tokenizer()
    default = estimator.token_pattern == _DEFAULT_PATTERN
    plain = (
        default
        and estimator.preprocessor is None
        and not callable(estimator.strip_accents)
        and estimator.input == "content"
    )
    kind = _PLAIN_LOWER if estimator.lowercase else _PLAIN
    text = _Text([], [])
    for row, document in enumerate(documents):
        if plain and isinstance(document, str) and document.isascii():
            text.pieces.append(document.encode())
            text.kinds.append(kind)
            continue
        with _naming(row):
            prepared = preprocess(estimator.decode(document))
            tokens = [_OUTSIDE.sub(" ", prepared)] if default else tokenize(prepared)
        if not default and breaks("".join(tokens)):
            return None
        text.pieces.append(_lines(tokens))
        text.kinds.append(_WORDS if default else _LINES)
    size = sum(map(len, text.pieces)) + (0 if known is None else len(_lines(known)))
    return text if size <= np.iinfo(np.int32).max else None


@contextmanager
def _naming(row: int) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(f"This happened at document {row} of its block, counted from 0.")
        raise


def _lines(tokens: Sequence[str]) -> bytes:
    # One line feed after each token; half of a surrogate pair is a character to Python.
    return "\n".join((*tokens, "")).encode("utf-8", "surrogatepass")


def _by_kernel(
    text: _Text, known: Sequence[str] | None
) -> tuple[Sequence[str], Array, Array]:
    """Tokens in order of their numbers, codes and bounds."""
    first = [] if known is None else [_lines(known)]
    pieces, kinds = first + text.pieces, [_LINES] * len(first) + text.kinds
    starts = np.zeros(len(pieces) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, pieces), np.int64, len(pieces)), out=starts[1:])
    codes, bounds, pool = code_tokens(
        np.frombuffer(b"".join(pieces), np.uint8),
        starts,
        np.array(kinds, np.uint8),
        _FOLDS,
        _LEAST,
        len(first),
    )
    if known is not None:
        return known, codes[len(known) :], bounds[1:] - len(known)
    return pool.decode("utf-8", "surrogatepass").split("\n")[:-1], codes, bounds


def _by_dictionary(
    estimator: Any, documents: list[Any]
) -> tuple[Sequence[Any], Array, Array]:
    """As `_by_kernel`, with the terms of scikit-learn's own analyzer as tokens."""
    analyze = _analyzer(estimator)
    number: dict[Any, int] = {}
    codes, bounds = [], np.zeros(len(documents) + 1, np.int64)
    for row, document in enumerate(documents):
        with _naming(row):
            terms = list(analyze(document))
        codes.append([number.setdefault(term, len(number)) for term in terms])
        bounds[row + 1] = bounds[row] + len(terms)
    flat = np.fromiter((c for row_codes in codes for c in row_codes), np.int32, bounds[-1])
    return list(number), flat, bounds


def _analyzer(estimator: Any) -> Callable[[Any], Iterable[Any]]:
    # Whether stop words suit the tokenizer is looked into once, when a fit is finished.
    probe = copy(estimator)
    probe._stop_words_id = id(estimator.stop_words)
    analyzer: Callable[[Any], Iterable[Any]] = probe.build_analyzer()
    return analyzer


def _without(drop: Array, codes: Array, bounds: Array) -> tuple[Array, Array]:
    """Codes and bounds without some tokens; -1 stays."""
    keep = ~np.append(drop, False)[codes]
    ahead = np.zeros(len(codes) + 1, np.int64)
    np.cumsum(keep, out=ahead[1:])
    return codes[keep], ahead[bounds]


def _ascending(
    tokens: Sequence[Any], codes: Array, bounds: Array, whole: bool = False
) -> Coded:
    order = sorted(range(len(tokens)), key=tokens.__getitem__)
    rank = np.empty(len(tokens), np.int32)
    rank[order] = np.arange(len(tokens), dtype=np.int32)
    return Coded(tuple(map(tokens.__getitem__, order)), rank[codes], bounds, whole)
