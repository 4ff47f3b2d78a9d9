"""Constants and settings of PyTorch's native CUDA caching allocator, and the two rounding rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from desktop_app.core.units import MIB

# c10/core/AllocatorConfig.h of torch 2.13; tests/unit/memory/test_allocator_constants.py reads the installed header.
MIN_BLOCK_BYTES: Final = 512  # kMinBlockSize
SMALL_LIMIT_BYTES: Final = 1 * MIB  # kSmallSize: the largest request of the small pool
SMALL_SEGMENT_BYTES: Final = 2 * MIB  # kSmallBuffer
LARGE_SEGMENT_BYTES: Final = 20 * MIB  # large_segment_size_, the default of large_segment_size_mb
MIN_LARGE_BYTES: Final = 10 * MIB  # kMinLargeAlloc: from here a segment is cut to measure
LARGE_ROUND_BYTES: Final = 2 * MIB  # kRoundLarge

# c10/core/AllocatorConfig.cpp: power-of-two divisions are kept per interval, from 1 MiB to 64 GiB.
DIVISION_INTERVALS: Final = 16

_VARIABLES: Final = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF")  # the first one set

# Keys that change pinned memory, locking or handles, never the device's blocks; and one that only counts for blocks
# that come back from other streams inside a graph's capture, of which no trace tells the order.
_WITHOUT_EFFECT: Final = frozenset(
    {
        "expandable_segments_handle_type",
        "graph_capture_record_stream_reuse",
        "pinned_free_catch_all",
        "pinned_max_cached_size_mb",
        "pinned_max_round_threshold_mb",
        "pinned_num_register_threads",
        "pinned_reserve_segment_size_mb",
        "pinned_use_background_threads",
        "pinned_use_cuda_host_register",
        "pinned_use_hip_host_register",
        "release_lock_on_cudamalloc",
        "release_lock_on_hipmalloc",
    }
)


@dataclass(frozen=True, slots=True)
class AllocatorSettings:
    """``PYTORCH_ALLOC_CONF``; the defaults are torch's.

    ``throw_on_cudamalloc_oom`` refuses what the memory fraction forbids without giving anything back first.
    ``max_split_size_bytes`` ``None`` is unlimited. ``roundup_power2_divisions`` is one number for all sizes, or a
    number per interval by its lower bound in MiB (1, 2, 4 … 32768; the first also covers what is smaller, the last
    what is larger); 0 and 1 are off. Raises ``ValueError`` where torch would.
    """

    max_split_size_bytes: int | None = None
    max_non_split_rounding_bytes: int = 20 * MIB
    garbage_collection_threshold: float = 0.0
    roundup_power2_divisions: int | Mapping[int, int] = field(default=0, hash=False)
    large_segment_size_bytes: int = LARGE_SEGMENT_BYTES
    per_process_memory_fraction: float | None = None
    expandable_segments: bool = False
    throw_on_cudamalloc_oom: bool = False

    def __post_init__(self) -> None:
        large = self.large_segment_size_bytes
        _require(large > MIN_LARGE_BYTES, "large_segment_size_mb", "must be more than 10")
        if self.max_split_size_bytes is not None:
            _require(self.max_split_size_bytes >= large, "max_split_size_mb", f"must be at least {large // MIB}")
        _require(self.max_non_split_rounding_bytes > 0, "max_non_split_rounding_mb", "must be positive")
        threshold = self.garbage_collection_threshold
        _require(0.0 <= threshold < 1.0, "garbage_collection_threshold", "must lie between 0 and 1")
        if self.per_process_memory_fraction is not None:
            inside = 0.0 <= self.per_process_memory_fraction <= 1.0
            _require(inside, "per_process_memory_fraction", "must lie between 0 and 1")
        self.division_table()

    @classmethod
    def parse(cls, text: str) -> AllocatorSettings:
        """The settings in a ``PYTORCH_ALLOC_CONF`` text such as ``max_split_size_mb:128,roundup_power2_divisions:4``.

        Raises ``ValueError`` naming the key that is unknown, malformed, or asks for what the replica does not replay.
        """
        return _parse(text)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> AllocatorSettings:
        """What torch takes from these environment variables.

        An older name wins over ``PYTORCH_ALLOC_CONF``, whatever the header of torch 2.13 says: a test asks the
        installed torch. Raises ``ValueError`` as ``parse`` does.
        """
        for name in _VARIABLES:
            if name in environment:
                return _parse(environment[name])
        return cls()

    def allowed_bytes(self, total_bytes: int | None) -> int | None:
        """What the memory fraction allows on a card of ``total_bytes`` (``setMemoryFraction``); ``None``: all of it.

        Raises ``ValueError`` when there is a fraction but no total.
        """
        if self.per_process_memory_fraction is None:
            return None
        if total_bytes is None:
            raise ValueError("total_bytes is needed for per_process_memory_fraction")
        return int(self.per_process_memory_fraction * total_bytes)

    def division_table(self) -> tuple[int, ...] | None:
        """Divisions of the 16 intervals from 1 MiB up (the last one open), or ``None`` when all are off."""
        divisions = self.roundup_power2_divisions
        if isinstance(divisions, int):
            table = [divisions] * DIVISION_INTERVALS
        else:
            table = [0] * DIVISION_INTERVALS
            for lower_mib, count in divisions.items():
                table[_interval(lower_mib)] = count
        for count in table:
            powers = count == 0 or _is_power_of_two(count)
            _require(powers, "roundup_power2_divisions", "divisions must be powers of 2, or 0")
        return tuple(table) if max(table) > 1 else None


def round_request(size_bytes: int, table: tuple[int, ...] | None = None) -> int:
    """Bytes of the block that serves a request of ``size_bytes`` (``round_size`` in torch).

    ``table`` is ``AllocatorSettings.division_table()``.
    """
    if size_bytes <= MIN_BLOCK_BYTES:
        return MIN_BLOCK_BYTES
    if table is not None:
        interval = size_bytes.bit_length() - MIB.bit_length()
        divisions = table[min(max(interval, 0), DIVISION_INTERVALS - 1)]
        if divisions > 1 and size_bytes > MIN_BLOCK_BYTES * divisions:
            step = (1 << (size_bytes.bit_length() - 1)) // divisions
            return -(-size_bytes // step) * step
    return (size_bytes + MIN_BLOCK_BYTES - 1) & -MIN_BLOCK_BYTES


def segment_bytes(block_bytes: int, *, large_segment_bytes: int = LARGE_SEGMENT_BYTES) -> int:
    """Bytes asked of the driver for a rounded request that no free block can serve (``get_allocation_size`` in torch).

    This, not the request, is the "Tried to allocate" of torch's out-of-memory message.
    """
    if block_bytes <= SMALL_LIMIT_BYTES:
        return SMALL_SEGMENT_BYTES
    if block_bytes < MIN_LARGE_BYTES:
        return large_segment_bytes
    return (block_bytes + LARGE_ROUND_BYTES - 1) & -LARGE_ROUND_BYTES


def _require(condition: bool, key: str, reason: str) -> None:  # noqa: FBT001 - reads as an assertion
    if not condition:
        raise ValueError(f"{key}: {reason}")


def _is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _interval(lower_mib: int) -> int:
    """Index of the interval that begins at ``lower_mib``; torch clamps what lies above 32 GiB."""
    _require(_is_power_of_two(lower_mib), "roundup_power2_divisions", "intervals must be powers of 2")
    return min(lower_mib.bit_length() - 1, DIVISION_INTERVALS - 1)


def _split_pairs(text: str) -> list[tuple[str, str]]:
    """``key:value`` pairs; commas inside brackets do not separate."""
    pairs: list[tuple[str, str]] = []
    depth = 0
    start = 0
    compact = "".join(text.split())
    for position, char in enumerate(compact + ","):
        depth += (char == "[") - (char == "]")
        if char == "," and depth == 0:
            if item := compact[start:position]:
                key, colon, value = item.partition(":")
                _require(bool(colon and value), key, "has no value (write key:value)")
                pairs.append((key, value))
            start = position + 1
    _require(depth == 0, pairs[-1][0] if pairs else compact, "brackets do not match")
    return pairs


def _parse(text: str) -> AllocatorSettings:
    # Large segments first, whatever the order in the text: torch checks max_split_size_mb against them.
    values: dict[str, object] = {}
    for key, value in _split_pairs(text):
        if key in _READERS:
            field_name, read = _READERS[key]
            values[field_name] = read(key, value)
        elif key == "backend":
            _require(value == "native", key, f"{value!r} is not replayed, only the native backend")
        else:
            _require(key in _WITHOUT_EFFECT, key, "is not a key of PYTORCH_ALLOC_CONF")
    rounding = values.get("max_non_split_rounding_bytes")
    if isinstance(rounding, int):
        large = values.get("large_segment_size_bytes", LARGE_SEGMENT_BYTES)
        _require(isinstance(large, int) and rounding >= large, "max_non_split_rounding_mb", "is below a large segment")
    return AllocatorSettings(**values)  # type: ignore[arg-type]  # the readers give each field its type


def _read_mib(key: str, value: str) -> int:
    _require(value.isdecimal(), key, f"must be a whole number of MiB, not {value!r}")
    return int(value) * MIB


def _read_split_limit(key: str, value: str) -> int | None:
    # torch reads -1 as the largest number there is: unlimited.
    return None if value == "-1" else _read_mib(key, value)


def _read_fraction(key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"{key}: must be a number, not {value!r}") from None


def _read_switch(key: str, value: str) -> bool:
    _require(value in {"True", "False"}, key, f"must be True or False, not {value!r}")
    return value == "True"


def _read_threshold(key: str, value: str) -> float:
    threshold = _read_fraction(key, value)
    _require(0.0 < threshold < 1.0, key, "must lie between 0 and 1")
    return threshold


def _read_divisions(key: str, value: str) -> int | Mapping[int, int]:
    """``4``, or ``[64:8,256:4,>:1]``: the first pair also covers all below, ``>`` all above the last pair."""
    if not value.startswith("["):
        _require(value.isdecimal() and _is_power_of_two(int(value)), key, "must be a power of 2")
        return int(value)
    table = [0] * DIVISION_INTERVALS
    last = 0
    for position, item in enumerate(value.strip("[]").split(",") if value != "[]" else ()):
        bound, _, count_text = item.partition(":")
        _require(count_text.isdecimal() and (bound == ">" or bound.isdecimal()), key, f"cannot read {item!r}")
        count = int(count_text)
        if bound == ">":
            table[last + 1 :] = [count] * (DIVISION_INTERVALS - last - 1)
            continue
        last = _interval(int(bound))
        if position == 0:
            table[:last] = [count] * last
        table[last] = count
    return {1 << interval: count for interval, count in enumerate(table)}


_READERS: Final[Mapping[str, tuple[str, Callable[[str, str], object]]]] = {
    "max_split_size_mb": ("max_split_size_bytes", _read_split_limit),
    "max_non_split_rounding_mb": ("max_non_split_rounding_bytes", _read_mib),
    "garbage_collection_threshold": ("garbage_collection_threshold", _read_threshold),
    "roundup_power2_divisions": ("roundup_power2_divisions", _read_divisions),
    "large_segment_size_mb": ("large_segment_size_bytes", _read_mib),
    "per_process_memory_fraction": ("per_process_memory_fraction", _read_fraction),
    "expandable_segments": ("expandable_segments", _read_switch),
    "throw_on_cudamalloc_oom": ("throw_on_cudamalloc_oom", _read_switch),
}

DEFAULT_SETTINGS: Final = AllocatorSettings()


def known_keys() -> frozenset[str]:
    """Every key of ``PYTORCH_ALLOC_CONF`` that is read, those without effect on the device's blocks included."""
    return _WITHOUT_EFFECT | _READERS.keys() | {"backend"}
