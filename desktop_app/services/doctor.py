"""What Floodmark sees: driver, cards, torch, Qt, fonts, disk; with a reason for everything missing."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from typing import Any, Final

from desktop_app import __version__
from desktop_app.core.telemetry import Card
from desktop_app.core.units import format_bytes
from desktop_app.services.locations import DATA_VARIABLE, data_folder, writable_problem
from desktop_app.telemetry.backend import Advice
from desktop_app.telemetry.catalogue import load_catalogue
from desktop_app.telemetry.nvml_backend import NvmlProbe
from desktop_app.telemetry.selection import DEFAULT_CARD, probe_nvml

_PACKAGES: Final = ("torch", "PySide6-Essentials", "pyqtgraph", "numpy", "nvidia-ml-py", "psutil", "pillow")
# Importing torch or starting Qt takes seconds on a cold disk and must not be able to take the doctor down.
_PATIENCE_S: Final = 60.0
_TORCH_QUESTION: Final = """
import json, torch
cuda = torch.cuda.is_available()
print(json.dumps({"version": torch.__version__, "cuda_build": torch.version.cuda, "cuda_available": cuda,
  "cards": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if cuda else []}))
"""
_QT_QUESTION: Final = """
import json, os
os.environ["QT_QPA_PLATFORM"] = "offscreen"
from PySide6.QtCore import qVersion
from PySide6.QtGui import QFontDatabase, QGuiApplication
app = QGuiApplication([])
print(json.dumps({"version": qVersion(), "families": len(QFontDatabase.families()),
  "chinese": QFontDatabase.families(QFontDatabase.WritingSystem.SimplifiedChinese)[:3]}))
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. ``advice`` is what to do about it, empty when it is well."""

    subject: str
    ok: bool
    text: str
    advice: str = ""


def examine(*, display_problem: str | None) -> dict[str, Any]:
    """All facts as plain data: ``findings`` for people, the rest for programs.

    ``display_problem`` is asked by the caller, who may import Qt.
    """
    probe = probe_nvml()
    torch, qt = _ask(_TORCH_QUESTION), _ask(_QT_QUESTION)
    findings = [
        *_driver_findings(probe),
        _torch_finding(torch, has_card=bool(probe.cards)),
        _qt_finding(qt),
        _font_finding(qt),
        _display_finding(display_problem),
        _folder_finding(),
    ]
    return {
        "schema": 1,
        "floodmark": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "driver": {
            "reason": None if probe.reason is None else probe.reason.value,
            "detail": probe.detail,
            "version": probe.driver_version,
        },
        "cards": [_card(card) for card in probe.cards],
        "simulated_default": DEFAULT_CARD,
        "catalogue_cards": len(load_catalogue()),
        "torch": torch,
        "qt": qt,
        "data_folder": str(data_folder()),
        "findings": [{"subject": f.subject, "ok": f.ok, "text": f.text, "advice": f.advice or None} for f in findings],
    }


def as_text(facts: dict[str, Any]) -> str:
    """The facts for a terminal: one line a finding, what to do below it."""
    lines = [f"Floodmark {facts['floodmark']}, Python {facts['python']}, {facts['system']}"]
    for finding in facts["findings"]:
        lines.append(f"{'ok     ' if finding['ok'] else 'missing'}  {finding['subject']:<8} {finding['text']}")
        if finding["advice"]:
            lines.append(f"{'':18}{finding['advice']}")
    if facts["cards"]:
        lines.append("cards    torch  nvml  bus id            name")
        lines += [_card_line(card) for card in facts["cards"]]
    return "\n".join(lines)


def as_json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, ensure_ascii=False, indent=1)


_ADVICE: Final = {
    Advice.INSTALL_DRIVER: "Install NVIDIA's driver; in a container start it with --gpus all, in WSL update the "
    "Windows driver. Until then cards are simulated.",
    Advice.LOAD_DRIVER: "The driver's library is there but the driver is not loaded: run 'sudo modprobe nvidia' or "
    "restart the machine.",
    Advice.RESTART_AFTER_UPDATE: "The driver was updated while it ran: restart the machine.",
    Advice.ALLOW_ACCESS: "Your user may not open /dev/nvidia*: join the group that may (often 'video' or 'render').",
    Advice.CHECK_CARD: "Check the card and its power with 'nvidia-smi' and 'dmesg'.",
    Advice.TRY_AGAIN: "Try again; if it stays, restart the machine.",
}


def _driver_findings(probe: NvmlProbe) -> Iterable[Finding]:
    if probe.reason is None:
        cuda = f", CUDA {probe.cuda_driver_version}" if probe.cuda_driver_version else ""
        yield Finding("driver", ok=True, text=f"NVIDIA {probe.driver_version}{cuda}")
        for card in probe.cards:
            yield _card_finding(card)
        return
    advice = _ADVICE[probe.advice_code] if probe.advice_code is not None else ""
    yield Finding("driver", ok=False, text=f"{probe.detail} ({probe.reason.value})", advice=advice)
    yield Finding("card", ok=False, text=f"No NVIDIA card can be read; {DEFAULT_CARD} is simulated instead.")


def _card_finding(card: Card) -> Finding:
    capacity = card.capacity_bytes
    missing = sorted(f"{name} ({reason.value})" for name, reason in card.reasons.items())
    text = f"{card.name}, {'memory unknown' if capacity is None else format_bytes(capacity)}"
    if missing:
        text += f"; not known: {', '.join(missing)}"
    return Finding("card", ok=True, text=text)


def _torch_finding(torch: dict[str, Any], *, has_card: bool) -> Finding:
    if "error" in torch:
        return Finding(
            "torch", ok=False, text=torch["error"], advice="Install it: pip install torch (see pytorch.org for CUDA)."
        )
    build = f"built for CUDA {torch['cuda_build']}" if torch["cuda_build"] else "built for the CPU"
    blind = has_card and not torch["cuda_available"]
    advice = "This torch cannot use the card: install a CUDA build that suits the driver." if blind else ""
    return Finding("torch", ok=not blind, text=f"{torch['version']}, {build}", advice=advice)


def _qt_finding(qt: dict[str, Any]) -> Finding:
    if "error" in qt:
        return Finding(
            "qt",
            ok=False,
            text=qt["error"],
            advice="A system library may be missing; on Debian and Ubuntu run packaging/system_packages.sh.",
        )
    return Finding("qt", ok=True, text=qt["version"])


def _font_finding(qt: dict[str, Any]) -> Finding:
    if qt.get("chinese"):
        return Finding("fonts", ok=True, text=f"{qt['families']} families; Chinese in {qt['chinese'][0]}")
    return Finding(
        "fonts",
        ok=False,
        text="No font with Chinese glyphs",
        advice="For the Chinese window install one, e.g. fonts-noto-cjk or fonts-wqy-microhei.",
    )


def _display_finding(problem: str | None) -> Finding:
    return Finding("display", ok=problem is None, text="found" if problem is None else "none", advice=problem or "")


def _folder_finding() -> Finding:
    folder = data_folder()
    problem = writable_problem(folder)
    if problem is not None:
        return Finding("data", ok=False, text=str(folder), advice=problem.message)
    free = format_bytes(shutil.disk_usage(folder).free)
    return Finding("data", ok=True, text=f"{folder}, {free} free ({DATA_VARIABLE} chooses another folder)")


def _ask(question: str) -> dict[str, Any]:
    """Run a few lines in a fresh interpreter and read one line of JSON; an ``error`` in its place, in one line."""
    try:
        done = subprocess.run(  # noqa: S603 - our own interpreter and our own text
            [sys.executable, "-c", question], capture_output=True, text=True, timeout=_PATIENCE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"error": f"could not be asked: {error}"}
    if done.returncode == 0:
        try:
            return dict(json.loads(done.stdout.strip().splitlines()[-1]))
        except (IndexError, TypeError, ValueError):
            return {"error": "gave an answer that cannot be read"}
    last = done.stderr.strip().splitlines()
    return {"error": last[-1] if last else f"ended with code {done.returncode}"}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _card(card: Card) -> dict[str, Any]:
    return {
        "torch_index": card.torch_index,
        "nvml_index": card.nvml_index,
        "bus_id": card.bus_id,
        "uuid": card.uuid,
        "name": card.name,
        "total_bytes": card.total_bytes,
        "capacity_bytes": card.capacity_bytes,
        "driver_reserved_bytes": card.driver_reserved_bytes,
        "shared_memory": card.shared_memory,
        "reasons": {name: reason.value for name, reason in card.reasons.items()},
    }


def _card_line(card: dict[str, Any]) -> str:
    torch_index = "–" if card["torch_index"] is None else card["torch_index"]
    return f"{'':9}{torch_index!s:<7}{card['nvml_index']!s:<6}{card['bus_id'] or '–':<18}{card['name']}"
