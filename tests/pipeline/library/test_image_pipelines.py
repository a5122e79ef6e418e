"""Operators on images and descriptors in planned pipelines of several blocks."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline, make_union

import mlopt
from mlopt.errors import InputError
from mlopt.pipeline.environment import environment
from mlopt.pipeline.fits.base import ManyPasses
from mlopt.pipeline.fits.few import Few
from mlopt.pipeline.fits.models.descriptors import DESCRIPTORS
from mlopt.pipeline.fits.registry import ways_of
from mlopt.pipeline.library.column_pca import ColumnPCA
from mlopt.pipeline.library.fisher import FisherVector
from mlopt.pipeline.library.image import (
    HOG,
    LCS,
    SIFT,
    Daisy,
    GrayScaler,
    RandomImageTransformer,
    RandomPatcher,
)
from mlopt.pipeline.library.mixture import GaussianMixture
from mlopt.pipeline.library.signal import NormalizeRows, SignedHellinger
from mlopt.pipeline.steps.kinds import is_row_wise
from mlopt.resources import Resources
from mlopt.stats import Stats

RNG = np.random.default_rng(0)
IMAGES = RNG.random((60, 17, 16, 1))
LABELS = np.arange(60) % 3
IMAGES[LABELS == 1, :, 4:8] += 1.0
IMAGES[LABELS == 2, 4:8] += 1.0
DESCRIPTORS_OF_60 = RNG.normal(size=(60, 7, 5)) * [1, 2, 3, 4, 5]
SIZES = (13, 20, 1, 26)

OF_IMAGES = [
    HOG(4, 4, 2), Daisy(3, 5, 2, 4, 4), SIFT(3, 3, 2), LCS(3, 3),
    RandomImageTransformer(size=10, random_state=0), RandomPatcher(2, 6, random_state=0),
]  # fmt: skip
OF_DESCRIPTORS = [
    ColumnPCA(2, random_state=0), ColumnPCA(2, n_samples=50, random_state=0),
    FisherVector(3, random_state=0, max_iter=10),
    FisherVector(3, n_samples=50, random_state=0, solver="images", max_iter=10),
    GaussianMixture(3, random_state=0, max_iter=10),
]  # fmt: skip


def lazily(X: Any) -> Any:
    """In four blocks, of unequal lengths."""
    return da.from_array(X, chunks=(SIZES, *X.shape[1:]))


@pytest.fixture(autouse=True)
def _forget() -> None:
    environment.clear()


def name(step: Any) -> str:
    return type(step).__name__


@pytest.mark.parametrize("step", OF_IMAGES, ids=name)
def test_blocks_of_images_give_what_all_images_give(step: Any) -> None:
    assert is_row_wise(step)
    pipe = mlopt.make_pipeline(clone(step))
    found = pipe.fit(lazily(IMAGES)).transform(lazily(IMAGES)).compute()

    np.testing.assert_allclose(found, clone(step).fit_transform(IMAGES), atol=1e-12)


@pytest.mark.parametrize("step", OF_DESCRIPTORS, ids=name)
@pytest.mark.parametrize("budget", [0, "1GiB"])
def test_blocks_of_descriptors_give_what_all_descriptors_give(
    step: Any, budget: Any
) -> None:
    X = DESCRIPTORS_OF_60
    pipe = mlopt.Pipeline([("learn", clone(step))], memory_budget=budget).fit(lazily(X))
    theirs = clone(step).fit(X)

    found = pipe.transform(lazily(X)).compute()
    np.testing.assert_allclose(found, theirs.transform(X), rtol=1e-7, atol=1e-9)
    assert pipe[-1].n_features_in_ == 5


@pytest.mark.parametrize("step", OF_DESCRIPTORS, ids=name)
def test_they_are_learnt_block_by_block(step: Any) -> None:
    (way,) = ways_of(step)
    assert way in DESCRIPTORS
    pipe = mlopt.make_pipeline(clone(step)).fit(lazily(DESCRIPTORS_OF_60))

    assert way.name in pipe.plan_.explain()


def test_a_mixture_of_plain_rows_knows_their_names() -> None:
    table = pd.DataFrame(RNG.normal(size=(6000, 3)), columns=["a", "b", "c"])
    step = GaussianMixture(2, random_state=0)
    pipe = mlopt.make_pipeline(clone(step)).fit(table)

    assert pipe[-1].feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_allclose(pipe[-1].means_, step.fit(table).means_, rtol=1e-8)


def test_from_pixels_to_labels_as_scikit_learn_would() -> None:
    steps = [
        SIFT(3, 3), ColumnPCA(10, random_state=0), FisherVector(3, random_state=0),
        SignedHellinger(), NormalizeRows(), NearestCentroid(),
    ]  # fmt: skip
    ours = mlopt.make_pipeline(*map(clone, steps)).fit(lazily(IMAGES), lazily(LABELS))
    theirs = make_pipeline(*map(clone, steps)).fit(IMAGES, LABELS)

    assert theirs.score(IMAGES, LABELS) == 1.0
    found = ours.predict(lazily(IMAGES)).compute()
    np.testing.assert_array_equal(found, theirs.predict(IMAGES))
    np.testing.assert_allclose(
        ours[2].mixture_.means_, theirs[2].mixture_.means_, rtol=1e-6, atol=1e-9
    )


def test_edges_and_colours_side_by_side() -> None:
    colours = RNG.random((60, 16, 16, 3))
    edges = make_pipeline(GrayScaler(), SIFT(4, 3), FisherVector(2, random_state=0))
    few = ColumnPCA(8, random_state=0)
    places = make_pipeline(LCS(4, 3), few, FisherVector(2, random_state=0))
    steps = [make_union(edges, places), SignedHellinger(), NormalizeRows()]
    ours = mlopt.make_pipeline(*map(clone, steps)).fit(lazily(colours))
    theirs = make_pipeline(*map(clone, steps)).fit(colours)

    found = ours.transform(lazily(colours)).compute()
    assert found.shape == (60, 2 * 2 * (128 + 8))
    np.testing.assert_allclose(found, theirs.transform(colours), rtol=1e-5, atol=1e-7)


def test_many_small_images_in_memory_go_in_blocks() -> None:
    many = np.tile(DESCRIPTORS_OF_60, (90, 1, 1))
    step = FisherVector(2, n_samples=500, random_state=0, max_iter=5)
    ours = mlopt.make_pipeline(clone(step)).fit(many)

    np.testing.assert_allclose(
        ours.transform(many), step.fit(many).transform(many), rtol=1e-7, atol=1e-9
    )


def test_rows_of_pixels_are_no_descriptors_in_any_block() -> None:
    flat = da.from_array(DESCRIPTORS_OF_60.reshape(60, -1), chunks=(20, 35))
    with pytest.raises(InputError, match="descriptors of each image"):
        mlopt.make_pipeline(FisherVector(2), NormalizeRows()).fit(flat)


def test_other_models_still_take_no_images() -> None:
    with pytest.raises(ValueError, match=r"must be 2-D|dim 3"):
        mlopt.make_pipeline(KMeans(2, n_init=1)).fit(lazily(DESCRIPTORS_OF_60))


@pytest.mark.parametrize("step", OF_DESCRIPTORS, ids=name)
def test_more_descriptors_cost_more_and_sparse_ones_are_refused(step: Any) -> None:
    (way,) = ways_of(step)
    machine = Resources()
    seconds = []
    for rows in (10_000, 100_000):
        # 20 descriptors of 64 float32 numbers each
        cost = way.cost(step, Stats(rows, 20, dtype="float32", bytes=rows * 5120), machine)
        assert cost is not None
        seconds.append(cost.seconds(machine))
    assert seconds[1] > 1.05 * seconds[0]
    refused = way.refuses(step, Stats(10, 20, sparse=True))
    assert "must be dense" in refused


def test_iterations_on_a_sample_foretell_those_on_all_rows() -> None:
    centres = 4 * RNG.normal(size=(3, 5))
    X = centres[RNG.integers(3, size=4000)] + RNG.normal(size=(4000, 5))
    step = GaussianMixture(3, random_state=0)
    (way,) = ways_of(step)
    assert isinstance(way, ManyPasses)
    guess = way.speculate(step, Few(X[:400], None), Stats(4000, X.shape[1]))
    taken = step.fit(X).n_iter_ + 3

    assert guess is not None
    assert taken / 2 <= guess[0] <= 2 * taken
    few, many = (
        way.cost(step, Stats(4000, 5), Resources(), passes) for passes in (10.0, 20.0)
    )
    assert few is not None
    assert many is not None
    assert many.seconds(Resources()) == pytest.approx(2 * few.seconds(Resources()))
