"""Whether a card sleeps, from the kernel's files: looking at them wakes nothing (Linux, PCI runtime power management).

A laptop's second GPU sleeps when nothing uses it and takes 5 to 25 W once it is asked for anything.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from desktop_app.telemetry.kernel_driver import bound_driver

PCI_DEVICES: Final = Path("/sys/bus/pci/devices")
# power/runtime_status of Documentation/ABI/testing/sysfs-devices-power.
_ASLEEP: Final = frozenset({"suspended", "suspending"})
_KNOWN: Final = _ASLEEP | {"active", "resuming"}
NVIDIA: Final = 0x10DE  # PCI vendor
_DISPLAY: Final = 0x03  # PCI class


class RuntimePower:
    """Answers about cards by their bus ids, in NVML's way of writing or the kernel's. Never raises, never blocks."""

    def __init__(self, pci_devices: Path = PCI_DEVICES) -> None:
        self._pci_devices = pci_devices

    def is_asleep(self, bus_id: str | None) -> bool:
        """The card sleeps, or is about to: asking its driver would wake it. ``False`` where it cannot be told."""
        return self._read(bus_id, "runtime_status") in _ASLEEP

    def may_sleep(self, bus_id: str | None) -> bool:
        """The kernel lets the card sleep when nothing has it open."""
        return self._read(bus_id, "control") == "auto" and self._read(bus_id, "runtime_status") in _KNOWN

    def identity(self, bus_id: str) -> str | None:
        """Which part is in that place: numbers of the device and of its board."""
        folder = self._pci_devices / kernel_bus_id(bus_id)
        numbers = [read_hex(folder / name) for name in ("vendor", "device", "subsystem_vendor", "subsystem_device")]
        return None if numbers[1] is None else " ".join("-" if each is None else f"{each:04x}" for each in numbers)

    def all_of(self, vendor: int) -> tuple[str, ...]:
        """Bus ids of the display controllers of a maker."""
        try:
            devices = sorted(self._pci_devices.iterdir())
        except OSError:
            return ()
        return tuple(
            device.name
            for device in devices
            if read_hex(device / "vendor") == vendor and (read_hex(device / "class") or 0) >> 16 == _DISPLAY
        )

    def driven_by(self, driver: str, *, vendor: int) -> tuple[str, ...]:
        """Those of a maker's display controllers that this driver of the kernel is bound to."""
        return tuple(each for each in self.all_of(vendor) if bound_driver(self._pci_devices / each) == driver)

    def _read(self, bus_id: str | None, name: str) -> str:
        if not bus_id:
            return ""
        try:
            return (self._pci_devices / kernel_bus_id(bus_id) / "power" / name).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            return ""


def kernel_bus_id(bus_id: str) -> str:
    """``0000:01:00.0`` of ``00000000:01:00.0``: the kernel writes four digits of a short domain, and small letters."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{domain.lstrip('0').rjust(4, '0')}:{rest}"


def read_hex(path: Path) -> int | None:
    """A number as the kernel writes it, ``0x10de``; ``None`` where there is none."""
    try:
        return int(path.read_text(encoding="ascii"), 16)
    except (OSError, ValueError):
        return None
