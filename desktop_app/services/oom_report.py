"""``floodmark explain``: an out-of-memory message or a log, explained in words or as JSON."""

from __future__ import annotations

import codecs
import gzip
import json
import sys
import textwrap
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Protocol

from desktop_app.core.errors import ConfigError, FloodmarkError
from desktop_app.core.units import format_bytes
from desktop_app.services.oom_explanation import (
    Backend,
    Explanation,
    Full,
    Note,
    OomAction,
    OomCause,
    Wording,
    explain_parts,
)

SCHEMA: Final = 1
_BLOCK: Final = 1 << 20
_WIDTH: Final = 100

_FULL: Final = {
    Full.CARD: "The card's memory was full.",
    Full.LIMIT: "A limit below the card's memory was reached.",
    Full.HOST: "The computer's main memory (RAM) was full, not the card's.",
    Full.PERHAPS_HOST: "Perhaps the computer's main memory (RAM) was full; the message does not say.",
    Full.SHARED_MEMORY: "Shared memory (/dev/shm) was full; the card and the RAM may have had room.",
    Full.NOTHING: "Nothing was full: what was asked for cannot be had at all.",
    Full.UNKNOWN: "There was room, and still the driver refused.",
}
_CAUSES: Final = {
    OomCause.TRAINING_TOO_LARGE: "This process needed more than there was: the training itself.",
    OomCause.REQUEST_TOO_LARGE: "One single block was asked for that is larger than the card.",
    OomCause.FRAGMENTATION: "Enough was reserved and idle, but in pieces too small for the request.",
    OomCause.OTHER_PROCESSES: "Other processes held what was missing.",
    OomCause.OUTSIDE_ALLOCATOR: "It was asked for outside PyTorch's allocator (context, libraries, communication).",
    OomCause.MEMORY_FRACTION: "The process is limited to a fraction of the card, and that was used up.",
    OomCause.REFUSED_DESPITE_FREE: "Free memory was many times the request: the figures contradict a shortage.",
    OomCause.SYSTEM_MEMORY_FALLBACK: "More was allocated than the card has: the driver used main memory too "
    "(Windows, WSL), which is slow, and then that was not enough either.",
    OomCause.OVERFLOWED_SIZE: "The size is impossible: a negative or overflowed size, a bug and not a shortage.",
    OomCause.BLOCK_LIMIT: "This platform gives no single block above 4 GB.",
    OomCause.HOST_MEMORY: "Main memory ran out: the process or its loader workers.",
    OomCause.WORKER_EXITED: "A loader worker ended: killed for want of RAM, or by an error of its own.",
    OomCause.SHARED_MEMORY: "Loader workers hand batches over in shared memory, and it is too small for them.",
    OomCause.GRAPH_USED_TWICE: "A graph was to be walked a second time. This is no memory error, but the hint in it "
    "(retain_graph=True) leads to one: every backward would keep its graph.",
}
_ACTIONS: Final = {
    OomAction.REDUCE_BATCH: "Take a smaller batch and accumulate gradients to the same effective batch.",
    OomAction.REDUCE_REQUEST: "Make the one large tensor smaller: sequence length, image size, chunks.",
    OomAction.EXPANDABLE_SEGMENTS: "Set PYTORCH_ALLOC_CONF=expandable_segments:True before the program starts.",
    OomAction.MAX_SPLIT_SIZE: "Where that cannot be had, set max_split_size_mb.",
    OomAction.END_OTHER_PROCESSES: "See who else is on the card (nvidia-smi) and end or move it.",
    OomAction.RAISE_FRACTION: "Raise or remove set_per_process_memory_fraction().",
    OomAction.RAISE_WATERMARK: "Raise PYTORCH_MPS_HIGH_WATERMARK_RATIO; 0.0 removes the limit and may freeze the Mac.",
    OomAction.LEAVE_ROOM: "Leave libraries room: a smaller batch, or set_per_process_memory_fraction(0.9).",
    OomAction.RESTART_PROCESS: "Start the process again; a CUDA context can be broken by an earlier error.",
    OomAction.DISABLE_FALLBACK: "Set 'CUDA - Sysmem Fallback Policy' to 'Prefer No Sysmem Fallback' in the NVIDIA "
    "control panel: then it fails early and is not slow.",
    OomAction.CHECK_SHAPES: "Look for the wrong size: a negative dimension, an overflow, a repeat by mistake.",
    OomAction.FEWER_WORKERS: "Use fewer loader workers, or let them fetch less ahead (prefetch_factor).",
    OomAction.MORE_SHARED_MEMORY: "Give the container more: docker run --shm-size=8g, or --ipc=host.",
    OomAction.MORE_HOST_MEMORY: "See what grows in RAM (main process or workers); free it, or add RAM or swap.",
    OomAction.CHECK_SYSTEM_LOG: "Look in the system's log (dmesg) for 'Out of memory: Killed', and run once with "
    "num_workers=0: an error of the worker's own then shows itself.",
    OomAction.CHECK_TOTAL: "Check the card's total in the message against the card.",
    OomAction.CHECK_COMMIT_LIMIT: "Check limits of main memory: page file (Windows), ulimit, the container's memory.",
    OomAction.ONE_BACKWARD: "Add the losses up and call backward() once, or detach() what comes from the step before.",
    OomAction.KEEP_NO_GRAPH: "Do not answer it with retain_graph=True alone; memory would grow with every step.",
}
_NOTES: Final = {
    Note.NONSENSE_FIGURE: "A figure that no memory holds (2^64 bytes, EiB) is left out: it means 'unknown'.",
    Note.ABOVE_TOTAL: "Allocated above total is not an error of the message.",
    Note.FREE_ABOVE_REQUEST: "More was free than was asked for.",
    Note.ROUNDED_REQUEST: "2 MiB and 20 MiB are the allocator's own sizes: the tensor was smaller (up to 1 or 10 MiB).",
    Note.NO_ROOM_EVEN_ALONE: "The request alone is more than the whole card: a batch of 1 may not fit either.",
    Note.RETAINED_GRAPH: "The text has retain_graph=True: each such backward keeps its whole graph.",
    Note.WORKERS: "Loader workers count together: watch the RAM of the main process and of all its children.",
}
_BACKENDS: Final = {
    Backend.CUDA: "CUDA",
    Backend.CUDA_ASYNC: "CUDA, allocator cudaMallocAsync",
    Backend.HIP: "HIP (AMD)",
    Backend.XPU: "XPU (Intel)",
    Backend.NPU: "NPU (Ascend)",
    Backend.MPS: "MPS (Apple)",
    Backend.HOST: "main memory",
}
_SHARES: Final = {
    "allocated": "allocated by this process in PyTorch",
    "private_pools": "in private pools (graphs)",
    "idle": "reserved by PyTorch, idle in pieces",
    "outside": "outside PyTorch's allocator: context, libraries, and other processes where nobody tells them apart",
    "others": "other processes",
    "free": "free",
}


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def explain_file(path: Path, *, as_json: bool) -> str:
    """The answer for a file, or for standard input (``-``).

    ``FloodmarkError`` where it holds no out-of-memory message, ``ConfigError`` where it cannot be read.
    """
    name = "standard input" if str(path) == "-" else str(path)
    try:
        found = explain_parts(_parts(path))
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or "its gzip data is damaged"
        raise ConfigError("explain.unreadable", f"{name} cannot be read: {reason}.") from None
    if found is None:
        raise FloodmarkError(
            "explain.not_recognised",
            f"{name} holds no out-of-memory message that is known (CUDA, HIP, XPU, NPU, MPS, RAM, shared memory).",
        )
    return as_json_text(found) if as_json else as_text(found)


