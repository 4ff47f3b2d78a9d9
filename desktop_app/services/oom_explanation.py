"""Explains a pasted out-of-memory message or a whole log: what was full, whose it was, why, what to change. Torch-free.

For windows and the command line; both make their own words of the codes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from desktop_app.memory.oom_reading import Backend, OomReading, Wording, read_oom
from desktop_app.memory.oom_verdict import Full, OomAction, OomCause, OomVerdict, judge_oom

__all__ = ["Backend", "Explanation", "Full", "Note", "OomAction", "OomCause", "Wording", "explain", "explain_parts"]

_OVERLAP: Final = 1 << 14  # characters: more than any message has
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_FRAMES: Final = re.compile(r"[│┃║╎╏]")  # boxes that rich and tqdm draw around a message
_BLOCK: Final = 1 << 19  # characters looked at together; with the overlap less than ``read_oom`` takes
# One of these is in every message that is known: what has none need not be looked at closely.
_SIGNS: Final = (
    "memory", "would exceed", "alloc_failed", "not_initialized", "memoryallocation", "bad_alloc", "dataloader worker",
    "shm", "oom-kill", "oom_kill", "oom killed", "second time",
)  # fmt: skip
_LAST: Final = 200  # characters of the message that are shown


class Note(StrEnum):
    """What else the message or the text around it says. A window shows one sentence for each."""

    NONSENSE_FIGURE = "nonsense_figure"  # 17179869184 GiB or 16 EiB: no memory is that large, the figure is left out
    ABOVE_TOTAL = "above_total"  # more allocated than the card has: the driver used main memory (Windows, WSL)
    FREE_ABOVE_REQUEST = "free_above_request"  # there was room, and still it was refused
    ROUNDED_REQUEST = "rounded_request"  # 2 and 20 MiB are the allocator's own sizes: it wanted less
    NO_ROOM_EVEN_ALONE = "no_room_even_alone"  # more than the card has at all
    RETAINED_GRAPH = "retained_graph"  # retain_graph=True is in the text: every backward keeps its graph
    WORKERS = "workers"  # loader workers are in the text: main memory is counted over all of them


@dataclass(frozen=True, slots=True)
class Explanation:
    """``shares`` are bytes by holder: allocated, idle, private_pools, outside, others, free.

    ``figures`` are bytes as the message says them, by their names in ``OomReading``. ``not_own_bytes`` is what was
    neither this process's allocator's nor free: total less reserved less free. ``processes`` are others by pid.
    """

    backend: Backend
    wording: Wording
    full: Full
    cause: OomCause
    actions: tuple[OomAction, ...]
    device: int | None
    figures: Mapping[str, int]
    shares: Mapping[str, int]
    not_own_bytes: int | None
    notes: tuple[Note, ...] = ()
    processes: Mapping[int, int] = field(default_factory=dict)
    message: str = ""

    @property
    def is_card(self) -> bool:
        """It is about the card's memory, not the computer's."""
        return self.backend is not Backend.HOST


def explain(text: str) -> Explanation | None:
    """The last out-of-memory message in a text of any length; ``None`` where there is none."""
    return explain_parts([text])


def explain_parts(parts: Iterable[str]) -> Explanation | None:
    """As ``explain``, of a text that comes in parts and is never held whole."""
    best: OomReading | None = None
    graph_is_kept = workers = False
    before = ""
    for part in _blocks(parts):
        text = _plain(before + part)
        before = text[-_OVERLAP:]
        lowered = text.lower()
        if not any(sign in lowered for sign in _SIGNS):
            continue
        reading = read_oom(text)
        if reading is not None and not (_says_little(reading) and best is not None and not _says_little(best)):
            best = reading
        graph_is_kept = graph_is_kept or "retain_graph=True" in text
        workers = workers or "DataLoader worker" in text
    if best is None:
        return None
    return _explanation(best, judge_oom(best), graph_is_kept=graph_is_kept, workers=workers)


def _blocks(parts: Iterable[str]) -> Iterator[str]:
    for part in parts:
        for at in range(0, len(part), _BLOCK):
            yield part[at : at + _BLOCK]


def _says_little(reading: OomReading) -> bool:
    """One without figures of the allocator does not displace one with them, wherever it stands."""
    return reading.wording not in (Wording.ALLOCATOR, Wording.OVERFLOW, Wording.PREEMPTIVE)


def _plain(text: str) -> str:
    return _FRAMES.sub(" ", _ESCAPES.sub("", text)).replace("\0", "")


def _explanation(reading: OomReading, verdict: OomVerdict, *, graph_is_kept: bool, workers: bool) -> Explanation:
    return Explanation(
        backend=reading.backend,
        wording=reading.wording,
        full=verdict.full,
        cause=verdict.cause,
        actions=verdict.actions,
        device=reading.device,
        figures=_figures(reading),
        shares=verdict.shares,
        not_own_bytes=reading.outside_bytes,
        notes=tuple(_notes(reading, verdict, graph_is_kept=graph_is_kept, workers=workers)),
        processes=dict(reading.others),
        message=reading.line[:_LAST],
    )


def _figures(reading: OomReading) -> dict[str, int]:
    named = {
        "tried_bytes": reading.tried_bytes,
        "total_bytes": reading.total_bytes,
        "free_bytes": reading.free_bytes,
        "allocated_bytes": reading.allocated_bytes,
        "reserved_bytes": reading.reserved_bytes,
        "unallocated_bytes": reading.unallocated_bytes,
        "allowed_bytes": reading.allowed_bytes,
        "private_pool_bytes": reading.private_pool_bytes,
        "process_bytes": reading.process_bytes,
        "other_processes_bytes": reading.other_processes_bytes,
    }
    return {name: figure for name, figure in named.items() if figure is not None}


_ROUNDED: Final = (2 << 20, 20 << 20)  # facts/oom_messages.md §1: segments for up to 1 MiB, and for up to 10 MiB


def _notes(reading: OomReading, verdict: OomVerdict, *, graph_is_kept: bool, workers: bool) -> Iterable[Note]:
    if reading.nonsense:
        yield Note.NONSENSE_FIGURE
    total, tried, free = reading.total_bytes, reading.tried_bytes, reading.free_bytes
    if verdict.cause is OomCause.SYSTEM_MEMORY_FALLBACK:
        yield Note.ABOVE_TOTAL
    if tried in _ROUNDED and reading.backend is not Backend.MPS:
        yield Note.ROUNDED_REQUEST
    if tried is not None and free is not None and free >= tried and verdict.full is not Full.LIMIT:
        yield Note.FREE_ABOVE_REQUEST
    if tried is not None and total and tried > total:
        yield Note.NO_ROOM_EVEN_ALONE
    if graph_is_kept and reading.wording is not Wording.SECOND_BACKWARD:  # whose own hint it is
        yield Note.RETAINED_GRAPH
    if workers and reading.backend is Backend.HOST:
        yield Note.WORKERS
