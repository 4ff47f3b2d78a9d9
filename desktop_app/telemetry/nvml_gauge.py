"""Calls to the driver made ready beforehand, for what is asked several times a second.

The bindings look up the function, build the arguments and check the answer anew at each call, and the door adds a
general key and an answer to it; for a fast tick over eight cards that was more than half of the cost. The memory that
the driver writes to is cleared before each call: a driver that says success and writes nothing gives no last value.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from desktop_app.core.telemetry import Reason
from desktop_app.telemetry.nvml import (
    ALL_32,
    FIELD_LAYOUT,
    UNSIGNED_INT,
    UNSIGNED_LONG_LONG,
    Answer,
    NvmlDoor,
)
from desktop_app.telemetry.nvml_codes import FUNCTION_NOT_FOUND, SUCCESS

_FIELD_VALUES: Final = "nvmlDeviceGetFieldValues"
# The parts of ``FIELD_LAYOUT`` that are looked at: id, time, type, code, value
_ANSWER: Final = struct.Struct("=I4xq8xIiQ")


class Call(NamedTuple):
    """One call about one card. ``layout``: of what the driver writes (``struct``, native); ``head``: what stands in it
    before, such as a version; ``arguments``: between the handle and that memory."""

    name: str
    layout: str
    arguments: tuple[int, ...] = ()
    head: bytes = b""


class Panel:
    """Several calls about one card, with one piece of memory for all that they write. Runs in: one thread at a time."""

    __slots__ = ("_answer", "_calls", "_door", "_doubtful", "_empty", "_layout", "_owner", "_ready", "starts")

    def __init__(self, door: NvmlDoor, handle: Any, calls: Sequence[Call], *, owner: str) -> None:
        self._door = door
        self._owner = owner
        self._calls = tuple(calls)
        blocks = [struct.Struct(f"@{call.layout}0Q") for call in calls]  # each begins where any number may
        self._layout = struct.Struct("@" + "".join(f"{call.layout}0Q" for call in calls))
        self._empty = b"".join(call.head.ljust(block.size, b"\0") for call, block in zip(calls, blocks, strict=True))
        self._answer = bytearray(self._empty)
        self.starts: list[int] = []  # of each call: where its values begin among all
        self._ready: list[tuple[int, Callable[..., int], tuple[Any, ...]]] = []
        place = values = 0
        for number, (call, block) in enumerate(zip(calls, blocks, strict=True)):
            memory = (ctypes.c_char * block.size).from_buffer(self._answer, place)
            arguments = (handle, *(ctypes.c_uint(argument) for argument in call.arguments), memory)
            self._ready.append((number, door.function(call.name) or _absent, arguments))
            self.starts.append(values)
            place += block.size
            values += len(block.unpack(bytes(block.size)))
        self._doubtful = set(range(len(self._calls)))  # those for which there may be a verdict

    def read(self) -> tuple[tuple[Any, ...], dict[int, Reason]]:
        """(what the driver has written, of all calls in a row; why a call, by its number, has brought nothing)."""
        refused = self._verdicts() if self._doubtful else {}
        self._answer[:] = self._empty
        if not self._door.is_open:
            return self._layout.unpack(self._answer), dict.fromkeys(range(len(self._calls)), Reason.NO_DRIVER)
        for number, function, arguments in self._ready:
            if number in refused:
                continue
            code = function(*arguments)
            if code != SUCCESS:
                self._doubtful.add(number)
                refused[number] = self._door.refused(self._key(number), code)
        return self._layout.unpack(self._answer), refused

    def _verdicts(self) -> dict[int, Reason]:
        found = {number: self._door.verdict(self._key(number)) for number in self._doubtful}
        refused = {number: verdict for number, verdict in found.items() if verdict is not None}
        self._doubtful = set(refused)
        return refused

    def _key(self, number: int) -> tuple[object, ...]:
        call = self._calls[number]
        return (self._owner, call.name, *call.arguments)


def _absent(*_: object) -> int:
    """A function that the library does not have."""
    return FUNCTION_NOT_FOUND


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
        self._function: Callable[..., int] = door.function(_FIELD_VALUES) or _absent
        self.bits = [64] * len(self._ids)  # the width of each value of the last reading
        self._doubtful = set(range(len(self._ids)))  # those for which there may be a verdict
        self._whole_doubtful = True
        self._ask_for(tuple(self._doubtful))

    def read(self) -> list[int | float | Reason]:
        """A value, or the ``Reason`` for none, for each id in order. Fields with a verdict are not asked."""
        values: list[int | float | Reason] = [Reason.NOT_READ_YET] * len(self._ids)
        if self._doubtful:
            self._take_verdicts(values)
        if not self._asked:
            return values
        refusal = self._call()
        if refusal is not None:
            for number in self._asked:
                values[number] = refusal
            return values
        bits, ids = self.bits, self._ids
        for number, found in zip(self._asked, _ANSWER.iter_unpack(self._answer), strict=True):
            field_id, timestamp, kind, code, raw = found
            if field_id != ids[number] & ALL_32:  # somebody has overwritten the question
                values[number] = Reason.IMPLAUSIBLE
            elif code == SUCCESS and kind == UNSIGNED_INT:
                values[number] = raw & ALL_32
                bits[number] = 32
            elif code == SUCCESS and kind == UNSIGNED_LONG_LONG and timestamp:
                values[number] = raw
                bits[number] = 64
            else:
                values[number] = self._unusual(number, timestamp, kind, code, raw)
        return values

    def answers(self) -> dict[int, Answer]:
        """The same by id."""
        return {
            field_id: Answer(reason=value) if isinstance(value, Reason) else Answer(value, bits=bits)
            for field_id, value, bits in zip(self._ids, self.read(), self.bits, strict=True)
        }

    def _take_verdicts(self, values: list[int | float | Reason]) -> None:
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
        if not self._door.is_open:
            return Reason.NO_DRIVER
        self._answer[:] = self._request
        code = self._function(*self._arguments)
        self._whole_doubtful = code != SUCCESS
        return self._door.refused(whole, code) if self._whole_doubtful else None

    def _unusual(self, number: int, timestamp: int, kind: int, code: int, raw: int) -> int | float | Reason:
        answer = self._door.field(self._owner, self._ids[number], timestamp=timestamp, kind=kind, code=code, raw=raw)
        self.bits[number] = answer.bits
        if answer.reason is None:
            value: int | float = answer.value
            return value
        self._doubtful.add(number)
        return answer.reason
