"""The bytes of a file as numbered lines: UTF-8, UTF-16 with its mark (PowerShell's ``>``), gzipped or not."""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from typing import Final

GZIP: Final = b"\x1f\x8b"
MOST_BYTES: Final = 1 << 30  # of text, unpacked: six days of eight cards, once a second, in full

# What ends no value in the midst: a closing mark, a unit that begins no longer one, or the end of a UUID.
_CLOSED: Final = re.compile(
    r"(?:[\]})>\"'|%]|[0-9] ?(?:[KMGT]iB|[KMG]B/s|[kMG]?Hz|m?W|°?C|ms|it/s|s/it|tok/s)"
    r"|-[0-9a-fA-F]{4}-[0-9a-fA-F]{12})\s*\Z",
    re.ASCII,
)


class Unfinished(str):
    """A line without a line end: the file was cut inside it, or is still being written.

    ``closed``: its last value is whole all the same; of another it is not known.
    """

    __slots__ = ()

    @property
    def closed(self) -> bool:
        return _CLOSED.search(self) is not None


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
    """Lines and their numbers as an editor counts them. What a progress bar overwrote is a line of the same number.

    The last one is ``Unfinished`` where the text does not end with a line end.
    """
    number, start = 1, 0
    while (end := text.find("\n", start)) >= 0:  # one at a time: a list of short lines is many times the text
        for piece in text[start:end].split("\r"):
            yield number, piece
        number, start = number + 1, end + 1
    *pieces, last = text[start:].split("\r")
    for piece in pieces:
        yield number, piece
    yield number, Unfinished(last) if last.strip() else last


def is_open(line: str) -> bool:
    """Whether the last value of ``line`` may be half of one."""
    return isinstance(line, Unfinished) and not line.closed
