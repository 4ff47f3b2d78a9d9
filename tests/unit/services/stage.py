"""A demonstration with its real training, its simulated card and a forecaster, in this thread and without waiting."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from desktop_app.core.clock import SessionClock
from desktop_app.core.events import Event
from desktop_app.core.forecasts import Alert
from desktop_app.core.load import CardLoad
from desktop_app.core.steps import PhaseSample, RunStatus, StepSample, ValidationSample
from desktop_app.forecast.forecaster import Forecaster, Update
from desktop_app.services.card_use import CardUse
from desktop_app.services.run_desk import RunOrder
from desktop_app.services.run_feed import Counsel
from desktop_app.services.scenarios import find_scenario
from desktop_app.services.surroundings import describe_surroundings
from desktop_app.services.trainer import train_order
from desktop_app.telemetry.catalogue import find_simulable_card
from desktop_app.telemetry.limited_host import HostLimit, LimitedHost
from desktop_app.telemetry.simulated import SimulatedBackend
from desktop_app.training.control import ControlToken

STEP_S = 0.25  # what a step takes on the hand clock, unless told otherwise; telemetry is read once a second of it


@dataclass
class Performance:
    """What was told, and how it ended."""

    status: RunStatus
    steps: list[StepSample]
    alerts: list[Alert]

    @property
    def first(self) -> Alert:
        return self.alerts[0]


@dataclass
class _Sink:
    """Hands everything to the forecaster and moves the clock by ``step_s`` for each step."""

    forecaster: Forecaster
    backend: SimulatedBackend
    host: LimitedHost
    clock: SessionClock
    hand: list[float]
    token: ControlToken
    most_steps: int
    step_s: float
    recorder: None = None
    counsel: Counsel = field(default_factory=Counsel)
    steps: list[StepSample] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    use: CardUse = field(default_factory=CardUse)

    def on_status(self, status: RunStatus) -> None:
        if status.total_steps is not None:
            self.forecaster.set_environment(
                total_steps=status.total_steps, steps_per_epoch=status.total_steps // status.epochs
            )
        longest: Any = getattr(status, "longest_batch", None)
        if longest is not None:
            self.forecaster.set_environment(
                longest_batch=longest, longest_batch_step=getattr(status, "longest_batch_step", None)
            )

    def on_step(self, sample: StepSample) -> None:
        self.steps.append(sample)
        self._take(self.forecaster.update_step(sample))
        self.hand[0] += self.step_s
        if sample.step % round(1 / self.step_s) == 0:
            self._look_around(sample)
        if sample.step >= self.most_steps:
            self.token.stop(save=False)

    def on_phase(self, sample: PhaseSample) -> None:
        self._take(self.forecaster.update_phase(sample))

    def on_validation(self, sample: ValidationSample) -> None: ...
    def on_event(self, event: Event) -> None: ...

    def _look_around(self, sample: StepSample) -> None:
        card = self.backend.open()[0]
        readings = self.backend.read_fast(card)
        processes = self.backend.processes(card)
        used = readings["memory_used_bytes"].value
        assert used is not None
        self.use.observe(card.uuid, used_bytes=int(used), processes=processes, memory=sample.memory, training=True)
        now_s = self.clock.now_s()
        host = self.host.read(now_s)
        around = describe_surroundings(now_s, card, readings, processes, use=self.use, host=host)
        self._take(self.forecaster.update_surroundings(around))

    def _take(self, update: Update) -> None:
        self.alerts.extend(update.changes.raised)


def play(
    name: str, *, others_bytes: int = 0, most_steps: int = 400, step_s: float = STEP_S, **settings: Any
) -> Performance:
    """The demonstration with other ``settings`` of its config, on a card on which ``others_bytes`` are taken."""
    scenario = find_scenario(name)
    config = replace(scenario.config, max_steps_per_s=None, cpu_threads=1, **settings)
    hand = [0.0]
    clock = SessionClock(monotonic=lambda: hand[0], origin_s=0.0)
    load, limit, token = CardLoad(), HostLimit(), ControlToken()
    assert config.card is not None
    backend = SimulatedBackend(find_simulable_card(config.card), load=load, clock=clock)
    card = backend.open()[0]
    assert card.capacity_bytes is not None
    load.set_others(others_bytes)
    sink = _Sink(
        Forecaster(capacity_bytes=card.capacity_bytes, others_bytes=others_bytes),
        backend,
        LimitedHost(limit),
        clock,
        hand,
        token,
        most_steps,
        step_s,
    )
    with tempfile.TemporaryDirectory() as folder:
        status = train_order(
            RunOrder(config, card, fault=scenario.fault, scenario=name, stage=scenario.stage),
            sink=sink,  # type: ignore[arg-type]
            token=token,
            checkpoints=Path(folder),
            clock=clock,
            load_of=lambda _card: load,
            others_bytes=lambda: others_bytes,
            host_limit=limit,
        )
    return Performance(status, sink.steps, sink.alerts)
