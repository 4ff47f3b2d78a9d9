"""A recording is read beside the window, the newest wins, and what is none is said in one line."""

from __future__ import annotations

import pickle
import threading
from pathlib import Path

import pytest

from desktop_app.core.units import MIB
from desktop_app.services import snapshot_reader
from desktop_app.services.facade import SnapshotState
from desktop_app.services.snapshot_reader import SnapshotReader

BASE = 0x7F0000000000


def event(action: str, offset: int, size: int, name: str = "") -> dict[str, object]:
    frames = [{"filename": "/app/train.py", "line": 7, "name": name}] if name else []
    return {"action": action, "addr": BASE + offset, "size": size, "stream": 0, "time_us": 0, "frames": frames}


def recording(folder: Path) -> Path:
    """Two blocks of 4 MiB in one segment of 20; the first one is freed."""
    trace = [
        event("segment_alloc", 0, 20 * MIB),
        event("alloc", 0, 4 * MIB, "forward"),
        event("alloc", 4 * MIB, 4 * MIB, "backward"),
        event("free_requested", 0, 4 * MIB),
        event("free_completed", 0, 4 * MIB),
    ]
    states = ((4, "inactive"), (4, "active_allocated"), (12, "inactive"))
    blocks, offset = [], 0
    for mib, state in states:
        size = mib * MIB
        used = size if state == "active_allocated" else 0
        blocks.append({"address": BASE + offset, "size": size, "requested_size": used, "state": state, "frames": []})
        offset += size
    segment = {
        "device": 0,
        "address": BASE,
        "total_size": 20 * MIB,
        "allocated_size": 4 * MIB,
        "active_size": 4 * MIB,
        "requested_size": 4 * MIB,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": blocks,
    }
    path = folder / "run.pickle"
    path.write_bytes(pickle.dumps({"segments": [segment], "device_traces": [trace], "allocator_settings": {}}))
    return path


def test_recording_becomes_a_timeline(tmp_path: Path) -> None:
    reader = SnapshotReader()
    assert reader.status.get().state is SnapshotState.NONE
    reader.open(recording(tmp_path))
    status = reader.wait(30)
    assert (status.state, status.name) == (SnapshotState.READY, "run.pickle")
    timeline = status.timeline
    assert timeline is not None
    assert timeline.live_bytes.max() == 8 * MIB
    assert timeline.reserved_bytes.max() == 20 * MIB
    assert timeline.size_bytes.tolist() == [4 * MIB, 4 * MIB]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"once upon a time", "snapshot.not_plain"),
        (pickle.dumps({"a": 1}), "snapshot.malformed"),
        (None, "snapshot.unreadable"),
    ],
)
def test_what_is_no_recording_is_said(tmp_path: Path, content: bytes | None, code: str) -> None:
    path = tmp_path / "other.pickle"
    if content is not None:
        path.write_bytes(content)
    reader = SnapshotReader()
    reader.open(path)
    status = reader.wait(30)
    assert status.state is SnapshotState.FAILED
    assert status.error_code == code
    assert status.error
    assert "\n" not in status.error


def test_the_newest_file_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one takes longer; what it finds comes too late."""
    slow, made = threading.Event(), []
    real = snapshot_reader._timeline

    def wait(path: Path) -> object:
        if path.name == "slow.pickle":
            slow.wait(30)
        made.append(path.name)
        return real(recording(tmp_path))

    monkeypatch.setattr(snapshot_reader, "_timeline", wait)
    reader = SnapshotReader()
    reader.open(tmp_path / "slow.pickle")
    reader.open(tmp_path / "fast.pickle")
    assert reader.wait(30).name == "fast.pickle"
    (older,) = [thread for thread in threading.enumerate() if thread.name == "snapshot"]
    slow.set()
    older.join(30)
    assert made == ["fast.pickle", "slow.pickle"]
    assert reader.status.get().name == "fast.pickle"
