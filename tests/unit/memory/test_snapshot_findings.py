"""What a recording tells: owners, timeline, fragmentation, what could go back, why memory ran out."""

from __future__ import annotations

import numpy as np
import pytest

from desktop_app.core.estimates import ALIVE
from desktop_app.core.units import MIB
from desktop_app.memory.allocator import ReplicaOutOfMemoryError
from desktop_app.memory.snapshot import Frame, parse_snapshot
from desktop_app.memory.snapshot_analysis import owners_at
from desktop_app.memory.snapshot_findings import Advice, Findings, study
from desktop_app.memory.snapshot_frames import BEFORE_RECORDING, NO_PYTHON, NO_STACK, op_of, owner_of

from .recorder import ADDMM, BACKWARD_STACK, EMPTY, ENGINE, FORWARD_STACK, LINEAR, TRAIN, Recorder, frame


def studied(recorder: Recorder) -> Findings:
    return study(parse_snapshot(recorder.snapshot()))


def stack(*frames: dict[str, object]) -> list[Frame]:
    return [Frame(**each) for each in frames]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("frames", "owner", "op"),
    [
        (FORWARD_STACK, "model.py:7 forward", "addmm_out_cuda"),
        (BACKWARD_STACK, "backward of Addmm", "AddmmBackward"),
        ([LINEAR], "linear.py:125 forward", "forward"),
        ([LINEAR, TRAIN], "train.py:42 step", "forward"),
        ([EMPTY, ENGINE], NO_PYTHON, ""),
        ([], NO_STACK, ""),
        ([ADDMM, frame("C:\\Users\\ada\\train.py", 3, "main")], "train.py:3 main", "addmm_out_cuda"),
        ([frame("/run/ipykernel_77/123.py", 5, "<module>")], "123.py:5 <module>", "<module>"),
        ([frame("<frozen importlib._bootstrap>", 1, "_call"), TRAIN], "train.py:42 step", "_call"),
        ([frame("/opt/conda/lib/python3.11/contextlib.py", 81, "inner"), TRAIN], "train.py:42 step", "inner"),
    ],
)
def test_the_owner_is_the_users_own_line(frames: list[dict[str, object]], owner: str, op: str) -> None:
    assert (owner_of(stack(*frames)), op_of(stack(*frames))) == (owner, op)


def test_the_timeline_has_every_block_from_birth_to_death() -> None:
    recorder = Recorder()
    recorder.recording = False
    old = recorder.alloc(30 * MIB, stack=[TRAIN])
    recorder.recording = True
    block = recorder.alloc(12 * MIB)
    recorder.free(old)
    recorder.free(block)
    recorder.alloc(512, stack=[])
    timeline = studied(recorder).timeline
    # 0 segment, 1 alloc, 2 and 3 free, 4 and 5 free, 6 segment, 7 alloc
    assert (timeline.live_bytes / MIB).tolist() == [30, 42, 12, 12, 0, 0, 0, 512 / MIB]
    assert (timeline.reserved_bytes / MIB).tolist() == [42, 42, 42, 42, 42, 42, 44, 44]
    assert timeline.born.tolist() == [0, 1, 7]
    assert timeline.died.tolist() == [2, 4, ALIVE]
    assert (timeline.size_bytes / MIB).tolist() == [30, 12, 512 / MIB]
    assert [timeline.owners[number] for number in timeline.owner] == [
        BEFORE_RECORDING,
        "model.py:7 forward",
        NO_STACK,
    ]
    assert timeline.ops[timeline.op[1]] == "addmm_out_cuda"
    assert timeline.event_count == 8
    assert timeline.phases == ()


def test_the_levels_of_the_timeline_are_the_sums_of_its_blocks() -> None:
    recorder = Recorder()
    blocks = [recorder.alloc(size) for size in (3 * MIB, 700, 41 * MIB, 9 * MIB, 13 * MIB)]
    for block in blocks[::2]:
        recorder.free(block)
    findings = studied(recorder)
    timeline = findings.timeline
    for position in range(timeline.event_count):
        alive = (timeline.born <= position) & (timeline.died > position)
        if position:
            assert int(timeline.size_bytes[alive].sum()) == timeline.live_bytes[position]
        assert sum(owner.size_bytes for owner in owners_at(timeline, position)) == int(timeline.size_bytes[alive].sum())
    assert int(timeline.live_bytes[-1]) == recorder.allocator.live_bytes == findings.fragmentation.live_bytes
    assert findings.replay is not None
    assert np.array_equal(findings.replay.live_bytes, timeline.live_bytes)
    assert int(timeline.reserved_bytes.max()) == recorder.allocator.reserved_peak_bytes


