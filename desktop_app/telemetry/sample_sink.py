"""Where a sampler puts what it has seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from desktop_app.core.telemetry import Card, CardError, GpuSample, InstanceSample, ProcessSample, Reading, Reason


class SampleSink(Protocol):
    """Where samples go. Called in: sampler thread. ``uuid`` None means all cards. Times are session seconds."""

    def on_cards(self, cards: tuple[Card, ...]) -> None: ...

    def on_gpu(self, sample: GpuSample) -> None: ...

    def on_filled(self, sample: GpuSample) -> None:
        """Of a time in which the card was not read, from the driver's own record; comes before the next ``on_gpu``."""

    def on_host(self, t_s: float, readings: Mapping[str, Reading]) -> None: ...

    def on_processes(self, t_s: float, uuid: str, processes: tuple[ProcessSample, ...]) -> None: ...

    def on_instances(self, t_s: float, uuid: str, instances: tuple[InstanceSample, ...]) -> None: ...

    def on_card_error(self, error: CardError) -> None: ...

    def on_outage(self, t_s: float, uuid: str | None, reason: Reason) -> None: ...

    def on_back(self, t_s: float, uuid: str | None) -> None: ...
