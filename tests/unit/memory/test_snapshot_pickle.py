"""Files from strangers: plain data is read, everything else is one line, and nothing is ever executed."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import random
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from desktop_app.core.errors import ExitCode
from desktop_app.core.units import MIB
from desktop_app.memory.snapshot_pickle import SnapshotError, find_problem, read_plain_pickle

from .recorder import Recorder

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 64) - 1)
    | st.floats(allow_nan=False)
    | st.text(max_size=300)
    | st.tuples(st.integers(0, 1 << 40), st.integers(0, 9)),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=30), inner, max_size=5),
    max_leaves=30,
)


def written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def refusal(path: Path, data: bytes) -> SnapshotError:
    with pytest.raises(SnapshotError) as caught:
        read_plain_pickle(written(path, data))
    assert caught.value.exit_code == ExitCode.USAGE
    assert "\n" not in caught.value.message
    assert str(path) in caught.value.message
    return caught.value


@settings(deadline=None, max_examples=200)
@given(value=plain, protocol=st.sampled_from([2, 3, 4, 5]))
def test_plain_data_is_admitted_in_every_binary_protocol(value: Any, protocol: int) -> None:
    assert find_problem(pickle.dumps(value, protocol=protocol)) is None


@pytest.mark.parametrize("compressed", [False, True])
def test_a_snapshot_is_read_as_it_was_written(tmp_path: Path, compressed: bool) -> None:
    recorder = Recorder()
    recorder.free(recorder.alloc(3 * MIB))
    content = recorder.snapshot()
    data = pickle.dumps(content)
    assert read_plain_pickle(written(tmp_path / "s.pickle", gzip.compress(data) if compressed else data)) == content


class Burglar:
    """Unpickled carelessly, it leaves a file behind."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"echo got in > {self.path}",)


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_code_in_a_pickle_is_not_executed(tmp_path: Path, protocol: int) -> None:
    trace = tmp_path / "trace"
    hostile = {"segments": [{"address": Burglar(trace)}]}
    refusal(tmp_path / "s.pickle", pickle.dumps(hostile, protocol=protocol))
    assert not trace.exists()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x80\x04cos\nsystem\n.", "wants to load or call Python code"),
        (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", "wants to load or call Python code"),
        (b"\x80\x02(ios\nsystem\n.", "wants to load or call Python code"),
        (b"\x80\x02\x82\x01.", "wants to load or call Python code"),
        (b"\x80\x02Pname\n.", "wants to load or call Python code"),
        (pickle.dumps({"a": {1, 2}}), "something other than numbers"),
        (pickle.dumps({"a": b"bytes"}), "something other than numbers"),
        (pickle.dumps({"a": 1 << 80}), "something other than numbers"),
        (pickle.dumps({((1, 2), 3): 4}), "something other than numbers"),
        (b"", "it is empty"),
        (pickle.dumps({"segments": []})[:-1], "it ends in the middle"),
        (b"hello", "does not begin like a pickle"),
    ],
)
def test_what_is_no_plain_pickle_is_named(tmp_path: Path, data: bytes, reason: str) -> None:
    assert reason in refusal(tmp_path / "s.pickle", data).message


def test_other_kinds_of_files_are_recognised(tmp_path: Path) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("data.pkl", b"")
    assert "torch.save" in refusal(tmp_path / "s.pt", archive.getvalue()).message
    assert "web page" in refusal(tmp_path / "s.html", b"<!DOCTYPE html>").message
    assert "JSON" in refusal(tmp_path / "s.json", b'{"segments": []}').message


def test_a_memo_index_beyond_the_file_is_refused(tmp_path: Path) -> None:
    # The unpickler would make its memo 2 ** 33 entries long, and touch all of it.
    refusal(tmp_path / "s.pickle", b"\x80\x02}r" + struct.pack("<I", 0xFFFFFFFF) + b".")


def test_nested_tuples_are_refused_before_their_hash_recurses(tmp_path: Path) -> None:
    refusal(tmp_path / "s.pickle", b"\x80\x04}K\x01K\x02\x86" + b"K\x01\x86" * 500_000 + b"Ns.")


def test_a_file_of_empty_lists_is_refused(tmp_path: Path) -> None:
    assert "empty lists" in refusal(tmp_path / "s.pickle", b"\x80\x04(" + b"]" * 2_000_000 + b"l.").message


def test_a_text_longer_than_the_file_is_refused(tmp_path: Path) -> None:
    assert "ends in the middle" in refusal(tmp_path / "s.pickle", b"\x80\x04X\xff\xff\xff\x7fabc.").message


