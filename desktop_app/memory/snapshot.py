"""A recording of ``torch.cuda.memory._snapshot()`` as typed data: one card's segments, events and stacks.

The format is that of torch 2.1 to 2.14 (torch/cuda/memory.py, torch/csrc/cuda/memory_snapshot.cpp), written by
``_dump_snapshot``, by ``pickle.dump`` or by the C++ pickler, gzipped or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from desktop_app.core.errors import NoSuchDeviceError
from desktop_app.memory.allocator_settings import AllocatorSettings
from desktop_app.memory.segments import DEFAULT_POOL, FREE, LIVE, WAITING, PoolId
from desktop_app.memory.snapshot_pickle import MAX_BYTES, SnapshotError, read_plain_pickle

_LARGEST: Final = 1 << 64  # no address and no size has more bits
_MAX_CARDS: Final = 1024
_NO_STACK: Final = 0  # position of the empty stack


class Action(StrEnum):
    """What the allocator did (``TraceEntry::Action``)."""

    ALLOC = "alloc"
    FREE_REQUESTED = "free_requested"
    FREE_COMPLETED = "free_completed"
    SEGMENT_ALLOC = "segment_alloc"
    SEGMENT_FREE = "segment_free"
    SEGMENT_MAP = "segment_map"
    SEGMENT_UNMAP = "segment_unmap"
    OOM = "oom"
    SNAPSHOT = "snapshot"
    OTHER = "other"  # of a torch that is newer, or a user's own mark


class Frame(NamedTuple):
    """One line of a stack."""

    filename: str
    line: int
    name: str


class SnapshotEvent(NamedTuple):
    """``size_bytes`` as requested; ``stack`` is a position in ``Snapshot.stacks``, innermost frame first.

    ``address`` of an out-of-memory error is what the driver had left; its ``size_bytes`` the rounded request.
    ``pool`` is ``None`` where torch did not write it (before 2.13).
    """

    action: Action
    address: int
    size_bytes: int
    stream: int
    stack: int
    time_us: int | None
    pool: PoolId | None


class SnapshotBlock(NamedTuple):
    """``state`` is ``FREE``, ``LIVE`` or ``WAITING`` (for another stream)."""

    address: int
    size_bytes: int
    requested_bytes: int
    state: int
    stack: int


class SnapshotSegment(NamedTuple):
    """One segment, or one run of mapped pages of an expandable one, at the end of the recording."""

    address: int
    size_bytes: int
    stream: int
    small: bool
    pool: PoolId
    expandable: bool
    blocks: tuple[SnapshotBlock, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """One card of a recording. ``segments`` are by address; ``events`` in the order in which they happened.

    ``settings`` are those the recording names, as far as the replica knows them; ``settings_problem`` says what it
    does not know. ``other_cards`` are the positions of cards that have something recorded too.
    """

    device: int
    segments: tuple[SnapshotSegment, ...]
    events: tuple[SnapshotEvent, ...]
    stacks: tuple[tuple[Frame, ...], ...]
    settings: AllocatorSettings
    settings_text: str = ""
    settings_problem: str | None = None
    other_cards: tuple[int, ...] = ()

    @property
    def reserved_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)


def read_snapshot(path: Path, *, device: int | None = None, max_bytes: int = MAX_BYTES) -> Snapshot:
    """One card of the recording in this file: ``device``, or the one of which most is recorded.

    Raises ``SnapshotError`` for a file that is none, ``NoSuchDeviceError`` for a card of which it holds nothing.
    """
    try:
        return parse_snapshot(read_plain_pickle(path, max_bytes=max_bytes), device=device)
    except _MalformedError as error:
        line = f"{path} is no memory snapshot: {error}."
        raise SnapshotError("snapshot.malformed", line, params={"path": str(path), "reason": str(error)}) from error


class _MalformedError(ValueError):
    """Plain data, but not in the form of a snapshot."""


def parse_snapshot(content: object, *, device: int | None = None) -> Snapshot:
    """One card of a snapshot that is in memory. Raises ``ValueError`` when it does not have the form of one."""
    if isinstance(content, list):  # torch.cuda.memory_snapshot(): the segments alone
        content = {"segments": content, "device_traces": []}
    if not isinstance(content, Mapping) or "segments" not in content:
        raise _MalformedError("it has no list of segments")
    raw_segments = _list(content, "segments", "the snapshot")
    traces = _list(content, "device_traces", "the snapshot") if "device_traces" in content else []
    if len(traces) > _MAX_CARDS:
        raise _MalformedError(f"it has {len(traces)} cards")
    by_card: dict[int, list[Mapping[str, Any]]] = {}
    for number, raw in enumerate(raw_segments):
        by_card.setdefault(_device_of(raw, number), []).append(raw)
    sizes = {card: len(trace) for card, trace in enumerate(traces) if isinstance(trace, list) and trace}
    known = sorted(by_card.keys() | sizes.keys())
    if device is None:
        device = max(known, key=lambda card: (sizes.get(card, 0), len(by_card.get(card, ())), -card), default=0)
    elif device not in known:
        cards = ", ".join(map(str, known)) or "none"
        line = f"The recording has nothing of card {device}; it knows {cards}."
        raise NoSuchDeviceError("snapshot.device", line, params={"device": device, "known": cards})
    stacks = _Stacks()
    segments = _read_segments(by_card.get(device, []), stacks)
    trace = traces[device] if device < len(traces) else []
    if not isinstance(trace, list):
        raise _MalformedError(f"the trace of card {device} is no list")
    events = tuple([_read_event(entry, number, stacks) for number, entry in enumerate(trace)])
    settings, text, problem = read_settings(content.get("allocator_settings"), segments, events)
    return Snapshot(
        device=device,
        segments=segments,
        events=events,
        stacks=stacks.found(),
        settings=settings,
        settings_text=text,
        settings_problem=problem,
        other_cards=tuple(card for card in known if card != device),
    )


def read_settings(
    raw: object, segments: Sequence[SnapshotSegment], events: Sequence[SnapshotEvent]
) -> tuple[AllocatorSettings, str, str | None]:
    """Settings, the text they were given as, and why they are not all of them (``None``: they are).

    Settings changed while the program ran are not in the text; that segments are expandable shows in themselves.
    """
    facts = raw if isinstance(raw, Mapping) else {}
    text = facts.get("PYTORCH_CUDA_ALLOC_CONF")
    text = text if isinstance(text, str) else ""
    problem: str | None = None
    try:
        settings = AllocatorSettings.parse(text)
    except ValueError as error:
        settings, problem = AllocatorSettings(), str(error)
    mapped = any(event.action is Action.SEGMENT_MAP for event in events) or any(each.expandable for each in segments)
    plain = any(event.action is Action.SEGMENT_ALLOC for event in events) or any(
        not each.expandable for each in segments
    )
    if mapped and plain:
        problem = problem or "some segments are expandable and some are not"
    elif mapped != settings.expandable_segments and (mapped or plain):
        settings = replace(settings, expandable_segments=mapped)
    return settings, text, problem


class _Stacks:
    """Stacks of frames, each one once. Torch writes a stack once and refers to it: the same list is the same stack."""

    def __init__(self) -> None:
        self._by_list: dict[int, int] = {}
        self._kept: list[object] = []  # an id means something while its list lives
        self._numbers: dict[tuple[Frame, ...], int] = {(): _NO_STACK}
        self._frames: dict[int, Frame] = {}

    def number_of(self, raw: object, where: str) -> int:
        if not raw:
            return _NO_STACK
        number = self._by_list.get(id(raw))
        if number is None:
            if not isinstance(raw, list):
                raise _MalformedError(f"{where} has frames that are no list")
            frames = tuple([self._frame(each, where) for each in raw])
            number = self._numbers.setdefault(frames, len(self._numbers))
            self._by_list[id(raw)] = number
            self._kept.append(raw)
        return number

    def found(self) -> tuple[tuple[Frame, ...], ...]:
        return tuple(self._numbers)

    def _frame(self, raw: object, where: str) -> Frame:
        frame = self._frames.get(id(raw))
        if frame is None:
            if not isinstance(raw, Mapping):
                raise _MalformedError(f"{where} has a frame that is no dictionary")
            filename, line, name = raw.get("filename"), raw.get("line"), raw.get("name")
            if not isinstance(filename, str) or not isinstance(name, str) or not isinstance(line, int):
                raise _MalformedError(f"{where} has a frame without file, line or name")
            frame = self._frames[id(raw)] = Frame(_printable(filename), line, _printable(name))
            self._kept.append(raw)
        return frame


def _printable(text: str) -> str:
    """A stranger's text without what would steer a terminal or break a line."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else "?" for letter in text)


