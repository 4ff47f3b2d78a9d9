"""Turn image files into arrays of bytes. Every way a file can be broken ends as one reason code."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from desktop_app.training.recipes.folder_scan import file_reason

Bytes = NDArray[np.uint8]

# Larger images are left out as too_large. Pillow's own default (Image.MAX_IMAGE_PIXELS): a quarter GiB of RGB.
MAX_PIXELS: Final = 1024 * 1024 * 1024 // 4 // 3
# Side of the grey thumbnail that near-copies are found by: as fine as the built-in silhouettes allow, cheap to compare.
THUMBNAIL_SIDE: Final = 24
_GREY_MODES: Final = frozenset({"1", "L", "LA", "La", "I", "F", "I;16", "I;16B", "I;16L", "I;16N"})
_DEEP_MODES: Final = frozenset({"I", "I;16", "I;16B", "I;16L", "I;16N"})
# What Pillow's readers have been seen to raise for broken files.
_BROKEN: Final = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    RuntimeError,
    MemoryError,
    UserWarning,
    struct.error,
    zlib.error,
)


class _FirmLimit(int):
    """Pillow warns above ``MAX_IMAGE_PIXELS`` and refuses above twice that. Filters of warnings belong to the whole
    process and are not safe in threads; a limit that does not grow when doubled leaves refusals only."""

    def __rmul__(self, _: int) -> int:
        return int(self)


_FIRM_LIMIT: Final = _FirmLimit(MAX_PIXELS)


class UnusableImageError(Exception):
    """The file cannot be used; ``reason`` is a code. Never leaves ``training``."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class DecodedImage:
    """``pixels`` (channels, side, side), ``thumbnail`` grey (24, 24), ``colour`` mean red, green, blue."""

    pixels: Bytes
    thumbnail: Bytes
    colour: tuple[float, float, float]

    def without_pixels(self) -> DecodedImage:
        """What the search for near-copies needs; the pixels are kept elsewhere, or too many to keep."""
        return replace(self, pixels=self.pixels[:, :0, :0].copy())


def decode(path: Path, *, channels: int, side: int) -> DecodedImage:
    """Read one image: upright by its EXIF, cut to a centred square, resized. Transparency becomes white; of an
    animation the first frame counts. ``UnusableImageError`` when that is impossible."""
    colour = _load(path, side)
    square = ImageOps.fit(colour, (side, side), method=Image.Resampling.BILINEAR)
    grey = square.convert("L")
    pixels = np.asarray(grey)[None] if channels == 1 else np.asarray(square).transpose(2, 0, 1)
    thumbnail = np.asarray(grey.resize((THUMBNAIL_SIDE, THUMBNAIL_SIDE), Image.Resampling.BOX))
    means = np.asarray(square, np.float32).mean(axis=(0, 1))
    return DecodedImage(
        np.ascontiguousarray(pixels), thumbnail.copy(), (float(means[0]), float(means[1]), float(means[2]))
    )


def has_colour(path: Path) -> bool:
    """Whether an image has any colour; False when it cannot be read."""
    try:
        with path.open("rb") as stream, _opened(stream) as image:
            if image.mode in _GREY_MODES:
                return False
        pixels = np.asarray(_load(path, 64).resize((64, 64))).astype(np.int16)
    except UnusableImageError:
        return False
    except (*_BROKEN, Image.DecompressionBombError):
        return False
    # JPEG's rounding makes a grey picture differ by a level or two between its channels.
    return bool((pixels.max(axis=2) - pixels.min(axis=2)).max() > 4)


def _opened(stream: BinaryIO) -> Image.Image:
    """The image, its head read. The limit is set anew each time: others in the process may set it too."""
    Image.MAX_IMAGE_PIXELS = _FIRM_LIMIT
    return Image.open(stream)


def _load(path: Path, side: int) -> Image.Image:
    """The whole image in RGB."""
    try:
        with path.open("rb") as stream, _opened(stream) as image:
            if image.width * image.height > MAX_PIXELS:
                raise UnusableImageError("too_large")
            image.draft("RGB" if image.mode not in _GREY_MODES else "L", (2 * side, 2 * side))
            image.load()
            return _in_rgb(ImageOps.exif_transpose(image))
    except UnidentifiedImageError:
        raise UnusableImageError("not_an_image") from None
    except Image.DecompressionBombError:
        raise UnusableImageError("too_large") from None
    except MemoryError:
        raise UnusableImageError("too_large") from None
    except _BROKEN as error:
        raise UnusableImageError(_broken_reason(error)) from None


def _broken_reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return file_reason(error)
    words = str(error).lower()
    return "truncated" if "truncated" in words or isinstance(error, EOFError) else "damaged"


def _in_rgb(image: Image.Image) -> Image.Image:
    if image.mode in _DEEP_MODES:  # 16 bits per pixel, sometimes kept in 32
        deep = np.asarray(image).astype(np.int64).clip(0)
        image = Image.fromarray((deep >> 8 if deep.max(initial=0) > 255 else deep).clip(0, 255).astype(np.uint8))
    if image.has_transparency_data:
        layers = image.convert("RGBA")
        paper = Image.new("RGBA", layers.size, (255, 255, 255, 255))
        image = Image.alpha_composite(paper, layers)
    return image.convert("RGB")
