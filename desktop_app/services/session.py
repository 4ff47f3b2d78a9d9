"""One session: every object between the machine and the window, wired, started and closed in order."""

from __future__ import annotations

import functools
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from desktop_app.core.clock import SessionClock
from desktop_app.core.errors import FloodmarkError
from desktop_app.core.events import EventQueue
from desktop_app.core.forecasts import Alert, Forecast
from desktop_app.core.lifecycle import ClosingStages, StageResult
from desktop_app.core.steps import STEP_COLUMNS, VALIDATION_COLUMNS, MemoryStats, RunState, RunStatus
from desktop_app.core.store import Cell, Store
from desktop_app.core.telemetry import Card, InstanceSample, ProcessSample, Reading, SelfCost
from desktop_app.services.alert_desk import AlertDesk
from desktop_app.services.card_choice import check_trainable, choose_card, simulated_name
from desktop_app.services.card_use import CardUse
from desktop_app.services.estimator import Compute, EstimateRequest, Estimator, TraceControl
from desktop_app.services.facade import (
    EndOutcome,
    EstimateStatus,
    Notice,
    ResumeOffer,
    SnapshotStatus,
    StepRecording,
    TelemetryStatus,
)
from desktop_app.services.forecast_feed import ForecastFeed
from desktop_app.services.locations import sessions_folder
from desktop_app.services.notice_board import NoticeBoard
from desktop_app.services.own_cost import OwnCost
from desktop_app.services.process_control import ProcessControl
from desktop_app.services.run_desk import RunDesk, RunOrder, TrainerFactory
from desktop_app.services.run_feed import CHECKPOINT_NOTICE
from desktop_app.services.run_records import RunRecords
from desktop_app.services.scenarios import SCENARIOS, Scenario, check_memory, find_scenario
from desktop_app.services.session_folder import SessionFolder, find_resume_offer
from desktop_app.services.snapshot_reader import SnapshotReader
from desktop_app.services.surroundings import describe_surroundings
from desktop_app.services.telemetry_feed import TelemetryFeed
from desktop_app.telemetry.backend import Backend
from desktop_app.telemetry.host import Host
from desktop_app.telemetry.sampler import Sampler
from desktop_app.telemetry.sampling_rate import interval_of
from desktop_app.telemetry.shelf import CardShelf
from desktop_app.training.config import RunConfig, load_config

_log = logging.getLogger(__name__)

