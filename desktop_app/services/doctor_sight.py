"""What the doctor sees, gathered once: the driver, the cards, the system around them. No judgement here."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import stat
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from desktop_app.core.clock import SessionClock
from desktop_app.core.telemetry import Reason
from desktop_app.telemetry.amdsmi_backend import AmdSmiBackend
from desktop_app.telemetry.backend import Advice, BackendUnavailable
from desktop_app.telemetry.containers import own_container
from desktop_app.telemetry.nvml_backend import NvmlProbe
from desktop_app.telemetry.other_vendors import MachineCard, list_machine_cards
from desktop_app.telemetry.selection import has_amdsmi, probe_nvml

T = TypeVar("T")

# A driver that has not answered by then blocks; the doctor says so and goes on.
_PATIENCE_S: Final = 10.0
_KERNEL_VERSION: Final = re.compile(r"Kernel Module\s+(?:for \S+\s+)?(\d[\d.]+)")
# What CUDA needs to open (nvidia-modprobe makes them).
_NODES: Final = ("nvidiactl", "nvidia-uvm", "nvidia[0-9]*")
ENVIRONMENT: Final = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES")


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """A device file. ``usable``: this user may read and write it."""

    path: str
    usable: bool
    group: str | None = None


@dataclass(frozen=True, slots=True)
class AmdProbe:
    """What AMD's driver says. ``reason`` is ``None`` when at least one card can be read."""

    reason: Reason | None
    detail: str
    cards: int = 0


@dataclass(frozen=True, slots=True)
class Sight:
    """Everything. ``probe`` is ``None`` when the driver was not asked, because a card sleeps."""

    probe: NvmlProbe | None
    machine: tuple[MachineCard, ...] = ()
    amd: AmdProbe | None = None  # None: the package is not installed
    nodes: tuple[DeviceNode, ...] = ()
    kernel_driver_version: str | None = None  # of the part of NVIDIA's driver that is loaded
    container: str | None = None
    wsl: bool = False
    platform: str = sys.platform
    environment: Mapping[str, str] = field(default_factory=dict)
    metrics_installed: bool = True


def look_around(*, wake: bool) -> Sight:
    """Everything but torch and Qt, which are asked in processes of their own. Never raises.

    ``wake``: ask the driver although a card sleeps.
    """
    machine: tuple[MachineCard, ...] = _or(list_machine_cards, ())
    sleeping = any(card.vendor == "NVIDIA" and card.asleep for card in machine)
    return Sight(
        probe=None if sleeping and not wake else _in_time(probe_nvml, _blocked),
        machine=machine,
        amd=_in_time(_probe_amd, lambda: AmdProbe(Reason.TIMED_OUT, "it does not answer")) if has_amdsmi() else None,
        nodes=_or(list_nodes, ()),
        kernel_driver_version=kernel_driver_version(),
        container=_or(own_container, None),
        wsl=is_wsl(),
        environment={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
        metrics_installed=importlib.util.find_spec("prometheus_client") is not None,
    )


def list_nodes(folder: Path = Path("/dev")) -> tuple[DeviceNode, ...]:
    """NVIDIA's device files."""
    found = sorted({path for pattern in _NODES for path in folder.glob(pattern)})
    nodes = [path for path in found if stat.S_ISCHR(path.stat().st_mode)]
    return tuple(DeviceNode(str(path), os.access(path, os.R_OK | os.W_OK), _group(path)) for path in nodes)


def kernel_driver_version(file: Path = Path("/proc/driver/nvidia/version")) -> str | None:
    """The version of the driver's kernel part, as it says itself: "570.86.10"."""
    try:
        found = _KERNEL_VERSION.search(file.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return None
    return found[1] if found else None


def is_wsl(version: Path = Path("/proc/version")) -> bool:
    """Whether this Linux runs inside Windows."""
    try:
        return "microsoft" in version.read_text(encoding="utf-8", errors="replace").lower()
    except OSError:
        return False


def _probe_amd() -> AmdProbe:
    backend = AmdSmiBackend(SessionClock())
    try:
        cards = backend.open()
    except BackendUnavailable as error:
        return AmdProbe(error.reason, error.detail)
    backend.close()
    return AmdProbe(None, "", len(cards))


def _blocked() -> NvmlProbe:
    return NvmlProbe(Reason.TIMED_OUT, f"NVIDIA's driver has not answered for {_PATIENCE_S:.0f} s", Advice.CHECK_CARD)


def _in_time(ask: Callable[[], T], otherwise: Callable[[], T]) -> T:
    """The answer, or another one when the driver blocks: its thread is left alone with the call."""
    answers: list[T] = []

    def run() -> None:
        with contextlib.suppress(Exception):
            answers.append(ask())

    thread = threading.Thread(target=run, name="doctor", daemon=True)
    thread.start()
    thread.join(_PATIENCE_S)
    return answers[0] if answers else otherwise()


def _or(ask: Callable[[], T], otherwise: T) -> T:
    try:
        return ask()
    except OSError:
        return otherwise


def _group(path: Path) -> str | None:
    try:
        return path.group()
    except (OSError, KeyError, NotImplementedError):
        return None