def _read_segments(raw_segments: Sequence[Mapping[str, Any]], stacks: _Stacks) -> tuple[SnapshotSegment, ...]:
    starts: set[int] = set()
    segments: list[SnapshotSegment] = []
    for number, raw in enumerate(raw_segments):
        where = f"segment {number}"
        address = _number(raw, "address", where)
        if address in starts:  # also before its blocks are read: a file may name one segment a million times
            raise _MalformedError(f"{where} lies where another one lies")
        starts.add(address)
        segments.append(_read_segment(raw, address, where, stacks))
    segments.sort()
    for first, second in pairwise(segments):
        if first.address + first.size_bytes > second.address:
            raise _MalformedError(f"the segments at {first.address:#x} and {second.address:#x} overlap")
    return tuple(segments)


def _read_segment(raw: Mapping[str, Any], address: int, where: str, stacks: _Stacks) -> SnapshotSegment:
    size = _number(raw, "total_size", where)
    position = address
    blocks: list[SnapshotBlock] = []
    for number, each in enumerate(_list(raw, "blocks", where)):
        block = _read_block(each, position, f"block {number} of {where}", stacks)
        position += block.size_bytes
        if position > address + size:
            break
        blocks.append(block)
    if position != address + size:
        raise _MalformedError(f"the blocks of {where} do not fill it")
    return SnapshotSegment(
        address=address,
        size_bytes=size,
        stream=_number(raw, "stream", where, default=0),
        small=raw.get("segment_type") == "small",
        pool=_pool(raw.get("segment_pool_id")) or DEFAULT_POOL,
        expandable=raw.get("is_expandable") is True,
        blocks=tuple(blocks),
    )


