"""The built-in silhouettes: read without their package's code, and without trust."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from desktop_app.core.errors import FloodmarkError
from desktop_app.training.recipes import builtin_images
from desktop_app.training.recipes.builtin_images import ArrayUnpickler, load_cats_dogs


def test_a_thousand_cats_and_a_thousand_dogs() -> None:
    images, labels = load_cats_dogs()
    assert images.shape == (2000, 28, 28)
    assert images.dtype == np.uint8
    assert np.bincount(labels).tolist() == [1000, 1000]
    # Means over all pixels of both classes, measured once: white animals on black.
    assert images[labels == 0].mean() == pytest.approx(75.2248, abs=1e-3)
    assert images[labels == 1].mean() == pytest.approx(68.8269, abs=1e-3)
    assert "animal_shape_mnist" not in sys.modules


class _Calls:
    """Pickles as a call of something."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self._call = function, arguments

    def __reduce__(self) -> Any:
        return self._call


@pytest.mark.parametrize(
    "content",
    [
        pickle.dumps(_Calls(os.system, "true")),
        pickle.dumps(_Calls(eval, "1")),
        pickle.dumps(_Calls(np.load, "x.npy")),
        pickle.dumps(np.random.RandomState),
        b"cnumpy\nload\n.",
        b"cnumpy\nsave\n.",
        b"cbuiltins\nexec\n.",
        b"cnumpy.core.multiarray\nfromfile\n.",
        b"cnumpy.core.multiarray._reconstruct\n__globals__\n.",
        b"\x80\x04\x8c\x05numpy\x8c\x0endarray.tofile\x93.",
    ],
)
def test_the_unpickler_admits_arrays_only(content: bytes) -> None:
    with pytest.raises(pickle.UnpicklingError, match="is not part of an array"):
        ArrayUnpickler(io.BytesIO(content)).load()


@pytest.mark.parametrize("protocol", [3, 4])
def test_the_unpickler_reads_arrays(protocol: int) -> None:
    array = np.arange(12, dtype=np.int64).reshape(3, 4)
    assert ArrayUnpickler(io.BytesIO(pickle.dumps(array, protocol))).load().tolist() == array.tolist()


def _install(root: Path, monkeypatch: pytest.MonkeyPatch, *, images: bytes, labels: bytes) -> None:
    folder = root / "animal_shape_mnist" / "data" / "Animal Shape"
    folder.mkdir(parents=True)
    (folder / "animal_data_version_3.gz").write_bytes(images)
    (folder / "animal_label_version_3.gz").write_bytes(labels)
    monkeypatch.setattr(metadata, "distribution", _no_distribution)
    monkeypatch.syspath_prepend(str(root))


def _no_distribution(name: str) -> metadata.Distribution:
    raise metadata.PackageNotFoundError(name)


def _packed(value: Any) -> bytes:
    return gzip.compress(pickle.dumps(value, 4), mtime=0)  # the tests' names must not hold the time


def test_the_package_is_found_without_an_installation_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.zeros((10_000, 28, 28), np.uint8)
    labels = np.repeat(np.arange(10), 1000)
    _install(tmp_path, monkeypatch, images=_packed(images), labels=_packed(labels))
    assert load_cats_dogs()[0].max() == 0


@pytest.mark.parametrize(
    ("images", "labels"),
    [
        (b"", b""),
        (b"not gzip", b"not gzip"),
        (_packed(np.zeros((10_000, 28, 28), np.uint8))[:-20], _packed(np.zeros(10_000))),
        (_packed(np.zeros((3, 3), np.uint8)), _packed(np.zeros(3))),
        (_packed([1, 2]), _packed([3])),
        (_packed(np.zeros((10_000, 28, 28), np.uint8)), _packed(np.zeros(10_000, np.int64))),
        (gzip.compress(pickle.dumps(_Calls(os.system, "true")), mtime=0), b""),
        (gzip.compress(bytes(17 << 20), mtime=0), b""),
        (gzip.compress(b"\x80\x04\x8c\x05numpy", mtime=0), b""),
    ],
)
def test_damaged_files_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, images: bytes, labels: bytes
) -> None:
    _install(tmp_path, monkeypatch, images=images, labels=labels)
    with pytest.raises(FloodmarkError) as caught:
        load_cats_dogs()
    assert caught.value.code == "data.damaged_package"
    assert "pip install --force-reinstall animal-shape-mnist" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "distribution", _no_distribution)
    monkeypatch.setattr(builtin_images, "find_spec", lambda _: None)
    with pytest.raises(FloodmarkError, match="pip install animal-shape-mnist") as caught:
        load_cats_dogs()
    assert caught.value.code == "data.missing_package"
