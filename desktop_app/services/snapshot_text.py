"""A recording's findings for a terminal: when, whose, in how many pieces, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from desktop_app.core.units import format_bytes
from desktop_app.memory.segments import DEFAULT_POOL
from desktop_app.memory.snapshot_analysis import OutOfMemory, Owner, SegmentUse
from desktop_app.memory.snapshot_compare import Comparison, Unknown
from desktop_app.memory.snapshot_findings import Advice, Findings
from desktop_app.memory.trace_data import TraceEvent
from desktop_app.services.estimate_text import Terminal

_BOLD: Final = "\x1b[1m"
_DIM: Final = "\x1b[2m"
_RED: Final = "\x1b[1;31m"
_GREEN: Final = "\x1b[1;32m"
_FIGURE: Final = 10
_CHART_ROWS: Final = 8
_WIDEST: Final = 110
_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"

_ADVICE: Final = {
    "fragmented_oom": (
        "Memory ran out while {size} was idle in pieces; with expandable segments the request fits (replayed).",
        "Set PYTORCH_ALLOC_CONF=expandable_segments:True before the first CUDA call.",
    ),
    "expandable_segments": (
        "The same requests reserve {size} less at the peak with expandable segments (replayed).",
        "Set PYTORCH_ALLOC_CONF=expandable_segments:True before the first CUDA call.",
    ),
    "empty_cache": (
        "{size} is cached in wholly free memory at the end.",
        "torch.cuda.empty_cache() gives it to other processes; the training itself does not need that.",
    ),
    "rounding": ("{size} is lost because blocks are larger than their requests.", "Look at roundup_power2_divisions."),
    "waiting": (
        "{size} was given back but waits for another stream (record_stream).",
        "Synchronise the side stream earlier, or wait on it before the tensors go.",
    ),
}


def as_text(findings: Findings, comparison: Comparison | None, terminal: Terminal, *, top: int) -> str:
    """All of it, without a line longer than the terminal is wide where that can be."""
    parts = [
        _heading(findings),
        _errors(findings, terminal, top),
        _chart(findings, terminal),
        _owners("Who holds it at the peak", findings.peak_owners, terminal, top),
        _owners("Who holds it at the end", findings.owners, terminal, top),
        _pieces(findings, terminal, top),
        _replay(findings, terminal),
        _compared(comparison, terminal, top),
        _advice(findings.advice, terminal),
    ]
    blocks = ["\n".join(line.rstrip() for line in part) for part in map(list, parts) if part]
    text = "\n\n".join(blocks)
    return text if terminal.unicode else text.encode("ascii", "replace").decode()


def _heading(findings: Findings) -> Iterator[str]:
    snapshot, use = findings.snapshot, findings.fragmentation
    others = f" (card {', '.join(map(str, snapshot.other_cards))} too: --device)" if snapshot.other_cards else ""
    yield f"Card {snapshot.device}{others}: {len(snapshot.events):,} events, {len(snapshot.segments):,} segments"
    if findings.peak is not None:
        live = format_bytes(int(findings.timeline.live_bytes[findings.peak]))
        yield f"Peak: {live} live at event {findings.peak:,}, {format_bytes(findings.reserved_peak_bytes)} reserved"
    yield f"End: {format_bytes(use.live_bytes)} live of {format_bytes(use.reserved_bytes)} reserved"
    if snapshot.settings_text:
        yield f"Settings: {snapshot.settings_text}"
    if snapshot.settings_problem:
        yield f"Settings not replayed: {snapshot.settings_problem}"
    if not snapshot.events:
        yield "No events: record with torch.cuda.memory._record_memory_history() to see what happened when."


def _errors(findings: Findings, terminal: Terminal, top: int) -> Iterator[str]:
    for error in findings.out_of_memory:
        yield terminal.paint(f"Out of memory at event {error.position:,}", _RED)
        yield from _error(error)
        yield from _owner_lines(error.owners, min(top, 5))


def _error(error: OutOfMemory) -> Iterator[str]:
    yield f"  asked for {format_bytes(error.requested_bytes)} by {error.asked_by}"
    wanted, left = format_bytes(error.segment_bytes), format_bytes(error.device_free_bytes)
    yield f"  torch tried to get {wanted}, the driver had {left}"
    yield (
        f"  full of: {format_bytes(error.live_bytes)} live, {format_bytes(error.idle_bytes)} idle in segments partly in"
        f" use, {format_bytes(error.reserved_bytes)} reserved"
    )
    if error.fits_expandable is False:
        yield "  expandable segments would not have helped (replayed)"


def _chart(findings: Findings, terminal: Terminal) -> Iterator[str]:
    """Live bytes from left to right, the most reserved as a line on top; in each column the highest of its events."""
    timeline = findings.timeline
    if timeline.event_count < 2:
        return
    width = max(20, min(terminal.width, _WIDEST) - _FIGURE - 3)
    columns = min(width, timeline.event_count)
    edges = np.linspace(0, timeline.event_count, columns, endpoint=False).astype(np.int64)
    live = np.maximum.reduceat(timeline.live_bytes, edges)
    reserved = np.maximum.reduceat(timeline.reserved_bytes, edges)
    top = max(int(reserved.max()), int(live.max()), 1)
    yield terminal.paint("Live memory over the recording", _BOLD)
    for row in range(_CHART_ROWS, 0, -1):
        floor = (row - 1) / _CHART_ROWS * top
        cells = []
        for live_bytes, reserved_bytes in zip(live.tolist(), reserved.tolist(), strict=True):
            fill = round((live_bytes - floor) / top * _CHART_ROWS * 8)
            cell = _EIGHTHS[min(8, max(0, fill))] if terminal.unicode else " #"[fill >= 4]
            is_brim = floor <= reserved_bytes - 1 < floor + top / _CHART_ROWS
            cells.append(("·" if terminal.unicode else ".") if cell == " " and is_brim else cell)
        label = format_bytes(row / _CHART_ROWS * top) if row in {_CHART_ROWS, _CHART_ROWS // 2} else ""
        yield f"{label:>{_FIGURE}} │{''.join(cells)}" if terminal.unicode else f"{label:>{_FIGURE}} |{''.join(cells)}"
    end = f"event {timeline.event_count - 1:,}"
    yield f"{'':>{_FIGURE}}  0{end:>{max(1, columns - 1)}}"
    dots = "dots" if terminal.unicode else "points"
    yield terminal.paint(f"{'':>{_FIGURE}}  {dots}: reserved", _DIM)


def _owners(title: str, owners: Sequence[Owner], terminal: Terminal, top: int) -> Iterator[str]:
    if owners and top:
        yield terminal.paint(title, _BOLD)
        yield from _owner_lines(owners, top)


def _owner_lines(owners: Sequence[Owner], top: int) -> Iterator[str]:
    for owner in owners[:top]:
        yield f"{format_bytes(owner.size_bytes):>{_FIGURE}}  {owner.blocks:>7,} ×  {owner.name}"
    rest = owners[top:]
    if rest:
        size = sum(owner.size_bytes for owner in rest)
        yield f"{format_bytes(size):>{_FIGURE}}  {sum(owner.blocks for owner in rest):>7,} ×  {len(rest)} more"


def _pieces(findings: Findings, terminal: Terminal, top: int) -> Iterator[str]:
    use = findings.fragmentation
    if not use.reserved_bytes:
        return
    yield terminal.paint("Where reserved memory is at the end", _BOLD)
    for size, what in (
        (use.requested_bytes, "asked for and in use"),
        (use.rounding_bytes, "lost to rounding"),
        (use.waiting_bytes, "waits for another stream"),
        (use.idle_split_bytes, f"idle in segments partly in use, in {use.idle_blocks:,} pieces"),
        (use.returnable_bytes, "wholly free: empty_cache() would give it back"),
    ):
        if size:
            yield f"{format_bytes(size):>{_FIGURE}}  {what}"
    if use.private_pool_bytes:
        yield f"{format_bytes(use.private_pool_bytes):>{_FIGURE}}  of all in private pools (CUDA graphs, MemPool)"
    if use.largest_idle_bytes:
        yield f"{format_bytes(use.largest_idle_bytes):>{_FIGURE}}  the largest idle piece"
    for segment in [each for each in use.segments if 0 < each.idle_bytes < each.size_bytes][: min(top, 5)]:
        yield f"  {_segment(segment)}"


def _segment(segment: SegmentUse) -> str:
    kind = "small" if segment.small else "large"
    pool = "" if segment.pool == DEFAULT_POOL else f", pool {segment.pool}"
    stream = f", stream {segment.stream:#x}" if segment.stream else ""
    return (
        f"{segment.address:#x}: {format_bytes(segment.size_bytes)} {kind}{stream}{pool},"
        f" {format_bytes(segment.idle_bytes)} idle, largest piece {format_bytes(segment.largest_idle_bytes)}"
    )


def _replay(findings: Findings, terminal: Terminal) -> Iterator[str]:
    replay = findings.replay
    if replay is None:
        if findings.replay_problem:
            yield f"Not replayed: {findings.replay_problem}."
        return
    yield terminal.paint("Replayed in the allocator replica", _BOLD)
    yield (
        f"  {replay.placed:,} of {replay.allocations:,} allocations at the recorded address,"
        f" {replay.segments_right:,} of {replay.segment_events:,} segments,"
        f" reserved equal after {replay.reserved_equal:,} of {replay.compared:,} events"
    )
    difference = replay.difference
    if difference is not None:
        yield (
            f"  first difference at event {difference.position:,}: recorded {difference.recorded}; replica"
            f" {difference.replica}"
        )


def _compared(comparison: Comparison | None, terminal: Terminal, top: int) -> Iterator[str]:
    if comparison is None:
        return
    yield terminal.paint("Held against the trace of the training", _BOLD)
    if comparison.begins is None:
        yield "  Nowhere do eight allocations in a row agree: another model, batch, precision or version?"
        return
    yield (
        f"  {comparison.matched:,} of {comparison.recorded:,} recorded allocations are in the trace, from event"
        f" {comparison.begins:,} on; {comparison.unknown:,} are not, {comparison.missing:,} of the trace never came"
    )
    if comparison.first is None:
        yield terminal.paint("  Every allocation is known, in order.", _GREEN)
        return
    yield from _first(comparison.first)
    if comparison.by_op:
        yield "  unknown allocations by operation:"
        for name, count, size in comparison.by_op[:top]:
            yield f"{format_bytes(size):>{_FIGURE}}  {count:>7,} ×  {name}"


def _first(first: Unknown) -> Iterator[str]:
    after = "" if first.after is None else f" after {_event(first.after)}"
    if first.recorded is None:
        yield f"  The first that never came{after}: {_event(first.expected)}"
        return
    operation = f" ({first.op})" if first.op else ""
    yield f"  The first unknown one: event {first.recorded:,}, {first.size_bytes:,} bytes, {first.owner}{operation}"
    yield f"  {after.strip() or 'at the beginning'}; the trace expects {_event(first.expected)}"


def _event(event: TraceEvent | None) -> str:
    if event is None:
        return "nothing more"
    module = f" of {event.module}" if event.module else ""
    return f"{event.op}{module} in {event.phase.value} ({event.size_bytes:,} bytes)"


def _advice(advice: Sequence[Advice], terminal: Terminal) -> Iterator[str]:
    if advice:
        yield terminal.paint("What to do", _BOLD)
        for each in advice:
            what, how = _ADVICE[each.code]
            yield f"  {what.format(size=format_bytes(each.size_bytes))}"
            yield f"    {how}"
