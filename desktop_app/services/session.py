"""One session: every object between the machine and the window, wired, started and closed in order."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from desktop_app.core.clock import SessionClock
from desktop_app.core.errors import FloodmarkError
from desktop_app.core.events import EventQueue
from desktop_app.core.forecasts import Alert, Forecast
from desktop_app.core.lifecycle import ClosingStages, StageResult
from desktop_app.core.steps import STEP_COLUMNS, VALIDATION_COLUMNS, MemoryStats, RunStatus
from desktop_app.core.store import Cell, Store
from desktop_app.core.telemetry import Card, ProcessSample, Reading, SelfCost
from desktop_app.services.alert_desk import AlertDesk
from desktop_app.services.estimator import Compute, EstimateRequest, Estimator
from desktop_app.services.facade import EstimateStatus, Notice, ResumeOffer, TelemetryStatus
from desktop_app.services.locations import sessions_folder
from desktop_app.services.own_cost import OwnCost
from desktop_app.services.run_desk import RunDesk, RunOrder, TrainerFactory
from desktop_app.services.scenarios import Scenario
from desktop_app.services.session_folder import SessionFolder, find_resume_offer, mark_ended
from desktop_app.services.telemetry_feed import TelemetryFeed
from desktop_app.telemetry.backend import Backend
from desktop_app.telemetry.sampler import Sampler
from desktop_app.training.config import RunConfig, load_config

_log = logging.getLogger(__name__)

DEFAULT_HZ: Final = 5.0  # design: fast lane
_RECORDER_NOTICE: Final = "recorder.trouble"


class Session:
    """Implements ``services.facade.Workspace``. Made by the composition root, closed by ``close``."""

    def __init__(
        self,
        *,
        clock: SessionClock,
        backend: Backend,
        compute_estimate: Compute,
        train: TrainerFactory,
        sampling_hz: float = DEFAULT_HZ,
    ) -> None:
        self.clock = clock
        self.store = Store()
        self.store.declare("steps", STEP_COLUMNS)
        self.store.declare("validation", VALIDATION_COLUMNS)
        self.events = EventQueue()
        self._own = OwnCost()
        self._cards_known = threading.Event()
        self._feed = TelemetryFeed(
            self.store, self.events, on_cards_known=self._on_cards_known, on_second=self._on_second
        )
        self._desk = AlertDesk(self.events)
        self._estimator = Estimator(compute_estimate)
        self._sampling_hz = sampling_hz
        self._sampler = Sampler(backend, clock, sink=self._feed, interval_s=1.0 / sampling_hz)
        self._runs = RunDesk(
            clock=clock,
            store=self.store,
            events=self.events,
            desk=self._desk,
            estimator=self._estimator,
            train=train,
            others_bytes=self.others_bytes,
            on_recorder_trouble=self._on_recorder_trouble,
        )
        self.card_uuid: Cell[str | None] = Cell(None)
        self.run_config: Cell[RunConfig] = Cell(RunConfig())
        self.cost: Cell[SelfCost] = Cell(SelfCost(None, None, sampling_hz, 0, 0))
        self.notices: Cell[tuple[Notice, ...]] = Cell(())
        self.resume_offer: Cell[ResumeOffer | None] = Cell(None)
        self._stages = ClosingStages()
        self._stages.register("recorder", self._runs.close_recorder, timeout_s=6.0)
        self._stages.register("estimator", self._estimator.stop, timeout_s=2.5)
        self._stages.register("sampler", self._sampler.stop, timeout_s=2.5)
        self._stages.register("trainer", self._stop_and_wait, timeout_s=8.0)

    # What a window reads.

    @property
    def cards(self) -> Cell[tuple[Card, ...]]:
        return self._feed.cards

    @property
    def readings(self) -> Cell[Mapping[str, Mapping[str, Reading]]]:
        return self._feed.readings

    @property
    def processes(self) -> Cell[Mapping[str, tuple[ProcessSample, ...]]]:
        return self._feed.processes

    @property
    def telemetry(self) -> Cell[TelemetryStatus]:
        return self._feed.status

    @property
    def run(self) -> Cell[RunStatus]:
        return self._runs.run

    @property
    def memory(self) -> Cell[MemoryStats | None]:
        return self._runs.memory

    @property
    def estimate(self) -> Cell[EstimateStatus]:
        return self._estimator.status

    @property
    def forecast(self) -> Cell[Forecast | None]:
        return self._runs.forecast

    @property
    def alerts(self) -> Cell[tuple[Alert, ...]]:
        return self._desk.alerts

    @property
    def ignored_alerts(self) -> Cell[frozenset[int]]:
        return self._desk.ignored

    @property
    def folder(self) -> SessionFolder | None:
        """Where the active or last run is recorded."""
        return self._runs.folder

    # What a window does.

    def open(self) -> None:
        """Begin to sample. The cards appear in ``cards`` when the driver has answered."""
        self._sampler.start()

    def request_estimate(self, config: RunConfig) -> None:
        card = self.card_for(config)
        if card is None or card.capacity_bytes is None:
            return
        self._estimator.request(EstimateRequest(config, card, self.others_bytes()))

    def start(
        self,
        config: RunConfig,
        *,
        resume_from: Path | None = None,
        fault: str | None = None,
        scenario: str | None = None,
    ) -> None:
        """Start a run; what goes wrong appears in ``run`` as FAILED. A run that is active already stays."""
        if self.run.get().state.active:
            return
        self.run_config.set(config)
        self.resume_offer.set(None)
        known = self._estimator.status.get()
        if known.config != config or known.estimate is None:
            self.request_estimate(config)
        order = RunOrder(config, self.card_for(config), resume_from=resume_from, fault=fault, scenario=scenario)
        self._runs.start(order)

    def start_scenario(self, config: RunConfig, *, scenario: Scenario | None, resume_from: Path | None = None) -> None:
        """Start what a command asked for: a demonstration, or with ``scenario`` None a plain run."""
        if scenario is None:
            self.start(config, resume_from=resume_from)
        else:
            self.start(config, resume_from=resume_from, fault=scenario.fault, scenario=scenario.name)

    def is_watching(self) -> bool:
        """The cards are known and the host was read once: a run can be judged and started."""
        return bool(self.cards.get()) and bool(self._feed.host.get())

    def pause(self) -> None:
        self._runs.pause()

    def resume(self) -> None:
        self._runs.resume()

    def stop(self, *, save: bool = True) -> None:
        self._runs.stop(save=save)

    def save_checkpoint(self) -> None:
        self._runs.save_checkpoint()

    def ignore_alert(self, alert_id: int) -> None:
        self._desk.ignore(alert_id)

    def find_resume_offer(self) -> None:
        """Look for a run that was cut off. Reads the disk: not for the window's thread."""
        self.resume_offer.set(find_resume_offer(sessions_folder()))

    def accept_resume_offer(self) -> None:
        """Go on with the run of the offer, as it was configured."""
        offer = self.resume_offer.get()
        if offer is None:
            return
        folder = SessionFolder(offer.session_path)
        try:
            config = load_config(folder.config_path)
        except FloodmarkError as error:
            self._notice("resume.failed", error.message)
            return
        self._set_offer_aside(offer, "resumed")
        self.start(config, resume_from=offer.checkpoint_path)

    def dismiss_resume_offer(self) -> None:
        offer = self.resume_offer.get()
        if offer is not None:
            self._set_offer_aside(offer, "abandoned")

    def select_card(self, uuid: str) -> None:
        """The card that the next run uses and the window shows; not while a run is active."""
        if not self.run.get().state.active:
            self.card_uuid.set(uuid)

    def set_sampling_hz(self, hz: float) -> None:
        self._sampling_hz = hz
        self._sampler.set_interval(1.0 / hz)

    def note_frame(self, seconds: float) -> None:
        self._own.note_frame(seconds)

    # What the command line asks.

    def wait_for_cards(self, *, timeout_s: float) -> Card | None:
        """Block until the first card is known, for headless programs."""
        self._cards_known.wait(timeout_s)
        return self.selected_card()

    def wait_for_run(self, timeout_s: float | None = None) -> bool:
        return self._runs.wait(timeout_s)

    def wait_for_estimate(self, config: RunConfig, *, timeout_s: float = 60.0) -> EstimateStatus:
        """The answer for ``config``; for headless programs."""
        return self._estimator.wait_for(config, timeout_s=timeout_s)

    def host_available_bytes(self) -> int | None:
        """RAM that is free now; ``None`` until the host was read."""
        available = self._feed.host.get().get("memory_available_bytes")
        return None if available is None or available.value is None else int(available.value)

    def selected_card(self) -> Card | None:
        cards, uuid = self.cards.get(), self.card_uuid.get()
        return next((card for card in cards if card.uuid == uuid), cards[0] if cards else None)

    def card_for(self, config: RunConfig) -> Card | None:
        """The card of a run; ``None`` for one on the CPU."""
        return None if config.device == "cpu" else self.selected_card()

    def others_bytes(self) -> int:
        """What other processes hold on the card now: what is used less what this run holds."""
        card = self.selected_card()
        used = self.readings.get().get(card.uuid, {}).get("memory_used_bytes") if card is not None else None
        if used is None or used.value is None:
            return 0
        memory = self.memory.get()
        own = 0 if memory is None else memory.reserved_bytes + memory.outside_bytes
        return max(0, int(used.value) - own)

    def raised_alerts(self) -> tuple[Alert, ...]:
        return self._desk.raised()

    def forecast_at(self, step: int) -> float | None:
        """Steps to exhaustion as forecast after ``step``; ``None`` when quiet or no longer kept."""
        rows = self.store.history("forecast").tail(32768, ("step", "eta_steps"))
        found = [eta for known, eta in zip(*rows.values.tolist(), strict=True) if known == step]
        return found[-1] if found else None

    def close(self) -> tuple[StageResult, ...]:
        """End everything in order: trainer, sampler, estimator, recorder. Blocks for 20 s at most; idempotent."""
        return self._stages.close_all()

    def _on_cards_known(self) -> None:
        if self.card_uuid.get() is None:
            self.card_uuid.set(self.cards.get()[0].uuid)
        self._cards_known.set()

    def _on_second(self) -> None:
        """Once a second, after the host was read. Runs in: sampler thread."""
        rss = self._feed.host.get().get("own_rss_bytes")
        cost = self._sampler.cost()
        self.cost.set(
            SelfCost(
                cpu_percent=self._own.cpu_percent(),
                rss_bytes=None if rss is None or rss.value is None else int(rss.value),
                sampling_hz=cost.sampling_hz,
                samples=cost.samples,
                late=cost.late,
                tick_p95_ms=cost.tick_p95_ms,
            )
        )
        self._runs.set_others(self.others_bytes())

    def _stop_and_wait(self) -> None:
        self._runs.stop(save=True)
        if not self._runs.wait(7.5):
            _log.error("The trainer did not stop in time; its last checkpoint stays")

    def _on_recorder_trouble(self, text: str | None) -> None:
        if text is None:
            self.notices.set(tuple(notice for notice in self.notices.get() if notice.code != _RECORDER_NOTICE))
        else:
            self._notice(_RECORDER_NOTICE, text, level="error")

    def add_notice(self, code: str, message: str, *, level: str = "warning") -> None:
        """A condition of the program that the window shows until it is over."""
        self._notice(code, message, level=level)

    def _notice(self, code: str, message: str, *, level: str = "warning") -> None:
        others = tuple(notice for notice in self.notices.get() if notice.code != code)
        self.notices.set((*others, Notice(code, message, level)))

    def _set_offer_aside(self, offer: ResumeOffer, state: str) -> None:
        """The disk is written by a short thread: this may be the window's."""
        self.resume_offer.set(None)
        folder = SessionFolder(offer.session_path)
        threading.Thread(target=_mark, args=(folder, state), name="offer", daemon=True).start()


def _mark(folder: SessionFolder, state: str) -> None:
    try:
        mark_ended(folder, state=state)
    except OSError as error:
        _log.warning("Cannot mark %s as %s: %s", folder.path, state, error)
