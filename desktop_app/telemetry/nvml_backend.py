"""NVIDIA cards behind the ``Backend`` border, and what the doctor says about them."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from desktop_app.core.clock import SessionClock
from desktop_app.core.telemetry import (
    DETAIL_FIELDS,
    FAST_FIELDS,
    SLOW_FIELDS,
    Card,
    CardError,
    GpuSample,
    InstanceSample,
    ProcessSample,
    Reading,
    Reason,
)
from desktop_app.telemetry.backend import Advice, BackendUnavailable, missing
from desktop_app.telemetry.host import system_memory as read_system_memory
from desktop_app.telemetry.nvml import NvmlDoor
from desktop_app.telemetry.nvml_backfill import read_back
from desktop_app.telemetry.nvml_card import NvmlCard
from desktop_app.telemetry.nvml_events import XidWatch
from desktop_app.telemetry.nvml_facts import (
    SystemMemory,
    cuda_version,
    describe_card,
    driver_versions,
    with_torch_indexes,
)
from desktop_app.telemetry.nvml_fast import lane_fields
from desktop_app.telemetry.processes import ProcessDirectory

_log = logging.getLogger(__name__)

# One folder per card that the kernel's part of the driver holds (Linux); elsewhere hot-plug is found when asked for.
_GPUS_FOLDER: Final = Path("/proc/driver/nvidia/gpus")

_MOST_CARDS: Final = 64


@dataclass(frozen=True, slots=True)
class NvmlProbe:
    """What a look at the driver found. ``reason`` is ``None`` when at least one card can be read.

    ``readings``: one of each field; those that need two moments are not there yet.
    """

    reason: Reason | None
    detail: str
    advice_code: Advice | None = None
    driver_version: str | None = None
    cuda_driver_version: str | None = None
    cards: tuple[Card, ...] = ()
    readings: Mapping[str, Mapping[str, Reading]] = field(default_factory=dict)


class NvmlBackend:
    """All NVIDIA cards of the machine. Runs in: one thread at a time for each card; every call may block in the driver.

    A card that is lost answers ``gpu_lost`` in every field while the others go on; ``close`` and ``open`` look for it
    again and keep the session's energy of each card. ``fast_fields``: what the fast lane of this backend is, if not all
    (to compare its cost with a reader that has fewer); the others are not asked for and have no reading then. Raises
    ``ValueError`` where ``lane_fields`` does.
    """

    def __init__(
        self,
        clock: SessionClock,
        *,
        system_memory: SystemMemory = read_system_memory,
        gpus_folder: Path = _GPUS_FOLDER,
        wall_clock: Callable[[], float] = time.time,
        fast_fields: Sequence[str] = FAST_FIELDS,
    ) -> None:
        self._clock = clock
        self._system_memory = system_memory
        self._wall_clock = wall_clock
        self._fast_fields = lane_fields(fast_fields)
        self._door = NvmlDoor(monotonic=clock.now_s)
        self._cards: dict[str, NvmlCard] = {}
        self._handles: dict[str, Any] = {}
        self._xids = XidWatch(self._door, now_s=clock.now_s)
        self._present: dict[str, Card] = {}
        self._directory = ProcessDirectory()
        self._pid = os.getpid()
        self._gpus_folder = gpus_folder
        self._gpus_at_opening: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return "nvml"

    def open(self) -> tuple[Card, ...]:
        """All cards that answer, in the driver's order. Raises ``BackendUnavailable`` when there is none."""
        self._check_process()
        if self._door.is_open and self._present:
            return tuple(self._present.values())
        self._gpus_at_opening = self._gpus()
        self._door.open()
        self._present = {card.uuid: card for card in with_torch_indexes(self._find_cards())}
        if not self._present:
            self.close()
            raise BackendUnavailable(Reason.GPU_LOST, "NVIDIA's driver runs but sees no card", Advice.CHECK_CARD)
        unheard = self._xids.start(self._handles)
        self._present = {uuid: self._with_errors(card, unheard) for uuid, card in self._present.items()}
        for card in self._present.values():
            self._cards[card.uuid].card = card
        return tuple(self._present.values())

    def has_changed(self) -> bool:
        """Whether a card was plugged in or out, or split in another way, since the opening. No call into the driver."""
        return self._gpus() != self._gpus_at_opening or any(card.is_split_anew for card in self._cards.values())

    def read_fast(self, card: Card) -> Mapping[str, Reading]:
        """All of the fast lane: ``FAST_FIELDS``, unless this backend was made with fewer."""
        reader = self._reader(card)
        if reader is None:
            return missing(self._fast_fields, Reason.GPU_LOST)
        return reader.read_fast(self._clock.now_s())

    def read_slow(self, card: Card) -> Mapping[str, Reading]:
        """All of ``SLOW_FIELDS`` and ``DETAIL_FIELDS``."""
        reader = self._reader(card)
        if reader is None:
            return missing(SLOW_FIELDS + DETAIL_FIELDS, Reason.GPU_LOST)
        return reader.read_slow(self._clock.now_s())

    def instances(self, card: Card) -> tuple[InstanceSample, ...]:
        """The card's MIG instances, with what each reports."""
        reader = self._reader(card)
        return () if reader is None else reader.instances()

    def processes(self, card: Card) -> tuple[ProcessSample, ...]:
        """Processes on the card, this one marked as own."""
        reader = self._reader(card)
        return () if reader is None else reader.processes()

    def back_fill(self, card: Card, *, since_s: float, readings: Mapping[str, Reading]) -> tuple[GpuSample, ...]:
        """What the driver has recorded itself since then, of fields that have a value in ``readings``."""
        handle = self._handles.get(card.uuid)
        if handle is None or self._reader(card) is None:
            return ()
        fields = [field for field, reading in readings.items() if reading.value is not None]
        now_s, wall_s = self._clock.now_s(), self._wall_clock()
        return read_back(self._door, handle, card.uuid, since_s=since_s, now_s=now_s, wall_s=wall_s, fields=fields)

    def card_errors(self) -> tuple[CardError, ...]:
        """What the driver has pushed since the last time. No call into the driver."""
        return self._xids.take() if os.getpid() == self._pid else ()

    def close(self) -> None:
        """Shut the library down; a later ``open`` starts anew. In a forked child: nothing.

        While the wait for errors is blocked in the driver the library stays open: NVML crashes under a call.
        """
        if os.getpid() != self._pid:
            return
        self._present = {}
        for card in self._cards.values() if self._door.is_open else ():
            card.close()
        if self._xids.stop():
            self._door.close()
        else:
            _log.warning("a wait for errors is blocked in the driver: the library is not shut down")

    def probe(self) -> NvmlProbe:
        """Open, look, close: everything the doctor says, in one value. Never raises."""
        try:
            cards = self.open()
        except BackendUnavailable as error:
            return NvmlProbe(reason=error.reason, detail=error.detail, advice_code=error.advice_code)
        versions = driver_versions(self._door)
        readings = {card.uuid: {**self.read_fast(card), **self.read_slow(card)} for card in cards}
        self.close()
        driver = versions["driver"]
        return NvmlProbe(
            reason=None,
            detail=f"{len(cards)} card{'s' if len(cards) != 1 else ''}",
            driver_version=str(driver.value) if driver.reason is None else None,
            cuda_driver_version=cuda_version(versions["cuda"]),
            cards=cards,
            readings=readings,
        )

    def _find_cards(self) -> tuple[Card, ...]:
        count = self._door.query("nvmlDeviceGetCount")
        versions = driver_versions(self._door)
        found, self._handles = [], {}
        for index in range(min(count.value, _MOST_CARDS) if count.reason is None else 0):
            handle = self._door.query("nvmlDeviceGetHandleByIndex", index)
            if handle.reason is not None:
                continue
            described = describe_card(
                self._door, handle.value, index, versions=versions, system_memory=self._system_memory
            )
            if described is None:
                continue
            card, traits = described
            self._handles[card.uuid] = handle.value
            if card.uuid in self._cards:
                self._cards[card.uuid].reopened(handle.value, card, traits)
            else:
                self._cards[card.uuid] = NvmlCard(
                    self._door,
                    handle.value,
                    card,
                    traits,
                    system_memory=self._system_memory,
                    directory=self._directory,
                    fast_fields=self._fast_fields,
                )
            found.append(card)
        return tuple(found)

    @staticmethod
    def _with_errors(card: Card, unheard: Mapping[str, Reason]) -> Card:
        """``reasons["xid_events"]`` says why a card's errors are not heard."""
        reason = unheard.get(card.uuid)
        return card if reason is None else replace(card, reasons={**card.reasons, "xid_events": reason})

    def _reader(self, card: Card) -> NvmlCard | None:
        self._check_process()
        if not self._door.is_open:
            raise BackendUnavailable(Reason.NO_DRIVER, "NVIDIA's driver library is not open", Advice.TRY_AGAIN)
        return self._cards.get(card.uuid) if card.uuid in self._present else None

    def _gpus(self) -> frozenset[str]:
        try:
            return frozenset(entry.name for entry in self._gpus_folder.iterdir())
        except OSError:
            return frozenset()

    def _check_process(self) -> None:
        """NVML's state is undefined after a fork: a child must make a backend of its own."""
        if os.getpid() != self._pid:
            raise BackendUnavailable(
                Reason.NO_DRIVER, "the driver library was opened by another process", Advice.TRY_AGAIN
            )
