"""Event files of TensorBoard: scalars of a training with the wall time of each. Decision 039 says why by ourselves.

Records as in ``tensorflow/core/lib/io/record_writer.h``, messages as in ``event.proto``, ``summary.proto`` and
``tensor.proto``. Both checksums of a record hold before anything of it is believed.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from typing import Final

import google_crc32c

from desktop_app.telemetry.logs.protobuf_wire import (
    BYTES,
    FIXED32,
    FIXED64,
    VARINT,
    Field,
    WireError,
    fields,
    float32,
    float64,
    signed,
    varint,
)
from desktop_app.telemetry.logs.record import Notes, Stamp
from desktop_app.telemetry.logs.times import LATEST_S
from desktop_app.telemetry.logs.training_log import TrainingLog
from desktop_app.telemetry.logs.training_names import target_of

KIND: Final = "TensorBoard event file"
_VERSION: Final = b"brain.Event:"
_HEAD: Final = 12  # length and its checksum
_TAIL: Final = 4
_MASK: Final = 0xA282EAD8
_MOST_PLACES: Final = 500_000  # half a second of looking
_HOLE: Final = bytes(_HEAD)
_END_OF_HOLE: Final = re.compile(rb"[^\0]")
_START: Final = 1  # SessionLog.SessionStatus
# DataType of tensor.proto: the format of struct, and the field that holds values beside ``tensor_content``.
_TYPES: Final = {
    1: ("f", 5), 2: ("d", 6), 3: ("i", 7), 4: ("B", 7), 5: ("h", 7), 6: ("b", 7), 9: ("q", 10), 10: ("?", 11),
    17: ("H", 7), 19: ("e", 13), 22: ("I", 16), 23: ("Q", 17),
}  # fmt: skip
_BFLOAT16: Final = 14
_HALF_FIELD: Final = 13
_OTHERS: Final = {3: "histograms", 4: "images", 5: "histograms", 6: "audio"}


def looks_like_events(data: bytes) -> bool:
    """A first record with a good checksum, or the mark that every such file has in its first one."""
    return _length(data, 0) is not None or says_version(data)


def says_version(data: bytes) -> bool:
    """The mark that every event file has in its first record, and no other file of TensorFlow."""
    return _VERSION in data[:64]


def read_events(data: bytes, notes: Notes) -> TrainingLog:
    """All scalars. What is damaged is left out and listed by the number of its record; the rest is read."""
    return _Reader(notes).read(data)


def records(data: bytes, notes: Notes) -> Iterator[tuple[int, bytes]]:
    """Whole records with their numbers from 1. After a damaged length the next record with good checksums is sought."""
    place, number, end = 0, 0, len(data)
    while place < end:
        number += 1
        size = _length(data, place)
        if size is not None and size > end - place - _HEAD - _TAIL:
            _cut(notes, number, place, end)
            return
        if size is None:
            following = _next_record(data, place + 1)
            if following is None and end - place < _HEAD:
                _cut(notes, number, place, end)
                return
            until = end if following is None else following
            notes.leave_out(number, "damaged: no record", f"{until - place} bytes from byte {place} on")
            place = until
            continue
        content = data[place + _HEAD : place + _HEAD + size]
        if _masked(content) == int.from_bytes(data[place + _HEAD + size : place + _HEAD + size + _TAIL], "little"):
            yield number, content
        else:
            notes.leave_out(number, "damaged: a record with a wrong checksum", f"byte {place}")
        place += _HEAD + size + _TAIL


def _cut(notes: Notes, number: int, place: int, end: int) -> None:
    notes.leave_out(
        number,
        "the last record is cut off: it is still written, or the training was killed",
        f"{end - place} bytes from byte {place} on",
    )


def _length(data: bytes, place: int) -> int | None:
    head = data[place : place + _HEAD]
    if len(head) < _HEAD or _masked(head[:8]) != int.from_bytes(head[8:], "little"):
        return None
    return int.from_bytes(head[:8], "little")


def _next_record(data: bytes, place: int) -> int | None:
    """The next place with a length whose checksum is right; no record of 4 GiB is looked for."""
    for _ in range(_MOST_PLACES):
        zeros = data.find(bytes(4), place + 4)  # the upper half of the length
        if zeros < 0:
            return None
        place = zeros - 4
        if data.startswith(_HOLE, place):  # as a file system leaves one behind; zeros are no good checksum of zeros
            hole = _END_OF_HOLE.search(data, place + _HEAD)
            if hole is None:
                return None
            place = hole.start() - _HEAD + 1  # the next record may itself begin with zeros
            continue
        if _length(data, place) is not None:
            return place
        place += 1
    return None


def _masked(data: bytes) -> int:
    crc = int(google_crc32c.value(data))
    return ((crc >> 15 | crc << 17) + _MASK) & 0xFFFF_FFFF


class _Reader:
    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._log = TrainingLog(notes)
        self._plugins: dict[str, str] = {}  # by tag: only the first value of a tag says it

    def read(self, data: bytes) -> TrainingLog:
        for number, content in records(data, self._notes):
            try:
                self._event(number, list(fields(content)))
            except (WireError, struct.error) as error:
                self._notes.leave_out(number, f"no event of TensorBoard: {error}")
        return self._log

    def _event(self, number: int, parts: list[Field]) -> None:
        wall_s, step = math.nan, 0
        summaries, session = [], None
        for field, kind, value in parts:
            if field == 1 and kind == FIXED64 and isinstance(value, bytes):
                wall_s = float64(value)
            elif field == 2 and kind == VARINT and isinstance(value, int):
                step = signed(value)
            elif field == 5 and isinstance(value, bytes):
                summaries.append(value)
            elif field == 7 and isinstance(value, bytes):
                session = value
            elif field in (1, 2) or field > 15:  # another message in the same frame, such as tf.Example
                raise WireError(f"field {field} is of another kind")
            elif field in (4, 9) and isinstance(value, bytes):
                self._log.keep_out("graphs", "graph")
            elif field == 8:
                self._log.keep_out("run metadata", "run metadata")
        if session is not None and (1, _START) in ((field, value) for field, _, value in fields(session)):
            self._log.restarts.append((len(self._log), step))
        found = [scalar for summary in summaries for scalar in self._scalars(summary)]
        if not found:
            return
        stamp = Stamp(wall_s, zoned=True) if 0 < wall_s < LATEST_S else None
        if stamp is None:
            self._notes.remark(number, "a wall time that cannot be one: the row counts as one without a time")
        row = self._log.add_row(number, step=float(step), stamp=stamp)
        for tag, scalar in found:
            self._log.add(row, tag, scalar, target_of(tag))

    def _scalars(self, summary: bytes) -> Iterator[tuple[str, float]]:
        for field, kind, content in fields(summary):
            if field == 1 and kind == BYTES and isinstance(content, bytes):
                found = self._value(list(fields(content)))
                if found is not None:
                    yield found

    def _value(self, parts: list[Field]) -> tuple[str, float] | None:
        tag, plugin, simple, tensor, other = "", None, None, None, None
        for field, kind, value in parts:
            if field == 1 and isinstance(value, bytes):
                tag = value.decode("utf-8", errors="replace")
            elif field == 2 and kind == FIXED32 and isinstance(value, bytes):
                simple = float32(value)
            elif field == 8 and isinstance(value, bytes):
                tensor = value
            elif field == 9 and isinstance(value, bytes):
                plugin = _plugin(value)
            elif field in _OTHERS:
                other = _OTHERS[field]
        plugin = self._plugins.setdefault(tag, plugin or "") or plugin or ""
        if simple is not None:
            return tag, simple
        if other is None and tensor is not None and plugin == "scalars":
            single = _single(tensor)
            if single is not None:
                return tag, single
        self._log.keep_out(other or plugin or "tensors", tag)
        return None


def _plugin(metadata: bytes) -> str:
    """``SummaryMetadata.plugin_data.plugin_name``."""
    for field, kind, value in fields(metadata):
        if field == 1 and kind == BYTES and isinstance(value, bytes):
            for inner, _, name in fields(value):
                if inner == 1 and isinstance(name, bytes):
                    return name.decode("utf-8", errors="replace")
    return ""


def _single(tensor: bytes) -> float | None:
    """The one number of a tensor; ``None`` when it has more, or words."""
    kind, count, content, parts = 0, 1, b"", list(fields(tensor))
    for field, wire, value in parts:
        if field == 1 and isinstance(value, int):
            kind = value
        elif field == 2 and isinstance(value, bytes):
            count = _elements(value)
        elif field == 4 and wire == BYTES and isinstance(value, bytes):
            content = value
    if count != 1 or (kind not in _TYPES and kind != _BFLOAT16):
        return None
    form, place = _TYPES.get(kind, ("H", _HALF_FIELD))
    if content:
        if len(content) != struct.calcsize("<" + form):
            return None
        raw = struct.unpack("<" + form, content)[0]
        return _bfloat16(raw) if kind == _BFLOAT16 else float(raw)
    held = [(wire, value) for field, wire, value in parts if field == place]
    return _held(kind, form, *held[0]) if len(held) == 1 else None


def _held(kind: int, form: str, wire: int, value: int | bytes) -> float | None:
    """A value in a field of its own type: packed or alone."""
    if isinstance(value, bytes) and form in "fd":
        return float(struct.unpack("<" + form, value)[0]) if len(value) == struct.calcsize("<" + form) else None
    if isinstance(value, bytes):
        if wire != BYTES:
            return None
        value = varint(value, 0)[0] if value else 0
    number = int(value)
    if form == "e" or kind == _BFLOAT16:  # halves are kept as their bits
        bits = number & 0xFFFF
        return _bfloat16(bits) if kind == _BFLOAT16 else float(struct.unpack("<e", struct.pack("<H", bits))[0])
    return float(signed(number) if form in "ihbq" else number)


def _bfloat16(bits: int) -> float:
    return float32(struct.pack("<I", bits << 16))


def _elements(shape: bytes) -> int:
    count = 1
    for field, kind, dimension in fields(shape):
        if field == 2 and kind == BYTES and isinstance(dimension, bytes):
            sizes = [value for inner, _, value in fields(dimension) if inner == 1 and isinstance(value, int)]
            count *= sizes[-1] if sizes else 0
    return count