_STATES: Final = {
    "active_allocated": LIVE,
    "active_awaiting_free": WAITING,
    "active_pending_free": WAITING,
    "inactive": FREE,
}


def _read_block(raw: object, address: int, where: str, stacks: _Stacks) -> SnapshotBlock:
    if not isinstance(raw, Mapping):
        raise _MalformedError(f"{where} is no dictionary")
    size = _number(raw, "size", where)
    state = _STATES.get(str(raw.get("state")))
    if state is None or size <= 0:
        raise _MalformedError(f"{where} has no size or a state of its own")
    history = raw.get("history")  # torch 2.0
    if isinstance(history, list) and history and isinstance(history[0], Mapping) and "frames" not in raw:
        raw = {**raw, "requested_size": history[0].get("real_size", size), "frames": history[0].get("frames")}
    requested = 0 if state == FREE else min(_number(raw, "requested_size", where, default=size), size)
    return SnapshotBlock(address, size, requested, state, stacks.number_of(raw.get("frames"), where))


_ACTIONS: Final = {str(action): action for action in Action}


def _read_event(raw: object, number: int, stacks: _Stacks) -> SnapshotEvent:
    if not isinstance(raw, dict) or not isinstance(raw.get("action"), str):
        raise _MalformedError(f"event {number} has no action")
    action = _ACTIONS.get(raw["action"], Action.OTHER)
    place = "device_free" if action is Action.OOM else "addr"
    address, size, stream = raw.get(place), raw.get("size"), raw.get("stream")
    if not (
        type(address) is type(size) is type(stream) is int and 0 <= address < _LARGEST and 0 <= size < _LARGEST
    ):  # seldom: find out what is wrong, or what may be missing
        where = f"event {number}"
        default = 0 if action in {Action.SNAPSHOT, Action.OTHER} else None
        address = _number(raw, place, where, default=default)
        size = _number(raw, "size", where, default=default)
        stream = _number(raw, "stream", where, default=0)
    frames = raw.get("frames")
    stack = stacks.number_of(frames, f"event {number}") if frames else _NO_STACK
    time_us, pool = raw.get("time_us"), raw.get("pool_id")
    return SnapshotEvent(
        action,
        address,
        size,
        stream,
        stack,
        time_us if isinstance(time_us, int) else None,
        None if pool is None else _pool(pool),
    )


def _device_of(raw: object, number: int) -> int:
    if not isinstance(raw, Mapping):
        raise _MalformedError(f"segment {number} is no dictionary")
    return _number(raw, "device", f"segment {number}", default=0)


def _pool(raw: object) -> PoolId | None:
    if not isinstance(raw, (tuple, list)) or len(raw) != 2 or not all(isinstance(part, int) for part in raw):
        return None
    return (raw[0], raw[1])


def _list(raw: Mapping[str, Any], key: str, where: str) -> list[Any]:
    found = raw.get(key)
    if not isinstance(found, list):
        raise _MalformedError(f"{key} of {where} is no list")
    return found


def _number(raw: Mapping[str, Any], key: str, where: str, *, default: int | None = None) -> int:
    found = raw.get(key, default)
    if not isinstance(found, int) or isinstance(found, bool):
        raise _MalformedError(f"{key} of {where} is no number")
    if not -_LARGEST < found < _LARGEST or (found < 0 and key != "stream"):
        raise _MalformedError(f"{key} of {where} is out of range")
    return found
