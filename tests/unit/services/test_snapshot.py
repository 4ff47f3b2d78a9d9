"""``floodmark snapshot``: the report, the JSON, the comparison with a training, and the exit codes."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from desktop_app import cli
from desktop_app.core.errors import ExitCode
from desktop_app.core.units import MIB
from desktop_app.memory.allocator import ReplicaOutOfMemoryError
from desktop_app.memory.tracer_process import TracerProcess
from desktop_app.services import snapshot
from desktop_app.services.estimate_order import make_order
from desktop_app.services.estimate_text import Terminal
from desktop_app.services.snapshot_options import add_options
from tests.unit.memory.recorder import BACKWARD_STACK, Recorder


def options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return parser.parse_args(list(arguments))


def report(path: Path, *arguments: str, terminal: Terminal | None = None) -> str:
    return snapshot.examine(options(str(path), *arguments), terminal or Terminal())


def data(path: Path, *arguments: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(report(path, "--json", *arguments))
    return found


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    recorder = Recorder(limit_bytes=200 * MIB)
    blocks = [recorder.alloc(size * MIB) for size in (30, 45, 3)]
    recorder.free(blocks[1])
    recorder.alloc(12 * MIB, stack=BACKWARD_STACK)
    with pytest.raises(ReplicaOutOfMemoryError):
        recorder.alloc(151 * MIB)
    path = tmp_path / "s.pickle"
    path.write_bytes(pickle.dumps(recorder.snapshot()))
    return path


def test_the_report_says_when_whose_in_what_pieces_and_why(recording: Path) -> None:
    text = report(recording)
    for line in (
        "Card 0: 11 events, 2 segments",
        "Peak: 79 MiB live at event 5, 96 MiB reserved",
        "Out of memory at event 10",
        "asked for 151 MiB by model.py:7 forward",
        "torch tried to get 152 MiB, the driver had 3 MiB",
        "backward of Addmm",
        "reserved equal after 7 of 7 events",
    ):
        assert line in text
    assert max(map(len, text.splitlines())) <= 110


def test_the_chart_reaches_its_peak_where_memory_did(recording: Path) -> None:
    lines = report(recording).splitlines()
    rows = [line.partition("│")[2] for line in lines if "│" in line]
    assert len(rows) == 8
    eighths = " ▁▂▃▄▅▆▇█"
    heights = [sum(eighths.find(row.ljust(11)[column].replace("·", " ")) for row in rows) for column in range(11)]
    assert heights.index(max(heights)) == 5
    assert max(heights) == round(79 / 96 * 64)
    assert rows[0].count("·") > 0


def test_a_terminal_without_unicode_gets_ascii(recording: Path) -> None:
    text = report(recording, terminal=Terminal(width=60, unicode=False))
    assert text.isascii()
    assert "#" in text


def test_the_json_holds_the_figures(recording: Path) -> None:
    found = data(recording, "--top", "1")
    assert (found["device"], found["events"], found["live_peak_event"]) == (0, 11, 5)
    assert found["live_peak_bytes"] == 79 * MIB
    assert found["reserved_peak_bytes"] == 96 * MIB
    assert found["seconds"] == pytest.approx(10e-5)
    use = found["fragmentation"]
    parts = ("requested_bytes", "rounding_bytes", "waiting_bytes", "idle_split_bytes", "returnable_bytes")
    assert sum(use[part] for part in parts) == found["reserved_bytes"]
    assert len(found["owners"]) == 1
    assert found["out_of_memory"][0]["segment_bytes"] == 152 * MIB
    assert found["replay"]["first_difference"] is None
    assert found["replay"]["placed"] == found["replay"]["allocations"] == 4
    assert found["comparison"] is None


def test_a_gzipped_recording_is_the_same(recording: Path) -> None:
    packed = recording.with_suffix(".pickle.gz")
    packed.write_bytes(gzip.compress(recording.read_bytes()))
    assert data(packed) == data(recording)


def test_nothing_recorded_is_said(tmp_path: Path) -> None:
    path = tmp_path / "s.pickle"
    path.write_bytes(pickle.dumps({"segments": [], "device_traces": [[]]}))
    text = report(path)
    assert "No events: record with torch.cuda.memory._record_memory_history()" in text
    assert data(path)["reserved_bytes"] == 0


@pytest.mark.slow
def test_a_recording_of_the_trained_model_is_known_up_to_what_was_put_in(tmp_path: Path) -> None:
    training = ("--model", "small-cnn", "--batch", "4", "--gpu", "RTX 3060", "--rung", "meta")
    given = options("file", *training[:-2])
    order = make_order(given)
    with TracerProcess(time_limit_s=120) as tracer:
        trace = tracer.trace(order.spec, order.card.spec, rung="meta")
    recorder = Recorder()
    blocks = {}
    put_in = [index for index, event in enumerate(trace.events) if event.step == 2 and event.phase == "backward"][7]
    for index, event in enumerate(trace.events):
        if index == put_in:
            recorder.free(recorder.alloc(33_554_432 + 512, stack=BACKWARD_STACK))
        if event.key > 0:
            blocks[event.key] = recorder.alloc(event.size_bytes)
        else:
            recorder.free(blocks.pop(-event.key))
    path = tmp_path / "s.pickle"
    path.write_bytes(pickle.dumps(recorder.snapshot()))
    comparison = data(path, *training[:-2])["comparison"]
    assert comparison["first"]["bytes"] == 33_554_432 + 512
    assert comparison["first"]["op"] == "AddmmBackward"
    assert comparison["first"]["after"]["phase"] == "backward"
    assert comparison["unknown"] == 1
    assert comparison["matched"] >= comparison["recorded"] - 1 - 40  # what the validation asks for has no step
    text = report(path, *training[:-2])
    assert "The first unknown one: event" in text
    assert "33,554,944 bytes, backward of Addmm (AddmmBackward)" in text


# The command


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(["snapshot", *arguments])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


@pytest.fixture(autouse=True)
def own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOODMARK_DATA", str(tmp_path / "data"))


def test_the_command_prints_the_report(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, error = run(capsys, str(recording))
    assert (code, error) == (ExitCode.DONE, "")
    assert "Out of memory at event 10" in out  # an answer, not a failure


def test_a_bad_file_is_one_line_and_exit_code_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "made"),)

    path = tmp_path / "s.pickle"
    path.write_bytes(pickle.dumps(Hostile()))
    for target in (path, tmp_path / "missing.pickle", tmp_path):
        code, out, error = run(capsys, str(target))
        assert (code, out) == (ExitCode.USAGE, "")
        assert error.startswith("floodmark: ")
        assert error.count("\n") == 1
    assert not (tmp_path / "made").exists()


def test_a_card_that_was_not_recorded_is_exit_code_4(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, error = run(capsys, str(recording), "--device", "3")
    assert (code, error) == (ExitCode.NO_DEVICE, "floodmark: The recording has nothing of card 3; it knows 0.\n")


def test_a_wrong_option_is_exit_code_2(recording: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.run(["snapshot", str(recording), "--top", "many"])
    assert caught.value.code == ExitCode.USAGE
