"""A recording's findings for another program."""

from __future__ import annotations

import json
from typing import Any

from desktop_app.memory.snapshot_analysis import OutOfMemory, Owner
from desktop_app.memory.snapshot_compare import Comparison
from desktop_app.memory.snapshot_findings import Findings
from desktop_app.memory.snapshot_replay import RecordedReplay


def as_json(findings: Findings, comparison: Comparison | None, *, top: int) -> str:
    return json.dumps(as_data(findings, comparison, top=top), ensure_ascii=False, indent=1)


def as_data(findings: Findings, comparison: Comparison | None, *, top: int) -> dict[str, Any]:
    """All of it, lists cut to the ``top`` largest. Sizes in bytes, events counted from 0."""
    snapshot, timeline, use = findings.snapshot, findings.timeline, findings.fragmentation
    return {
        "device": snapshot.device,
        "other_devices": list(snapshot.other_cards),
        "settings": snapshot.settings_text,
        "settings_problem": snapshot.settings_problem,
        "events": len(snapshot.events),
        "seconds": _seconds(findings),
        "live_bytes": use.live_bytes,
        "reserved_bytes": use.reserved_bytes,
        "live_peak_bytes": int(timeline.live_bytes.max()) if timeline.event_count else use.live_bytes,
        "live_peak_event": findings.peak,
        "reserved_peak_bytes": findings.reserved_peak_bytes,
        "fragmentation": {
            "requested_bytes": use.requested_bytes,
            "rounding_bytes": use.rounding_bytes,
            "waiting_bytes": use.waiting_bytes,
            "idle_split_bytes": use.idle_split_bytes,
            "returnable_bytes": use.returnable_bytes,
            "largest_idle_bytes": use.largest_idle_bytes,
            "idle_blocks": use.idle_blocks,
            "private_pool_bytes": use.private_pool_bytes,
            "segments": len(use.segments),
            "most_idle": [
                {
                    "address": segment.address,
                    "size_bytes": segment.size_bytes,
                    "stream": segment.stream,
                    "kind": "small" if segment.small else "large",
                    "pool": list(segment.pool),
                    "expandable": segment.expandable,
                    "live_bytes": segment.live_bytes,
                    "idle_bytes": segment.idle_bytes,
                    "largest_idle_bytes": segment.largest_idle_bytes,
                    "returnable_bytes": segment.returnable_bytes,
                }
                for segment in use.segments[:top]
                if segment.idle_bytes
            ],
        },
        "owners": _owners(findings.owners[:top]),
        "peak_owners": _owners(findings.peak_owners[:top]),
        "out_of_memory": [_out_of_memory(error, top) for error in findings.out_of_memory],
        "replay": None if findings.replay is None else _replay(findings.replay),
        "replay_problem": findings.replay_problem,
        "expandable_reserved_peak_bytes": (
            None if findings.expandable is None else findings.expandable.reserved_peak_bytes
        ),
        "advice": [{"code": advice.code, "bytes": advice.size_bytes} for advice in findings.advice],
        "comparison": None if comparison is None else _comparison(comparison, top),
    }


def _seconds(findings: Findings) -> float | None:
    times = [event.time_us for event in findings.snapshot.events if event.time_us]
    return (max(times) - min(times)) / 1e6 if times else None


def _owners(owners: tuple[Owner, ...]) -> list[dict[str, Any]]:
    return [{"owner": each.name, "bytes": each.size_bytes, "blocks": each.blocks} for each in owners]


def _out_of_memory(error: OutOfMemory, top: int) -> dict[str, Any]:
    return {
        "event": error.position,
        "requested_bytes": error.requested_bytes,
        "segment_bytes": error.segment_bytes,
        "device_free_bytes": error.device_free_bytes,
        "live_bytes": error.live_bytes,
        "reserved_bytes": error.reserved_bytes,
        "idle_bytes": error.idle_bytes,
        "asked_by": error.asked_by,
        "fits_expandable": error.fits_expandable,
        "owners": _owners(error.owners[:top]),
    }


def _replay(replay: RecordedReplay) -> dict[str, Any]:
    difference = replay.difference
    return {
        "allocations": replay.allocations,
        "placed": replay.placed,
        "segment_events": replay.segment_events,
        "segments_right": replay.segments_right,
        "compared": replay.compared,
        "reserved_equal": replay.reserved_equal,
        "first_difference": difference
        and {
            "event": difference.position,
            "kind": difference.kind,
            "recorded": difference.recorded,
            "replica": difference.replica,
        },
    }


def _comparison(comparison: Comparison, top: int) -> dict[str, Any]:
    first = comparison.first
    return {
        "recorded": comparison.recorded,
        "matched": comparison.matched,
        "unknown": comparison.unknown,
        "missing": comparison.missing,
        "begins": comparison.begins,
        "first": first
        and {
            "event": first.recorded,
            "bytes": first.size_bytes,
            "owner": first.owner,
            "op": first.op,
            "expected": first.expected
            and {
                "bytes": first.expected.size_bytes,
                "op": first.expected.op,
                "module": first.expected.module,
                "phase": first.expected.phase.value,
            },
            "after": first.after
            and {"op": first.after.op, "module": first.after.module, "phase": first.after.phase.value},
        },
        "by_op": [{"op": name, "allocations": count, "bytes": size} for name, count, size in comparison.by_op[:top]],
    }
