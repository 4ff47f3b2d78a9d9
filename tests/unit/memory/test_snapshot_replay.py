"""A recording is undone to its beginning and carried out again; a change in it is found where it is."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_app.core.units import MIB
from desktop_app.memory.allocator import AllocatorSettings, Block, ReplicaOutOfMemoryError
from desktop_app.memory.segments import FREE
from desktop_app.memory.snapshot import parse_snapshot
from desktop_app.memory.snapshot_history import find_beginning
from desktop_app.memory.snapshot_replay import RecordedReplay, fits_with, replay_recording, replay_with

from .recorder import Recorder

SIZES = [1, 513, 300_000, MIB, MIB + 1, 3 * MIB, 9 * MIB + 5, 10 * MIB, 11 * MIB + 300_000, 20 * MIB, 41 * MIB]
EXPANDABLE = AllocatorSettings(expandable_segments=True)

operations = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), st.sampled_from(SIZES), st.sampled_from([0, 0, 0, 5])),
        st.tuples(st.just("free"), st.integers(0, 99), st.just(0)),
        st.tuples(st.just("share"), st.integers(0, 99), st.just(0)),
        st.tuples(st.just("complete"), st.integers(0, 99), st.just(0)),
        st.tuples(st.just("empty_cache"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


class Session:
    """Draws become calls on a recorder."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.live: list[Block] = []
        self.waiting: list[Block] = []

    def do(self, kind: str, choice: int, stream: int) -> None:
        if kind == "allocate":
            try:
                self.live.append(self.recorder.alloc(choice, stream=stream))
            except ReplicaOutOfMemoryError:
                self.waiting.clear()  # the cache was given back, for which torch waits for all streams
        elif kind == "free" and self.live:
            self.recorder.free(self.live.pop(choice % len(self.live)))
        elif kind == "share" and self.live:
            block = self.live.pop(choice % len(self.live))
            self.recorder.allocator.record_stream(block, stream=9)
            self.recorder.free(block, completed=False)
            self.waiting.append(block)
        elif kind == "complete" and self.waiting:
            self.recorder.complete(self.waiting.pop(choice % len(self.waiting)))
        elif kind == "empty_cache":
            while self.waiting:
                self.recorder.complete(self.waiting.pop())
            self.recorder.empty_cache()


def replayed(recorder: Recorder) -> RecordedReplay:
    snapshot = parse_snapshot(recorder.snapshot())
    beginning = find_beginning(snapshot)
    assert beginning.contradictions == 0
    return replay_recording(snapshot, beginning)


def assert_agrees(replay: RecordedReplay) -> None:
    assert replay.difference is None
    assert replay.placed == replay.allocations
    assert replay.segments_right == replay.segment_events
    assert replay.reserved_equal == replay.compared


@settings(deadline=None, max_examples=100)
@given(
    before=operations,
    after=operations,
    text=st.sampled_from(["", "", "roundup_power2_divisions:4", "max_split_size_mb:20", "expandable_segments:True"]),
)
def test_any_recording_is_replayed_to_the_last_block(
    before: list[tuple[str, int, int]], after: list[tuple[str, int, int]], text: str
) -> None:
    recorder = Recorder(settings_text=text)
    session = Session(recorder)
    recorder.recording = False
    for operation in before:
        session.do(*operation)
    state = recorder.allocator.segments()
    recorder.recording = True
    for operation in after:
        session.do(*operation)
    snapshot = parse_snapshot(recorder.snapshot())
    beginning = find_beginning(snapshot)
    assert beginning.contradictions == 0
    assert sum(view.size_bytes for view in beginning.segments) == sum(view.size_bytes for view in state)
    if text != "max_split_size_mb:20":  # where what is left of an oversize block shows only when it is used again
        assert_agrees(replay_recording(snapshot, beginning))


