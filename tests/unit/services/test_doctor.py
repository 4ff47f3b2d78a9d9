"""What the doctor sees, and that it has a reason and an advice for what is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from desktop_app import __version__
from desktop_app.core.telemetry import Reason
from desktop_app.services import doctor
from desktop_app.services.doctor import as_json, as_text, examine
from desktop_app.telemetry.backend import Advice
from desktop_app.telemetry.nvml_backend import NvmlProbe

from .doubles import make_card

TORCH = {"version": "2.9.0+cu128", "cuda_build": "12.8", "cuda_available": True, "cards": ["NVIDIA GeForce RTX 3090"]}
QT = {"version": "6.8.3", "families": 40, "chinese": ["Noto Sans CJK SC"]}
NO_DRIVER = NvmlProbe(Reason.NO_DRIVER, "NVIDIA's driver library (NVML) is not installed", Advice.INSTALL_DRIVER)
CARD = make_card(
    "GPU-a",
    simulated=False,
    name="NVIDIA GeForce RTX 3090",
    bus_id="00000000:01:00.0",
    torch_index=0,
    reasons={"sm_count": Reason.NOT_SUPPORTED},
)
WELL = NvmlProbe(None, "1 card", driver_version="570.86.10", cuda_driver_version="12.8", cards=(CARD,))


def look(
    monkeypatch: pytest.MonkeyPatch,
    *,
    probe: NvmlProbe = WELL,
    torch: dict[str, Any] = TORCH,
    qt: dict[str, Any] = QT,
    display_problem: str | None = None,
) -> dict[str, Any]:
    """Everything the doctor says when it is told this."""
    monkeypatch.setattr(doctor, "probe_nvml", lambda: probe)
    monkeypatch.setattr(doctor, "_ask", lambda question: torch if "torch" in question else qt)
    return examine(display_problem=display_problem)


def findings(facts: dict[str, Any]) -> dict[str, tuple[bool, str, str | None]]:
    return {f["subject"]: (f["ok"], f["text"], f["advice"]) for f in facts["findings"]}


def test_a_machine_that_is_well_has_nothing_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLOODMARK_DATA", str(tmp_path))
    facts = look(monkeypatch)
    found = findings(facts)
    assert list(found) == ["driver", "card", "torch", "qt", "fonts", "display", "data"]
    assert all(ok for ok, _, _ in found.values())
    assert all(advice is None for _, _, advice in found.values())
    assert found["driver"][1] == "NVIDIA 570.86.10, CUDA 12.8"
    assert found["card"][1] == "NVIDIA GeForce RTX 3090, 5.88 GiB; not known: sm_count (not_supported)"
    assert found["torch"][1] == "2.9.0+cu128, built for CUDA 12.8"
    assert found["fonts"][1] == "40 families; Chinese in Noto Sans CJK SC"
    assert str(tmp_path) in found["data"][1]
    assert facts["cards"][0]["reasons"] == {"sm_count": "not_supported"}
    text = as_text(facts)
    assert "missing" not in text
    assert text.splitlines()[-1].split() == ["0", "0", "00000000:01:00.0", "NVIDIA", "GeForce", "RTX", "3090"]
    assert json.loads(as_json(facts)) == facts


def test_every_advice_of_the_driver_has_words() -> None:
    assert set(doctor._ADVICE) == set(Advice)


def test_without_a_driver_the_simulated_card_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = look(monkeypatch, probe=NO_DRIVER)
    found = findings(facts)
    assert found["driver"][:2] == (False, "NVIDIA's driver library (NVML) is not installed (no_driver)")
    assert str(found["driver"][2]).startswith("Install NVIDIA's driver")
    assert found["card"][:2] == (False, "No NVIDIA card can be read; GeForce GTX 1660 is simulated instead.")
    assert facts["driver"]["reason"] == "no_driver"
    assert facts["cards"] == []


def test_a_torch_that_cannot_use_the_card_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    blind = {"version": "2.9.0+cpu", "cuda_build": None, "cuda_available": False, "cards": []}
    ok, text, advice = findings(look(monkeypatch, torch=blind))["torch"]
    assert (ok, text) == (False, "2.9.0+cpu, built for the CPU")
    assert "install a CUDA build" in str(advice)
    assert findings(look(monkeypatch, torch=blind, probe=NO_DRIVER))["torch"][0]


def test_what_cannot_be_loaded_is_one_line_with_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = {"error": "ImportError: libEGL.so.1: cannot open shared object file"}
    facts = look(monkeypatch, torch=broken, qt=broken, display_problem="No display was found. Add --headless.")
    found = findings(facts)
    for subject in ("torch", "qt", "fonts", "display"):
        assert not found[subject][0], subject
        assert found[subject][2], subject
    assert found["qt"][1] == broken["error"]
    assert found["display"][2] == "No display was found. Add --headless."


def test_a_data_folder_that_cannot_be_written_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FLOODMARK_DATA", str(tmp_path / "file" / "data"))
    ok, text, advice = findings(look(monkeypatch))["data"]
    assert (ok, text) == (False, f"{tmp_path}/file/data")
    assert "Set FLOODMARK_DATA" in str(advice)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("print('noise'); print('{\"version\": 1}')", {"version": 1}),
        ("import nowhere_at_all", {"error": "ModuleNotFoundError: No module named 'nowhere_at_all'"}),
        ("import os; os._exit(11)", {"error": "ended with code 11"}),
        ("pass", {"error": "gave an answer that cannot be read"}),
        ("print('[')", {"error": "gave an answer that cannot be read"}),
    ],
)
def test_questions_are_asked_in_a_process_of_their_own(question: str, answer: dict[str, Any]) -> None:
    assert doctor._ask(question) == answer


def test_a_question_without_an_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_PATIENCE_S", 0.2)
    assert "could not be asked" in doctor._ask("import threading; threading.Event().wait()")["error"]


# The command itself

CHILD_TIMEOUT_S = 150


def run_doctor(data: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    usual = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "DISPLAY", "WAYLAND_", "QT_QPA"))}
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "desktop_app", "doctor", *options],
        env={**usual, "FLOODMARK_DATA": str(data), **environment},
        capture_output=True,
        text=True,
        timeout=CHILD_TIMEOUT_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_the_command_sees_the_cards_of_a_driver(tmp_path: Path, driver_folder: Path) -> None:
    done = run_doctor(tmp_path, "--json", LD_LIBRARY_PATH=str(driver_folder), FAKE_NVML_VALUES="count=2")
    assert (done.returncode, done.stderr) == (0, "")
    facts = json.loads(done.stdout)
    assert facts["floodmark"] == __version__
    assert facts["driver"] == {"reason": None, "detail": "2 cards", "version": "570.86.10"}
    assert [(c["torch_index"], c["nvml_index"], c["name"]) for c in facts["cards"]] == [
        (0, 0, "NVIDIA GeForce RTX 3060"),
        (1, 1, "NVIDIA GeForce RTX 3060"),
    ]
    assert facts["cards"][0]["capacity_bytes"] == 11920 * 1024**2
    assert facts["torch"]["version"]
    assert facts["qt"]["version"]


def test_the_command_sees_a_library_without_a_driver(tmp_path: Path, driver_folder: Path) -> None:
    """Error 9 of ``nvmlInit``: the driver is not loaded."""
    done = run_doctor(
        tmp_path, LD_LIBRARY_PATH=str(driver_folder), FAKE_NVML_ERRORS="nvmlInitWithFlags=9,nvmlInit_v2=9"
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    driver = next(line for line in lines if " driver " in line)
    assert driver.startswith("missing")
    assert "its kernel driver is not loaded" in driver
    assert "modprobe nvidia" in lines[lines.index(driver) + 1]
    display = next(line for line in lines if " display " in line)
    assert display.startswith("missing")
    assert "--headless" in lines[lines.index(display) + 1]
