"""The command line as a shell sees it: exit codes, and one line for whatever is wrong."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest
from PIL import Image

from desktop_app import __version__, cli
from desktop_app.services.session_folder import find_resume_offer
from desktop_app.services.torch_build import installed_torch
from tests.fake_nvml.driver import compile_driver

TIMEOUT_S = 150


def run(data: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """``floodmark`` with warnings as errors, its data in ``data``, and no display unless ``environment`` names one."""
    return subprocess.run(
        command(*arguments),
        env={**usual(data), **environment},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "desktop_app", *arguments]


def usual(data: Path) -> dict[str, str]:
    hidden = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM", "CUDA_VISIBLE_DEVICES")
    return {**{k: v for k, v in os.environ.items() if k not in hidden}, "FLOODMARK_DATA": str(data)}


def only_line(done: subprocess.CompletedProcess[str]) -> str:
    """What is wrong, in the one line that is promised."""
    (line,) = done.stderr.splitlines()
    assert line.startswith("floodmark")
    return line


# Help and usage


def test_help_is_given_without_touching_anything(tmp_path: Path) -> None:
    done = run(tmp_path / "data", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: floodmark")
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("name", ["demo", "train", "doctor"])
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.run([name, "--help"])
    assert left.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: floodmark {name}")


def test_the_exit_codes_are_in_the_help(tmp_path: Path) -> None:
    text = " ".join(run(tmp_path, "--help").stdout.split())
    for words in ("0 done", "1 the run failed", "2 bad usage", "3 out of memory", "4 no such device"):
        assert words in text


def test_the_version_is_told(tmp_path: Path) -> None:
    assert run(tmp_path, "--version").stdout == f"floodmark {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--nonsense"], "--nonsense"),
        (["fly"], "'fly'"),
        (["train"], "CONFIG.toml"),
        (["demo", "--for", "soon"], "'soon' is not a number of seconds above 0"),
        (["demo", "--for", "0"], "'0' is not a number of seconds above 0"),
        (["demo", "--for", "nan"], "'nan' is not a number of seconds above 0"),
        (["demo", "--size", "wide"], "WIDTHxHEIGHT"),
        (["demo", "--size", "10x10"], "WIDTHxHEIGHT"),
        (["demo", "--batch", "many"], "'many'"),
        (["demo", "--theme", "pink"], "'pink'"),
        (["--lang", "fr"], "choose en or zh_CN"),
    ],
)
def test_wrong_usage_is_one_line_with_code_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        cli.run(arguments)
    said = capsys.readouterr()
    assert left.value.code == 2
    assert said.out == ""
    (line,) = said.err.splitlines()
    assert line.startswith("floodmark")
    assert words in line
    assert "--help" in line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["demo", "leek", "--headless"], "Choose one of: cats-dogs, first-optimizer-step, batch-shape, leak, "),
        (["demo", "--headless", "--batch", "0"], "batch_size takes a whole number from 1 to 65536"),
        (["demo", "--headless", "--report", "nowhere/r.json"], "no such folder"),
        (["demo", "--headless", "--report", "."], "it is a folder"),
        (["demo", "--headless", "--screenshot", "w.png"], "--screenshot needs a window"),
        (["train", "missing.toml", "--headless"], "missing.toml: no such file"),
        (["train", ".", "--headless"], "this is a folder"),
    ],
)
def test_what_cannot_be_run_is_one_line_with_code_2(tmp_path: Path, arguments: list[str], words: str) -> None:
    done = run(tmp_path, *arguments)
    assert done.returncode == 2
    assert words in only_line(done)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("epochs = 3\nbatch_size = = 4\n", "line 2"),
        ("epochs = 3\nbatch_sise = 4\n", "did you mean batch_size?"),
        ("epochs = 0\n", "epochs takes a whole number from 1"),
        ('device = "tpu"\n', "auto, cpu, simulated, cuda or cuda:N"),
    ],
)
def test_a_wrong_run_file_is_one_line_that_says_where(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "run.toml"
    file.write_text(text)
    done = run(tmp_path / "data", "train", str(file), "--headless")
    assert done.returncode == 2
    assert str(file) in only_line(done)
    assert words in only_line(done)


def test_debug_shows_the_stack(tmp_path: Path) -> None:
    done = run(tmp_path, "demo", "leek", "--headless", "--debug")
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("floodmark: There is no demonstration")


# Cards


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [
        (["demo", "--headless", "--card", "RTX 9999"], {}),
        (["--card", "RTX 9999"], {"QT_QPA_PLATFORM": "offscreen"}),
    ],
)
def test_an_unknown_card_is_code_4_with_the_nearest(
    tmp_path: Path, arguments: list[str], environment: dict[str, str]
) -> None:
    done = run(tmp_path, *arguments, **environment)
    assert done.returncode == 4
    assert 'No card named "RTX 9999" in the catalogue. Nearest: ' in only_line(done)


def test_an_unknown_card_of_a_run_file_is_code_4(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('card = "RTX 9999"\n')
    done = run(tmp_path / "data", "train", str(tmp_path / "run.toml"), "--headless")
    assert done.returncode == 4
    assert "RTX 9999" in only_line(done)


def test_a_real_card_that_this_torch_cannot_use_is_said_with_the_ways_out(tmp_path: Path) -> None:
    build = installed_torch()
    if build is None or build.cuda is not None:
        pytest.skip("this torch is built for CUDA")
    driver = compile_driver(tmp_path / "driver")
    (tmp_path / "run.toml").write_text("epochs = 1\n")
    done = run(tmp_path / "data", "train", str(tmp_path / "run.toml"), "--headless", LD_LIBRARY_PATH=str(driver))
    assert done.returncode == 4
    assert done.stdout.startswith("NVIDIA GeForce RTX 3060, 11.64 GiB\n")
    line = only_line(done)
    assert "built without CUDA and cannot train on NVIDIA GeForce RTX 3060" in line
    assert "--card" in line
    assert 'device = "cpu"' in line


def test_a_card_that_is_not_there_is_code_4(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('device = "cuda:1"\n')
    done = run(tmp_path / "data", "train", str(tmp_path / "run.toml"), "--headless")
    assert done.returncode == 4
    assert "device cuda:1: only a simulated card is here" in done.stderr


# The machine


@pytest.mark.parametrize("arguments", [[], ["demo", "leak", "--for", "5"]])
def test_without_a_display_one_line_names_the_ways_out(tmp_path: Path, arguments: list[str]) -> None:
    if not sys.platform.startswith("linux"):
        pytest.skip("displays are Linux's")
    done = run(tmp_path, *arguments)
    assert done.returncode == 1
    assert "--headless" in only_line(done)
    assert "QT_QPA_PLATFORM=offscreen" in only_line(done)


def test_a_data_folder_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    place = tmp_path / "file" / "data"
    report = tmp_path / "r.json"
    done = run(place, "demo", "--headless", "--for", "5", "--card", "GTX 1660", "--report", str(report))
    assert done.returncode == 1
    assert f"Cannot write to the data folder {place}" in only_line(done)
    assert "FLOODMARK_DATA" in only_line(done)
    content = json.loads(report.read_text(encoding="utf-8"))
    assert (content["exit_code"], content["error"]["code"]) == (1, "data_folder.unwritable")


# Trainings of a user's own pictures


def make_pictures(folder: Path, *, per_class: int = 24) -> Path:
    """Two classes that a child can tell apart: dark and bright squares, each with its own noise."""
    for name, level in (("bright", 170), ("dark", 40)):
        (folder / name).mkdir(parents=True)
        for number in range(per_class):
            values = bytes((level + 7 * number * (x + 3 * y) % 60) for y in range(12) for x in range(12))
            Image.frombytes("L", (12, 12), values).save(folder / name / f"{number}.png")
    return folder


def write_run(folder: Path, pictures: Path, **settings: object) -> Path:
    values = {"device": "cpu", "image_size": 12, "batch_size": 8, "epochs": 1, "width": 4, "hidden": 8, **settings}
    lines = [f'data = "{pictures}"', *(f"{name} = {json.dumps(value)}" for name, value in values.items())]
    file = folder / "run.toml"
    file.write_text("\n".join(lines) + "\n")
    return file


@pytest.mark.slow
def test_a_folder_with_broken_files_is_learnt_and_they_are_named(tmp_path: Path) -> None:
    pictures = make_pictures(tmp_path / "pictures")
    (pictures / "bright" / "empty.png").write_bytes(b"")
    whole = (pictures / "dark" / "1.png").read_bytes()
    (pictures / "dark" / "half.png").write_bytes(whole[: len(whole) // 2])
    (pictures / "dark" / "text.jpg").write_text("not a picture")
    report = tmp_path / "r.json"
    done = run(tmp_path / "data", "train", str(write_run(tmp_path, pictures)), "--headless", "--report", str(report))
    assert done.returncode == 0, done.stderr
    content = json.loads(report.read_text(encoding="utf-8"))
    assert (content["state"], content["skipped_files"], content["epochs"]) == ("finished", 3, 1)
    assert content["steps"] >= 1
    assert done.stderr.count("3 files cannot be read and are left out; the first: ") == 1
    log = (tmp_path / "data" / "floodmark.log").read_text(encoding="utf-8")
    for name in ("empty.png", "half.png", "text.jpg"):
        assert f"{name} (" in log


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("empty class", "has no image that can be read"),
        ("few", "batch"),
    ],
)
def test_pictures_that_cannot_be_learnt_from_are_one_line_with_code_2(tmp_path: Path, case: str, words: str) -> None:
    pictures = make_pictures(tmp_path / "pictures", per_class=3 if case == "few" else 8)
    for file in (pictures / "dark").iterdir():
        if case == "empty class":
            file.unlink()
    done = run(tmp_path / "data", "train", str(write_run(tmp_path, pictures, batch_size=8)), "--headless")
    assert done.returncode == 2
    assert words in only_line_but_notices(done)


def only_line_but_notices(done: subprocess.CompletedProcess[str]) -> str:
    """On a machine without a card that is told too; nothing else."""
    lines = [line for line in done.stderr.splitlines() if "stands in." not in line]
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.mark.slow
def test_kill_9_during_a_run_leaves_a_whole_file_and_an_offer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from desktop_app.training.checkpoints import load_checkpoint

    data = tmp_path / "data"
    config = write_run(tmp_path, make_pictures(tmp_path / "pictures"), epochs=100_000, max_steps_per_s=200.0)
    child = subprocess.Popen(
        command("train", str(config), "--headless"),
        env=usual(data),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    try:
        folder = wait_for_steps(data / "sessions", child)
    finally:
        child.kill()
        killed_wall_s = time.time()
        child.wait(TIMEOUT_S)
    with closing(sqlite3.connect(folder / "samples.db")) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        (newest_s,) = connection.execute("SELECT max(t_s) FROM host").fetchone()
    anchor_s = json.loads((folder / "session.json").read_text(encoding="utf-8"))["clock_anchor_wall_s"]
    assert killed_wall_s - (anchor_s + newest_s) <= 1.0 + 1.0  # the host is read once a second
    offer = find_resume_offer(data / "sessions")
    assert offer is not None
    assert offer.session_path == folder
    progress = load_checkpoint(offer.checkpoint_path).progress
    assert 0 <= progress.step - offer.step <= 6  # killed between a checkpoint and its note: one epoch behind


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to answer")
def test_a_request_to_terminate_saves_the_step_and_marks_the_end(tmp_path: Path) -> None:
    """An interrupted Thread.join on CPython 3.11 takes a live thread for ended: docs/decisions/007."""
    data = tmp_path / "data"
    config = write_run(tmp_path, make_pictures(tmp_path / "pictures"), epochs=100_000, max_steps_per_s=50.0)
    child = subprocess.Popen(
        command("train", str(config), "--headless"),
        env=usual(data),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )
    try:
        folder = wait_for_steps(data / "sessions", child)
        child.send_signal(signal.SIGTERM)
        assert child.wait(TIMEOUT_S) == 0
    finally:
        child.kill()
    facts = json.loads((folder / "session.json").read_text(encoding="utf-8"))
    assert facts["ended"]["state"] == "stopped"
    assert facts["ended"]["step"] == facts["checkpoint"]["step"] >= 50


@pytest.mark.skipif(sys.platform == "win32", reason="needs a POSIX shell")
def test_closed_output_is_no_error(tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"exec {sys.executable} -m desktop_app doctor >&-"], env=usual(tmp_path / "data"), check=False
    )
    assert done.returncode == 0


def wait_for_steps(sessions: Path, child: subprocess.Popen[bytes]) -> Path:
    """The session's folder, when it has a checkpoint and 50 steps on disk."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline_s and child.poll() is None:
        for folder in sessions.glob("*/checkpoints/last.pt"):
            with closing(sqlite3.connect(folder.parents[1] / "samples.db")) as connection:
                try:
                    (steps,) = connection.execute("SELECT count(*) FROM steps").fetchone()
                except sqlite3.OperationalError:  # not there yet
                    continue
            if steps >= 50:
                return folder.parents[1]
        try:
            child.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("the run did not get that far")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
