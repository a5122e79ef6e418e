"""Filters learnt from patches: what they are, and that blocks do not matter."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from typing import Any

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.stride_tricks import sliding_window_view
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import mlopt
from mlopt.errors import InputError
from mlopt.pipeline.environment import environment
from mlopt.pipeline.library.image import (
    Convolver,
    ImageVectorizer,
    LearnedConvolver,
    Pooler,
)
from mlopt.pipeline.library.image.drawn import draw, fingerprints

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(300, 8, 7, 2)).astype(np.float32)
FEW = LearnedConvolver(10, 3, n_patches=400, variance=0.1)


def patches_of(images: Any, k: int) -> Any:
    """All k x k patches as rows, (n, rows, columns, k k c)."""
    seen = sliding_window_view(images, (k, k), axis=(1, 2))
    return np.moveaxis(seen, 3, 5).reshape(*seen.shape[:3], -1)


def by_hand(model: LearnedConvolver, images: Any) -> Any:
    """Each patch normalised, whitened, and multiplied by the dictionary."""
    patches = patches_of(images.astype(np.float64), model.size)
    patches = patches - patches.mean(axis=-1, keepdims=True)
    spread = patches.var(axis=-1, ddof=1, keepdims=True)
    patches /= np.sqrt(spread + model.variance)
    white = (patches - model.whitener_.mean_) @ model.whitener_.whitener_
    return white @ model.dictionary_.reshape(model.n_filters, -1).T


@pytest.mark.parametrize("learn", ["kmeans", "patches"])
def test_what_comes_out_is_the_whitened_patch_times_each_filter(learn: str) -> None:
    model = clone(FEW).set_params(learn=learn).fit(IMAGES)
    found = model.transform(IMAGES[:5])

    assert found.dtype == np.float32
    assert np.allclose(found, by_hand(model, IMAGES[:5]), atol=1e-3)
    lengths = np.linalg.norm(model.dictionary_.reshape(10, -1), axis=1)
    assert np.allclose(lengths, 1.0)


def test_it_is_a_convolver_that_normalizes() -> None:
    model = clone(FEW).fit(IMAGES)
    convolver = Convolver(
        model.filters_, offset=model.offset_, normalize=True, variance=model.variance
    )

    assert np.allclose(model.transform(IMAGES), convolver.transform(IMAGES), atol=1e-3)


def test_kmeans_finds_the_patterns_that_images_are_made_of() -> None:
    """Stripes down and across, in noise: filters are stripes, not noise."""
    stripes = np.indices((8, 8))[RNG.integers(0, 2, 500)] // 2 % 2
    images = 2.0 * stripes + 0.1 * RNG.normal(size=stripes.shape)
    model = LearnedConvolver(6, 4, variance=0.1, n_patches=2000).fit(images)

    turned = model.dictionary_[..., 0]
    down, across = turned.std(axis=1).mean(axis=1), turned.std(axis=2).mean(axis=1)
    ratio = np.maximum(down, across) / np.minimum(down, across)
    assert np.median(ratio) > 2.0


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 300), max_size=4), st.integers(1, 60))
def test_patches_of_blocks_merged_are_those_of_all(cuts: list[int], most: int) -> None:
    edges = [0, *sorted(cuts), 300]
    blocks = [IMAGES[a:b] for a, b in pairwise(edges)]
    parts = [draw(block, 3, most, 4, seed=5) for block in blocks]
    merged = reduce(lambda left, right: left.merge(right, most), parts)
    whole = draw(IMAGES, 3, most, 4, seed=5)

    assert np.array_equal(merged.numbers, whole.numbers)
    assert np.array_equal(merged.patches, whole.patches)


def test_patches_are_of_the_images_and_of_all_places() -> None:
    drawn = draw(IMAGES, 3, 300, 40, seed=0)
    known = {row.tobytes() for row in patches_of(IMAGES, 3).reshape(-1, 18)}
    found = {row.tobytes() for row in drawn.patches.reshape(-1, 18)}

    assert found <= known
    # 300 images have 30 places each; 40 draws of each leave (29 / 30)^40 of them out
    assert len(found) / len(known) == pytest.approx(1 - (29 / 30) ** 40, abs=0.03)


def test_which_images_are_drawn_depends_on_the_seed_and_not_on_the_type() -> None:
    integers = RNG.integers(0, 255, (50, 5, 5, 1))
    numbers = fingerprints(integers.astype(np.float32), 3)

    assert len(np.unique(numbers)) == 50
    assert np.array_equal(numbers, fingerprints(integers.astype(np.float64), 3))
    assert not np.array_equal(numbers, fingerprints(integers.astype(np.float64), 4))


@pytest.mark.parametrize("chunk", [900, 2500])
def test_several_blocks_learn_what_one_learns(chunk: int) -> None:
    images = RNG.normal(size=(5000, 6, 6)).astype(np.float32)
    steps = [clone(FEW), Pooler(2, 2), ImageVectorizer()]
    whole = clone(FEW).fit(images)
    environment.clear()
    pipe = mlopt.make_pipeline(*steps).fit(da.from_array(images, (chunk, 6, 6)))

    assert "patches by block" in str(pipe.plan_)
    assert np.allclose(pipe[0].filters_, whole.filters_, atol=1e-5)
    expected = Pooler(2, 2).transform(whole.transform(images)).reshape(5000, -1)
    assert np.allclose(pipe.transform(images), expected, atol=1e-3)


def test_what_cannot_be_learnt_is_refused() -> None:
    with pytest.raises(InputError, match=r"`size` must lie in 1 \.\.\. 7"):
        LearnedConvolver(5, 9).fit(IMAGES)
    with pytest.raises(InputError, match="at most the number of patches, 16 here"):
        LearnedConvolver(50, 3).fit(IMAGES[:2])
    with pytest.raises(InputError, match="`learn` must be one of 'kmeans', 'patches'"):
        clone(FEW).set_params(learn="magic").fit(IMAGES)
    with pytest.raises(InputError, match="must have 2 channels, got 1"):
        clone(FEW).fit(IMAGES).transform(IMAGES[..., :1])
    with pytest.raises(NotFittedError):
        LearnedConvolver().transform(IMAGES)
