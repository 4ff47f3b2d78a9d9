"""Calls to the driver made ready beforehand, for what is asked several times a second.

The bindings look up the function, build the arguments and check the answer anew at each call, and the door adds a
general key and an answer to it; for a fast tick over eight cards that was more than half of the cost. The memory that
the driver writes to is cleared before each call: a driver that says success and writes nothing gives no last value.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from desktop_app.core.telemetry import Reason
from desktop_app.telemetry.nvml import (
    ALL_32,
    FIELD_LAYOUT,
    SUCCESS,
    UNSIGNED_INT,
    UNSIGNED_LONG_LONG,
    Answer,
    NvmlDoor,
)

_FIELD_VALUES: Final = "nvmlDeviceGetFieldValues"


class Gauge:
    """One call about one card. ``layout``: of what the driver writes (``struct``); ``head``: what stands in it before,
    such as a version. Runs in: one thread at a time."""

    __slots__ = ("_answer", "_arguments", "_door", "_doubtful", "_empty", "_function", "_key", "_layout")

    def __init__(
        self, door: NvmlDoor, call: str, handle: Any, *arguments: int, layout: str, owner: str, head: bytes = b""
    ) -> None:
        self._door = door
        self._key = (owner, call, *arguments)
        self._layout = struct.Struct(layout)
        self._empty = head.ljust(self._layout.size, b"\0")
        self._answer = bytearray(self._empty)
        memory = (ctypes.c_char * self._layout.size).from_buffer(self._answer)
        self._arguments = (handle, *(ctypes.c_uint(argument) for argument in arguments), memory)
        self._function: Callable[..., int] | None = door.function(call)
        self._doubtful = True  # there may be a verdict

    def read(self) -> tuple[Any, ...] | Reason:
        """What the driver has written, in the layout's order, or the reason for nothing."""
        if self._doubtful:
            verdict = self._door.verdict(self._key)
            if verdict is not None:
                return verdict
        if self._function is None or not self._door.is_open:
            return self._door.refused(self._key, None)
        self._answer[:] = self._empty
        code = self._function(*self._arguments)
        if code != SUCCESS:
            self._doubtful = True
            return self._door.refused(self._key, code)
        self._doubtful = False
        return self._layout.unpack(self._answer)


class FieldsGauge:
    """Several field values of one card by one call. Runs in: one thread at a time."""

    __slots__ = (
        "_answer", "_arguments", "_asked", "_door", "_doubtful", "_function", "_handle", "_ids", "_owner", "_request",
        "_whole_doubtful", "bits",
    )  # fmt: skip

    def __init__(self, door: NvmlDoor, handle: Any, field_ids: Sequence[int], *, owner: str) -> None:
        self._door = door
        self._handle = handle
        self._owner = owner
        self._ids = tuple(field_ids)
        self._function: Callable[..., int] | None = door.function(_FIELD_VALUES)
        self.bits = [64] * len(self._ids)  # the width of each value of the last reading
        self._doubtful = set(range(len(self._ids)))  # those for which there may be a verdict
        self._whole_doubtful = True
        self._ask_for(tuple(self._doubtful))

    def read(self) -> list[Any]:
        """A value, or the ``Reason`` for none, for each id in order. Fields with a verdict are not asked."""
        values: list[Any] = [Reason.NOT_READ_YET] * len(self._ids)
        if self._doubtful:
            self._take_verdicts(values)
        if not self._asked:
            return values
        refusal = self._call()
        if refusal is not None:
            for number in self._asked:
                values[number] = refusal
            return values
        for number, found in zip(self._asked, FIELD_LAYOUT.iter_unpack(self._answer), strict=True):
            _, _, timestamp, _, kind, code, raw = found
            if code == SUCCESS and kind == UNSIGNED_INT:
                values[number] = raw & ALL_32
                self.bits[number] = 32
            elif code == SUCCESS and kind == UNSIGNED_LONG_LONG and timestamp:
                values[number] = raw
                self.bits[number] = 64
            else:
                values[number] = self._unusual(number, found)
        return values

    def answers(self) -> dict[int, Answer]:
        """The same by id."""
        return {
            field_id: Answer(reason=value) if isinstance(value, Reason) else Answer(value, bits=bits)
            for field_id, value, bits in zip(self._ids, self.read(), self.bits, strict=True)
        }

    def _take_verdicts(self, values: list[Any]) -> None:
        """Settle which fields are asked this time."""
        for number in tuple(self._doubtful):
            verdict = self._door.verdict((self._owner, "field", self._ids[number]))
            if verdict is None:
                self._doubtful.discard(number)
            else:
                values[number] = verdict
        asked = tuple(number for number in range(len(self._ids)) if number not in self._doubtful)
        if asked != self._asked:
            self._ask_for(asked)

    def _ask_for(self, asked: tuple[int, ...]) -> None:
        self._asked = asked
        ids = [self._ids[number] for number in asked]
        self._request = b"".join(FIELD_LAYOUT.pack(each & ALL_32, each >> 32, 0, 0, 0, 0, 0) for each in ids)
        self._answer = bytearray(self._request)
        memory = (ctypes.c_char * len(self._answer)).from_buffer(self._answer)
        self._arguments = (self._handle, ctypes.c_int(len(asked)), memory)

    def _call(self) -> Reason | None:
        whole = (self._owner, _FIELD_VALUES)
        if self._whole_doubtful:
            verdict = self._door.verdict(whole)
            if verdict is not None:
                return verdict
        if self._function is None or not self._door.is_open:
            return self._door.refused(whole, None)
        self._answer[:] = self._request
        code = self._function(*self._arguments)
        self._whole_doubtful = code != SUCCESS
        return self._door.refused(whole, code) if self._whole_doubtful else None

    def _unusual(self, number: int, found: tuple[Any, ...]) -> Any:
        answer = self._door.field(self._owner, self._ids[number], found)
        self.bits[number] = answer.bits
        if answer.reason is None:
            return answer.value
        self._doubtful.add(number)
        return answer.reason
