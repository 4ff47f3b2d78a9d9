"""The wire format of Protocol Buffers, to read: fields of a message as they come, and nothing made of them yet."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

# protobuf.dev/programming-guides/encoding; groups (3 and 4) are in no message that we read.
VARINT: Final = 0
FIXED64: Final = 1
BYTES: Final = 2
FIXED32: Final = 5

Field = tuple[int, int, int | bytes]
_LONGEST_VARINT: Final = 10


class WireError(ValueError):
    """No message of Protocol Buffers."""


def fields(data: bytes) -> Iterator[Field]:
    """(number, wire type, value) in the order of ``data``: fixed ones and texts as bytes. Raises ``WireError``."""
    place, end = 0, len(data)
    while place < end:
        key = data[place]  # most keys and sizes are one byte
        key, place = (key, place + 1) if key < 0x80 else varint(data, place)
        number, kind = key >> 3, key & 7
        if not number:
            raise WireError("a field without a number")
        if kind == VARINT:
            value, place = varint(data, place)
            yield number, kind, value
            continue
        if kind == BYTES:
            size = data[place] if place < end else 0x80
            size, place = (size, place + 1) if size < 0x80 else varint(data, place)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise WireError(f"a field of the unknown type {kind}")
        if size > end - place:
            raise WireError("a field that goes beyond its message")
        yield number, kind, data[place : place + size]
        place += size


def varint(data: bytes, place: int) -> tuple[int, int]:
    """The number at ``place`` and the place after it. Raises ``WireError``."""
    value = 0
    for shift in range(0, 7 * _LONGEST_VARINT, 7):
        if place >= len(data):
            raise WireError("a number that is cut off")
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, place
    raise WireError("a number that does not end")


def signed(value: int) -> int:
    """An ``int64`` from its varint."""
    return value - (1 << 64) if value >= 1 << 63 else value


def float64(data: bytes) -> float:
    return float(struct.unpack("<d", data)[0])


def float32(data: bytes) -> float:
    return float(struct.unpack("<f", data)[0])
