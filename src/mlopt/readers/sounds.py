"""Sound from WAV files: one file, or a folder a class."""

from __future__ import annotations

import io
import struct
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mlopt.errors import InputError
from mlopt.hearing import unheard
from mlopt.readers.files import File
from mlopt.readers.folders import labelled_files
from mlopt.readers.lazily import in_blocks


def read_wav(path: str | Path) -> tuple[np.ndarray, int]:
    """(samples, rate): what a WAV file holds.

    Returns
    -------
    samples : ndarray of float32, shape (n, channels)
        In -1 ... 1, whatever integers the file holds; floats as they are.
    rate : int
        Samples a second.

    Raises
    ------
    InputError
        When it is no WAV file, or ends before the bytes that it promises.
    """
    from scipy.io import wavfile

    file = File.at(str(path))
    with file.opened() as stream:
        content = stream.read()
    _check_chunks(file.path, content)
    try:
        with unheard(wavfile.WavFileWarning):  # of unknown chunks
            rate, samples = wavfile.read(io.BytesIO(content))
    except (ValueError, struct.error) as error:
        raise InputError(f"`{path}` cannot be read as WAV: {error}.") from error
    samples = _in_unit(samples)
    if not len(samples):
        raise InputError(f"`{path}` must hold samples, but has none.")
    return samples.reshape(len(samples), -1), int(rate)


def read_sounds(
    folder: str | Path, *, seconds: float, block_rows: int | None = None
) -> tuple[Any, np.ndarray]:
    """(X, y): sounds as rows of equal length, and the folders that they stand in.

    Parameters
    ----------
    folder : str or Path
        With a folder of WAV files for each class.
    seconds : float
        What is longer is cut, what is shorter ends in silence.
    block_rows : int, optional
        Give a dask array whose blocks of so many sounds are read when they are needed.

    Returns
    -------
    X : ndarray or dask array of float32, shape (n, samples)
        The mean of the channels.
    y : ndarray of str, shape (n,)

    Raises
    ------
    InputError
        When there are none, one cannot be read, or they differ in their rate.
    """
    files, labels = labelled_files(folder, (".wav", ".wave"))
    rate = read_wav(files[0])[1]
    length = round(seconds * rate)
    if length < 1:
        raise InputError(f"`seconds` must be one sample at least, got {seconds!r}.")
    read = partial(_stacked, files, rate, length)
    shape = (len(files), length)
    return in_blocks(read, shape, np.dtype(np.float32), block_rows), labels


def _stacked(
    files: list[Path], rate: int, length: int, start: int, stop: int
) -> np.ndarray:
    out = np.zeros((stop - start, length), np.float32)
    for row, file in zip(out, files[start:stop], strict=True):
        samples, own = read_wav(file)
        if own != rate:
            raise InputError(
                f"Sounds must have one rate, but `{files[0]}` has {rate} samples a second "
                f"and `{file}` {own}: resample them."
            )
        mono = samples[:length].mean(axis=1)
        row[: len(mono)] = mono
    return out


def _check_chunks(path: str, content: bytes) -> None:
    """A header, and a chunk of samples that is all there."""
    if content[:4] not in (b"RIFF", b"RIFX", b"RF64") or content[8:12] != b"WAVE":
        raise InputError(
            f"`{path}` must be a WAV file, which begins with RIFF and WAVE, but begins "
            f"with {content[:12]!r}."
        )
    order = ">" if content[:4] == b"RIFX" else "<"
    at = 12
    while at + 8 <= len(content):
        name = content[at : at + 4]
        (size,) = struct.unpack_from(f"{order}I", content, at + 4)
        there = len(content) - at - 8
        if name == b"data":
            if size > there and content[:4] != b"RF64":
                raise InputError(
                    f"`{path}` must hold {size} bytes of samples by its header, but holds "
                    f"{there}: it was not copied whole."
                )
            return
        at += 8 + size + size % 2
    raise InputError(f"`{path}`, of {len(content)} bytes, must hold samples, but has none.")


def _in_unit(samples: np.ndarray) -> np.ndarray:
    if samples.dtype.kind == "f":
        return samples.astype(np.float32)
    if samples.dtype == np.uint8:
        return (samples.astype(np.float32) - 128.0) / np.float32(128)
    # 24 bits come in the upper bytes of 32
    return (samples / -float(np.iinfo(samples.dtype).min)).astype(np.float32)