def as_json_text(found: Explanation) -> str:
    """One JSON object; sizes in bytes."""
    value: dict[str, Any] = {
        "schema": SCHEMA,
        "backend": found.backend.value,
        "wording": found.wording.value,
        "device": found.device,
        "full": found.full.value,
        "cause": found.cause.value,
        "actions": [action.value for action in found.actions],
        "notes": [note.value for note in found.notes],
        "figures": dict(found.figures),
        "shares": dict(found.shares),
        "not_own_bytes": found.not_own_bytes,
        "processes": {str(pid): size for pid, size in found.processes.items()},
        "message": found.message,
    }
    return json.dumps(value, ensure_ascii=False, indent=2)


def as_text(found: Explanation) -> str:
    """The answer in words: what was full, whose it was, why, what to change."""
    return "\n".join(line.rstrip() for line in _lines(found))


def _lines(found: Explanation) -> Iterator[str]:
    device = "" if found.device is None else f", device {found.device}"
    yield (
        f"{_FULL[found.full]} ({_BACKENDS[found.backend]}{device})"
        if found.wording is not Wording.SECOND_BACKWARD
        else ("No memory was full yet.")
    )
    yield from _wrapped(f"Likely cause: {_CAUSES[found.cause]}", "  ")
    figures = found.figures
    if "tried_bytes" in figures:
        total = f" of {format_bytes(figures['total_bytes'])} in all" if "total_bytes" in figures else ""
        yield f"It asked for {format_bytes(figures['tried_bytes'])}{total}."
    if found.shares:
        yield "Whose memory it was:"
        for holder, size in found.shares.items():
            yield f"  {format_bytes(size):>10}  {_SHARES.get(holder, holder)}"
        for pid, size in found.processes.items():
            yield f"  {format_bytes(size):>10}    process {pid}"
    if "allowed_bytes" in figures:
        yield f"  {format_bytes(figures['allowed_bytes']):>10}  allowed to this process"
    yield "What to change:"
    for number, action in enumerate(found.actions, 1):
        yield from _wrapped(f"  {number}. {_ACTIONS[action]}", "     ")
    for note in found.notes:
        yield from _wrapped(f"Note: {_NOTES[note]}", "  ")


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, subsequent_indent=indent, break_long_words=False)


def _parts(path: Path) -> Iterator[str]:
    """A file of any length in blocks; what is no text is shown as such and passed over."""
    if str(path) == "-":
        if sys.stdin is None:
            raise ConfigError("explain.unreadable", "There is no standard input.")
        if sys.stdin.isatty():
            end = "Ctrl-Z and Enter" if sys.platform == "win32" else "Ctrl-D"
            sys.stderr.write(f"floodmark: paste the message, then press {end}.\n")
        yield from _blocks(sys.stdin.buffer)
        return
    with path.open("rb") as file:
        start = file.read(2)
        file.seek(0)
        if start == b"\x1f\x8b":
            with gzip.open(file) as unpacked:
                yield from _blocks(unpacked)
        else:
            yield from _blocks(file)


def _blocks(binary: _Readable) -> Iterator[str]:
    block = binary.read(_BLOCK)
    utf16 = block[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)  # a log redirected in PowerShell
    decoder = codecs.getincrementaldecoder("utf-16" if utf16 else "utf-8")("replace")
    while block:
        yield decoder.decode(block)
        block = binary.read(_BLOCK)
    yield decoder.decode(b"", final=True)
