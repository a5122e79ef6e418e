"""Images and sounds, a folder a class."""

from __future__ import annotations

import re
import struct
import sys
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from scipy.io import wavfile

from mlopt.errors import InputError
from mlopt.readers import read_images, read_sounds, read_wav

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 255, (6, 5, 4, 3)).astype(np.uint8)
SOUND = (RNG.uniform(-1, 1, (400, 2)) * 32767).astype(np.int16)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Six of them: two birds, four cats; and something else."""
    for number, pixels in enumerate(PIXELS):
        folder = tmp_path / ("bird" if number < 2 else "cat")
        folder.mkdir(exist_ok=True)
        Image.fromarray(pixels).save(folder / f"{number}.png")
    (tmp_path / "cat" / "notes.txt").write_text("no image")
    (tmp_path / "readme.txt").write_text("nor this")
    return tmp_path


def test_folders_are_labels(pictures: Path) -> None:
    X, y = read_images(pictures)

    assert np.array_equal(X, PIXELS)
    assert y.tolist() == ["bird"] * 2 + ["cat"] * 4


def test_grey_images_have_one_channel(pictures: Path) -> None:
    X, _ = read_images(pictures, channels=1)
    expected = PIXELS @ np.array([0.299, 0.587, 0.114])

    assert X.shape == (6, 5, 4, 1)
    assert np.abs(X[..., 0] - expected).max() <= 1


@pytest.mark.parametrize("rows", [1, 4, 9])
def test_images_in_blocks(pictures: Path, rows: int) -> None:
    X, y = read_images(pictures, block_rows=rows)

    assert max(X.chunks[0]) == min(rows, 6)
    assert np.array_equal(X.compute(), PIXELS)
    assert len(y) == 6


def test_an_image_of_another_size_is_named(pictures: Path) -> None:
    Image.fromarray(PIXELS[0, :3]).save(pictures / "cat" / "9.png")
    says = r"`.*0.png` has 4 x 5 pixels and `.*9.png` 4 x 3"
    with pytest.raises(InputError, match=says):
        read_images(pictures)
    X, _ = read_images(pictures, block_rows=2)
    with pytest.raises(InputError, match=says):
        X.compute()


def test_a_file_that_is_no_image_is_named(pictures: Path) -> None:
    broken = pictures / "bird" / "0.png"
    broken.write_bytes(broken.read_bytes()[:50])
    with pytest.raises(InputError, match=r"0.png`, of 50 bytes, cannot be read"):
        read_images(pictures)


def test_without_pillow_the_way_out_is_named(
    pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match=r"pip install 'mlopt\[images\]'"):
        read_images(pictures)


def test_folders_without_classes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be a folder with a folder for each class"):
        read_images(tmp_path / "none")
    with pytest.raises(InputError, match=r"files that end in .*'.png'"):
        read_images(tmp_path)
    with pytest.raises(InputError, match="`channels` must be 1 or 3"):
        read_images(tmp_path, channels=4)


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("channels", [1, 2])
def test_samples_come_back_in_the_unit(tmp_path: Path, dtype: str, channels: int) -> None:
    wanted = SOUND[:, :channels] / 32768.0
    scale = {"u1": (128, 128), "i2": (32768, 0), "i4": (2**31, 0)}.get(dtype, (1, 0))
    wavfile.write(tmp_path / "a.wav", 8000, (wanted * scale[0] + scale[1]).astype(dtype))
    samples, rate = read_wav(tmp_path / "a.wav")

    assert rate == 8000
    assert samples.dtype == np.float32
    assert np.allclose(samples, wanted, atol=1 / 127 if dtype == "u1" else 1e-4)


def test_samples_of_24_bits(tmp_path: Path) -> None:
    values = np.array([0, 1 << 22, -(1 << 23)])
    with wave.open(str(tmp_path / "a.wav"), "wb") as file:
        file.setparams((1, 3, 8000, 3, "NONE", ""))
        file.writeframes(b"".join(struct.pack("<i", v)[:3] for v in values))

    assert read_wav(tmp_path / "a.wav")[0].ravel().tolist() == [0.0, 0.5, -1.0]


@pytest.fixture
def sounds(tmp_path: Path) -> Path:
    """Two classes; of 400, 200 and 100 samples."""
    for name, length in (("no/a", 400), ("no/b", 200), ("yes/c", 100)):
        path = tmp_path / f"{name}.wav"
        path.parent.mkdir(exist_ok=True)
        wavfile.write(path, 1000, SOUND[:length])
    return tmp_path


@pytest.mark.parametrize("rows", [None, 1, 2])
def test_sounds_are_cut_or_end_in_silence(sounds: Path, rows: Any) -> None:
    X, y = read_sounds(sounds, seconds=0.2, block_rows=rows)
    X = np.asarray(X)
    mono = SOUND.astype(np.float64).mean(axis=1) / 32768

    assert X.shape == (3, 200)
    assert y.tolist() == ["no", "no", "yes"]
    assert np.allclose(X[0], mono[:200], atol=1e-6)
    assert np.allclose(X[2, :100], mono[:100], atol=1e-6)
    assert (X[2, 100:] == 0).all()


def test_broken_and_unlike_sounds_are_named(sounds: Path) -> None:
    path = sounds / "no" / "a.wav"
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    says = "must hold 1600 bytes of samples by its header, but holds 1500"
    with pytest.raises(InputError, match=says):
        read_wav(path)
    path.write_bytes(b"OggS" + whole[4:])
    with pytest.raises(InputError, match=re.escape("begins with b'OggS")):
        read_wav(path)
    path.write_bytes(whole[:30])
    with pytest.raises(InputError, match="of 30 bytes, must hold samples"):
        read_wav(path)
    wavfile.write(path, 500, SOUND)
    with pytest.raises(InputError, match=r"has 500 samples a second and `.*b.wav` 1000"):
        read_sounds(sounds, seconds=0.1)
    with pytest.raises(InputError, match="`seconds` must be one sample at least"):
        read_sounds(sounds, seconds=0.0)


@pytest.mark.parametrize("channels", [1, 3])
def test_images_of_16_bits_keep_the_upper_8(tmp_path: Path, channels: int) -> None:
    (tmp_path / "kind").mkdir()
    values = np.array([[0, 300, 20_000, 65_535]])
    Image.fromarray(values.astype(np.uint16)).save(tmp_path / "kind" / "a.png")
    X, _ = read_images(tmp_path, channels=channels)
    assert X[0, 0, :, -1].tolist() == [0, 1, 78, 255]
    Image.fromarray(values.astype(np.int32)).save(tmp_path / "kind" / "a.tif")
    (tmp_path / "kind" / "a.png").unlink()
    with pytest.raises(InputError, match=r"its values are 0 \.\.\. 65535"):
        read_images(tmp_path, channels=channels)


def test_a_sound_has_samples(tmp_path: Path) -> None:
    wavfile.write(tmp_path / "none.wav", 8000, np.empty(0, np.int16))
    with pytest.raises(InputError, match="must hold samples"):
        read_wav(tmp_path / "none.wav")
