"""What Floodmark sees: driver, cards, torch, Qt, fonts, disk; with what to do about everything missing."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, fields
from importlib import metadata
from typing import Any, Final

from desktop_app import __version__
from desktop_app.core.telemetry import Card, Reason
from desktop_app.core.units import format_bytes
from desktop_app.services.doctor_cards import card_findings, other_findings
from desktop_app.services.doctor_driver import driver_findings
from desktop_app.services.doctor_findings import NOTE, OK, PROBLEM, Finding
from desktop_app.services.doctor_sight import Sight, look_around
from desktop_app.services.locations import DATA_VARIABLE, data_folder, writable_problem
from desktop_app.services.torch_build import installed_torch
from desktop_app.telemetry.catalogue import load_catalogue
from desktop_app.telemetry.other_vendors import MachineCard
from desktop_app.telemetry.selection import DEFAULT_CARD

_PACKAGES: Final = ("torch", "PySide6-Essentials", "pyqtgraph", "numpy", "nvidia-ml-py", "psutil", "pillow")
_EXTRAS: Final = ("prometheus-client", "amdsmi")
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
_MARKS: Final = {OK.value: "ok     ", NOTE.value: "note   ", PROBLEM.value: "missing"}


def examine(*, display_problem: str | None, wake: bool = False) -> dict[str, Any]:
    """All facts as plain data: ``findings`` for people, the rest for programs. Never raises.

    ``display_problem`` is asked by the caller, who may import Qt. ``wake``: ask a driver whose card sleeps.
    """
    with ThreadPoolExecutor(3, thread_name_prefix="doctor") as pool:
        looking = pool.submit(look_around, wake=wake)
        asking_qt = pool.submit(_ask, _QT_QUESTION)
        sight = looking.result()
        torch = _ask(_TORCH_QUESTION) if sight.probe is not None else _torch_from_files()
        qt = asking_qt.result()
    cards = sight.probe.cards if sight.probe is not None else ()
    findings = [
        *driver_findings(sight),
        *card_findings(sight),
        *other_findings(sight),
        _torch_finding(torch, has_card=bool(cards)),
        _qt_finding(qt),
        _font_finding(qt),
        _display_finding(display_problem),
        _folder_finding(),
        *_extra_findings(sight),
    ]
    return {
        "schema": 2,
        "floodmark": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": {name: _version(name) for name in _PACKAGES + _EXTRAS},
        "place": {
            "container": sight.container,
            "wsl": sight.wsl,
            "environment": dict(sorted(sight.environment.items())),
        },
        "driver": _driver(sight),
        "cards": [_card(card) for card in cards],
        "machine_cards": [_machine_card(card) for card in sight.machine],
        "simulated_default": DEFAULT_CARD,
        "catalogue_cards": len(load_catalogue()),
        "torch": torch,
        "qt": qt,
        "data_folder": str(data_folder()),
        "findings": [finding.as_data() for finding in findings],
    }


def as_text(facts: dict[str, Any]) -> str:
    """The facts for a terminal: one line a finding, what to do below it."""
    lines = [f"Floodmark {facts['floodmark']}, Python {facts['python']}, {facts['system']}"]
    for finding in facts["findings"]:
        lines.append(f"{_MARKS[finding['level']]}  {finding['subject']:<8} {finding['text']}")
        if finding["advice"]:
            lines.append(f"{'':18}{finding['advice']}")
    if facts["cards"]:
        lines.append("cards    torch  nvml  bus id            name")
        lines += [_card_line(card) for card in facts["cards"]]
    return "\n".join(lines)


def as_json(facts: dict[str, Any]) -> str:
    return json.dumps(facts, ensure_ascii=False, indent=1)


def _driver(sight: Sight) -> dict[str, Any]:
    probe = sight.probe
    reason = None if probe is None or probe.reason is None else probe.reason.value
    return {
        "asked": probe is not None,
        "reason": reason,
        "detail": "a card sleeps" if probe is None else probe.detail,
        "version": None if probe is None else probe.driver_version,
        "cuda_version": None if probe is None else probe.cuda_driver_version,
        "kernel_version": sight.kernel_driver_version,
    }


def _extra_findings(sight: Sight) -> Iterable[Finding]:
    """Packages that are wanted only by who uses what they are for."""
    if not sight.metrics_installed:
        yield Finding(
            "extra.metrics",
            "extras",
            NOTE,
            "prometheus-client is not installed: --metrics needs it",
            "pip install 'floodmark[metrics]'",
        )


def _torch_finding(torch: dict[str, Any], *, has_card: bool) -> Finding:
    if "error" in torch:
        advice = "Install it: pip install torch (see pytorch.org for CUDA)."
        if "not installed" not in torch["error"] and "No module named 'torch'" not in torch["error"]:
            advice = (
                "It is there and does not start; 'python -c \"import torch\"' shows all of it. Install it anew: pip "
            )
            advice += "install --force-reinstall torch (see pytorch.org for CUDA)."
        return Finding("torch.missing", "torch", PROBLEM, torch["error"], advice)
    build = f"built for CUDA {torch['cuda_build']}" if torch["cuda_build"] else "built for the CPU"
    text = f"{torch['version']}, {build}"
    if has_card and torch["cuda_available"] is False:
        advice = "This torch cannot use the card: install a CUDA build that suits the driver."
        return Finding("torch.blind", "torch", PROBLEM, text, advice)
    return Finding("torch.ok", "torch", OK, text)


def _qt_finding(qt: dict[str, Any]) -> Finding:
    if "error" in qt:
        advice = "A system library may be missing; on Debian and Ubuntu run packaging/system_packages.sh."
        return Finding("qt.missing", "qt", PROBLEM, qt["error"], advice)
    return Finding("qt.ok", "qt", OK, qt["version"])


def _font_finding(qt: dict[str, Any]) -> Finding:
    if qt.get("chinese"):
        return Finding("fonts.ok", "fonts", OK, f"{qt['families']} families; Chinese in {qt['chinese'][0]}")
    advice = "For the Chinese window install one, e.g. fonts-noto-cjk or fonts-wqy-microhei."
    return Finding("fonts.no_chinese", "fonts", PROBLEM, "No font with Chinese glyphs", advice)


def _display_finding(problem: str | None) -> Finding:
    if problem is None:
        return Finding("display.ok", "display", OK, "found")
    return Finding("display.none", "display", PROBLEM, "none", problem)


def _folder_finding() -> Finding:
    folder = data_folder()
    problem = writable_problem(folder)
    if problem is not None:
        return Finding("data.unwritable", "data", PROBLEM, str(folder), problem.message)
    free = format_bytes(shutil.disk_usage(folder).free)
    return Finding("data.ok", "data", OK, f"{folder}, {free} free ({DATA_VARIABLE} chooses another folder)")


def _torch_from_files() -> dict[str, Any]:
    """As torch itself would say, without what would wake a card: CUDA's own start does."""
    build = installed_torch()
    if build is None:
        return {"error": "torch is not installed, or its files do not say how it was built"}
    return {"version": build.version, "cuda_build": build.cuda, "cuda_available": None, "cards": []}


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
    """Every fact of a card by its name; ``null`` with its reason in ``reasons``."""
    facts = {field.name: getattr(card, field.name) for field in fields(card)}
    facts["instances"] = [{**asdict(instance), "reasons": _reasons(instance.reasons)} for instance in card.instances]
    return {**facts, "capacity_bytes": card.capacity_bytes, "reasons": _reasons(card.reasons)}


def _reasons(reasons: Mapping[str, Reason]) -> dict[str, str]:
    return {name: reason.value for name, reason in sorted(reasons.items())}


def _machine_card(card: MachineCard) -> dict[str, Any]:
    known = card.known
    return {
        "vendor": card.vendor,
        "name": card.name,
        "bus_id": card.bus_id,
        "device_id": card.device_id,
        "kernel_driver": card.kernel_driver,
        "asleep": card.asleep,
        "catalogue": None
        if known is None
        else {
            "name": known.name,
            "memory_gb": known.memory_gb,
            "memory_bandwidth_gb_s": known.memory_bandwidth_gb_s,
            "tdp_w": known.tdp_w,
        },
    }


def _card_line(card: dict[str, Any]) -> str:
    torch_index = "–" if card["torch_index"] is None else card["torch_index"]
    return f"{'':9}{torch_index!s:<7}{card['nvml_index']!s:<6}{card['bus_id'] or '–':<18}{card['name']}"