def test_the_beginning_is_what_was_there() -> None:
    recorder = Recorder()
    recorder.recording = False
    blocks = [recorder.alloc(size) for size in (30 * MIB, 3 * MIB, 700, 41 * MIB)]
    recorder.free(blocks[0])
    state = recorder.allocator.segments()
    recorder.recording = True
    for block in blocks[1:]:
        recorder.free(block)
    recorder.alloc(12 * MIB)
    recorder.empty_cache()
    snapshot = parse_snapshot(recorder.snapshot())
    beginning = find_beginning(snapshot)
    assert beginning.segments == state
    assert sorted(old.requested_bytes for old in beginning.blocks) == [700, 3 * MIB, 41 * MIB]
    assert_agrees(replay_recording(snapshot, beginning))


def test_a_tail_that_no_event_shows_is_found_by_what_is_cut_behind_it() -> None:
    # A block of 12.5 MiB in a hole of 13.3 owns its last 0.8 MiB; behind it 20 MiB are free.
    recorder = Recorder()
    recorder.recording = False
    recorder.free(recorder.alloc(64 * MIB))
    hole, behind, _ = (recorder.alloc(size) for size in (13 * MIB + 300_000, 20 * MIB, 20 * MIB))
    recorder.free(hole)
    block = recorder.alloc(12 * MIB + 500_000)
    assert (block.address, block.size_bytes) == (hole.address, hole.size_bytes)
    recorder.free(behind)
    state = recorder.allocator.segments()
    recorder.recording = True
    recorder.alloc(12 * MIB)
    recorder.free(block)
    snapshot = parse_snapshot(recorder.snapshot())
    beginning = find_beginning(snapshot)
    assert beginning.segments == state
    assert_agrees(replay_recording(snapshot, beginning))


def test_pressure_is_replayed_as_it_was_recorded() -> None:
    recorder = Recorder(limit_bytes=100 * MIB)
    first, second = recorder.alloc(40 * MIB), recorder.alloc(30 * MIB)
    recorder.free(first)
    recorder.alloc(60 * MIB)  # the segment of 40 goes back for it
    recorder.free(second)
    with pytest.raises(ReplicaOutOfMemoryError):
        recorder.alloc(90 * MIB)
    replay = replayed(recorder)
    assert_agrees(replay)
    assert replay.segment_events == 5


def test_expandable_pages_come_and_go_as_recorded() -> None:
    recorder = Recorder(settings_text="expandable_segments:True")
    blocks = [recorder.alloc(30 * MIB) for _ in range(4)]
    for block in blocks[1:3]:
        recorder.free(block)
    recorder.empty_cache()
    recorder.alloc(25 * MIB)
    recorder.alloc(70 * MIB)
    assert_agrees(replayed(recorder))


def test_private_pools_are_told_by_their_segments() -> None:
    recorder = Recorder()
    recorder.free(recorder.alloc(30 * MIB))
    recorder.allocator.begin_capture((0, 3))
    recorder.alloc(30 * MIB)
    recorder.allocator.end_capture()
    recorder.alloc(30 * MIB)
    assert_agrees(replayed(recorder))


def test_a_request_of_another_size_is_where_they_part() -> None:
    recorder = Recorder()
    for _ in range(4):
        recorder.alloc(3 * MIB)
    content = recorder.snapshot()
    entry = content["device_traces"][0][3]
    assert entry["action"] == "alloc"
    entry["size"] = 5 * MIB
    snapshot = parse_snapshot(content)
    replay = replay_recording(snapshot, find_beginning(snapshot))
    assert replay.difference is not None
    assert (replay.difference.position, replay.difference.kind) == (4, "address")
    assert (replay.allocations, replay.placed) == (4, 3)


def test_a_segment_that_came_too_early_is_where_they_part() -> None:
    recorder = Recorder()
    recorder.alloc(30 * MIB)
    recorder.alloc(512)
    content = recorder.snapshot()
    content["device_traces"][0].insert(
        2, {"action": "segment_alloc", "addr": 1 << 50, "size": 20 * MIB, "stream": 0, "frames": []}
    )
    content["segments"].append(
        {
            "device": 0,
            "address": 1 << 50,
            "total_size": 20 * MIB,
            "stream": 0,
            "segment_type": "large",
            "blocks": [{"size": 20 * MIB, "requested_size": 0, "state": "inactive", "frames": []}],
        }
    )
    snapshot = parse_snapshot(content)
    replay = replay_recording(snapshot, find_beginning(snapshot))
    assert replay.difference is not None
    assert (replay.difference.position, replay.difference.kind) == (4, "segment")


