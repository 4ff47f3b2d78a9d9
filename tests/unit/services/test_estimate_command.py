"""``floodmark estimate``: what it prints, and one clear line with the right exit code where it goes wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from desktop_app import cli
from desktop_app.core.errors import ExitCode
from desktop_app.core.units import GIB, MIB
from desktop_app.memory.allocator_settings import AllocatorSettings
from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracer_ends import advised
from desktop_app.services.estimate_order import PYTHON_VARIABLE, EstimateOrder, make_order

CARD = ("--gpu", "RTX 3090")
MODEL = """
import torch
from torch import nn

def step(model, inputs):
    return model(inputs).sum()

def batch(size, device):
    return torch.zeros(size, 64, device=device)

def make(**_):
    return nn.Linear(64, 32), step, batch

def reads(model, inputs):
    return model(inputs).sum() * inputs.untyped_storage()[0]

def needs_data(**_):
    return nn.Linear(64, 32), reads, batch

@torch.library.custom_op("mine::odd", mutates_args=())
def odd(x: torch.Tensor) -> torch.Tensor:
    return x.clone()

def unknown_op(**_):
    return nn.Linear(64, 32), lambda model, inputs: model(odd(inputs)).sum(), batch

def hangs(path):
    open(path, "w").close()
    while True:
        pass
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOODMARK_DATA", str(tmp_path / "data"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(MODEL)
    return path


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """Exit code and the one line."""
    code = cli.run(["estimate", *arguments])
    output = capsys.readouterr()
    assert output.err.count("\n") == 1, output.err
    assert output.err.startswith("floodmark: ")
    return code, output.err


def order_of(*arguments: str) -> EstimateOrder:
    return make_order(cli._parser().parse_args(["estimate", *arguments]))


def test_everything_that_was_asked_for_is_in_the_json(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["estimate", "--model", f"python:{model}:make", "--batch", "8", *CARD, "--json"]) == ExitCode.DONE
    output = capsys.readouterr()
    assert output.err == ""
    answer: dict[str, Any] = json.loads(output.out)
    for name in ("live_peak_bytes", "reserved_peak_bytes", "device_peak_bytes"):
        assert set(answer[name]) == {"p50", "p90", "p95"}
        assert answer[name]["p50"] <= answer[name]["p90"] <= answer[name]["p95"]
    assert answer["rung"] in ("native", "shim", "meta")
    assert answer["verdict"] == "fits"
    assert 0.95 <= answer["fits_probability"] <= 1.0
    assert answer["seconds"] > 0
    assert 23 * GIB < answer["capacity_bytes"] < 24 * GIB
    assert answer["largest_batch"] > 8
    assert (answer["batch_size"], answer["training"]["optimizer"]) == (8, None)  # the function's own
    assert {"forward", "backward", "optimizer"} <= set(answer["phases"])
    assert answer["categories"]["parameters"] >= 4 * (64 * 32 + 32)
    assert isinstance(answer["levers"], list)
    assert {"kernels_assumed", "guesses", "warnings", "modules"} <= set(answer)


