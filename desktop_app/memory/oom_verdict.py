"""What an out-of-memory message means: what was full, whose memory it was, the likely cause, what to change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from desktop_app.core.units import GIB, MIB
from desktop_app.memory.oom_reading import Backend, OomReading, Wording


class Full(StrEnum):
    """What had no room."""

    CARD = "card"
    LIMIT = "limit"  # a fraction or watermark the user set
    HOST = "host"
    PERHAPS_HOST = "perhaps_host"  # nothing says so, but it is often that
    SHARED_MEMORY = "shared_memory"
    NOTHING = "nothing"  # the request itself is impossible
    UNKNOWN = "unknown"


class OomCause(StrEnum):
    """The likely cause."""

    TRAINING_TOO_LARGE = "training_too_large"
    REQUEST_TOO_LARGE = "request_too_large"  # one block larger than the card
    FRAGMENTATION = "fragmentation"
    OTHER_PROCESSES = "other_processes"
    OUTSIDE_ALLOCATOR = "outside_allocator"
    MEMORY_FRACTION = "memory_fraction"
    REFUSED_DESPITE_FREE = "refused_despite_free"
    SYSTEM_MEMORY_FALLBACK = "system_memory_fallback"
    OVERFLOWED_SIZE = "overflowed_size"
    BLOCK_LIMIT = "block_limit"
    HOST_MEMORY = "host_memory"
    WORKER_EXITED = "worker_exited"  # killed for want of RAM, or an error of its own
    SHARED_MEMORY = "shared_memory"
    GRAPH_USED_TWICE = "graph_used_twice"  # not out of memory yet: the hint in the message would lead there


class OomAction(StrEnum):
    """What to change, the most useful first."""

    REDUCE_BATCH = "reduce_batch"
    REDUCE_REQUEST = "reduce_request"  # sequence, image size, chunked attention: batch 1 would not fit either
    EXPANDABLE_SEGMENTS = "expandable_segments"
    MAX_SPLIT_SIZE = "max_split_size"
    END_OTHER_PROCESSES = "end_other_processes"
    RAISE_FRACTION = "raise_fraction"
    RAISE_WATERMARK = "raise_watermark"
    LEAVE_ROOM = "leave_room"  # set_per_process_memory_fraction, so that libraries have some
    RESTART_PROCESS = "restart_process"
    DISABLE_FALLBACK = "disable_fallback"
    CHECK_SHAPES = "check_shapes"
    FEWER_WORKERS = "fewer_workers"
    MORE_SHARED_MEMORY = "more_shared_memory"
    MORE_HOST_MEMORY = "more_host_memory"
    CHECK_TOTAL = "check_total"
    CHECK_SYSTEM_LOG = "check_system_log"  # was it killed for want of memory?
    CHECK_COMMIT_LIMIT = "check_commit_limit"  # page file, ulimit, container: the driver backs its memory with RAM
    ONE_BACKWARD = "one_backward"  # add the losses up, or detach what comes from the step before
    KEEP_NO_GRAPH = "keep_no_graph"  # .item() and .detach() instead of retain_graph=True


@dataclass(frozen=True, slots=True)
class OomVerdict:
    """``shares`` are bytes of the card by holder: allocated, idle, private_pools, outside, others, free."""

    full: Full
    cause: OomCause
    actions: tuple[OomAction, ...]
    shares: Mapping[str, int] = field(default_factory=dict)


# Context, cuBLAS and cuDNN of one process: 490 MiB on a card of 13 SMs to 1.95 GiB on one of 108 (eager loading).
_OWN_OUTSIDE_LEAST_BYTES: Final = 600 * MIB
_OWN_OUTSIDE_MOST_BYTES: Final = 2 * GIB
_OWN_OUTSIDE_SHARE: Final = 0.15
# The allocator never uses its cache whole: in healthy trainings idle splits are 3 to 5 % (transformers) and more.
_IDLE_SHARE: Final = 0.1
_MUCH_IDLE_SHARE: Final = 0.25  # of what is reserved: fragmentation also where the request takes some free memory too
# Of the card: what is outside may be libraries of this process; less than this is not laid at others' door.
_GUESSED_SHARE: Final = 0.04
_NEARLY_ALL: Final = 0.95  # of the card for one block: context and driver leave no more to anybody
_MANY_TIMES: Final = 16  # free is so many times the request: no shortage of this memory
_SMALL_BYTES: Final = 64 * MIB

# Settings of the native caching allocator: the driver's own pool takes neither.
_OF_NATIVE: Final = frozenset({OomAction.EXPANDABLE_SEGMENTS, OomAction.MAX_SPLIT_SIZE})

_WORDED: Final[Mapping[Wording, OomVerdict]] = {
    Wording.OVERFLOW: OomVerdict(Full.NOTHING, OomCause.OVERFLOWED_SIZE, (OomAction.CHECK_SHAPES,)),
    Wording.PREEMPTIVE: OomVerdict(
        Full.LIMIT, OomCause.MEMORY_FRACTION, (OomAction.RAISE_FRACTION, OomAction.REDUCE_BATCH)
    ),
    Wording.DRIVER: OomVerdict(
        Full.CARD, OomCause.OUTSIDE_ALLOCATOR, (OomAction.END_OTHER_PROCESSES, OomAction.LEAVE_ROOM)
    ),
    Wording.LIBRARY: OomVerdict(Full.CARD, OomCause.OUTSIDE_ALLOCATOR, (OomAction.LEAVE_ROOM, OomAction.REDUCE_BATCH)),
    Wording.OUTSIDE: OomVerdict(Full.CARD, OomCause.OUTSIDE_ALLOCATOR, (OomAction.LEAVE_ROOM, OomAction.REDUCE_BATCH)),
    Wording.MAPPING: OomVerdict(
        Full.CARD, OomCause.TRAINING_TOO_LARGE, (OomAction.REDUCE_BATCH, OomAction.END_OTHER_PROCESSES)
    ),
    Wording.HOST: OomVerdict(Full.HOST, OomCause.HOST_MEMORY, (OomAction.MORE_HOST_MEMORY, OomAction.FEWER_WORKERS)),
    Wording.WORKER_KILLED: OomVerdict(
        Full.HOST, OomCause.HOST_MEMORY, (OomAction.FEWER_WORKERS, OomAction.MORE_HOST_MEMORY)
    ),
    Wording.WORKER_EXITED: OomVerdict(
        Full.PERHAPS_HOST,
        OomCause.WORKER_EXITED,
        (OomAction.CHECK_SYSTEM_LOG, OomAction.FEWER_WORKERS, OomAction.MORE_HOST_MEMORY),
    ),
    Wording.SECOND_BACKWARD: OomVerdict(
        Full.NOTHING, OomCause.GRAPH_USED_TWICE, (OomAction.ONE_BACKWARD, OomAction.KEEP_NO_GRAPH)
    ),
    Wording.SHARED_MEMORY: OomVerdict(
        Full.SHARED_MEMORY, OomCause.SHARED_MEMORY, (OomAction.MORE_SHARED_MEMORY, OomAction.FEWER_WORKERS)
    ),
}


def judge_oom(reading: OomReading) -> OomVerdict:
    """The verdict on one message. The rules go from what cannot be otherwise to what is merely likely."""
    worded = _WORDED.get(reading.wording)
    if worded is not None:
        return worded
    cause, full, actions = _judge_figures(reading)
    if reading.backend is Backend.CUDA_ASYNC:
        actions = tuple(action for action in actions if action not in _OF_NATIVE)
    return OomVerdict(full, cause, actions, _shares(reading))


def _judge_figures(reading: OomReading) -> tuple[OomCause, Full, tuple[OomAction, ...]]:
    tried, total = reading.tried_bytes or 0, reading.total_bytes or 0
    allocated, free = reading.allocated_bytes or 0, reading.free_bytes
    if reading.backend is Backend.MPS:
        return _judge_mps(reading)
    if reading.block_limit:
        return OomCause.BLOCK_LIMIT, Full.LIMIT, (OomAction.REDUCE_REQUEST, OomAction.REDUCE_BATCH)
    if total and max(allocated, reading.reserved_bytes or 0) > total:
        return (
            OomCause.SYSTEM_MEMORY_FALLBACK,
            Full.CARD,
            (OomAction.REDUCE_BATCH, OomAction.DISABLE_FALLBACK),
        )
    if _at_fraction(reading):
        return OomCause.MEMORY_FRACTION, Full.LIMIT, (OomAction.RAISE_FRACTION, OomAction.REDUCE_BATCH)
    if total and tried > _NEARLY_ALL * total:
        actions = (OomAction.REDUCE_REQUEST, OomAction.REDUCE_BATCH)
        return OomCause.REQUEST_TOO_LARGE, Full.NOTHING, actions
    idle = reading.unallocated_bytes
    if idle is not None and _in_pieces(idle, reading):
        return (
            OomCause.FRAGMENTATION,
            Full.CARD,
            (OomAction.EXPANDABLE_SEGMENTS, OomAction.MAX_SPLIT_SIZE, OomAction.REDUCE_BATCH),
        )
    if free is not None and tried and free >= max(tried * _MANY_TIMES, tried + _SMALL_BYTES):
        return (
            OomCause.REFUSED_DESPITE_FREE,
            Full.UNKNOWN,
            (OomAction.RESTART_PROCESS, OomAction.END_OTHER_PROCESSES, OomAction.CHECK_COMMIT_LIMIT),
        )
    if _others_matter(reading):
        return OomCause.OTHER_PROCESSES, Full.CARD, (OomAction.END_OTHER_PROCESSES, OomAction.REDUCE_BATCH)
    some_idle = idle is None or idle >= tried // 2
    help_from_cache = (OomAction.EXPANDABLE_SEGMENTS,) if some_idle else ()
    return OomCause.TRAINING_TOO_LARGE, Full.CARD, (OomAction.REDUCE_BATCH, *help_from_cache)


def _in_pieces(idle: int, reading: OomReading) -> bool:
    """Idle and free memory together would have done, and idle memory is more than the usual waste."""
    tried, reserved, free = reading.tried_bytes or 0, reading.reserved_bytes or 0, reading.free_bytes or 0
    if idle >= tried > 0:
        return idle >= _IDLE_SHARE * reserved
    return free < tried <= idle + free and idle >= _MUCH_IDLE_SHARE * reserved


def _judge_mps(reading: OomReading) -> tuple[OomCause, Full, tuple[OomAction, ...]]:
    """All of it is one memory: "other allocations" are the Metal driver's for this process and for others."""
    others = (reading.process_bytes or 0) - (reading.allocated_bytes or 0)
    tried, total = reading.tried_bytes or 0, reading.total_bytes or 0
    if total and tried > total:
        return OomCause.REQUEST_TOO_LARGE, Full.NOTHING, (OomAction.REDUCE_REQUEST, OomAction.REDUCE_BATCH)
    if others > (reading.allocated_bytes or 0):
        return OomCause.OUTSIDE_ALLOCATOR, Full.LIMIT, (OomAction.RESTART_PROCESS, OomAction.REDUCE_BATCH)
    return OomCause.TRAINING_TOO_LARGE, Full.LIMIT, (OomAction.REDUCE_BATCH, OomAction.RAISE_WATERMARK)


