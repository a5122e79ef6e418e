"""HOG and DAISY of batches, beside scikit-image's of one image at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from skimage.feature import daisy, hog

from mlopt.errors import InputError
from mlopt.pipeline.library.image import HOG, Daisy

IMAGES = np.random.default_rng(0).random((4, 33, 30, 3))
GRAY = IMAGES[..., :1]


@pytest.mark.parametrize("norm", ["L1", "L1-sqrt", "L2", "L2-Hys"])
@pytest.mark.parametrize(
    ("orientations", "cell", "block"), [(9, 8, 3), (5, 4, 2), (4, 5, 1)]
)
def test_hog_is_that_of_scikit_image(
    orientations: int, cell: int, block: int, norm: str
) -> None:
    found = HOG(orientations, cell, block, norm).transform(IMAGES)
    cells, blocks = (cell, cell), (block, block)
    theirs = [hog(i, orientations, cells, blocks, norm, channel_axis=2) for i in IMAGES]

    assert found.dtype == np.float64
    # scikit-image adds up magnitudes in float32
    np.testing.assert_allclose(found, theirs, atol=1e-6)


def test_an_edge_falls_in_its_own_bin() -> None:
    image = np.zeros((1, 8, 8))
    image[:, :, 4:] = 1.0
    found = HOG(orientations=4, cell=8, block=1, norm="L2").transform(image)

    np.testing.assert_allclose(found, [[1.0, 0.0, 0.0, 0.0]], atol=1e-3)
    turned = HOG(4, 8, 1, "L2").transform(image.transpose(0, 2, 1))
    np.testing.assert_allclose(turned, [[0.0, 0.0, 1.0, 0.0]], atol=1e-3)


@pytest.mark.parametrize("norm", ["l1", "l2", "daisy", "off"])
@pytest.mark.parametrize(
    ("step", "radius", "rings", "petals", "orientations"),
    [(4, 14, 3, 8, 8), (3, 6, 2, 5, 4)],
)
def test_daisy_is_that_of_scikit_image(
    step: int, radius: int, rings: int, petals: int, orientations: int, norm: str
) -> None:
    found = Daisy(step, radius, rings, petals, orientations, norm).transform(GRAY)
    settings = step, radius, rings, petals, orientations, norm
    theirs = np.stack([daisy(image[..., 0], *settings) for image in GRAY])

    assert found.dtype == np.float64
    rows, columns, size = theirs.shape[1:]
    assert found.shape == (4, rows * columns, size)
    np.testing.assert_allclose(found, theirs.reshape(found.shape), atol=1e-12)


@pytest.mark.parametrize("step", [HOG(cell=4), Daisy(radius=5)], ids=["HOG", "Daisy"])
def test_float32_stays_and_bytes_become_it(step: Any) -> None:
    exact = step.transform(GRAY)
    rough = step.transform(GRAY.astype(np.float32))

    assert rough.dtype == np.float32
    assert np.abs(rough - exact).max() < 1e-4
    assert step.transform((255 * GRAY).astype(np.uint8)).dtype == np.float32


@pytest.mark.parametrize("step", [HOG(cell=4), Daisy(radius=5)], ids=["HOG", "Daisy"])
def test_images_go_by_themselves(step: Any) -> None:
    whole = step.transform(GRAY)
    parts = np.concatenate([step.transform(GRAY[:1]), step.transform(GRAY[1:])])
    np.testing.assert_array_equal(whole, parts)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="3 x 3 cells of 12 pixels at least, got 33 x 30"):
        HOG(cell=12).transform(IMAGES)
    with pytest.raises(InputError, match="more than 30 pixels on each side"):
        Daisy().transform(GRAY)
    with pytest.raises(InputError, match="put `GrayScaler` in front"):
        Daisy(radius=5).transform(IMAGES)
    with pytest.raises(InputError, match="`norm` must be one of 'L1'"):
        HOG(norm="l2").transform(IMAGES)
    with pytest.raises(InputError, match="`norm` must be one of 'l1'"):
        Daisy(norm="L1").transform(GRAY)
    with pytest.raises(InputError, match="`orientations` must be an integer"):
        HOG(orientations=0).transform(IMAGES)
    with pytest.raises(InputError, match="must hold images"):
        HOG().transform(np.zeros((3, 4)))