def test_sizes_are_limited_before_and_after_gunzip(tmp_path: Path) -> None:
    data = pickle.dumps({"segments": ["x" * 5000]})
    for content in (data, gzip.compress(data)):
        with pytest.raises(SnapshotError, match="holds more than 1 KiB"):
            read_plain_pickle(written(tmp_path / "s.pickle", content), max_bytes=1024)
    bomb = gzip.compress(b"\x00" * 30_000_000)
    with pytest.raises(SnapshotError, match="holds more than 1 MiB"):
        read_plain_pickle(written(tmp_path / "bomb.pickle", bomb), max_bytes=MIB)


def test_a_damaged_gzip_is_one_line(tmp_path: Path) -> None:
    data = gzip.compress(pickle.dumps({"segments": []}))
    refusal(tmp_path / "short.gz", data[:-9])
    refusal(tmp_path / "wrong.gz", data[:12] + b"\xff\xff\xff" + data[15:])


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SnapshotError, match=r"Cannot read .*No such file"):
        read_plain_pickle(tmp_path / "missing.pickle")
    with pytest.raises(SnapshotError, match="Cannot read"):
        read_plain_pickle(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_pipe_that_nobody_writes_to_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SnapshotError, match="pipe is no file"):
        read_plain_pickle(tmp_path / "pipe")


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no devices on this system")
def test_a_device_that_never_ends_is_no_file() -> None:
    with pytest.raises(SnapshotError, match="/dev/zero is no file"):
        read_plain_pickle(Path("/dev/zero"))


def test_a_mutated_pickle_is_read_or_refused_but_never_worse(tmp_path: Path) -> None:
    recorder = Recorder()
    blocks = [recorder.alloc(size) for size in (512, 3 * MIB, 30 * MIB)]
    recorder.free(blocks[1])
    original = pickle.dumps(recorder.snapshot())
    choose = random.Random(7)
    path = tmp_path / "s.pickle"
    messages: list[str] = []
    for _ in range(800):
        data = bytearray(original)
        for _ in range(choose.choice([1, 1, 2, 8])):
            place = choose.randrange(len(data))
            match choose.randrange(3):
                case 0:
                    data[place] = choose.randrange(256)
                case 1:
                    del data[place : place + choose.randrange(1, 20)]
                case _:
                    data[place:place] = choose.randbytes(choose.randrange(1, 20))
        try:
            read_plain_pickle(written(path, bytes(data)))
        except SnapshotError as error:
            messages.append(error.message)
    assert len(messages) > 150
    assert not [message for message in messages if "\n" in message]


def as_the_cpp_pickler_writes(value: Any) -> bytes:
    """torch/csrc/jit/serialization/pickler.cpp: protocol 2, eight bytes for large integers, every text in the memo."""
    memo: dict[str, int] = {}

    def write(value: Any) -> bytes:
        match value:
            case bool():
                return b"\x88" if value else b"\x89"
            case int() if 0 <= value < 256:
                return b"K" + bytes([value])
            case int() if 0 <= value < 1 << 16:
                return b"M" + struct.pack("<H", value)
            case int() if -(1 << 31) <= value < 1 << 31:
                return b"J" + struct.pack("<i", value)
            case int():
                return b"\x8a\x08" + struct.pack("<q", value)
            case float():
                return b"G" + struct.pack(">d", value)
            case str():
                return text(value)
            case tuple():
                return b"".join(map(write, value)) + b"\x86"
            case list():
                return b"](" + b"".join(map(write, value)) + b"e"
            case dict():
                pairs = [part for pair in value.items() for part in pair]
                return b"}(" + b"".join(map(write, pairs)) + b"u"
        raise AssertionError(value)

    def text(value: str) -> bytes:
        number = memo.get(value)
        if number is not None:
            return b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number)
        number = memo[value] = len(memo)
        put = b"q" + bytes([number]) if number < 256 else b"r" + struct.pack("<I", number)
        return b"X" + struct.pack("<I", len(value)) + value.encode() + put

    return b"\x80\x02" + write(value) + b"."


def test_what_the_cpp_pickler_writes_is_read(tmp_path: Path) -> None:
    recorder = Recorder()
    for number in range(400):
        stack = [{"filename": f"/home/ada/file{number}.py", "line": number * 200, "name": f"function{number}"}]
        recorder.alloc(512 + number, stack=stack)
    content = recorder.snapshot()
    data = as_the_cpp_pickler_writes(content)
    assert read_plain_pickle(written(tmp_path / "s.pickle", data)) == content