def test_the_plain_answer_begins_with_the_verdict(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["estimate", "--model", f"python:{model}:make", *CARD, "--no-levers", "--capacity-bytes", "100MiB"]
    assert cli.run(arguments) == ExitCode.DONE  # an answer, also where it does not fit
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Does not fit: needs ")
    assert "batch 1, fp32" in lines[1]
    assert lines[1].endswith("GeForce RTX 3090 (100 MiB)")
    assert any("CUDA context" in line for line in lines)
    assert "Largest batch at a risk of 5 %: none, not even one sample." in lines


def test_sizes_and_arguments_that_nothing_takes_are_refused(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model.write_text(
        MODEL + "\ndef own():\n    made = nn.Linear(64, 32)\n"
        "    return made, torch.optim.SGD(made.parameters(), 0.1), step, batch\n"
    )
    for option, words in (
        (("--classes", "5"), "takes no classes: leave --classes out"),
        (("--image-size", "32"), "leave --image-size out"),
        (("--optimizer-arg", "momentum=0.9"), "name the optimizer by --optimizer"),
    ):
        code, line = refused(capsys, "--model", f"python:{model}:own", *CARD, *option)
        assert code == ExitCode.USAGE
        assert words in line


@pytest.mark.parametrize(
    ("options", "optimizer"), [((), None), (("--optimizer", "adamw"), "adamw")], ids=["own", "named"]
)
def test_the_users_own_optimizer_is_not_taken_for_one_that_was_named(
    model: Path, options: tuple[str, ...], optimizer: str | None
) -> None:
    assert order_of("--model", f"python:{model}:make", *CARD, *options).spec.optimizer == optimizer
    assert order_of("--model", "timm:resnet50", *CARD, *options).spec.optimizer == "adamw"


def test_the_end_of_the_search_is_not_called_the_largest_batch(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """2^20 samples of 64 floats, their outputs and gradients are 1 GiB: nothing on this card."""
    command = ["estimate", "--model", f"python:{model}:make", *CARD, "--no-levers", "--rung", "meta"]
    assert cli.run(command) == 0
    text = capsys.readouterr().out
    assert "Largest batch at a risk of 5 %: 1048576 or more (asked for: 1)" in text
    assert "Note: The search for the largest batch ended there: a larger one may fit too." in text
    assert cli.run([*command, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["largest_batch"] == 1048576
    assert "batch_search_ended" in answer["warnings"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "--model"),
        (("--model", "resnet50", *CARD), 2, "timm:NAME"),
        (("--model", "timm:resnet50", "--gpu", "RTX 30900"), 4, "GeForce RTX 3090"),
        (("--model", "timm:resnet50", *CARD, "--python", "/no/such/python"), 2, "/no/such/python"),
        (("--model", "timm:resnet50", *CARD, "--sharding", "zero2"), 2, "--cards"),
        (("--model", "small-cnn", *CARD, "--python", sys.executable), 2, "leave --python out"),
        (("--model", "small-cnn", *CARD, "--sequence-length", "8"), 2, "--sequence-length"),
        (("--model", "timm:resnet50", *CARD, "--fused", "--foreach"), 2, "--fused and --foreach exclude each other"),
        (("no/such/run.toml", *CARD), 2, "no/such/run.toml"),
    ],
)
def test_what_is_wrong_before_anything_is_traced(
    arguments: tuple[str, ...], code: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, line = refused(capsys, *arguments)
    assert found == code
    assert words in line


@pytest.mark.parametrize(
    "arguments",
    [
        ("--batch", "0"),
        ("--batch", "many"),
        ("--risk", "1.5"),
        ("--others-bytes", "2 GiBs"),
        ("--capacity-bytes", "0"),
        ("--optimizer-arg", "momentum"),
        ("--precision", "fp8"),
        ("--time-limit", "-1"),
    ],
)
def test_bad_options_are_usage_errors(arguments: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.run(["estimate", "--model", "timm:resnet50", *CARD, *arguments])
    assert caught.value.code == ExitCode.USAGE
    assert arguments[0] in capsys.readouterr().err


def test_the_users_python_can_be_set_for_good(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(PYTHON_VARIABLE, "/set/for/good")
    code, line = refused(capsys, "--model", "timm:resnet50", *CARD)
    assert (code, "/set/for/good" in line) == (ExitCode.USAGE, True)
    code, line = refused(capsys, "--model", "timm:resnet50", *CARD, "--python", "/another")
    assert "/another" in line


def test_what_our_own_python_lacks_is_an_extra() -> None:
    lacking = TracerError("not_installed", "timm is not installed in /x: pip install timm", params={"package": "timm"})
    assert "pip install 'floodmark[timm]'" in str(advised(lacking))
    other = TracerError("not_installed", "mine is not installed in /x: pip install mine", params={"package": "mine"})
    assert advised(other) is other


def test_a_function_that_is_not_there(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, line = refused(capsys, "--model", f"python:{model}:nothing", *CARD)
    assert code == ExitCode.USAGE
    assert "'nothing'" in line
    assert str(model) in line


def test_a_syntax_error_names_file_and_line(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model.write_text("import torch\n\ndef make(:\n")
    code, line = refused(capsys, "--model", f"python:{model}:make", *CARD)
    assert code == ExitCode.USAGE
    assert f"{model}:3: " in line


def test_a_model_that_needs_data_names_the_place(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, line = refused(capsys, "--model", f"python:{model}:needs_data", *CARD)
    assert code == ExitCode.RUN_FAILED
    assert f"{model}:15: the model reads the values of a tensor" in line


def test_an_op_that_cannot_be_traced_is_named_and_is_no_answer(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = cli.run(["estimate", "--model", f"python:{model}:unknown_op", *CARD])
    output = capsys.readouterr()
    assert code == ExitCode.RUN_FAILED
    assert output.out.startswith("Cannot say")
    assert "mine.odd" in output.err or "mine::odd" in output.err
    assert output.err.count("\n") == 1


@pytest.mark.skipif(os.name != "posix", reason="signals and fifos")
def test_an_interrupt_ends_all_in_one_line(model: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "begun"
    os.mkfifo(fifo)
    command = [sys.executable, "-m", "desktop_app", "estimate", "--model", f"python:{model}:hangs", *CARD]
    command += ["--model-arg", f"path={fifo}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        fifo.read_bytes()
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        assert process.stderr is not None
        assert process.stderr.read() == "floodmark: interrupted\n"
        assert process.wait(30) == ExitCode.RUN_FAILED


def test_the_allocator_is_set_as_the_training_would_be(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def order(*arguments: str) -> EstimateOrder:
        return make_order(cli._parser().parse_args(["estimate", "--model", f"python:{model}:make", *CARD, *arguments]))

    monkeypatch.delenv("PYTORCH_CUDA_ALLOC_CONF", raising=False)
    monkeypatch.delenv("PYTORCH_ALLOC_CONF", raising=False)
    assert order().allocator == AllocatorSettings()
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "expandable_segments:True")
    assert order().allocator == AllocatorSettings(expandable_segments=True)
    assert order("--alloc-conf", "max_split_size_mb:64").allocator == AllocatorSettings(max_split_size_bytes=64 * MIB)


def test_settings_that_the_allocator_does_not_know(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, line = refused(capsys, "--model", f"python:{model}:make", *CARD, "--alloc-conf", "max_split:64")
    assert code == ExitCode.USAGE
    assert "--alloc-conf" in line
    assert "max_split" in line
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "max_split_size_mb:few")
    code, line = refused(capsys, "--model", f"python:{model}:make", *CARD)
    assert code == ExitCode.USAGE
    assert "PYTORCH_ALLOC_CONF" in line