def test_the_peak_is_that_of_the_allocator_and_has_its_owners() -> None:
    recorder = Recorder()
    recorder.alloc(20 * MIB)
    recorder.free(recorder.alloc(50 * MIB, stack=BACKWARD_STACK))
    recorder.alloc(30 * MIB)
    findings = studied(recorder)
    assert findings.peak == 3
    assert findings.timeline.live_bytes[3] == recorder.allocator.live_peak_bytes == 70 * MIB
    assert [(owner.name, owner.size_bytes // MIB, owner.blocks) for owner in findings.peak_owners] == [
        ("backward of Addmm", 50, 1),
        ("model.py:7 forward", 20, 1),
    ]
    assert [(owner.name, owner.size_bytes // MIB, owner.blocks) for owner in findings.owners] == [
        ("model.py:7 forward", 20 + 30, 2)
    ]


def test_fragmentation_adds_up_to_what_is_reserved() -> None:
    recorder = Recorder()
    blocks = [recorder.alloc(size) for size in (3 * MIB + 1, 5 * MIB, 700, 41 * MIB, 30 * MIB)]
    recorder.allocator.record_stream(blocks[1], stream=4)
    recorder.free(blocks[1], completed=False)
    recorder.free(blocks[3])
    use = studied(recorder).fragmentation
    allocator = recorder.allocator
    assert use.live_bytes == allocator.live_bytes
    assert use.requested_bytes == 3 * MIB + 1 + 700 + 30 * MIB
    assert use.waiting_bytes == 5 * MIB
    assert use.returnable_bytes == allocator.returnable_bytes == 42 * MIB
    assert use.idle_split_bytes == allocator.idle_split_bytes
    assert use.live_bytes + use.waiting_bytes + use.idle_split_bytes + use.returnable_bytes == use.reserved_bytes
    assert use.reserved_bytes == allocator.reserved_bytes
    assert use.largest_idle_bytes == 42 * MIB
    assert use.segments[0].idle_bytes == 42 * MIB
    assert use.segments[0].returnable_bytes == 42 * MIB


def test_of_expandable_segments_whole_pages_can_go_back() -> None:
    recorder = Recorder(settings_text="expandable_segments:True")
    blocks = [recorder.alloc(30 * MIB) for _ in range(4)]
    recorder.free(blocks[1])
    recorder.free(blocks[2])
    findings = studied(recorder)
    use = findings.fragmentation
    assert use.returnable_bytes == recorder.allocator.returnable_bytes == 40 * MIB
    assert use.idle_split_bytes == recorder.allocator.idle_split_bytes == 20 * MIB
    assert findings.expandable is None
    assert [advice.code for advice in findings.advice] == []


def test_private_pools_are_counted() -> None:
    recorder = Recorder()
    recorder.allocator.begin_capture((1, 0))
    recorder.alloc(30 * MIB)
    recorder.allocator.end_capture()
    recorder.alloc(20 * MIB)
    assert studied(recorder).fragmentation.private_pool_bytes == 30 * MIB


def test_an_out_of_memory_error_says_what_was_full() -> None:
    recorder = Recorder(limit_bytes=100 * MIB)
    recorder.alloc(40 * MIB)
    cut = recorder.alloc(30 * MIB, stack=BACKWARD_STACK)
    recorder.free(cut)
    recorder.alloc(12 * MIB, stack=[TRAIN])
    with pytest.raises(ReplicaOutOfMemoryError):
        recorder.alloc(47 * MIB - 100)
    (error,) = studied(recorder).out_of_memory
    assert (error.requested_bytes, error.segment_bytes) == (47 * MIB, 48 * MIB)
    assert error.device_free_bytes == 3 * MIB
    assert (error.live_bytes, error.reserved_bytes, error.idle_bytes) == (52 * MIB, 70 * MIB, 18 * MIB)
    assert error.asked_by == "model.py:7 forward"
    assert [owner.name for owner in error.owners] == ["model.py:7 forward", "train.py:42 step"]
    assert error.fits_expandable is False


def test_expandable_segments_are_advised_when_they_would_have_helped() -> None:
    # 5 MiB sit in a segment of 200: 210 do not fit behind them, but in an expandable segment they do.
    recorder = Recorder(limit_bytes=300 * MIB)
    recorder.free(recorder.alloc(200 * MIB))
    recorder.alloc(5 * MIB)
    with pytest.raises(ReplicaOutOfMemoryError):
        recorder.alloc(210 * MIB)
    recorder.entries[-1]["device_free"] = 100 * MIB
    findings = studied(recorder)
    assert [error.fits_expandable for error in findings.out_of_memory] == [True]
    assert findings.advice[0] == Advice("fragmented_oom", 195 * MIB)


def test_expandable_segments_are_advised_when_they_would_reserve_less() -> None:
    # Buffers that grow: each one needs a segment of its own, while one that can grow has room for the next.
    recorder = Recorder()
    for size in range(100, 400, 50):
        recorder.free(recorder.alloc(size * MIB))
        recorder.alloc(5 * MIB)
    findings = studied(recorder)
    assert findings.expandable is not None
    assert findings.reserved_peak_bytes == recorder.allocator.reserved_peak_bytes
    (advice,) = [each for each in findings.advice if each.code == "expandable_segments"]
    other = Recorder(settings_text="expandable_segments:True")
    for size in range(100, 400, 50):
        other.free(other.alloc(size * MIB))
        other.alloc(5 * MIB)
    assert advice.size_bytes == recorder.allocator.reserved_peak_bytes - other.allocator.reserved_peak_bytes
    assert advice.size_bytes > 500 * MIB


def test_idle_memory_is_advised_to_be_given_back_only_when_it_is_much() -> None:
    recorder = Recorder()
    recorder.free(recorder.alloc(40 * MIB))
    assert [advice.code for advice in studied(recorder).advice] == []
    recorder.free(recorder.alloc(400 * MIB))
    (advice,) = [each for each in studied(recorder).advice if each.code == "empty_cache"]
    assert advice.size_bytes == 440 * MIB


def test_a_recording_without_events_has_owners_and_pieces() -> None:
    recorder = Recorder()
    recorder.alloc(30 * MIB)
    recorder.entries.clear()
    findings = studied(recorder)
    assert (findings.peak, findings.replay, findings.replay_problem, findings.expandable) == (None, None, None, None)
    assert findings.timeline.event_count == 0
    assert [owner.name for owner in findings.owners] == ["model.py:7 forward"]
    assert findings.reserved_peak_bytes == 30 * MIB


def test_a_recording_with_gaps_is_measured_but_not_replayed() -> None:
    recorder = Recorder()
    for _ in range(3):
        recorder.free(recorder.alloc(3 * MIB))
    recorder.entries[:] = [entry for entry in recorder.entries if not entry["action"].startswith("free")]
    findings = studied(recorder)
    assert findings.replay is None
    assert findings.replay_problem is not None
    assert "3 of 4 events" in findings.replay_problem
    assert findings.timeline.live_bytes.tolist()[-1] == 3 * MIB  # the three lie at one address


def test_segments_of_both_kinds_are_measured_but_not_replayed() -> None:
    content = Recorder().snapshot()
    for settings, device in (("", 0), ("expandable_segments:True", 0)):
        recorder = Recorder(settings_text=settings)
        recorder.alloc(30 * MIB)
        part = recorder.snapshot()
        for segment in part["segments"]:
            segment["address"] += (1 << 50) * bool(settings)
        for entry in part["device_traces"][device]:
            entry["addr"] += (1 << 50) * bool(settings)
        content["segments"] += part["segments"]
        content["device_traces"][0] += part["device_traces"][device]
    findings = study(parse_snapshot(content))
    assert findings.replay_problem == "some segments are expandable and some are not"
    assert findings.fragmentation.reserved_bytes == 70 * MIB