def _at_fraction(reading: OomReading) -> bool:
    if reading.allowed_bytes is None:
        return False
    held = reading.reserved_bytes if reading.reserved_bytes is not None else reading.allocated_bytes or 0
    wanted = held + (reading.tried_bytes or 0)
    return wanted > reading.allowed_bytes and (reading.free_bytes or 0) >= (reading.tried_bytes or 0)


def _others_matter(reading: OomReading) -> bool:
    """Without them the request would have had room."""
    tried, free = reading.tried_bytes or 0, reading.free_bytes or 0
    known = reading.other_processes_bytes
    if known is not None:
        return known + free >= tried and known >= 256 * MIB
    outside = reading.outside_bytes
    if outside is None:
        return False
    share = int(_OWN_OUTSIDE_SHARE * (reading.total_bytes or 0))
    others = outside - max(_OWN_OUTSIDE_LEAST_BYTES, min(_OWN_OUTSIDE_MOST_BYTES, share))
    return others > _GUESSED_SHARE * (reading.total_bytes or 0) and others + free >= tried


def _shares(reading: OomReading) -> dict[str, int]:
    shares: dict[str, int] = {}
    if reading.allocated_bytes is not None:
        shares["allocated"] = reading.allocated_bytes
    if reading.private_pool_bytes:
        shares["private_pools"] = reading.private_pool_bytes
    if reading.unallocated_bytes:
        shares["idle"] = reading.unallocated_bytes
    others = reading.other_processes_bytes
    outside = reading.outside_bytes
    if outside is not None:
        if others is not None:
            shares["others"] = others
            outside = max(0, outside - others)
        shares["outside"] = outside
    elif others:
        shares["others"] = others
    if reading.backend is Backend.MPS and reading.process_bytes is not None:
        shares["outside"] = reading.process_bytes - (reading.allocated_bytes or 0)
    if reading.free_bytes is not None:
        shares["free"] = reading.free_bytes
    return shares
