"""Images from files, a folder a class. Needs Pillow: the extra ``images``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mlopt.errors import InputError
from mlopt.readers.folders import labelled_files
from mlopt.readers.lazily import in_blocks

SUFFIXES = frozenset(
    {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".pgm", ".ppm", ".webp"}
)
_MODES = {1: "L", 3: "RGB"}


def read_images(
    folder: str | Path, *, channels: int = 3, block_rows: int | None = None
) -> tuple[Any, np.ndarray]:
    """(X, y): images, and the names of the folders that they stand in.

    Parameters
    ----------
    folder : str or Path
        With a folder for each class.
    channels : {1, 3}
        Grey, or red, green and blue; images are converted, of 16 bits the upper 8 stay.
    block_rows : int, optional
        Give a dask array whose blocks of so many images are read when they are needed.

    Returns
    -------
    X : ndarray or dask array of uint8, shape (n, height, width, channels)
    y : ndarray of str, shape (n,)

    Raises
    ------
    InputError
        When there are none, one cannot be read, or they differ in size: it is named.
    ImportError
        Without Pillow.
    """
    if channels not in _MODES:
        raise InputError(f"`channels` must be 1 or 3, got {channels!r}.")
    files, labels = labelled_files(folder, SUFFIXES)
    first = _pixels(files[0], channels)
    shape = (len(files), *first.shape)
    read = partial(_stacked, files, first.shape)
    return in_blocks(read, shape, np.dtype(np.uint8), block_rows), labels


def _stacked(
    files: list[Path], shape: tuple[int, ...], start: int, stop: int
) -> np.ndarray:
    out = np.empty((stop - start, *shape), np.uint8)
    for number, file in enumerate(files[start:stop]):
        image = _pixels(file, shape[2])
        if image.shape != shape:
            raise InputError(
                f"Images must be of one size, but `{files[0]}` has {_size(shape)} pixels "
                f"and `{file}` {_size(image.shape)}: crop or scale them."
            )
        out[number] = image
    return out


def _of_bytes(image: Any, file: Path) -> Any:
    """An image of a byte a channel; Pillow makes all above 255 white, whatever is."""
    from PIL import Image

    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if image.mode in ("I", "F"):
        least, most = image.getextrema()
        if not 0 <= least <= most <= 255:
            raise InputError(
                f"`{file}` must hold grey or colours of 8 or 16 bits, but its values are "
                f"{least:g} ... {most:g}: scale them to 0 ... 255."
            )
    return image


def _size(shape: tuple[int, ...]) -> str:
    return f"{shape[1]} x {shape[0]}"


def _pixels(file: Path, channels: int) -> np.ndarray:
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError as error:
        raise ImportError(
            "Reading images needs Pillow: install it with `pip install 'mlopt[images]'`."
        ) from error
    try:
        with Image.open(file) as image:
            pixels = np.asarray(_of_bytes(image, file).convert(_MODES[channels]))
    except (UnidentifiedImageError, OSError, SyntaxError) as error:
        raise InputError(
            f"`{file}`, of {file.stat().st_size} bytes, cannot be read as an image: "
            f"{error}."
        ) from error
    return pixels.reshape(*pixels.shape[:2], channels)
