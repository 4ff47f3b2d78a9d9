"""The cards of a session as families of metrics. Needs prometheus-client: imported late, by the endpoint."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

from prometheus_client import Metric

from desktop_app.core.events import EventKind, EventQueue
from desktop_app.core.telemetry import Card, EnergySource, InstanceSample, Reading
from desktop_app.core.units import MIB
from desktop_app.telemetry import metric_names as names
from desktop_app.telemetry.logs.generations import power_is_average

Readings = Mapping[str, Mapping[str, Reading]]

_MILLI: Final = 1000.0  # mJ


class _Add(Protocol):
    def __call__(self, name: str, text: str, value: float | None, kind: str = ..., /) -> None: ...


class Families:
    """Samples gathered by name; a family without a sample is not there, and so is a value that is missing."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}

    def add(self, name: str, text: str, value: float | None, *, kind: str, labels: Mapping[str, str]) -> None:
        """One sample, unless there is no value. ``name`` stands in the text as it is, also for a counter."""
        if value is None:
            return
        metric = self._metrics.get(name)
        if metric is None:
            metric = self._metrics[name] = Metric(name.removesuffix("_total"), text, kind)
        metric.add_sample(name, dict(labels), float(value))

    def all(self) -> Iterator[Metric]:
        return iter(self._metrics.values())


class LastXids:
    """The last Xid of each card, from the session's events. Told as long as it is asked now and then."""

    def __init__(self, events: EventQueue) -> None:
        self._events = events
        self._seen = 0
        self._last: dict[str, float] = {}

    def by_card(self) -> Mapping[str, float]:
        found, self._seen = self._events.since(self._seen)
        for event in found:
            uuid, xid = event.params.get("uuid"), event.params.get("xid")
            if event.kind is EventKind.XID and isinstance(uuid, str) and isinstance(xid, int):
                self._last[uuid] = float(xid)
        return dict(self._last)


def add_cards(families: Families, cards: Sequence[Card], readings: Readings, *, xids: Mapping[str, float]) -> None:
    """All of ``cards``: every field under our own names; of real NVIDIA cards, what dcgm-exporter has a name for too.

    A simulated card never stands under a name of DCGM: who sums up a cluster's power must not count it.
    """
    host = socket.gethostname()
    for card in cards:
        found = readings.get(card.uuid, {})
        values = {field: reading.value for field, reading in found.items() if reading.value is not None}
        _add_own(families, card, values, host=host, xid=xids.get(card.uuid))
        if card.vendor == "NVIDIA" and not card.simulated:
            _add_dcgm(families, card, values, host=host, xid=xids.get(card.uuid))


def add_instances(families: Families, cards: Sequence[Card], samples: Mapping[str, Sequence[InstanceSample]]) -> None:
    """What the MIG instances report, under names of their own: a sum over cards must not count them twice."""
    for card in cards:
        facts = {instance.uuid: instance for instance in card.instances}
        for sample in samples.get(card.uuid, ()):
            labels = {"gpu": str(card.nvml_index), "UUID": card.uuid, "instance_uuid": sample.uuid}
            known = facts.get(sample.uuid)
            if known is not None:
                labels |= {"gpu_instance": str(known.gpu_instance), "profile": known.name}
                name = "floodmark_gpu_instance_memory_total_bytes"
                families.add(name, "Memory of a MIG instance.", known.total_bytes, kind=names.GAUGE, labels=labels)
            for metric in names.OWN:
                reading = sample.readings.get(metric.field)
                if reading is None or reading.value is None:
                    continue
                name = metric.name.replace("floodmark_gpu_", "floodmark_gpu_instance_")
                text = f"{metric.help} Of a MIG instance."
                families.add(name, text, metric.exported(reading.value), kind=metric.kind, labels=labels)


def _add_own(families: Families, card: Card, values: Mapping[str, float], *, host: str, xid: float | None) -> None:
    labels = {
        "gpu": str(card.nvml_index),
        "UUID": card.uuid,
        "name": card.name,
        "Hostname": host,
        "vendor": card.vendor,
        "simulated": "true" if card.simulated else "false",
        **({"pci_bus_id": card.bus_id} if card.bus_id is not None else {}),
    }

    def gauge(name: str, text: str, value: float | None) -> None:
        families.add(name, text, value, kind=names.GAUGE, labels=labels)

    gauge(names.OWN_READABLE, "1: at least one field of the card can be read now.", 1.0 if values else 0.0)
    gauge(names.OWN_TOTAL, "Memory of the card as its driver counts it.", card.total_bytes)
    gauge(names.OWN_CAPACITY, "Memory that programs can have: the total without the driver's own.", card.capacity_bytes)
    gauge(names.OWN_XID, "The last Xid error that the driver told.", xid)
    for metric in names.OWN:
        value = values.get(metric.field)
        exported = None if value is None else metric.exported(value)
        families.add(metric.name, metric.help, exported, kind=metric.kind, labels=labels)


def _add_dcgm(families: Families, card: Card, values: Mapping[str, float], *, host: str, xid: float | None) -> None:
    labels = {
        "gpu": str(card.nvml_index),
        "UUID": card.uuid,
        "device": f"nvidia{card.nvml_index}",
        "modelName": card.name,
        "Hostname": host,
        **({"pci_bus_id": card.bus_id} if card.bus_id is not None else {}),
        **({"DCGM_FI_DRIVER_VERSION": card.driver_version} if card.driver_version is not None else {}),
    }

    def add(name: str, text: str, value: float | None, kind: str = names.GAUGE) -> None:
        families.add(name, text, value, kind=kind, labels=labels)

    for metric in names.DCGM:
        value = values.get(metric.field)
        add(metric.name, metric.help, None if value is None else metric.exported(value), metric.kind)
    add(names.DCGM_POWER, "Power draw (in W).", _drawn_w(card, values))
    add(names.DCGM_XID, "Value of the last XID error encountered.", xid)
    energy_j = values.get("energy_j") if card.energy_source is EnergySource.COUNTER else None
    text = "Energy by the driver's counter (in mJ), since this session began."
    add(names.DCGM_ENERGY, text, None if energy_j is None else energy_j * _MILLI, names.COUNTER)
    if not card.shared_memory:  # the computer's memory is no frame buffer
        _add_frame_buffer(add, card, values.get("memory_used_bytes"))


def _add_frame_buffer(add: _Add, card: Card, used_bytes: float | None) -> None:
    total, reserved = card.total_bytes, card.driver_reserved_bytes
    add(names.DCGM_USED, "Framebuffer memory used (in MiB).", _mib(used_bytes))
    add(names.DCGM_TOTAL, "Framebuffer memory of the card (in MiB).", _mib(total))
    add(names.DCGM_RESERVED, "Framebuffer memory that the driver keeps (in MiB).", _mib(reserved))
    if total is not None and reserved is not None and used_bytes is not None:
        add(names.DCGM_FREE, "Framebuffer memory free (in MiB).", _mib(total - reserved - used_bytes))


def _drawn_w(card: Card, values: Mapping[str, float]) -> float | None:
    """The older driver call that dcgm-exporter reads: an average from Ampere on, of the moment before."""
    capability = card.compute_capability
    known = None if capability is None else f"{capability[0]}.{capability[1]}"
    average = power_is_average(card.name, card.architecture, known)
    return values.get("power_w" if average is False else "power_average_w")


def _mib(size_bytes: float | None) -> float | None:
    return None if size_bytes is None else size_bytes / MIB
