"""Which driver the kernel has for a card, by the kernel's files: looking at them wakes nothing (Linux)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

NVIDIA_DRIVER: Final = "nvidia"  # of the PCI driver and of the module; others drive such a card too: nouveau, vfio-pci
# "570.86.10" alone, and in a sentence with the platform and the day of the build
_NVIDIA_VERSIONS: Final = (Path("/sys/module/nvidia/version"), Path("/proc/driver/nvidia/version"))
_VERSION: Final = re.compile(r"\b\d+(?:\.\d+)+\b")


def bound_driver(device: Path) -> str | None:
    """The name of the driver that a device's folder in sysfs is bound to; ``None``: to none, or it cannot be told."""
    try:
        return (device / "driver").readlink().name
    except OSError:
        return None


def nvidia_version(files: Sequence[Path] = _NVIDIA_VERSIONS) -> str | None:
    """The version of NVIDIA's driver that is loaded; ``None``: none is, or it cannot be told."""
    for file in files:
        try:
            found = _VERSION.search(file.read_text(encoding="ascii", errors="replace"))
        except OSError:
            continue
        if found:
            return found[0]
    return None
