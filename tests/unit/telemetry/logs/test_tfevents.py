"""Event files of TensorBoard: what its own writer wrote is read as its own reader reads it; damage is listed."""

from __future__ import annotations

import math
import struct

import pytest
from training_samples import BY_TENSORBOARD, START_S, TAKEN_BACK, WRITTEN, event, opened, record, version

from desktop_app.telemetry.logs.kinds import UnknownKindError, open_log
from desktop_app.telemetry.logs.training_log import TrainingLog


def scalars(log: TrainingLog) -> list[tuple[str, float, float, float | None]]:
    """(tag, step, seconds after the start, value), in the order of the file; NaN is ``None``."""
    return [
        (log.names[of], log.step[row], log.seconds[row] - START_S, None if math.isnan(value) else value)
        for row, of, value in zip(log.scalar_row, log.scalar_name, log.scalar_value, strict=True)
    ]


def test_what_tensorboard_has_written() -> None:
    log = opened(BY_TENSORBOARD)
    found = scalars(log.training)
    expected = [(tag, *row) for tag, rows in WRITTEN.items() for row in rows]
    assert sorted(found, key=str) == sorted([*expected, TAKEN_BACK], key=str)
    assert log.training.kept_out == {"histograms": {"weights": 1}, "images": {"picture": 1}}
    row, step = log.training.restarts[0]
    assert step == 4
    assert log.training.step[:row].tolist() == [1, 2, 3, 3, 4]
    assert log.kinds == {"TensorBoard event file": 1}
    assert not log.notes.left_out


def whole() -> list[bytes]:
    events = [event(START_S + step, step, "loss", 4.0 / (1 + step)) for step in range(8)]
    return [record(content) for content in (version(), *events)]


def test_a_file_that_is_still_written() -> None:
    parts = whole()
    for cut in (1, 5, 11, 13, len(parts[-1]) - 1):
        log = opened(b"".join(parts[:-1]) + parts[-1][:cut])
        assert [step for _, step, _, _ in scalars(log.training)] == list(range(7))
        (left_out,) = log.notes.left_out
        assert left_out.line == 9
        assert "cut off" in left_out.why


def test_a_record_with_a_wrong_checksum_is_left_out_and_no_other() -> None:
    parts = whole()
    damaged = bytearray(parts[4])
    damaged[-10] ^= 1
    log = opened(b"".join([*parts[:4], bytes(damaged), *parts[5:]]))
    assert [step for _, step, _, _ in scalars(log.training)] == [0, 1, 2, 4, 5, 6, 7]
    assert [(item.line, "checksum" in item.why) for item in log.notes.left_out] == [(5, True)]


def test_after_a_damaged_length_the_next_whole_record_is_found() -> None:
    parts = whole()
    damaged = b"\xff" * 6 + parts[4][6:]
    log = opened(b"".join([*parts[:4], damaged, *parts[5:]]))
    assert [step for _, step, _, _ in scalars(log.training)] == [0, 1, 2, 4, 5, 6, 7]
    place = sum(map(len, parts[:4]))
    assert [(item.why, item.text) for item in log.notes.left_out] == [
        ("damaged: no record", f"{len(damaged)} bytes from byte {place} on")
    ]
    first = b"\xff" * 6 + parts[0][6:]
    assert len(scalars(opened(first + b"".join(parts[1:])).training)) == 8, "the first one as well"


def test_times_that_cannot_be() -> None:
    rows = [event(when, 1, "loss", 1.0) for when in (math.nan, -5.0, 1e300, 0.0)]
    log = opened(b"".join(map(record, (version(), *rows))))
    assert all(math.isnan(seconds) for seconds in log.training.seconds)
    assert any("wall time" in text for text in log.notes.remarks)


def test_steps_below_zero_and_beyond_32_bits() -> None:
    log = opened(b"".join(map(record, (version(), event(START_S, -1, "a", 1.0), event(START_S, 1 << 40, "a", 2.0)))))
    assert log.training.step.tolist() == [-1.0, float(1 << 40)]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "empty"),
        (b"".join(record(b"\x0a\x05hello") for _ in range(3)), "no events of TensorBoard"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "PNG"),
        (b"\x80\x04\x95" + bytes(100), "floodmark snapshot"),
        (b"PK\x03\x04" + bytes(100), "zip"),
        (struct.pack("<64d", *range(64)), "binary"),
    ],
)
def test_other_files(content: bytes, words: str) -> None:
    with pytest.raises(UnknownKindError, match=words):
        open_log(content)


@pytest.mark.parametrize("size", [1, 11, 12, 13, 499_999, 1_000_000, 4_000_003])
@pytest.mark.parametrize("length", [100, 256, 65_536])
def test_records_behind_a_hole_of_zeros_are_read(size: int, length: int) -> None:
    """A length of 256 begins with a zero itself."""
    parts = whole()
    long = next(
        content for less in range(length) if len(content := event(START_S, 99, "x" * (length - less), 0.0)) == length
    )
    log = opened(b"".join([*parts[:4], bytes(size), record(long), *parts[4:]]))
    assert [step for _, step, _, _ in scalars(log.training)] == [0, 1, 2, 99, 3, 4, 5, 6, 7]
    place = sum(map(len, parts[:4]))
    assert [(item.why, item.text) for item in log.notes.left_out] == [
        ("damaged: no record", f"{size} bytes from byte {place} on")
    ]


def test_two_holes_and_one_over_a_record() -> None:
    parts = whole()
    covered = parts[5][:20] + bytes(len(parts[5]) - 20 + 600_000)
    log = opened(b"".join([*parts[:3], bytes(600_000), *parts[3:5], covered, *parts[6:], bytes(600_000)]))
    assert [step for _, step, _, _ in scalars(log.training)] == [0, 1, 2, 3, 5, 6, 7]


def test_a_million_bytes_of_damage_are_passed_in_a_moment() -> None:
    log = opened(record(version()) + bytes((0, 0, 0, 0, 1)) * 200_000 + record(event(START_S, 3, "loss", 1.0)))
    assert len(log.notes.left_out) == 1
