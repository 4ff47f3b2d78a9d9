"""Everything a recording tells, in one place: what the report, the JSON and a window show of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from desktop_app.core.estimates import Timeline
from desktop_app.core.units import MIB
from desktop_app.memory.allocator_settings import AllocatorSettings
from desktop_app.memory.snapshot import Snapshot
from desktop_app.memory.snapshot_analysis import (
    Fragmentation,
    OutOfMemory,
    Owner,
    final_owners,
    find_out_of_memory,
    make_timeline,
    measure_segments,
    owners_at,
    peak_position,
)
from desktop_app.memory.snapshot_history import Beginning, find_beginning
from desktop_app.memory.snapshot_replay import OtherSettings, RecordedReplay, fits_with, replay_recording, replay_with

# Less than this, and less than a hundredth of what is reserved, is not worth a change.
_WORTH_BYTES: Final = 64 * MIB
_WORTH_SHARE: Final = 0.01
_ROUNDING_SHARE: Final = 0.05
_TRIED: Final = 3  # out-of-memory errors that are replayed once more; programs that catch them may have hundreds


@dataclass(frozen=True, slots=True)
class Advice:
    """Something to do. ``code``: "expandable_segments", "empty_cache", "rounding", "waiting", "fragmented_oom"."""

    code: str
    size_bytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Findings:
    """``replay`` is ``None`` when the events do not go together (``replay_problem`` says why) or there are none.

    ``expandable`` is the same recording with expandable segments, where it has none and there are events.
    """

    snapshot: Snapshot
    beginning: Beginning
    fragmentation: Fragmentation
    owners: tuple[Owner, ...]  # at the end
    timeline: Timeline
    peak: int | None  # position of the event with most live bytes
    peak_owners: tuple[Owner, ...]
    out_of_memory: tuple[OutOfMemory, ...]
    replay: RecordedReplay | None
    replay_problem: str | None
    expandable: OtherSettings | None
    advice: tuple[Advice, ...]

    @property
    def reserved_peak_bytes(self) -> int:
        """The most that was reserved while it was recorded, or at its end without events."""
        if not self.timeline.event_count:
            return self.fragmentation.reserved_bytes
        return max(int(self.timeline.reserved_bytes.max()), self.beginning.reserved_bytes)


def study(snapshot: Snapshot) -> Findings:
    """Replay the recording and measure it. About 20 s for a million events."""
    beginning = find_beginning(snapshot)
    replay, problem = _try_replay(snapshot, beginning)
    timeline = make_timeline(snapshot, beginning, replay.block_bytes if replay else {})
    peak = peak_position(timeline)
    errors = find_out_of_memory(snapshot, timeline)
    expandable = None
    if replay is not None and not snapshot.settings.expandable_segments:
        settings = replace(snapshot.settings, expandable_segments=True)
        expandable = replay_with(snapshot, beginning, settings)
        errors = tuple(_try_again(snapshot, beginning, settings, error) for error in errors[:_TRIED]) + errors[_TRIED:]
    findings = Findings(
        snapshot=snapshot,
        beginning=beginning,
        fragmentation=measure_segments(snapshot),
        owners=final_owners(snapshot),
        timeline=timeline,
        peak=peak,
        peak_owners=() if peak is None else owners_at(timeline, peak),
        out_of_memory=errors,
        replay=replay,
        replay_problem=problem,
        expandable=expandable,
        advice=(),
    )
    return replace(findings, advice=tuple(_advise(findings)))


def _try_replay(snapshot: Snapshot, beginning: Beginning) -> tuple[RecordedReplay | None, str | None]:
    if not snapshot.events:
        return None, None
    if snapshot.settings_problem is not None:
        return None, snapshot.settings_problem
    if beginning.contradictions:
        return None, (
            f"{beginning.contradictions} of {len(snapshot.events)} events do not go with those after them (the first "
            f"is event {beginning.first_contradiction}): the recording has left some out"
        )
    try:
        return replay_recording(snapshot, beginning), None
    except ValueError as error:
        return None, str(error)


def _try_again(
    snapshot: Snapshot, beginning: Beginning, settings: AllocatorSettings, error: OutOfMemory
) -> OutOfMemory:
    limit_bytes = error.reserved_bytes + error.device_free_bytes
    fits = fits_with(snapshot, beginning, settings, position=error.position, limit_bytes=limit_bytes)
    return replace(error, fits_expandable=fits)


def _advise(findings: Findings) -> Sequence[Advice]:
    use = findings.fragmentation
    found: list[Advice] = []
    saved_from = next((error for error in findings.out_of_memory if error.fits_expandable), None)
    if saved_from is not None:
        found.append(Advice("fragmented_oom", saved_from.idle_bytes))
    if findings.expandable is not None:
        saved = findings.reserved_peak_bytes - findings.expandable.reserved_peak_bytes
        if _worth(saved, findings.reserved_peak_bytes):
            found.append(Advice("expandable_segments", saved))
    if _worth(use.returnable_bytes, use.reserved_bytes):
        found.append(Advice("empty_cache", use.returnable_bytes))
    if use.rounding_bytes > max(_WORTH_BYTES, _ROUNDING_SHARE * use.live_bytes):
        found.append(Advice("rounding", use.rounding_bytes))
    if _worth(use.waiting_bytes, use.reserved_bytes):
        found.append(Advice("waiting", use.waiting_bytes))
    return found


def _worth(size_bytes: int, of_bytes: int) -> bool:
    return size_bytes >= max(_WORTH_BYTES, _WORTH_SHARE * of_bytes)