def test_a_segment_kept_though_it_was_free_is_where_they_part() -> None:
    recorder = Recorder()
    blocks = [recorder.alloc(30 * MIB), recorder.alloc(40 * MIB)]
    for block in blocks:
        recorder.free(block)
    content = recorder.snapshot()
    freed = content["segments"].pop()
    content["device_traces"][0].append(
        {"action": "segment_free", "addr": freed["address"], "size": freed["total_size"], "stream": 0, "frames": []}
    )
    snapshot = parse_snapshot(content)
    replay = replay_recording(snapshot, find_beginning(snapshot))
    assert replay.difference is not None
    assert (replay.difference.kind, replay.difference.recorded) == ("release", "nothing more goes back")


def test_a_recording_with_events_left_out_contradicts_itself() -> None:
    recorder = Recorder()
    for _ in range(3):
        recorder.free(recorder.alloc(3 * MIB))
    content = recorder.snapshot()
    content["device_traces"][0] = [
        entry for entry in content["device_traces"][0] if not entry["action"].startswith("free")
    ]
    beginning = find_beginning(parse_snapshot(content))
    assert beginning.contradictions == 3
    assert beginning.first_contradiction == 1


def test_frees_may_be_recorded_by_one_of_their_two_events() -> None:
    for left_out in ("free_requested", "free_completed"):
        recorder = Recorder()
        recorder.free(recorder.alloc(3 * MIB))
        recorder.alloc(4 * MIB)
        content = recorder.snapshot()
        content["device_traces"][0] = [entry for entry in content["device_traces"][0] if entry["action"] != left_out]
        snapshot = parse_snapshot(content)
        beginning = find_beginning(snapshot)
        assert beginning.contradictions == 0
        assert_agrees(replay_recording(snapshot, beginning))


def test_other_settings_are_tried_on_the_same_requests() -> None:
    recorder = Recorder()
    blocks = [recorder.alloc(11 * MIB) for _ in range(10)]
    for block in blocks[::2]:
        recorder.free(block)
    recorder.alloc(40 * MIB)
    snapshot = parse_snapshot(recorder.snapshot())
    beginning = find_beginning(snapshot)
    plain = replay_with(snapshot, beginning, AllocatorSettings())
    assert plain.reserved_peak_bytes == recorder.allocator.reserved_peak_bytes == 160 * MIB
    assert replay_with(snapshot, beginning, EXPANDABLE).reserved_peak_bytes == 160 * MIB
    coarse = replay_with(snapshot, beginning, AllocatorSettings(roundup_power2_divisions=2))
    assert coarse.reserved_peak_bytes == 168 * MIB


def test_a_request_that_failed_is_tried_with_expandable_segments() -> None:
    recorder = Recorder(limit_bytes=120 * MIB)
    blocks = [recorder.alloc(5 * MIB) for _ in range(24)]  # six segments of 20 MiB
    for number, block in enumerate(blocks):
        if number % 4:
            recorder.free(block)
    with pytest.raises(ReplicaOutOfMemoryError):
        recorder.alloc(20 * MIB)
    snapshot = parse_snapshot(recorder.snapshot())
    beginning = find_beginning(snapshot)
    assert all(block.state == FREE for view in beginning.segments for block in view.blocks)
    position = len(snapshot.events) - 1
    fits = [
        fits_with(snapshot, beginning, EXPANDABLE, position=position, limit_bytes=limit * MIB) for limit in (120, 100)
    ]
    assert fits == [False, False]  # each page of 20 MiB still holds a block
    with_pages = AllocatorSettings(expandable_segments=True, large_segment_size_bytes=11 * MIB)
    assert fits_with(snapshot, beginning, with_pages, position=position, limit_bytes=200 * MIB)
