"""From the sampler into the store: histories, newest readings, outages and throttling as events."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from desktop_app.core.events import Event, EventKind, EventQueue, Level
from desktop_app.core.store import Cell, Store
from desktop_app.core.telemetry import (
    ALL_GPU_FIELDS,
    DETAIL_FIELDS,
    GPU_FIELDS,
    HOST_FIELDS,
    Card,
    CardError,
    GpuSample,
    InstanceSample,
    ProcessSample,
    Reading,
    Reason,
)
from desktop_app.services.card_errors import CardErrorDesk
from desktop_app.services.facade import TelemetryStatus

_log = logging.getLogger(__name__)

# A tick counts as throttled by heat when the driver held the clock back for more than this share of it.
_THROTTLED_PERCENT: Final = 5.0
# An episode ends only after this long without throttling, so that a card on the edge does not flood the lane.
_EPISODE_GAP_S: Final = 10.0
_DETAILS_KEPT: Final = 8192  # rows: 2 h 16 min at 1 Hz
_NAN: Final = float("nan")


class TelemetryFeed:
    """The sampler's sink. Runs in: sampler thread."""

    def __init__(
        self, store: Store, events: EventQueue, *, on_cards_known: Callable[[], None], on_second: Callable[[], None]
    ) -> None:
        self._store = store
        self._events = events
        self._on_cards_known = on_cards_known
        self._on_second = on_second
        self.cards: Cell[tuple[Card, ...]] = Cell(())
        self.readings: Cell[Mapping[str, Mapping[str, Reading]]] = Cell({})
        self.processes: Cell[Mapping[str, tuple[ProcessSample, ...]]] = Cell({})
        self.instances: Cell[Mapping[str, tuple[InstanceSample, ...]]] = Cell({})
        self.host: Cell[Mapping[str, Reading]] = Cell({})
        self.status: Cell[TelemetryStatus] = Cell(TelemetryStatus(reason=Reason.NOT_READ_YET))
        self._throttled_until_s: dict[str, float] = {}
        self._errors = CardErrorDesk(events.post)
        store.declare("host", HOST_FIELDS)

    def on_cards(self, cards: tuple[Card, ...]) -> None:
        """The cards were found. After an outage of all of them only ``on_back`` says that they can be read again."""
        for card in cards:
            self._store.declare(history_name(card.uuid), GPU_FIELDS)
            self._store.declare(details_name(card.uuid), DETAIL_FIELDS, capacity=_DETAILS_KEPT)
        self.cards.set(cards)
        status = self.status.get()
        if status.reason is Reason.NOT_READ_YET:
            self.status.set(replace(status, reason=None))
        if cards:
            self._on_cards_known()

    def on_gpu(self, sample: GpuSample) -> None:
        self._store.history(history_name(sample.uuid)).append(sample.t_s, _row(sample.readings, GPU_FIELDS))
        details = _row(sample.readings, DETAIL_FIELDS)
        if details:
            self._store.history(details_name(sample.uuid)).append(sample.t_s, details)
        readings = self.readings.get()
        self.readings.set({**readings, sample.uuid: {**readings.get(sample.uuid, {}), **sample.readings}})
        self._note_throttling(sample)

    def on_filled(self, sample: GpuSample) -> None:
        """From the driver's own record of a time in which it did not answer; what it has not is left out."""
        history = self._store.history(history_name(sample.uuid))
        if sample.t_s > history.ended_s:
            history.append(sample.t_s, _row(sample.readings, GPU_FIELDS))

    def on_host(self, t_s: float, readings: Mapping[str, Reading]) -> None:
        self._store.history("host").append(t_s, _row(readings, HOST_FIELDS))
        self.host.set(readings)
        self._errors.settle(t_s)
        self._on_second()

    def on_card_error(self, error: CardError) -> None:
        """The driver has pushed an error; the card may be lost with it, or go on."""
        self._errors.take(error)

    def on_processes(self, t_s: float, uuid: str, processes: tuple[ProcessSample, ...]) -> None:
        del t_s
        self.processes.set({**self.processes.get(), uuid: processes})

    def on_instances(self, t_s: float, uuid: str, instances: tuple[InstanceSample, ...]) -> None:
        """Of a card in MIG mode."""
        del t_s
        self.instances.set({**self.instances.get(), uuid: instances})

    def on_outage(self, t_s: float, uuid: str | None, reason: Reason) -> None:
        """One card, or with ``uuid`` None all of them, can no longer be read."""
        known = [card.uuid for card in self.cards.get()]
        affected = known if uuid is None else [uuid]
        for name in affected:
            for history in (self._store.history(history_name(name)), self._store.history(details_name(name))):
                history.append_gap(max(t_s, history.ended_s))  # a tick begins before its values come
        lost = {**(self.status.get().lost or {}), **dict.fromkeys(affected, reason)}
        self.readings.set({**self.readings.get(), **{name: _all_missing(reason) for name in affected}})
        self.processes.set({**self.processes.get(), **dict.fromkeys(affected, ())})
        split = {name: () for name in affected if name in self.instances.get()}
        if split:
            self.instances.set({**self.instances.get(), **split})
        self.status.set(TelemetryStatus(reason=reason if uuid is None else None, lost=lost))
        self._post(t_s, EventKind.OUTAGE, Level.WARNING, "telemetry.outage", uuid=uuid, reason=reason.value)

    def on_back(self, t_s: float, uuid: str | None) -> None:
        status = self.status.get()
        lost = {name: reason for name, reason in (status.lost or {}).items() if uuid is not None and name != uuid}
        self.status.set(replace(status, reason=None, lost=lost))
        self._post(t_s, EventKind.BACK, Level.INFO, "telemetry.back", uuid=uuid)

    def _note_throttling(self, sample: GpuSample) -> None:
        reading = sample.readings.get("throttle_thermal_percent")
        if reading is None or reading.value is None or reading.value < _THROTTLED_PERCENT:
            return
        if sample.t_s > self._throttled_until_s.get(sample.uuid, float("-inf")):
            self._post(sample.t_s, EventKind.THROTTLE, Level.WARNING, "telemetry.thermal_throttle", uuid=sample.uuid)
        self._throttled_until_s[sample.uuid] = sample.t_s + _EPISODE_GAP_S

    def _post(self, t_s: float, kind: EventKind, level: Level, code: str, **params: object) -> None:
        _log.info("%s %s", code, params)
        self._events.post(Event(t_s=t_s, kind=kind, level=level, code=code, params=params))


def history_name(uuid: str) -> str:
    """Name of a card's history in the store."""
    return f"gpu:{uuid}"


def details_name(uuid: str) -> str:
    """Name of the history of a card's ``DETAIL_FIELDS``."""
    return f"details:{uuid}"


def _row(readings: Mapping[str, Reading], fields: Sequence[str]) -> dict[str, float]:
    """A row for the store. What was asked for and could not be had is a gap; what was not asked for is left out."""
    found = {name: readings[name] for name in fields if name in readings}
    return {name: _NAN if reading.value is None else reading.value for name, reading in found.items()}


def _all_missing(reason: Reason) -> Mapping[str, Reading]:
    return {name: Reading(None, reason) for name in ALL_GPU_FIELDS}
