"""Every graphics or AI card of the machine, whoever made it, without any driver or library: what the system lists.

Linux: the PCI devices of the kernel, with names from ``pci.ids`` where the system has it. Windows: the registry. macOS:
the chip. Nothing here opens a device, so nothing wakes a card.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from desktop_app.core.errors import NoSuchDeviceError
from desktop_app.telemetry.catalogue import CatalogueCard, find_card
from desktop_app.telemetry.kernel_driver import bound_driver
from desktop_app.telemetry.runtime_power import PCI_DEVICES, RuntimePower, read_hex

# PCI vendors (pci.ids; the makers' device plugins for Kubernetes for those that are not in it), as the catalogue writes
# the makers' names.
VENDORS: Final = {
    0x10DE: "NVIDIA",
    0x1002: "AMD",
    0x8086: "Intel",
    0x1ED5: "Moore Threads",
    0xCABC: "Cambricon",
    0x19E5: "Huawei",
    0x1D94: "Hygon",
    0x1E3E: "Iluvatar CoreX",
    0x9999: "MetaX",
    0x1EE0: "Biren",
    0x1E36: "Enflame",
    0x1D22: "Kunlunxin",
}
# PCI base classes: display controllers, processing accelerators.
_CLASSES: Final = frozenset({0x03, 0x12})
# Huawei and Intel make other things of these classes: a server's console, network accelerators.
_NO_CARDS: Final = frozenset({(0x19E5, 0x1711)})  # Hi171x, the screen of a server's management
_PCI_NAMES: Final = (Path("/usr/share/misc/pci.ids"), Path("/usr/share/hwdata/pci.ids"))
_BRACKETS: Final = re.compile(r"\[([^\]]+)\]")
_DISPLAY_CLASS: Final = r"SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}"
_WINDOWS_ID: Final = re.compile(r"VEN_([0-9A-F]{4})&DEV_([0-9A-F]{4})", re.IGNORECASE)
_PATIENCE_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class MachineCard:
    """A card as the system lists it. ``kernel_driver``: who drives it (Linux). ``name``: as the system has it;
    ``known``: the part of the catalogue, where the name says surely which."""

    vendor: str
    name: str | None
    bus_id: str | None = None
    device_id: int | None = None
    kernel_driver: str | None = None
    asleep: bool = False
    known: CatalogueCard | None = None


def list_machine_cards() -> tuple[MachineCard, ...]:
    """The cards of this machine, in the order of their bus ids. Never raises; what cannot be told is not there."""
    if sys.platform == "win32":
        return tuple(_windows_cards())
    if sys.platform == "darwin":
        return mac_cards(_mac_chip())
    return pci_cards()


def pci_cards(devices: Path = PCI_DEVICES, *, names: Sequence[Path] = _PCI_NAMES) -> tuple[MachineCard, ...]:
    """The cards among the kernel's PCI devices."""
    power = RuntimePower(devices)
    found = []
    try:
        folders = sorted(devices.iterdir())
    except OSError:
        return ()
    for folder in folders:
        vendor, device = read_hex(folder / "vendor"), read_hex(folder / "device")
        kind = (read_hex(folder / "class") or 0) >> 16
        if vendor not in VENDORS or device is None or kind not in _CLASSES or (vendor, device) in _NO_CARDS:
            continue
        name = _pci_name(vendor, device, names)
        found.append(
            MachineCard(
                vendor=VENDORS[vendor],
                name=name,
                bus_id=folder.name,
                device_id=device,
                kernel_driver=bound_driver(folder),
                asleep=power.is_asleep(folder.name),
                known=_known(VENDORS[vendor], name),
            )
        )
    return tuple(found)


def mac_cards(chip: str | None) -> tuple[MachineCard, ...]:
    """The GPU of an Apple chip ("Apple M2 Pro"); of an Intel Mac nothing is known here."""
    if chip is None or not chip.startswith("Apple"):
        return ()
    return (MachineCard(vendor="Apple", name=chip, known=_known("Apple", chip)),)


def windows_card(description: str, matching_id: str) -> MachineCard | None:
    """From ``DriverDesc`` and ``MatchingDeviceId`` of a display adapter."""
    found = _WINDOWS_ID.search(matching_id)
    vendor = VENDORS.get(int(found[1], 16)) if found else None
    if found is None or vendor is None:
        return None
    return MachineCard(vendor, description, device_id=int(found[2], 16), known=_known(vendor, description))


def _windows_cards() -> list[MachineCard]:
    found: list[MachineCard] = []
    if sys.platform == "win32":
        import winreg

        try:
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, _DISPLAY_CLASS) as adapters:
                for index in range(winreg.QueryInfoKey(adapters)[0]):
                    name = winreg.EnumKey(adapters, index)
                    if not name.isdecimal():
                        continue
                    with winreg.OpenKey(adapters, name) as adapter:
                        description = str(winreg.QueryValueEx(adapter, "DriverDesc")[0])
                        card = windows_card(description, str(winreg.QueryValueEx(adapter, "MatchingDeviceId")[0]))
                    if card is not None:
                        found.append(card)
        except OSError:
            return found
    return found


def _mac_chip() -> str | None:
    if platform.machine() != "arm64":
        return None
    try:
        done = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"],
            capture_output=True,
            text=True,
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _pci_name(vendor: int, device: int, files: Sequence[Path]) -> str | None:
    """The name in the first list of PCI ids that the system has: "Navi 31 [Radeon RX 7900 XT/7900 XTX]"."""
    for file in files:
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        found = re.search(rf"^{vendor:04x}\s.*\n((?:[\t#].*\n|\n)*)", text, re.MULTILINE)
        line = re.search(rf"^\t{device:04x}\s+(.+)$", found[1], re.MULTILINE) if found else None
        return line[1].strip() if line else None
    return None


def _known(vendor: str, name: str | None) -> CatalogueCard | None:
    """The part that the name surely means. One PCI id can stand for several cards: then none."""
    if name is None:
        return None
    inner = _BRACKETS.search(name)
    candidates = [name] if inner is None else [inner[1], _BRACKETS.sub("", name).strip()]
    for candidate in candidates:
        try:
            card = find_card(candidate)
        except NoSuchDeviceError:
            continue
        if card.vendor == vendor:
            return card
    return None
