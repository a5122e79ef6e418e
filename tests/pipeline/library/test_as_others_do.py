"""Operators of images and signals do what their siblings do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mlopt.caching.graph import Graph, Node
from mlopt.errors import InputError
from mlopt.pipeline.library.image.augment import RandomImageTransformer
from mlopt.pipeline.library.image.convolution import Convolver
from mlopt.pipeline.library.image.patches import ZCAWhitener
from mlopt.pipeline.library.learning.block_fit import work_to_come
from mlopt.pipeline.library.learning.block_least_squares import BlockLeastSquares
from mlopt.pipeline.library.signal import ColumnSampler, PaddedFFT, RandomSign
from mlopt.stats import Stats

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(40, 5))


@pytest.mark.parametrize("step", [RandomSign(0), PaddedFFT(), ZCAWhitener()])
def test_they_give_frames_where_these_are_asked_for(step: Any) -> None:
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = make_pipeline(StandardScaler(), step).set_output(transform="pandas")
    found = model.fit_transform(frame)
    assert list(found) == model.get_feature_names_out().tolist()
    plain = make_pipeline(StandardScaler(), clone(step)).fit_transform(X)
    np.testing.assert_allclose(found, plain)


def test_equal_pixels_are_changed_alike_whatever_their_type() -> None:
    images = RANDOM.integers(0, 255, (6, 9, 9, 3)).astype(np.uint8)
    change = RandomImageTransformer(size=5, random_state=0)
    expected = change.transform(images)
    for kind in (np.float32, np.float64):
        np.testing.assert_array_equal(change.transform(images.astype(kind)), expected)


def test_a_pixel_that_is_no_number_is_one_for_every_way() -> None:
    images, filters = RANDOM.random((2, 12, 12, 1)), RANDOM.random((3, 4, 4, 1))
    images[0, 0, 0, 0] = np.nan
    found, expected = (
        Convolver(filters, solver=solver).transform(images) for solver in ("fft", "matrix")
    )
    np.testing.assert_allclose(found, expected)
    assert np.isnan(expected).sum() == 3


def test_solvers_are_looked_at_with_normalize_too() -> None:
    images, filters = RANDOM.random((2, 12, 12, 1)), RANDOM.random((3, 4, 4, 1))
    for wrong in ("ftt", "fft"):
        with pytest.raises(InputError, match="`solver` must be 'auto' or one of"):
            Convolver(filters, solver=wrong, normalize=True).transform(images)
    half = Convolver(filters.astype(np.float16)).transform(images)
    np.testing.assert_allclose(half, Convolver(filters).transform(images), atol=0.1)


def test_parameters_are_checked_before_they_are_priced() -> None:
    model = BlockLeastSquares(block_size=0)
    with pytest.raises(InputError, match="`block_size`"):
        work_to_come(model, Stats(10**6, 30, 1))


def test_samples_are_of_rows_of_any_kind() -> None:
    sampler = ColumnSampler(7, random_state=0)
    expected = sampler.sample(X)
    np.testing.assert_array_equal(sampler.sample(sp.csr_array(X)).toarray(), expected)
    np.testing.assert_array_equal(sampler.sample(pd.DataFrame(X)), expected)
    np.testing.assert_array_equal(sampler.sample(X.tolist()), expected)


def test_wide_graphs_are_counted_along_their_paths() -> None:
    models = [Node(f"m{j}", 1.0, 8.0) for j in range(900)]
    applied = [Node(f"a{j}", 1.0, 8.0, inputs=(0, j)) for j in range(1, 900)]
    Graph((*models, *applied))
    passes = [
        Node(f"n{j}", 1.0, 8.0, weight=10**10, inputs=(j - 1,) if j else ())
        for j in range(40)
    ]
    with pytest.raises(InputError, match="multiply to more"):
        Graph(tuple(passes))
