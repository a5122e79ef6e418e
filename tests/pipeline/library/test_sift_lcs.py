"""SIFT and LCS of batches, beside the same in plain loops over pixels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter

from mlopt.errors import InputError
from mlopt.pipeline.library.image import LCS, SIFT
from mlopt.pipeline.library.image.arrays import by_panel

RNG = np.random.default_rng(0)
IMAGES = RNG.random((2, 21, 19))


def sift_by_hand(image: Any, top: int, left: int, size: int, contrast: float) -> Any:
    """One descriptor, pixel by pixel; ``top`` and ``left`` are those of its first bin."""
    height, width = image.shape
    smooth = gaussian_filter(image, size / 6.0, mode="nearest")
    found = np.zeros((4, 4, 8))
    for row in range(4):
        for column in range(4):
            weight = window_by_hand(row, size) * window_by_hand(column, size)
            for y in range(1 - size, size):
                for x in range(1 - size, size):
                    inside = (1 - abs(y) / size) * (1 - abs(x) / size) / size**2
                    i = min(max(top + row * size + y, 0), height - 1)
                    j = min(max(left + column * size + x, 0), width - 1)
                    down, across = slope(smooth[:, j], i), slope(smooth[i], j)
                    turn = np.arctan2(down, across) / (2 * np.pi) * 8 % 8
                    strength = weight * inside * np.sqrt(down**2 + across**2)
                    low = int(turn)
                    found[row, column, low % 8] += strength * (1 - (turn - low))
                    found[row, column, (low + 1) % 8] += strength * (turn - low)
    length = np.linalg.norm(found)
    if length <= contrast:
        return np.zeros(128)
    clipped = np.minimum(found / length, 0.2)
    return (clipped / np.linalg.norm(clipped)).ravel()


def slope(line: Any, at: int) -> float:
    before, after = max(at - 1, 0), min(at + 1, len(line) - 1)
    return float((line[after] - line[before]) / (after - before))


def window_by_hand(number: int, size: int) -> float:
    values = [
        np.exp(-0.5 * (((number - 1.5) * size + x) / (2 * size)) ** 2)
        for x in range(1 - size, size)
    ]
    return float(np.mean(values))


def test_every_descriptor_is_what_loops_over_pixels_give() -> None:
    found = SIFT(step=4, bin_size=3, contrast=0.0).transform(IMAGES)
    tops, lefts = range(0, 21 - 9, 4), range(0, 19 - 9, 4)

    assert found.shape == (2, 9, 128)
    for number, image in enumerate(IMAGES):
        by_hand = [sift_by_hand(image, t, s, 3, 0.0) for t in tops for s in lefts]
        np.testing.assert_allclose(found[number], by_hand, atol=1e-10)


def test_scales_have_larger_bins_on_grids_that_begin_at_one_point() -> None:
    sift = SIFT(step=3, bin_size=2, scales=3, scale_step=1, contrast=0.0)
    found, centres = sift.transform(IMAGES), sift.centres(21, 19)
    counts = [len(range(6, 15, 3)) * len(range(6, 13, 3)),
              len(range(3, 9, 4)) * len(range(3, 7, 4)),
              len(range(0, 3, 5)) * len(range(0, 1, 5))]  # fmt: skip

    assert found.shape == (2, sum(counts), 128)
    assert len(centres) == sum(counts)
    firsts = np.cumsum([0, *counts])[:-1]
    for number, first in enumerate(firsts):
        size, top = 2 + 2 * number, 6 - 3 * number
        assert centres[first].tolist() == [9.0, 9.0]
        by_hand = sift_by_hand(IMAGES[1], top, top, size, 0.0)
        np.testing.assert_allclose(found[1, first], by_hand, atol=1e-10)


def test_descriptors_have_length_one_and_flat_images_have_none() -> None:
    images = IMAGES.copy()
    images[1] = 0.5 + 1e-4 * images[1]
    found = SIFT().transform(images)

    np.testing.assert_allclose(np.linalg.norm(found[0], axis=1), 1.0)
    assert not found[1].any()
    seen = SIFT(contrast=0.0).transform(images)[1]
    np.testing.assert_allclose(np.linalg.norm(seen, axis=1), 1.0)


def test_brighter_images_have_the_same_descriptors() -> None:
    sift = SIFT(contrast=0.0)
    np.testing.assert_allclose(
        sift.transform(IMAGES), sift.transform(3 * IMAGES + 5), atol=1e-12
    )


def test_a_quarter_turn_moves_bins_and_orientations() -> None:
    square = RNG.random((1, 19, 19))
    sift = SIFT(step=1, bin_size=6, contrast=0.0)
    plain = sift.transform(square).reshape(4, 4, 8)
    turned = sift.transform(np.rot90(square, 1, (1, 2))).reshape(4, 4, 8)

    # what pointed right points up, which is down by -1: two orientations less
    moved = np.roll(np.rot90(plain, 1), -2, axis=2)
    np.testing.assert_allclose(turned, moved, atol=1e-10)


def lcs_by_hand(image: Any, top: int, left: int, size: int) -> list[float]:
    found = []
    for channel in range(image.shape[2]):
        for row in range(4):
            for column in range(4):
                y, x = top + row * size, left + column * size
                patch = image[y : y + size, x : x + size, channel]
                found += [patch.mean(), patch.std()]
    return found


@pytest.mark.slow
@settings(deadline=None, max_examples=10)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(0, 3), st.integers(1, 3))
def test_colours_are_those_of_every_patch(
    size: int, step: int, margin: int, channels: int
) -> None:
    images = RNG.normal(50.0, 3.0, (2, 25, 23, channels))
    found = LCS(step, size, margin).transform(images)
    tops = range(margin, 25 - margin - 4 * size + 1, step)
    lefts = range(margin, 23 - margin - 4 * size + 1, step)

    assert found.shape == (2, len(tops) * len(lefts), 32 * channels)
    by_hand = [lcs_by_hand(images[1], t, s, size) for t in tops for s in lefts]
    # A patch of one pixel has no deviation; its square loses half of the digits.
    np.testing.assert_allclose(found[1], by_hand, atol=1e-5)


def test_colours_far_from_zero_lose_no_digits() -> None:
    small = RNG.normal(size=(1, 16, 16, 1))
    far = (small + 1000.0).astype(np.float32)
    found = LCS(4, 4).transform(far)[..., 1::2]

    assert found.dtype == np.float32
    exact = LCS(4, 4).transform(far.astype(np.float64))[..., 1::2]
    np.testing.assert_allclose(found, exact, rtol=1e-6)


@pytest.mark.parametrize("step", [SIFT(2, 3), LCS(3, 3)], ids=["SIFT", "LCS"])
def test_float32_stays(step: Any) -> None:
    exact, rough = step.transform(IMAGES), step.transform(IMAGES.astype(np.float32))

    assert exact.dtype == np.float64
    assert rough.dtype == np.float32
    assert np.abs(rough - exact).max() < 1e-4


@pytest.mark.parametrize("step", [SIFT(2, 3, 2), LCS(3, 3)], ids=["SIFT", "LCS"])
def test_images_go_by_themselves(step: Any) -> None:
    parts = [step.transform(IMAGES[:1]), step.transform(IMAGES[1:])]
    np.testing.assert_allclose(step.transform(IMAGES), np.concatenate(parts), atol=1e-12)


def test_panels_are_as_large_as_said() -> None:
    seen: list[int] = []

    def count(images: Any) -> Any:
        seen.append(len(images))
        return images.sum(axis=(1, 2))

    images = RNG.random((7, 2, 3))
    found = by_panel(count, images, each=10, panel=30)

    assert seen == [3, 3, 1]
    np.testing.assert_array_equal(found, images.sum(axis=(1, 2)))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match=r"must have 19 pixels .* got 10 x 10"):
        SIFT(bin_size=4, scales=2).transform(IMAGES[:, :10, :10])
    with pytest.raises(InputError, match="put `GrayScaler` in front"):
        SIFT().transform(RNG.random((2, 20, 20, 3)))
    with pytest.raises(InputError, match="must have 28 pixels on each side"):
        LCS(size=6, margin=2).transform(IMAGES)
    with pytest.raises(InputError, match="`scale_step` must be an integer of at least 0"):
        SIFT(scale_step=0.5).transform(IMAGES)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="`step` must be an integer of at least 1"):
        SIFT(step=0).transform(IMAGES)
