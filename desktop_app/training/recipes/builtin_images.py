"""Silhouettes of cats and dogs from the package ``animal-shape-mnist``, read without running any of its code."""

from __future__ import annotations

import gzip
import io
import pickle
import zlib
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Final

import numpy as np
from numpy.typing import NDArray

from desktop_app.core.errors import FloodmarkError

_DISTRIBUTION: Final = "animal-shape-mnist"
_PACKAGE: Final = "animal_shape_mnist"
_FOLDER: Final = PurePosixPath("data/Animal Shape")
_IMAGES: Final = "animal_data_version_3.gz"
_LABELS: Final = "animal_label_version_3.gz"
# 10,000 images of 784 bytes and 10,000 labels of 8 bytes, with room for pickle's own bytes: more is not this file.
_MAX_BYTES: Final = 16 << 20
SIDE: Final = 28
CLASSES: Final = ("cat", "dog")
# The package numbers its ten animals in alphabetical order: bear, bird, cat, cow, dog, …
_PACKAGE_LABELS: Final = (2, 4)
SAMPLES_PER_CLASS: Final = 1000

# All that a pickled array names. numpy 1 and 2 call the same function by two paths.
_ARRAY_NAMES: Final = frozenset(
    {
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy", "ndarray"),
        ("numpy", "dtype"),
    }
)
_RECONSTRUCT: Final = np.empty(0).__reduce__()[0]


class ArrayUnpickler(pickle.Unpickler):
    """Reads numpy arrays and refuses every other name, so a file cannot run code."""

    def find_class(self, module_name: str, global_name: str, /) -> object:
        if (module_name, global_name) not in _ARRAY_NAMES:
            raise pickle.UnpicklingError(f"{module_name}.{global_name} is not part of an array")
        found: object = _RECONSTRUCT if global_name == "_reconstruct" else getattr(np, global_name)
        return found


def load_cats_dogs() -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images (2000, 28, 28), white on black, and labels (2000,): 0 = cat, 1 = dog, in the package's order.

    Raises ``FloodmarkError`` when the package is missing or its files are damaged.
    """
    folder = _package_folder()
    images = _read_array(folder / _IMAGES)
    labels = _read_array(folder / _LABELS)
    if images.shape != (10_000, SIDE, SIDE) or images.dtype != np.uint8 or labels.shape != (10_000,):
        raise _damaged(folder, "unexpected shapes")
    chosen = np.isin(labels, _PACKAGE_LABELS)
    classes = np.searchsorted(_PACKAGE_LABELS, labels[chosen]).astype(np.int64)
    if np.bincount(classes, minlength=2).tolist() != [SAMPLES_PER_CLASS, SAMPLES_PER_CLASS]:
        raise _damaged(folder, "unexpected class counts")
    return images[chosen].astype(np.uint8), classes


def _package_folder() -> Path:
    """Where the package keeps its data, by its installation record or its search path. Imports nothing of it."""
    try:
        found = metadata.distribution(_DISTRIBUTION)
        roots = [Path(str(found.locate_file(_PACKAGE)))]
    except metadata.PackageNotFoundError:
        roots = []
    try:
        spec = find_spec(_PACKAGE)
    except (ImportError, ValueError):
        spec = None
    if spec is not None and spec.submodule_search_locations is not None:
        roots += [Path(location) for location in spec.submodule_search_locations]
    for root in roots:
        if (root / _FOLDER / _IMAGES).is_file():
            return root / _FOLDER
    raise FloodmarkError(
        "data.missing_package",
        f"data cats-dogs: the package {_DISTRIBUTION} is not installed here; "
        f"run: python -m pip install {_DISTRIBUTION}, or give a folder of class folders",
        params={"package": _DISTRIBUTION},
    )


def _read_array(path: Path) -> NDArray[np.generic]:
    try:
        with gzip.open(path, "rb") as packed:
            content = packed.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise _damaged(path, "far too large")
        array = ArrayUnpickler(io.BytesIO(content)).load()
    except _DAMAGE as error:
        raise _damaged(path, " ".join(str(error).split()) or type(error).__name__) from None
    if not isinstance(array, np.ndarray):
        raise _damaged(path, "not an array")
    return array


# What gzip, pickle and numpy raise for bytes that are not what they should be.
_DAMAGE: Final = (
    OSError,
    EOFError,
    zlib.error,
    pickle.UnpicklingError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    MemoryError,
    SystemError,
)


def _damaged(path: Path, detail: str) -> FloodmarkError:
    return FloodmarkError(
        "data.damaged_package",
        f"data cats-dogs: {path} cannot be used ({detail}); "
        f"run: python -m pip install --force-reinstall {_DISTRIBUTION}",
        params={"package": _DISTRIBUTION, "path": str(path), "detail": detail},
    )
