"""Random changes of images: parts of them, the same for a seed whatever the blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mlopt.errors import InputError
from mlopt.pipeline.library.evaluators import vote
from mlopt.pipeline.library.image import (
    RandomImageTransformer,
    RandomPatcher,
    repeat_labels,
)

IMAGES = np.random.default_rng(0).random((40, 9, 7, 2))


def parts_of(image: Any, size: int) -> set[bytes]:
    """All squares of an image, and their mirror images."""
    rows, columns = (side - size + 1 for side in image.shape[:2])
    squares = [
        image[t : t + size, s : s + size] for t in range(rows) for s in range(columns)
    ]
    return {one.tobytes() for q in squares for one in (q, q[:, ::-1].copy())}


def test_what_comes_out_is_part_of_the_same_image() -> None:
    found = RandomImageTransformer(size=5, random_state=0).transform(IMAGES)
    patches = RandomPatcher(3, 4, random_state=0).transform(IMAGES)

    assert found.shape == (40, 5, 5, 2)
    assert patches.shape == (40, 3, 4, 4, 2)
    for number, image in enumerate(IMAGES):
        assert found[number].tobytes() in parts_of(image, 5)
        assert {one.tobytes() for one in patches[number]} <= parts_of(image, 4)


def test_so_many_are_mirrored() -> None:
    never = RandomImageTransformer(chance=0.0, random_state=0).transform(IMAGES)
    always = RandomImageTransformer(chance=1.0, random_state=0).transform(IMAGES)
    some = RandomImageTransformer(chance=0.3, random_state=0).transform(IMAGES)

    np.testing.assert_array_equal(never, IMAGES)
    np.testing.assert_array_equal(always, IMAGES[:, :, ::-1])
    mirrored = (some == always).all(axis=(1, 2, 3)).mean()
    assert 0.1 < mirrored < 0.55


@pytest.mark.parametrize(
    "step", [RandomImageTransformer(size=4, random_state=3), RandomPatcher(2, 4, 3)]
)
def test_the_draw_is_that_of_the_image_in_any_block(step: Any) -> None:
    whole = step.transform(IMAGES)
    blocks = [step.transform(IMAGES[start : start + 7]) for start in range(0, 40, 7)]
    other = type(step)(**{**step.get_params(), "random_state": 4}).transform(IMAGES)

    np.testing.assert_array_equal(whole, np.concatenate(blocks))
    assert not np.array_equal(whole, other)


def test_without_a_seed_images_would_change_from_pass_to_pass() -> None:
    with pytest.raises(InputError, match="`random_state` must be an integer"):
        RandomPatcher(2, 3, None).transform(IMAGES)  # type: ignore[arg-type]


def test_scores_of_patches_become_one_again() -> None:
    patches = RandomPatcher(4, 3, random_state=0).transform(IMAGES)
    rows = patches.reshape(-1, 3, 3, 2)
    numbers = repeat_labels(np.arange(40), 4)
    scores = np.stack([rows.mean(axis=(1, 2, 3)), rows.max(axis=(1, 2, 3))], axis=1)
    known, voted = vote(scores, numbers)

    np.testing.assert_array_equal(known, np.arange(40))
    np.testing.assert_allclose(voted[7], scores[28:32].mean(axis=0))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match=r"`size` must lie in 1 \.\.\. 7, got 8"):
        RandomPatcher(2, 8).transform(IMAGES)
    with pytest.raises(InputError, match=r"`size` must lie in 1 \.\.\. 7, got 8"):
        RandomImageTransformer(size=8).transform(IMAGES)
    with pytest.raises(InputError, match=r"`chance` must lie in 0 \.\.\. 1, got 1\.5"):
        RandomImageTransformer(chance=1.5).transform(IMAGES)
    with pytest.raises(InputError, match="`n_patches` must be an integer"):
        RandomPatcher(0, 3).transform(IMAGES)