@pytest.mark.parametrize(("module", "command_name"), [("desktop_app.cli", "--version"), ("PySide6.QtGui", "doctor")])
def test_ctrl_c_while_modules_are_imported_shows_no_stack(tmp_path: Path, module: str, command_name: str) -> None:
    program = f"""
import os, runpy, signal, sys
class Interrupting:
    def find_spec(self, name, *_):
        if name == "{module}":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
sys.argv = ["floodmark", "{command_name}"]
runpy.run_module("desktop_app", run_name="__main__")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], env=usual(tmp_path), capture_output=True, timeout=TIMEOUT_S, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send")
def test_a_stop_before_the_first_step_says_that_nothing_is_saved(tmp_path: Path) -> None:
    """Nothing was learnt, so nothing is lost; but who finds no file must not be left to guess why."""
    config = write_run(tmp_path, make_pictures(tmp_path / "pictures"), max_steps_per_s=0.01)
    report = tmp_path / "r.json"
    child = subprocess.Popen(
        [*command("train", str(config), "--headless", "--report", str(report))],
        env=usual(tmp_path / "data"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    )
    try:
        facts = wait_for_session(tmp_path / "data" / "sessions", child)
        child.send_signal(signal.SIGINT)
        out, error = child.communicate(timeout=TIMEOUT_S)
    finally:
        child.kill()
    assert child.returncode == 0, error
    assert out.splitlines()[-1] == "No checkpoint was saved: no step had ended."
    assert "Stopping before the next step" in error
    content = json.loads(report.read_text(encoding="utf-8"))
    assert (content["state"], content["steps"], content["checkpoint"]) == ("stopped", 0, None)
    assert json.loads(facts.read_text(encoding="utf-8"))["ended"]["state"] == "stopped"


def wait_for_session(sessions: Path, child: subprocess.Popen[str]) -> Path:
    """The facts of the run, as soon as it has some: it is being prepared."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline_s and child.poll() is None:
        for facts in sessions.glob("*/session.json"):
            return facts
        try:
            child.wait(0.02)
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError("the run did not get that far")


def test_no_report_takes_the_place_of_the_run_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.toml"
    file.write_text("epochs = 1\n")
    assert cli.run(["train", str(file), "--headless", "--report", str(file)]) == 2
    assert "would take the place of the run's own file" in capsys.readouterr().err
    assert file.read_text() == "epochs = 1\n"


def test_options_before_a_command_hold_as_behind_it() -> None:
    given = ["--lang", "zh_CN", "--theme", "light", "--card", "RTX 4090", "--read-only", "--debug"]
    before, behind = (cli._launch(cli._parser().parse_args(line)) for line in ([*given, "demo"], ["demo", *given]))
    assert before == behind
    assert (before.theme, before.language, before.debug, before.read_only) == ("light", "zh_CN", True, True)
    assert cli._parser().parse_args([*given, "demo"]).card == "RTX 4090"
    assert cli._parser().parse_args(["--theme", "light", "demo", "--theme", "dark"]).theme == "dark"
    assert cli._parser().parse_args(["demo"]).theme is None