DEFAULT_HZ: Final = 5.0  # design: fast lane
_RECORDER_NOTICE: Final = "recorder.trouble"
# Ten seconds in all (design: staged quit). A trace under way and a call stuck in the driver end with the process.
_PATIENCE_S: Final = {"trainer": 4.0, "sampler": 2.0, "estimator": 0.5, "recorder": 2.5}


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
        tracing: TraceControl | None = None,
        host: Host | None = None,
        read_only: bool = False,
    ) -> None:
        self.clock = clock
        self.store = Store()
        self.store.declare("steps", STEP_COLUMNS)
        self.store.declare("validation", VALIDATION_COLUMNS)
        self.events = EventQueue()
        self._own = OwnCost()
        self._watching = threading.Event()
        self._board = NoticeBoard()
        self._feed = TelemetryFeed(
            self.store, self.events, on_cards_known=self._on_cards_known, on_second=self._on_second
        )
        self.shelf = CardShelf(backend, clock=clock, on_added=self._look_again)
        self._sampler = Sampler(self.shelf, clock, sink=self._feed, interval_s=1.0 / sampling_hz, host=host)
        self._control = ProcessControl(
            now_s=clock.now_s, events=self.events, listed=self._feed.processes.get, read_only=read_only
        )
        self._use = CardUse()
        self._desk = AlertDesk(self.events)
        self._estimator = Estimator(compute_estimate, control=tracing)
        self._forecasts = ForecastFeed(self.store)
        self._records = RunRecords(
            clock=clock, store=self.store, events=self.events, on_trouble=self._on_recorder_trouble
        )
        self._runs = RunDesk(
            clock=clock,
            store=self.store,
            events=self.events,
            desk=self._desk,
            estimator=self._estimator,
            records=self._records,
            forecasts=self._forecasts,
            use=self._use,
            notices=self._board,
            train=train,
        )
        self._scenario: Scenario | None = None  # of the active or last run
        self._stages = ClosingStages()
        for name, end in (
            ("recorder", self._records.close),
            ("estimator", self._estimator.stop),
            ("sampler", self._sampler.stop),
            ("trainer", self._stop_trainer),
        ):
            patience_s = _PATIENCE_S[name]
            self._stages.register(name, functools.partial(_end_in_time, end, patience_s), timeout_s=patience_s + 0.2)

        # What a window reads.
        self.cards: Cell[tuple[Card, ...]] = self._feed.cards
        self.readings: Cell[Mapping[str, Mapping[str, Reading]]] = self._feed.readings
        self.processes: Cell[Mapping[str, tuple[ProcessSample, ...]]] = self._feed.processes
        self.instances: Cell[Mapping[str, tuple[InstanceSample, ...]]] = self._feed.instances
        self.telemetry: Cell[TelemetryStatus] = self._feed.status
        self.run: Cell[RunStatus] = self._runs.run
        self.memory: Cell[MemoryStats | None] = self._runs.memory
        self._snapshots = SnapshotReader()
        self.snapshot: Cell[SnapshotStatus] = self._snapshots.status
        self.step_recording: Cell[StepRecording] = self._runs.steps.status
        self.estimate: Cell[EstimateStatus] = self._estimator.status
        self.forecast: Cell[Forecast | None] = self._forecasts.newest
        self.alerts: Cell[tuple[Alert, ...]] = self._desk.alerts
        self.ignored_alerts: Cell[frozenset[int]] = self._desk.ignored
        self.notices: Cell[tuple[Notice, ...]] = self._board.notices
        self.card_uuid: Cell[str | None] = Cell(None)
        self.run_config: Cell[RunConfig] = Cell(RunConfig())
        self.cost: Cell[SelfCost] = Cell(SelfCost(None, None, sampling_hz, 0, 0))
        self.resume_offer: Cell[ResumeOffer | None] = Cell(None)

    @property
    def read_only(self) -> bool:
        """Nothing on this machine is changed: no process is ended."""
        return self._control.read_only

    @property
    def folder(self) -> SessionFolder | None:
        """Where the active or last run is recorded; ``None`` when there was none or it could not be made."""
        return self._records.folder

    # What a window does.

    def open(self) -> None:
        """Begin to sample. The cards appear in ``cards`` when the driver has answered."""
        self._sampler.start()

    def warm_up(self) -> None:
        """Have what estimates started before it is asked. Returns at once."""
        self._estimator.warm_up()

    def request_estimate(self, config: RunConfig) -> None:
        try:
            card = self.card_for(config)
        except FloodmarkError as error:
            self._estimator.refuse(config, error)
            return
        if card is not None and card.capacity_bytes is not None:
            self._estimator.request(EstimateRequest(config, card, self._use.others_bytes))

    def start(
        self,
        config: RunConfig,
        *,
        resume_from: Path | None = None,
        scenario: Scenario | None = None,
    ) -> None:
        """Start a run; what goes wrong appears in ``run`` as FAILED. A run that is active already stays.

        A run of the demonstration's name and data that follows it is the demonstration again, with what was changed:
        other settings mend no mistake in the code. As with ``start_demo``, too little RAM for it becomes a notice.
        """
        if self.run.get().state.active:
            return
        if scenario is None and resume_from is None:
            scenario = self._shown_again(config)
            if scenario is not None and not self._has_memory_for(scenario):
                return
        self._scenario = scenario
        self.run_config.set(config)
        self.resume_offer.set(None)
        order = _order(config, scenario, resume_from)
        try:
            card = self._take_card(config)
            check_trainable(card)
        except FloodmarkError as error:
            self._runs.refuse(order, error)
            return
        if card is None or not self._estimator.knows(config, card):
            self.request_estimate(config)
        self._runs.start(replace(order, card=card))

    def start_scenario(self, config: RunConfig, *, scenario: Scenario | None, resume_from: Path | None = None) -> None:
        """Start what a command asked for: a demonstration, or with ``scenario`` None a plain run."""
        self.start(config, resume_from=resume_from, scenario=scenario)

    def start_demo(self, name: str) -> None:
        """Start the demonstration of that name; what stands in its way becomes a notice."""
        try:
            scenario = find_scenario(name)
        except FloodmarkError as error:
            self.add_notice(error.code, error.message, level="error")
            return
        if self._has_memory_for(scenario):
            self.start_scenario(scenario.config, scenario=scenario)

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

    def shrink_batch(self) -> None:
        self._runs.shrink_batch()

    def open_snapshot(self, path: Path) -> None:
        self._snapshots.open(path)

    def record_step(self) -> None:
        self._runs.steps.request()

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
        self.resume_offer.set(None)
        threading.Thread(target=self._take_up, args=(offer,), name="offer", daemon=True).start()

    def dismiss_resume_offer(self) -> None:
        """The run of the offer is left as it is, and not offered again."""
        offer = self.resume_offer.get()
        if offer is not None:
            self.resume_offer.set(None)
            threading.Thread(target=_abandon, args=(offer,), name="offer", daemon=True).start()

    def end_process(self, uuid: str, pid: int, *, force: bool = False) -> EndOutcome:
        """Tell a process on a card to end; events say what came of it. Does not wait."""
        return self._control.end(uuid, pid, force=force)

    def select_card(self, uuid: str) -> None:
        """The card that the next run uses and the window shows; not while a run is active."""
        if not self.run.get().state.active:
            self.card_uuid.set(uuid)

    def set_sampling_hz(self, hz: float) -> None:
        """Raises ``FloodmarkError`` for a rate outside of what a card should be read at."""
        self._sampler.set_interval(interval_of(hz))

    def note_frame(self, seconds: float) -> None:
        self._own.note_frame(seconds)

    # What the command line asks.

    def wait_for_cards(self, *, timeout_s: float) -> Card | None:
        """Block until cards and host were read once, for headless programs; ``None`` when no card has answered."""
        self._watching.wait(timeout_s)
        return self.selected_card()

    def wait_until_under_way(self) -> None:
        """Block until the first step begins, or the run has ended before it."""
        self._runs.wait_until_under_way()

    def wait_for_run(self, timeout_s: float | None = None) -> bool:
        return self._runs.wait(timeout_s)

    def wait_for_estimate(self, config: RunConfig, *, timeout_s: float = 60.0) -> EstimateStatus:
        """The answer for ``config``, unless its run has failed meanwhile; for headless programs."""
        return self._estimator.wait_for(
            config, timeout_s=timeout_s, unless=lambda: self.run.get().state is RunState.FAILED
        )

    def host_available_bytes(self) -> int | None:
        """RAM that is free now; ``None`` until the host was read."""
        available = self._feed.host.get().get("memory_available_bytes")
        return None if available is None or available.value is None else int(available.value)

    def selected_card(self) -> Card | None:
        cards, uuid = self.cards.get(), self.card_uuid.get()
        return next((card for card in cards if card.uuid == uuid), cards[0] if cards else None)

    def card_for(self, config: RunConfig) -> Card | None:
        """The card of a run; ``None`` for one on the CPU. ``NoSuchDeviceError`` when there is none that suits it."""
        name = simulated_name(config, self.cards.get())
        if name is not None:
            return self.shelf.describe(name)
        return choose_card(config.device, self.cards.get(), self.selected_card())

    def unsaved(self) -> tuple[str, ...]:
        """What of this session the disk has not taken, in one line each. Asked after ``close``, it is lost."""
        return tuple(n.message for n in self.notices.get() if n.code in (_RECORDER_NOTICE, CHECKPOINT_NOTICE))

    def close_first(self, name: str, end: Callable[[float], bool], *, patience_s: float) -> None:
        """Have something that reads this session end before anything of it does. ``end`` is given its patience."""
        self._stages.register(name, functools.partial(_end_in_time, end, patience_s), timeout_s=patience_s + 0.2)

    def raised_alerts(self) -> tuple[Alert, ...]:
        return self._desk.raised()

    def forecast_at(self, step: int) -> float | None:
        """Steps to exhaustion as forecast after ``step``; ``None`` when quiet or no longer kept."""
        return self._forecasts.eta_steps_after(step)

    def add_notice(self, code: str, message: str, *, level: str = "warning") -> None:
        """A condition of the program that the window shows until it is over."""
        self._board.put(code, message, level=level)

    def close(self) -> tuple[StageResult, ...]:
        """End everything in order: trainer, sampler, estimator, recorder. Blocks for ten seconds at most; idempotent.

        A trainer that does not stop leaves a folder that can be resumed.
        """
        return self._stages.close_all()

    def _shown_again(self, config: RunConfig) -> Scenario | None:
        """The demonstration that ran last, where this is it again: under its name and on its data."""
        last = self._scenario
        if last is None or (config.title, config.data) != (last.config.title, last.config.data):
            return None
        return replace(last, config=config)

    def _has_memory_for(self, scenario: Scenario) -> bool:
        """Whether this computer has the RAM of a simulated card that is filled; if not, a notice says so."""
        card = self.selected_card()
        if scenario.config.card is None and (card is None or not card.simulated):
            return True
        capacity_bytes = (card.capacity_bytes if card is not None else None) or 0
        try:
            check_memory(scenario, capacity_bytes=capacity_bytes, available_bytes=self.host_available_bytes())
        except FloodmarkError as error:
            self.add_notice(error.code, error.message, level="error")
            return False
        return True

    def _take_card(self, config: RunConfig) -> Card | None:
        """As ``card_for``; a simulated card that the run names joins the others and is the one on show."""
        name = simulated_name(config, self.cards.get())
        if name is None:
            return self.card_for(config)
        card = self.shelf.add(name)
        known = self.cards.get()
        if card.uuid not in {other.uuid for other in known}:
            self._feed.on_cards((*known, card))
        self.card_uuid.set(card.uuid)
        return card

    def _look_again(self) -> None:
        self._sampler.look_again()

    def _on_cards_known(self) -> None:
        if self.card_uuid.get() is None:
            self.card_uuid.set(self.cards.get()[0].uuid)

    def _on_second(self) -> None:
        """Once a second, after cards and host were read. Runs in: sampler thread."""
        rss = self._feed.host.get().get("own_rss_bytes")
        self.cost.set(
            replace(
                self._sampler.cost(),
                cpu_percent=self._own.cpu_percent(),
                rss_bytes=None if rss is None or rss.value is None else int(rss.value),
            )
        )
        self._observe_use()
        self._control.look()
        if self.is_watching():
            self._watching.set()

    def _observe_use(self) -> None:
        card = self.selected_card()
        if card is None:
            return
        readings, processes = self.readings.get().get(card.uuid, {}), self.processes.get().get(card.uuid, ())
        used = readings.get("memory_used_bytes")
        training = self.run.get().state.active
        self._use.observe(
            card.uuid,
            used_bytes=None if used is None or used.value is None else int(used.value),
            processes=processes,
            memory=self.memory.get() if training else None,
            training=training,
        )
        if training:
            if not card.simulated:
                self.shelf.wake()  # whatever its load is, a card that is trained on is no idle one
            host = self._feed.host.get()
            self._runs.tell_forecaster(
                describe_surroundings(self.clock.now_s(), card, readings, processes, use=self._use, host=host)
            )

    def _stop_trainer(self, timeout_s: float) -> bool:
        self._runs.stop(save=True)
        stopped = self._runs.wait(timeout_s)
        if not stopped:
            _log.error("The trainer does not stop; its last checkpoint stays. Where the threads are:\n%s", _stacks())
        return stopped

    def _on_recorder_trouble(self, text: str | None) -> None:
        if text is None:
            self._board.take_down(_RECORDER_NOTICE)
        else:
            self._board.put(_RECORDER_NOTICE, text, level="error")

    def _take_up(self, offer: ResumeOffer) -> None:
        """Runs in: a short thread of its own, because it reads the disk."""
        folder = SessionFolder(offer.session_path)
        try:
            config = load_config(folder.config_path)
        except FloodmarkError as error:
            self.add_notice("resume.failed", error.message, level="error")
            return
        scenario = SCENARIOS.get(str(folder.read_facts().get("scenario")))
        self.start(config, resume_from=offer.checkpoint_path, scenario=scenario)


def _order(config: RunConfig, scenario: Scenario | None, resume_from: Path | None) -> RunOrder:
    """What is to be run; the card is chosen later."""
    order = RunOrder(config, None, resume_from=resume_from)
    if scenario is None:
        return order
    return replace(order, fault=scenario.fault, scenario=scenario.name, stage=scenario.stage)


def _end_in_time(end: Callable[[float], bool], patience_s: float) -> None:
    if not end(patience_s):
        raise TimeoutError(f"it did not end within {patience_s:.1f} s, or not cleanly")


def _stacks() -> str:
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    frames = sys._current_frames()  # noqa: SLF001 - faulthandler writes to file descriptors only
    return "\n".join(f"{names.get(i, i)}:\n{''.join(traceback.format_stack(frame))}" for i, frame in frames.items())


def _abandon(offer: ResumeOffer) -> None:
    """Runs in: a short thread of its own, because it writes to the disk."""
    try:
        SessionFolder(offer.session_path).mark_ended(state="abandoned")
    except OSError as error:
        _log.warning("Cannot mark %s as abandoned: %s", offer.session_path, error)
