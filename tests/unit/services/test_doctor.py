"""What the doctor sees, and that it has a reason and an advice for what is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from desktop_app import __version__
from desktop_app.core.telemetry import Reason
from desktop_app.services import doctor
from desktop_app.services.doctor import as_json, as_text, examine
from desktop_app.services.doctor_sight import Sight
from desktop_app.telemetry.backend import Advice
from desktop_app.telemetry.other_vendors import MachineCard

from .doctor_views import ill, well
from .doubles import make_card

TORCH = {"version": "2.9.0+cu128", "cuda_build": "12.8", "cuda_available": True, "cards": ["NVIDIA GeForce RTX 3090"]}
QT = {"version": "6.8.3", "families": 40, "chinese": ["Noto Sans CJK SC"]}
CARD = make_card(
    "GPU-a",
    simulated=False,
    name="NVIDIA GeForce RTX 3090",
    bus_id="00000000:01:00.0",
    torch_index=0,
    reasons={"sm_count": Reason.NOT_SUPPORTED},
)


def look(
    monkeypatch: pytest.MonkeyPatch,
    sight: Sight | None = None,
    *,
    torch: dict[str, Any] = TORCH,
    qt: dict[str, Any] = QT,
    display_problem: str | None = None,
) -> dict[str, Any]:
    """Everything the doctor says when it sees this."""
    monkeypatch.setattr(doctor, "look_around", lambda **_: sight or Sight(well(CARD)))
    monkeypatch.setattr(doctor, "_ask", lambda question: torch if "torch" in question else qt)
    return examine(display_problem=display_problem)


def findings(facts: dict[str, Any]) -> dict[str, tuple[bool, str, str | None]]:
    return {f["subject"]: (f["ok"], f["text"], f["advice"]) for f in facts["findings"]}


def test_a_machine_that_is_well_has_nothing_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FLOODMARK_DATA", str(tmp_path))
    facts = look(monkeypatch)
    found = findings(facts)
    assert list(found) == ["driver", "card", "torch", "qt", "fonts", "display", "data"]
    assert {finding["level"] for finding in facts["findings"]} == {"ok"}
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


def test_the_shape_of_the_json(monkeypatch: pytest.MonkeyPatch) -> None:
    """Schema 2: programs read these names."""
    facts = look(monkeypatch, Sight(well(CARD), (MachineCard("Intel", "DG2 [Arc A770]", "0000:03:00.0", 0x56A0),)))
    assert list(facts) == [
        "schema",
        "floodmark",
        "python",
        "system",
        "packages",
        "place",
        "driver",
        "cards",
        "machine_cards",
        "simulated_default",
        "catalogue_cards",
        "torch",
        "qt",
        "data_folder",
        "findings",
    ]
    assert facts["schema"] == 2
    assert list(facts["place"]) == ["container", "wsl", "environment"]
    assert list(facts["driver"]) == ["asked", "reason", "detail", "version", "cuda_version", "kernel_version"]
    assert facts["cards"][0].keys() >= {"uuid", "name", "vendor", "torch_index", "capacity_bytes", "persistence_mode"}
    assert list(facts["findings"][0]) == ["code", "subject", "level", "ok", "text", "advice", "card"]
    assert facts["packages"].keys() >= {"torch", "nvidia-ml-py", "prometheus-client", "amdsmi"}
    assert facts["machine_cards"][0]["catalogue"] is None


def test_without_a_driver_the_simulated_card_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = look(monkeypatch, Sight(ill(Reason.NO_DRIVER, Advice.INSTALL_DRIVER, "NVML is not installed")))
    found = findings(facts)
    assert found["driver"][:2] == (False, "NVML is not installed (no_driver)")
    assert found["card"][:2] == (False, "No NVIDIA card can be read; GeForce GTX 1660 is simulated instead.")
    assert facts["driver"]["reason"] == "no_driver"
    assert facts["cards"] == []


def test_a_torch_that_cannot_use_the_card_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    blind = {"version": "2.9.0+cpu", "cuda_build": None, "cuda_available": False, "cards": []}
    ok, text, advice = findings(look(monkeypatch, torch=blind))["torch"]
    assert (ok, text) == (False, "2.9.0+cpu, built for the CPU")
    assert "install a CUDA build" in str(advice)
    no_driver = Sight(ill(Reason.NO_DRIVER, Advice.INSTALL_DRIVER))
    assert findings(look(monkeypatch, no_driver, torch=blind))["torch"][0]


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
    ("error", "start"),
    [
        ("ModuleNotFoundError: No module named 'torch'", "Install it: "),
        ("torch is not installed, or its files do not say how it was built", "Install it: "),
        ("OSError: libcudart.so.12: cannot open shared object file", "It is there and does not start; "),
    ],
)
def test_a_torch_that_does_not_start_is_not_one_that_is_not_there(
    monkeypatch: pytest.MonkeyPatch, error: str, start: str
) -> None:
    ok, text, advice = findings(look(monkeypatch, torch={"error": error}))["torch"]
    assert not ok
    assert text == error
    assert advice.startswith(start)


def test_a_card_that_sleeps_is_not_woken_by_torch_either(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    sleeping = Sight(None, (MachineCard("NVIDIA", "AD107M", "0000:01:00.0", 0x28A0, "nvidia", asleep=True),))
    monkeypatch.setattr(doctor, "look_around", lambda **_: sleeping)
    monkeypatch.setattr(
        doctor, "_ask", lambda question: asked.append(question) or (TORCH if "torch" in question else QT)
    )
    facts = examine(display_problem=None)
    assert not any("torch" in question for question in asked)
    assert facts["torch"]["cuda_available"] is None
    assert facts["torch"]["version"] == metadata.version("torch")
    assert facts["driver"] == {
        "asked": False,
        "reason": None,
        "detail": "a card sleeps",
        "version": None,
        "cuda_version": None,
        "kernel_version": None,
    }
    assert "note     card     AD107M at 0000:01:00.0 sleeps to save power and was not asked" in as_text(facts)


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
    assert facts["driver"] | {"kernel_version": None} == {
        "asked": True,
        "reason": None,
        "detail": "2 cards",
        "version": "570.86.10",
        "cuda_version": "12.8",
        "kernel_version": None,
    }
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
    advice = lines[lines.index(driver) + 1]
    assert "modprobe nvidia" in advice or "wsl --shutdown" in advice or "--gpus all" in advice, "by where the tests run"
    display = next(line for line in lines if " display " in line)
    assert display.startswith("missing")
    assert "--headless" in lines[lines.index(display) + 1]
