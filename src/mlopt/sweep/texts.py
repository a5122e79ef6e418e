"""Columns of free text: how to tell them, and what models see of them."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import (
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.pipeline import Pipeline, make_pipeline

TOPICS = 64
"""Columns that trees see of a text: each costs them as much as a number, and boosting on
20,000 reviews gained less than a hundredth from twice as many."""
TERMS = 20_000
"""Words of a text that linear models have a column for: those that occur most often."""
BUCKETS = 2**15
"""Columns that words are hashed to for their `TOPICS`: a model keeps as many numbers for
each, 17 MB in all. These need no vocabulary, and are never fewer."""
NOTHING = "no_words"
"""The word of a text without words: a part of the rows may have no other."""

SAMPLE = 1000
"""Cells that tell of a column whether it holds sentences."""
_WORD = re.compile(r"(?<!\S)[^\W\d_]{2,}(?=[,.;:!?]*(?:\s|$))")
"""Between blanks: addresses of mails, sites and files have none."""
_TOKEN = re.compile(r"\b\w\w+\b")
"""What scikit-learn takes for a word."""
_WORDS = 3
"""In small letters: names and titles have capitals, codes have digits."""


def are_sentences(values: pd.Series) -> bool:
    """Whether most of these texts have several words in small letters."""
    sample = values.iloc[:: max(1, len(values) // SAMPLE)]
    return bool(sample.map(_has_words).mean() > 0.5)


def as_documents(texts: np.ndarray) -> np.ndarray:
    """Texts, (n,), each with a word at least, the missing ones too."""
    words = [isinstance(text, str) and bool(_TOKEN.search(text)) for text in texts]
    return np.where(words, texts, NOTHING)


def terms() -> TfidfVectorizer:
    """A column for each frequent word of one column of texts."""
    return TfidfVectorizer(max_features=TERMS, sublinear_tf=True, dtype=np.float32)


def topics(seed: int) -> Pipeline:
    """The directions in which words differ most: few dense columns, as trees want them."""
    return make_pipeline(
        HashingVectorizer(
            n_features=BUCKETS, alternate_sign=False, norm=None, dtype=np.float32
        ),
        TfidfTransformer(sublinear_tf=True),
        TruncatedSVD(TOPICS, random_state=seed),
    )


def _has_words(text: str) -> bool:
    small = (word for word in _WORD.findall(text) if word[0] == word[0].lower())
    return sum(1 for _ in zip(range(_WORDS), small, strict=False)) == _WORDS
