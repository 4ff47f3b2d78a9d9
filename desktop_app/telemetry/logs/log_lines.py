"""The bytes of a file as numbered lines: UTF-8, UTF-16 with its mark (PowerShell's ``>``), gzipped or not."""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from collections.abc import Iterator
from typing import Final

GZIP: Final = b"\x1f\x8b"
MOST_BYTES: Final = 1 << 30  # of text, unpacked: six days of eight cards, once a second, in full


class TooLargeError(ValueError):
    """More than ``MOST_BYTES`` of text."""


def unpacked(data: bytes) -> bytes:
    """What is in a gzip file, or ``data`` itself. Raises ``ValueError`` for a damaged one, ``TooLargeError``."""
    if not data.startswith(GZIP):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            text = file.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(f"is a damaged gzip file ({error})") from error
    if len(text) > MOST_BYTES:
        raise TooLargeError(f"holds more than {MOST_BYTES >> 30} GiB of text")
    return text


def decoded(data: bytes) -> str:
    """The text. A byte that is none in UTF-8 becomes a mark of its own, and the rest of its line is read."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", errors="replace")
    return data.decode("utf-8-sig", errors="replace").replace("\x00", "\ufffd")


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines and their numbers as an editor counts them. What a progress bar overwrote is a line of the same number."""
    number, start = 1, 0
    while (end := text.find("\n", start)) >= 0:  # one at a time: a list of short lines is many times the text
        for piece in text[start:end].split("\r"):
            yield number, piece
        number, start = number + 1, end + 1
    for piece in text[start:].split("\r"):
        yield number, piece
