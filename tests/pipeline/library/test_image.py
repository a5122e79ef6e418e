"""Image operators, each against what it should do by hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import correlate

from mlopt.costs import Cost
from mlopt.errors import InputError
from mlopt.pipeline.library.image import (
    HOG,
    LCS,
    SIFT,
    CenterCornerPatcher,
    Convolver,
    Cropper,
    Daisy,
    Flipper,
    GrayScaler,
    ImageVectorizer,
    PatchExtractor,
    PixelScaler,
    Pooler,
    SymmetricRectifier,
    Windower,
    ZCAWhitener,
    repeat_labels,
)
from mlopt.pipeline.library.image.convolution_plan import Sizes, costs
from mlopt.resources import Resources

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(3, 9, 8, 2))


def test_bytes_become_fractions() -> None:
    scaled = PixelScaler().transform(np.array([[[0, 255], [51, 102]]], np.uint8))

    assert scaled.shape == (1, 2, 2, 1)
    assert np.allclose(scaled.ravel(), [0, 1, 0.2, 0.4])


def test_grey_is_as_bright_as_it_looks() -> None:
    image = np.array([[[[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]]])

    assert np.allclose(GrayScaler().transform(image).ravel(), [0.299, 1.0])


def test_cropping_takes_a_rectangle() -> None:
    assert np.array_equal(Cropper(1, 2, 4, 7).transform(IMAGES), IMAGES[:, 1:4, 2:7])
    with pytest.raises(InputError, match="must lie within images of 9 x 8"):
        Cropper(0, 0, 10, 8).transform(IMAGES)


def test_rectifying_keeps_both_signs() -> None:
    found = SymmetricRectifier(alpha=0.5).transform(np.array([[[[2.0], [-1.0]]]]))

    assert found.reshape(2, 2).tolist() == [[1.5, 0.0], [0.0, 0.5]]


@pytest.mark.parametrize("pool", ["sum", "mean", "max"])
def test_pooling_a_window_at_a_time(pool: str) -> None:
    found = Pooler(3, 2, pool, "abs").transform(IMAGES)

    assert found.shape == (3, 4, 3, 2)
    window = np.abs(IMAGES[1, 2:5, 4:7, 1])
    assert found[1, 1, 2, 1] == pytest.approx(getattr(window, pool)())


def test_vectors_windows_and_mirrors() -> None:
    assert ImageVectorizer().transform(IMAGES).shape == (3, 144)
    windows = Windower(4, 2).transform(IMAGES)
    assert windows.shape == (3, 9, 4, 4, 2)
    assert np.array_equal(windows[0, 1], IMAGES[0, 0:4, 2:6])
    both = Flipper().transform(IMAGES)
    assert np.array_equal(both[1], IMAGES[0, :, ::-1])
    assert repeat_labels([5, 7], 2).tolist() == [5, 5, 7, 7]


def test_the_centre_and_the_corners() -> None:
    found = CenterCornerPatcher(4, flip=True).transform(IMAGES)

    assert found.shape == (3, 10, 4, 4, 2)
    assert np.array_equal(found[:, 3], IMAGES[:, 5:, 4:])
    assert np.array_equal(found[:, 8], IMAGES[:, 5:, 4:][:, :, ::-1])


def test_random_patches_are_of_the_images_and_the_same_for_a_seed() -> None:
    first, again = (PatchExtractor(3, 20, random_state=1).sample(IMAGES) for _ in range(2))

    assert first.shape == (20, 18)
    assert np.array_equal(first, again)
    known = {patch.tobytes() for image in Windower(3).transform(IMAGES) for patch in image}
    assert all(row.reshape(3, 3, 2).tobytes() in known for row in first)


def test_patches_of_no_images_are_refused() -> None:
    with pytest.raises(InputError, match="an image at least"):
        PatchExtractor(3, 20).sample(IMAGES[:0])
    with pytest.raises(InputError, match="`n_patches` must be an integer"):
        PatchExtractor(3, 0).sample(IMAGES)


@pytest.mark.parametrize(
    "step",
    [
        CenterCornerPatcher(3),
        Convolver(IMAGES[:2, :3, :3]),
        Daisy(radius=3),
        HOG(cell=4, block=2),
        ImageVectorizer(),
        LCS(size=2),
        Pooler(3, 2),
        SIFT(bin_size=2),
        Windower(3),
    ],
)
def test_no_images_give_no_rows_of_the_same_shape(step: Any) -> None:
    images = IMAGES if isinstance(step, Convolver) else IMAGES[..., :1]

    assert step.transform(images[:0]).shape == (0, *step.transform(images).shape[1:])


@pytest.mark.parametrize("dtype", [np.float16, ">f4", ">f8", np.longdouble])
def test_images_are_of_any_type_of_floats(dtype: Any) -> None:
    images = IMAGES.astype(dtype)
    single = images.astype(np.float64 if images.itemsize > 4 else np.float32)

    for step in (Pooler(3, 2, "max"), SymmetricRectifier(0.1), PixelScaler(), LCS(size=2)):
        found, expected = step.transform(images), step.transform(single)
        assert found.dtype == expected.dtype
        assert np.array_equal(found, expected)


def test_complex_images_and_filters_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="must hold real numbers"):
        PixelScaler().transform(IMAGES * 1j)
    with pytest.raises(InputError, match="`filters` must be finite"):
        Convolver(np.full((2, 3, 3, 2), np.nan)).transform(IMAGES)


def test_whitening_takes_the_columns_that_it_has_learnt() -> None:
    X = pd.DataFrame(RNG.normal(size=(9, 3)), columns=["a", "b", "c"])
    white = ZCAWhitener().fit(X)

    with pytest.raises(ValueError, match="expecting 3 features"):
        ZCAWhitener().fit(X.to_numpy()).transform(X.to_numpy()[:, :2])
    with pytest.raises(ValueError, match="feature names"):
        white.transform(X[["b", "a", "c"]])
    with pytest.raises(InputError, match="`eps` must be"):
        ZCAWhitener(-1.0).fit(X)


def test_whitened_rows_are_not_correlated() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(5000, 6)) @ random.normal(size=(6, 6))
    white = ZCAWhitener(eps=1e-9).fit_transform(X)

    assert np.allclose(np.cov(white.T), np.eye(6), atol=1e-6)


def outer_products(b: int, k: int, channels: int) -> Any:
    parts = RNG.normal(size=(b, k)), RNG.normal(size=(b, k)), RNG.normal(size=channels)
    return np.einsum("bi,bj,c->bijc", *parts)


def by_hand(images: Any, bank: Any) -> Any:
    images = images.astype(np.float64)  # of two types, SciPy casts what it never wrote
    out = [
        [
            sum(correlate(i[..., c], f[..., c], "valid") for c in range(i.shape[-1]))
            for f in bank
        ]
        for i in images
    ]
    return np.moveaxis(np.array(out), 1, 3)


@settings(deadline=None, max_examples=30)
@given(
    st.integers(1, 5),
    st.integers(1, 3),
    st.integers(1, 3),
    st.sampled_from(["separable", "matrix", "fft", "auto"]),
    st.sampled_from([np.float32, np.float64]),
)
def test_all_ways_of_convolving_agree(
    k: int, b: int, channels: int, way: str, dtype: Any
) -> None:
    images = RNG.normal(size=(2, 7, 6, channels)).astype(dtype)
    bank = outer_products(b, k, channels)
    found = Convolver(bank, solver=way).transform(images)

    assert found.dtype == dtype
    exact = 1e-4 if dtype == np.float32 else 1e-10
    assert np.allclose(found, by_hand(images, bank), atol=exact)


@pytest.mark.parametrize("way", ["separable", "matrix", "fft", "auto"])
def test_half_precision_and_views_are_convolved_too(way: str) -> None:
    bank = outer_products(20, 3, 2)
    whole = RNG.normal(size=(4, 12, 9, 2)).astype(np.float16)
    whole.setflags(write=False)
    images = whole[::2, 1:, ::-1]
    found = Convolver(bank, solver=way).transform(images)

    assert found.dtype == np.float32
    assert np.allclose(found, by_hand(images, bank), atol=1e-3)


def test_filters_of_any_rank_cannot_be_separable() -> None:
    bank = RNG.normal(size=(2, 3, 3, 2))

    with pytest.raises(InputError, match="outer products"):
        Convolver(bank, solver="separable").transform(IMAGES)
    found = Convolver(bank).transform(IMAGES)
    assert np.allclose(found, by_hand(IMAGES, bank))


def test_patches_may_be_normalized_first() -> None:
    bank = RNG.normal(size=(2, 3, 3, 2))
    found = Convolver(bank, normalize=True, variance=10.0).transform(IMAGES)
    patch = IMAGES[0, 2:5, 1:4].ravel()
    patch = (patch - patch.mean()) / np.sqrt(patch.var(ddof=1) + 10.0)

    assert found[0, 2, 1, 1] == pytest.approx(patch @ bank[1].ravel())


def test_transforms_cost_the_same_for_every_side_of_the_filters() -> None:
    def priced(k: int) -> Mapping[str, Cost | str]:
        return costs(Sizes(10, 256, 256, 3, 50, k, True), Resources())

    assert priced(3)["fft"] == priced(30)["fft"]
    seconds = [
        found.seconds(Resources())
        for found in (priced(3)["matrix"], priced(30)["matrix"])
        if isinstance(found, Cost)
    ]
    assert seconds[1] > 20 * seconds[0]


def test_the_cheapest_way_is_taken() -> None:
    convolver = Convolver(np.zeros((50, 3, 3, 3)))

    assert convolver.choose(Sizes(1, 256, 256, 3, 50, 3, False)) == "matrix"
    assert convolver.choose(Sizes(1, 256, 256, 3, 50, 30, False)) == "fft"


def test_rows_of_pixels_are_no_images() -> None:
    with pytest.raises(InputError, match="must hold images"):
        PixelScaler().transform(np.zeros((3, 4)))
