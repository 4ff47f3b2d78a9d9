"""AMD cards behind the ``Backend`` border. Written after the library's sources; not tried on a real card."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from desktop_app.core.clock import SessionClock
from desktop_app.core.telemetry import DETAIL_FIELDS, FAST_FIELDS, SLOW_FIELDS, Card, ProcessSample, Reading, Reason
from desktop_app.telemetry.amdsmi import AmdSmiDoor
from desktop_app.telemetry.amdsmi_card import AmdCard
from desktop_app.telemetry.amdsmi_facts import describe_card
from desktop_app.telemetry.backend import Advice, BackendUnavailable, missing
from desktop_app.telemetry.processes import ProcessDirectory
from desktop_app.telemetry.runtime_power import PCI_DEVICES, RuntimePower, kernel_bus_id


class AmdSmiBackend:
    """All AMD cards of the machine. Runs in: one thread at a time for each card.

    A card that fell off the bus has no files left, which the library reports as "not supported": that its folder is
    gone tells the two apart.
    """

    def __init__(self, clock: SessionClock, *, door: AmdSmiDoor | None = None, pci_devices: Path = PCI_DEVICES) -> None:
        self._clock = clock
        self._door = door or AmdSmiDoor(monotonic=clock.now_s)
        self._pci_devices = pci_devices
        self._power = RuntimePower(pci_devices)
        self._cards: dict[str, AmdCard] = {}
        self._present: tuple[Card, ...] = ()
        self._directory = ProcessDirectory()
        self._pid = os.getpid()
        self._on_bus_at_opening: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return "amdsmi"

    def open(self) -> tuple[Card, ...]:
        """All cards that answer, in the library's order. Raises ``BackendUnavailable`` when there is none."""
        self._check_process()
        if self._door.is_open:
            return self._present
        self._on_bus_at_opening = self._on_bus()
        self._door.open()
        self._present = self._find_cards()
        if not self._present:
            self.close()
            raise BackendUnavailable(Reason.GPU_LOST, "AMD's driver runs but sees no card", Advice.CHECK_CARD)
        return self._present

    def has_changed(self) -> bool:
        """Whether the kernel's part of the driver has got or lost a card since the opening. Calls no library."""
        return self._on_bus() != self._on_bus_at_opening

    def read_fast(self, card: Card) -> Mapping[str, Reading]:
        """All of ``FAST_FIELDS``. A card that sleeps is not asked."""
        reader = self._reader(card)
        if self._power.is_asleep(card.bus_id):
            return missing(FAST_FIELDS, Reason.ASLEEP)
        if reader is None:
            return missing(FAST_FIELDS, Reason.GPU_LOST)
        readings = reader.read_fast(self._clock.now_s())
        gone = all(reading.value is None for reading in readings.values()) and self._is_gone(card)
        return missing(FAST_FIELDS, Reason.GPU_LOST) if gone else readings

    def read_slow(self, card: Card) -> Mapping[str, Reading]:
        """All of ``SLOW_FIELDS`` and ``DETAIL_FIELDS``."""
        reader = self._reader(card)
        if self._power.is_asleep(card.bus_id):
            return missing(SLOW_FIELDS + DETAIL_FIELDS, Reason.ASLEEP)
        return (
            missing(SLOW_FIELDS + DETAIL_FIELDS, Reason.GPU_LOST)
            if reader is None
            else reader.read_slow(self._clock.now_s())
        )

    def processes(self, card: Card) -> tuple[ProcessSample, ...]:
        """Processes on the card, this one marked as own."""
        reader = self._reader(card)
        return () if reader is None or self._power.is_asleep(card.bus_id) else reader.processes()

    def close(self) -> None:
        """Let go of the driver; a later ``open`` starts anew. In a forked child: nothing."""
        if os.getpid() != self._pid:
            return
        self._present = ()
        self._door.close()

    def _find_cards(self) -> tuple[Card, ...]:
        handles = self._door.query("amdsmi_get_processor_handles", owner="")
        found = []
        for index, handle in enumerate(handles if isinstance(handles, Sequence) else ()):
            described = describe_card(self._door, handle, index)
            if described is None:
                continue
            card, sensors = described
            if card.uuid in self._cards:
                self._cards[card.uuid].reopened(handle, card, sensors)
            else:
                self._cards[card.uuid] = AmdCard(self._door, handle, card, sensors, directory=self._directory)
            found.append(card)
        return tuple(found)

    def _reader(self, card: Card) -> AmdCard | None:
        self._check_process()
        if not self._door.is_open:
            raise BackendUnavailable(Reason.NO_DRIVER, "AMD's library is not open", Advice.TRY_AGAIN)
        if all(present.uuid != card.uuid for present in self._present):
            return None
        return self._cards.get(card.uuid)

    def _on_bus(self) -> frozenset[str]:
        """Places of the cards that ``amdgpu`` drives."""
        try:
            entries = list((self._pci_devices.parent / "drivers" / "amdgpu").iterdir())
        except OSError:
            return frozenset()
        return frozenset(entry.name for entry in entries if ":" in entry.name)

    def _is_gone(self, card: Card) -> bool:
        if card.bus_id is None or not self._pci_devices.is_dir():
            return False
        return not (self._pci_devices / kernel_bus_id(card.bus_id)).exists()

    def _check_process(self) -> None:
        """The library's state is undefined after a fork."""
        if os.getpid() != self._pid:
            raise BackendUnavailable(
                Reason.NO_DRIVER, "the driver library was opened by another process", Advice.TRY_AGAIN
            )
