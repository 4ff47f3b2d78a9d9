"""A snapshot as typed data: the forms that torch has written since 2.1, and what is none."""

from __future__ import annotations

import copy
import pickle
import random
from pathlib import Path
from typing import Any

import pytest

from desktop_app.core.errors import ExitCode, FloodmarkError, NoSuchDeviceError
from desktop_app.core.units import MIB
from desktop_app.memory.allocator import AllocatorSettings
from desktop_app.memory.segments import FREE, LIVE, WAITING
from desktop_app.memory.snapshot import Action, parse_snapshot, read_snapshot
from desktop_app.memory.snapshot_findings import study
from desktop_app.memory.snapshot_pickle import SnapshotError

from .recorder import BACKWARD_STACK, FORWARD_STACK, Recorder


def recorded(settings: str = "") -> Recorder:
    recorder = Recorder(settings_text=settings)
    first = recorder.alloc(30 * MIB)
    second = recorder.alloc(3 * MIB, stack=BACKWARD_STACK)
    recorder.free(first)
    recorder.allocator.record_stream(second, stream=7)
    recorder.free(second, completed=False)
    recorder.alloc(700)
    return recorder


def test_segments_blocks_and_events_are_what_was_recorded() -> None:
    snapshot = parse_snapshot(recorded().snapshot())
    assert [event.action for event in snapshot.events] == [
        Action.SEGMENT_ALLOC,
        Action.ALLOC,
        Action.SEGMENT_ALLOC,
        Action.ALLOC,
        Action.FREE_REQUESTED,
        Action.FREE_COMPLETED,
        Action.FREE_REQUESTED,
        Action.SEGMENT_ALLOC,
        Action.ALLOC,
    ]
    assert sorted((segment.size_bytes // MIB, segment.small) for segment in snapshot.segments) == [
        (2, True),
        (20, False),
        (30, False),
    ]
    blocks = {block.size_bytes: block for segment in snapshot.segments for block in segment.blocks}
    assert {size: block.state for size, block in blocks.items()} == {
        30 * MIB: FREE,
        3 * MIB: WAITING,
        17 * MIB: FREE,
        1024: LIVE,
        2 * MIB - 1024: FREE,
    }
    assert blocks[1024].requested_bytes == 700
    frames = snapshot.stacks[blocks[1024].stack]
    assert [frame.name for frame in frames] == [frame["name"] for frame in FORWARD_STACK]
    assert snapshot.events[3].time_us is not None
    assert snapshot.reserved_bytes == 52 * MIB


def test_frames_cannot_steer_the_terminal_that_shows_them() -> None:
    recorder = Recorder()
    recorder.alloc(512, stack=[{"name": "\x1b[31mred\n", "filename": "a\x07\nb.py", "line": 3}])
    ((frame,),) = [stack for stack in parse_snapshot(recorder.snapshot()).stacks if stack]
    assert frame == ("a??b.py", 3, "?[31mred?")


def test_equal_stacks_are_kept_once() -> None:
    recorder = Recorder()
    for _ in range(5):
        recorder.alloc(512)
        recorder.alloc(512, stack=copy.deepcopy(FORWARD_STACK))
    assert len(parse_snapshot(recorder.snapshot()).stacks) == 2  # that one, and no stack


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_every_protocol_gives_the_same(tmp_path: Path, protocol: int) -> None:
    path = tmp_path / "s.pickle"
    path.write_bytes(pickle.dumps(recorded().snapshot(), protocol=protocol))
    assert read_snapshot(path).events == parse_snapshot(recorded().snapshot()).events


def test_settings_are_read_from_the_text() -> None:
    snapshot = parse_snapshot(recorded("max_split_size_mb:64,roundup_power2_divisions:4").snapshot())
    assert snapshot.settings == AllocatorSettings(max_split_size_bytes=64 * MIB, roundup_power2_divisions=4)
    assert snapshot.settings_text == "max_split_size_mb:64,roundup_power2_divisions:4"
    assert snapshot.settings_problem is None


def test_expandable_segments_show_whatever_the_text_says() -> None:
    content = recorded("expandable_segments:True").snapshot()
    content["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"] = ""  # switched on by _set_allocator_settings
    snapshot = parse_snapshot(content)
    assert snapshot.settings.expandable_segments
    assert all(segment.expandable for segment in snapshot.segments)


def test_settings_that_the_replica_does_not_know_are_named() -> None:
    content = recorded().snapshot()
    content["allocator_settings"]["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"
    snapshot = parse_snapshot(content)
    assert snapshot.settings_problem is not None
    assert "cudaMallocAsync" in snapshot.settings_problem


def without_the_new(content: dict[str, Any]) -> dict[str, Any]:
    """torch 2.1: no times, no pools of events, no settings."""
    del content["allocator_settings"], content["external_annotations"]
    for trace in content["device_traces"]:
        for entry in trace:
            del entry["time_us"], entry["compile_context"]
    for segment in content["segments"]:
        del segment["is_expandable"], segment["segment_pool_id"]
        for block in segment["blocks"]:
            del block["address"]
    return content


def with_the_newest(content: dict[str, Any]) -> dict[str, Any]:
    """torch 2.13 and 2.14: pools of events, users' marks, annotations."""
    for entry in content["device_traces"][0]:
        entry |= {"pool_id": (0, 0), "user_metadata": "", "device": 0}
    content["device_traces"][0] += [
        {"action": "user_defined", "addr": 0, "size": 0, "stream": 0, "frames": []},
        {"action": "snapshot", "addr": 0, "size": 31 * MIB, "stream": 0, "frames": []},
    ]
    content["external_annotations"] = [{"stage": "START", "name": "step", "device": 0, "time_us": 1}]
    for segment in content["segments"]:
        segment["registration_counter"] = -1
        for block in segment["blocks"]:
            block["state"] = block["state"].replace("pending", "awaiting")
    return content


@pytest.mark.parametrize("change", [without_the_new, with_the_newest])
def test_older_and_newer_forms_say_the_same(change: Any) -> None:
    plain = parse_snapshot(recorded().snapshot())
    other = parse_snapshot(change(recorded().snapshot()))
    kept = [event for event in other.events if event.action not in {Action.SNAPSHOT, Action.OTHER}]
    assert [event[:5] for event in kept] == [event[:5] for event in plain.events]
    assert other.segments == plain.segments


def test_the_segments_alone_are_a_snapshot_too() -> None:
    snapshot = parse_snapshot(recorded().snapshot()["segments"])  # torch.cuda.memory_snapshot()
    assert (snapshot.reserved_bytes, snapshot.events) == (52 * MIB, ())
    assert study(snapshot).fragmentation.live_bytes == 1024


def test_the_history_of_a_block_in_torch_2_0_is_read() -> None:
    content = recorded().snapshot()
    block = next(block for segment in content["segments"] for block in segment["blocks"] if block["size"] == 1024)
    del block["frames"], block["requested_size"]
    block["history"] = [{"addr": 0, "real_size": 700, "frames": FORWARD_STACK}]
    blocks = [block for segment in parse_snapshot(content).segments for block in segment.blocks]
    (found,) = [block for block in blocks if block.state == LIVE]
    assert found.requested_bytes == 700


def test_the_card_with_most_recorded_is_taken() -> None:
    content = recorded().snapshot(devices=3, device=1)
    idle = Recorder()
    idle.alloc(512)
    content["segments"] += [{**segment, "device": 2, "address": 1 << 40} for segment in idle.snapshot()["segments"]]
    snapshot = parse_snapshot(content)
    assert (snapshot.device, snapshot.other_cards) == (1, (2,))
    assert parse_snapshot(content, device=2).reserved_bytes == 2 * MIB
    with pytest.raises(NoSuchDeviceError, match="nothing of card 0; it knows 1, 2") as caught:
        parse_snapshot(content, device=0)
    assert caught.value.exit_code == ExitCode.NO_DEVICE


def test_an_empty_snapshot_is_one() -> None:
    assert parse_snapshot({"segments": [], "device_traces": [[], []]}).events == ()


def bent(change: Any) -> dict[str, Any]:
    content = recorded().snapshot()
    change(content)
    return content


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (5, "no list of segments"),
        ({"segments": 3}, "segments of the snapshot is no list"),
        ({"segments": [3]}, "segment 0 is no dictionary"),
        ({"segments": [{}]}, "address of segment 0 is no number"),
        ({"segments": [], "device_traces": [[]] * 5000}, "5000 cards"),
        ({"segments": [], "device_traces": [[{}]]}, "event 0 has no action"),
        ({"segments": [], "device_traces": [[{"action": "alloc"}]]}, "addr of event 0 is no number"),
        ({"segments": [], "device_traces": [[{"action": "alloc", "addr": -1, "size": 1}]]}, "out of range"),
        (bent(lambda c: c["segments"].append(c["segments"][0])), "where another one lies"),
        (bent(lambda c: c["segments"][0].update(total_size=5)), "do not fill it"),
        (bent(lambda c: c["segments"][0].update(total_size=1 << 70)), "out of range"),
        (bent(lambda c: c["segments"][0]["blocks"][0].update(state=[1])), "a state of its own"),
        (bent(lambda c: c["segments"][0]["blocks"][0].update(size=0)), "block 0 of segment 0"),
        (bent(lambda c: c["device_traces"][0][1].update(frames=[3])), "a frame that is no dictionary"),
        (bent(lambda c: c["device_traces"][0][1].update(frames=[{"filename": 1}])), "without file, line or name"),
    ],
)
def test_plain_data_that_is_no_snapshot_is_one_line(tmp_path: Path, content: object, reason: str) -> None:
    path = tmp_path / "s.pickle"
    path.write_bytes(pickle.dumps(content))
    with pytest.raises(SnapshotError, match=reason) as caught:
        read_snapshot(path)
    assert "\n" not in caught.value.message


def test_a_bent_snapshot_is_studied_or_refused_but_never_worse(tmp_path: Path) -> None:
    choose = random.Random(3)
    path = tmp_path / "s.pickle"
    values: list[Any] = [None, -1, 0, 1, 511, 1 << 40, 1 << 63, "alloc", "segment_unmap", "oom", [], {}, True, 2.5]
    studied = 0
    messages: list[str] = []
    for number in range(400):
        content = copy.deepcopy(recorded("expandable_segments:True" if number % 2 else "").snapshot())
        for _ in range(choose.choice([1, 2, 5])):
            holder: Any = content
            while True:
                key = choose.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
                inner = holder[key]
                if isinstance(inner, (dict, list)) and inner and choose.random() < 0.9:
                    holder = inner
                    continue
                if isinstance(holder, list) and choose.random() < 0.5:
                    del holder[key]
                else:
                    holder[key] = choose.choice(values)
                break
        path.write_bytes(pickle.dumps(content))
        try:
            study(read_snapshot(path))
            studied += 1
        except FloodmarkError as error:
            messages.append(error.message)
    assert studied > 50, messages[:9]
    assert not [message for message in messages if "\n" in message]
