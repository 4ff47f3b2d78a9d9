"""What the forecaster is told once a second: the card and the computer around the run, as telemetry has read them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from desktop_app.core.steps import Surroundings
from desktop_app.core.telemetry import Card, ProcessSample, Reading
from desktop_app.services.card_use import CardUse


def describe_surroundings(
    t_s: float,
    card: Card,
    readings: Mapping[str, Reading],
    processes: Iterable[ProcessSample],
    *,
    use: CardUse,
    host: Mapping[str, Reading],
) -> Surroundings:
    """One moment. ``readings`` are the card's; what could not be read is ``None``, never a guess.

    ``use`` has observed the same readings. Other processes are unknown while the card's own use is.
    """
    used_bytes = _bytes(readings, "memory_used_bytes")
    available_bytes, host_used_bytes = _bytes(host, "memory_available_bytes"), _bytes(host, "memory_used_bytes")
    total_bytes = _bytes(host, "memory_total_bytes")
    if total_bytes is None and available_bytes is not None and host_used_bytes is not None:
        total_bytes = available_bytes + host_used_bytes  # "used" is what is not available: telemetry.host
    return Surroundings(
        t_s=t_s,
        device_used_bytes=used_bytes,
        others_bytes=use.others_bytes if used_bytes is not None else None,
        outside_bytes=use.outside_bytes if used_bytes is not None else None,
        capacity_bytes=card.capacity_bytes,
        host_used_bytes=host_used_bytes,
        host_total_bytes=total_bytes,
        host_available_bytes=available_bytes,
        own_rss_bytes=_bytes(host, "own_rss_bytes"),
        children_rss_bytes=_bytes(host, "children_rss_bytes"),
        children=_bytes(host, "children"),
        commit_used_bytes=_bytes(host, "commit_used_bytes"),
        commit_limit_bytes=_bytes(host, "commit_limit_bytes"),
        largest_neighbour_pid=_largest_neighbour(processes),
        spills=card.spills,
    )


def _bytes(readings: Mapping[str, Reading], name: str) -> int | None:
    reading = readings.get(name)
    return None if reading is None or reading.value is None else int(reading.value)


def _largest_neighbour(processes: Iterable[ProcessSample]) -> int | None:
    known = [(process.memory_bytes, process.pid) for process in processes if not process.own and process.memory_bytes]
    return max(known)[1] if known else None
