"""What a card's generation or name decides in a log: whether its "power draw" is of the moment or an average, and
whether it has memory of its own."""

from __future__ import annotations

import re
from typing import Final

# nvidia-smi --help-query-gpu, power.draw: "On Ampere or newer devices, returns average power draw over 1 sec. On older
# devices, returns instantaneous power draw." GA100 (A100, A30, A800) is as the older ones (nvml.h,
# nvmlDeviceGetPowerUsage).
_OLDER: Final = frozenset({"kepler", "maxwell", "pascal", "volta", "turing", "fermi"})
_GA100: Final = re.compile(r"\b(A100|A100X|A30|A30X|A800|PG506)\b")
_OLDER_NAMES: Final = re.compile(
    r"\b(GTX|GT \d|Tesla [KMPVT]\d|[MPVTK]\d{1,4}\b|Quadro|TITAN|RTX 20\d\d|MX\d{3})", re.IGNORECASE
)
_NEWER_NAMES: Final = re.compile(
    r"\b(RTX (30|40|50)\d\d|RTX A\d{3,4}|RTX PRO|A10G?|A16|A2|A40|L4|L20|L40S?|H100|H200|H800|H20|GH200|B100|B200|"
    r"GB200|B300|GB300|GB10|RTX \d{4}.* Ada)\b",
    re.IGNORECASE,
)
_ADA: Final = re.compile(r"\bAda\b")  # RTX 2000 Ada is not of the 20 series
# NVIDIA's parts whose memory is the system's: GB10 (DGX Spark and its kin) and Jetson, by the names that nvidia-smi
# gives them ("NVIDIA GB10", "Orin (nvgpu)", "NVIDIA Thor"). GH200 has memory of its own, and tells its size.
_SHARED: Final = re.compile(r"\b(GB10|DGX Spark|Jetson|Tegra|Xavier|Orin|Thor|nvgpu)\b", re.IGNORECASE)


def shares_memory(name: str) -> bool:
    """Whether a card of this name has no memory of its own."""
    return _SHARED.search(name) is not None


def power_is_average(name: str | None, architecture: str | None, compute_capability: str | None = None) -> bool | None:
    """Whether ``power.draw`` of this card is a one-second average; ``None`` where the log does not tell the card."""
    if name and _GA100.search(name):
        return False
    if compute_capability and (found := re.fullmatch(r"(\d{1,2})\.(\d)", compute_capability.strip())):
        return (int(found[1]), int(found[2])) > (8, 0)
    if architecture and architecture.strip() and architecture.strip().lower() not in ("n/a", "[n/a]"):
        return architecture.split()[0].lower() not in _OLDER
    if not name:
        return None
    if _OLDER_NAMES.search(name) and not _ADA.search(name):
        return False
    return True if _NEWER_NAMES.search(name) else None
