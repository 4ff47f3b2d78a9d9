"""A run from start to end, with a trainer that obeys as the real one does."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from desktop_app.core.clock import SessionClock
from desktop_app.core.errors import FloodmarkError
from desktop_app.core.events import Event, EventKind, EventQueue, Level
from desktop_app.core.forecasts import Estimate
from desktop_app.core.steps import STEP_COLUMNS, VALIDATION_COLUMNS, RunState, RunStatus, Surroundings
from desktop_app.core.store import Store
from desktop_app.forecast.forecaster import Forecaster
from desktop_app.services import session_database
from desktop_app.services.alert_desk import AlertDesk
from desktop_app.services.card_use import CardUse
from desktop_app.services.estimator import EstimateRequest, Estimator, Tell
from desktop_app.services.facade import EstimateState
from desktop_app.services.forecast_feed import ForecastFeed
from desktop_app.services.notice_board import NoticeBoard
from desktop_app.services.run_desk import RunDesk, RunOrder, TrainerFactory
from desktop_app.services.run_records import RunRecords
from desktop_app.training.config import RunConfig

from .doubles import NO_IMAGES, PATIENCE_S, FakeTrainer, Watched, ending, make_alert, make_card, make_estimate, make_oom

CARD = make_card()
ENDED = (RunState.FINISHED, RunState.STOPPED, RunState.FAILED, RunState.OUT_OF_MEMORY)


class Bench:
    """A desk with everything around it."""

    def __init__(self, train: TrainerFactory) -> None:
        self.store = Store()
        self.store.declare("steps", STEP_COLUMNS)
        self.store.declare("validation", VALIDATION_COLUMNS)
        self.events = EventQueue()
        self.alerts = AlertDesk(self.events)
        self.answering = threading.Event()
        self.answering.set()
        self.estimator = Estimator(self._estimate)
        self.clock = SessionClock()
        self.troubles: list[str | None] = []
        self.use = CardUse()
        self.board = NoticeBoard()
        self.records = RunRecords(
            clock=self.clock, store=self.store, events=self.events, on_trouble=self.troubles.append
        )
        self.forecasts = ForecastFeed(self.store)
        self.desk = RunDesk(
            clock=self.clock,
            store=self.store,
            events=self.events,
            desk=self.alerts,
            estimator=self.estimator,
            records=self.records,
            forecasts=self.forecasts,
            use=self.use,
            notices=self.board,
            train=train,
        )
        self.seen = Watched(self.desk.run)

    def _estimate(self, request: EstimateRequest, _: Tell) -> Estimate:
        assert self.answering.wait(PATIENCE_S)
        return make_estimate(batch_size=request.config.batch_size)

    def start(self, config: RunConfig | None = None, **order: Any) -> RunConfig:
        config = config or RunConfig(name="test")
        assert self.desk.start(RunOrder(config, order.pop("card", CARD), **order))
        return config

    def until(self, *states: RunState) -> RunStatus:
        status: RunStatus = self.seen.until(lambda status: status.state in states)
        return status

    def end(self) -> RunStatus:
        """Wait for the end of the run and of its thread."""
        assert self.desk.wait(PATIENCE_S)
        status = self.desk.run.get()
        assert status.state in ENDED
        return status

    def facts(self) -> dict[str, Any]:
        assert self.records.folder is not None
        return json.loads(self.records.folder.facts_path.read_text(encoding="utf-8"))  # type: ignore[no-any-return]

    def recorded(self, question: str) -> list[tuple[Any, ...]]:
        assert self.records.folder is not None
        with closing(sqlite3.connect(self.records.folder.database_path)) as connection:
            return connection.execute(question).fetchall()

    def last_event(self) -> Event:
        return self.events.since(0)[0][-1]

    def close(self) -> None:
        self.answering.set()
        self.desk.stop()
        assert self.desk.wait(PATIENCE_S)
        self.records.close()
        assert self.estimator.stop(PATIENCE_S)


class Scripted:
    """A trainer that says what the test tells it to, when it is told."""

    def __init__(self) -> None:
        self.token: Any = None
        self.sink: Any = None
        self.ready = threading.Event()
        self.leave = threading.Event()
        self.last = RunStatus(RunState.FINISHED, step=9)

    def __call__(self, _: RunOrder, *, sink: Any, token: Any, **__: Any) -> RunStatus:
        self.sink, self.token = sink, token
        self.ready.set()
        assert self.leave.wait(PATIENCE_S)
        return self.last

    def say(self, state: RunState, *, step: int, waiting_step: int | None = None) -> None:
        self.sink.on_status(RunStatus(state, step=step, waiting_step=waiting_step))


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    made = Scripted()
    yield made
    made.leave.set()


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOODMARK_DATA", str(tmp_path / "data"))


@pytest.fixture
def bench_of() -> Iterator[Callable[[TrainerFactory], Bench]]:
    made: list[Bench] = []

    def make(train: TrainerFactory) -> Bench:
        made.append(Bench(train))
        return made[-1]

    yield make
    for bench in made:
        bench.close()


@pytest.fixture
def trainer() -> FakeTrainer:
    return FakeTrainer(steps=4)


@pytest.fixture
def bench(bench_of: Callable[[TrainerFactory], Bench], trainer: FakeTrainer) -> Bench:
    return bench_of(trainer)


# A run that goes well


def test_a_run_is_prepared_runs_finishes_and_is_recorded(bench: Bench, trainer: FakeTrainer) -> None:
    config = bench.start(RunConfig(name="cats", epochs=2), scenario="cats-dogs")
    running = bench.until(RunState.RUNNING)
    assert (running.scenario, running.run_name, running.total_steps) == ("cats-dogs", "cats", 4)
    trainer.allow(4)
    status = bench.end()
    assert (status.state, status.step, status.scenario) == (RunState.FINISHED, 4, "cats-dogs")
    assert status.started_t_s is not None
    assert status.ended_t_s is not None
    assert 0 <= status.started_t_s <= status.ended_t_s <= bench.clock.now_s()
    (order,) = trainer.orders
    assert (order.config, order.card) == (config, CARD)
    folder = bench.records.folder
    assert folder is not None
    assert trainer.checkpoints == folder.checkpoints_path
    assert bench.facts()["ended"]["state"] == "finished"
    assert bench.facts()["ended"]["step"] == 4
    assert bench.facts()["card"] == {"name": CARD.name, "uuid": CARD.uuid, "simulated": True}
    assert not folder.is_being_written()
    assert bench.recorded("SELECT step FROM steps") == [(1.0,), (2.0,), (3.0,), (4.0,)]
    assert bench.recorded("SELECT code FROM events") == [("run.epoch",), ("run.finished",)]
    last = bench.last_event()
    assert (last.kind, last.level, last.params["step"]) == (EventKind.RUN_STATE, Level.INFO, 4)
    assert bench.troubles == []


def test_a_second_start_is_refused_and_the_next_one_is_not(bench: Bench, trainer: FakeTrainer) -> None:
    bench.start(RunConfig(name="first"))
    assert not bench.desk.start(RunOrder(RunConfig(name="second"), CARD))
    assert not bench.desk.refuse(RunOrder(RunConfig(name="third"), CARD), NO_IMAGES)
    bench.until(RunState.RUNNING)
    assert bench.desk.run.get().run_name == "first"
    trainer.allow(4)
    bench.end()
    first = bench.records.folder
    bench.start(RunConfig(name="second"))
    trainer.allow(4)
    assert bench.end().run_name == "second"
    assert bench.records.folder != first
    assert bench.recorded("SELECT count(*) FROM steps") == [(4,)]


def test_whoever_sees_the_end_may_start_the_next_run(bench: Bench, trainer: FakeTrainer) -> None:
    """Shown only when the device is closed and the folder is marked: no start is refused after it."""
    trainer.steps = 1
    trainer.allow(20)
    for _ in range(20):
        bench.start(card=None)
        bench.seen.until(lambda status: status.state is RunState.FINISHED)
        assert bench.facts()["ended"]["state"] == "finished"


def test_a_run_on_the_cpu_waits_for_no_estimate_and_has_no_forecast(bench: Bench, trainer: FakeTrainer) -> None:
    bench.answering.clear()
    bench.start(card=None)
    trainer.allow(4)
    assert bench.end().state is RunState.FINISHED
    assert bench.forecasts.newest.get() is None
    assert bench.facts()["card"] == {}


def test_the_forecast_follows_the_steps_and_knows_the_others(bench: Bench, trainer: FakeTrainer) -> None:
    bench.use.others_bytes = 123
    bench.start()
    trainer.allow(4)
    bench.end()
    assert trainer.others_bytes == 123
    forecast = bench.forecasts.newest.get()
    assert forecast is not None
    assert forecast.step == 4
    assert forecast.capacity_bytes == CARD.capacity_bytes
    assert forecast.device_bytes == 123 + 512 * 1024**2


def test_others_that_come_during_the_run_are_told(bench: Bench, trainer: FakeTrainer) -> None:
    surroundings = Surroundings(t_s=0.0, others_bytes=1000, outside_bytes=30)
    bench.desk.tell_forecaster(surroundings)  # nobody listens
    bench.start()
    bench.until(RunState.RUNNING)
    bench.desk.tell_forecaster(surroundings)
    trainer.allow(4)
    bench.end()
    forecast = bench.forecasts.newest.get()
    assert forecast is not None
    assert forecast.device_bytes == 1030 + 512 * 1024**2


@pytest.mark.parametrize(
    ("total", "epochs", "steps_per_epoch"), [(500, 20, 25), (501, 20, None), (500, 0, None), (None, 20, None)]
)
def test_the_forecaster_learns_how_long_run_and_epochs_are(
    bench_of: Callable[[TrainerFactory], Bench],
    scripted: Scripted,
    monkeypatch: pytest.MonkeyPatch,
    total: int | None,
    epochs: int,
    steps_per_epoch: int | None,
) -> None:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(Forecaster, "set_environment", lambda _, **given: told.append(given))
    bench = bench_of(scripted)
    bench.start()
    assert scripted.ready.wait(PATIENCE_S)
    scripted.say(RunState.RUNNING, step=0)
    for step in (0, 1):
        scripted.sink.on_status(RunStatus(RunState.RUNNING, step=step, total_steps=total, epochs=epochs))
    assert told == ([] if total is None else [{"total_steps": total, "steps_per_epoch": steps_per_epoch}])


def test_a_run_file_in_the_session_reads_back_from_anywhere(
    bench: Bench, trainer: FakeTrainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from desktop_app.training.config import load_config

    monkeypatch.chdir(tmp_path)
    trainer.allow(4)
    bench.start(RunConfig(data="pictures", output_dir="out"), resume_from=tmp_path / "old" / "last.pt")
    bench.end()
    assert trainer.orders[0].config.data == "pictures"
    assert bench.records.folder is not None
    config = load_config(bench.records.folder.config_path)
    assert (config.data, config.output_dir) == (str(tmp_path / "pictures"), str(tmp_path / "out"))
    assert bench.facts()["resumed_from"] == str(tmp_path / "old" / "last.pt")


# Pause, resume, stop


def test_pause_and_resume_show_what_they_wait_for(bench: Bench, trainer: FakeTrainer) -> None:
    bench.desk.pause()  # nothing runs
    bench.start()
    trainer.allow(2)
    bench.seen.until(lambda status: status.step == 2)
    bench.desk.resume()  # it is not paused
    assert bench.desk.run.get().state is RunState.RUNNING
    bench.desk.pause()
    bench.until(RunState.PAUSED)
    trainer.allow(2)
    bench.desk.resume()
    assert bench.end().step == 4


def test_a_request_stays_shown_until_the_trainer_has_seen_it(
    bench_of: Callable[[TrainerFactory], Bench], scripted: Scripted
) -> None:
    bench = bench_of(scripted)
    bench.start()
    assert scripted.ready.wait(PATIENCE_S)

    def shown() -> tuple[RunState, int, int | None]:
        status = bench.desk.run.get()
        return status.state, status.step, status.waiting_step

    bench.desk.pause()  # while it is prepared there is no step to hold
    assert shown() == (RunState.PREPARING, 0, None)
    scripted.say(RunState.RUNNING, step=4)
    bench.desk.pause()
    assert shown() == (RunState.PAUSING, 4, 5)
    scripted.say(RunState.RUNNING, step=5)
    assert shown() == (RunState.PAUSING, 5, 6)
    bench.desk.resume()
    assert shown() == (RunState.RUNNING, 5, None)
    scripted.say(RunState.PAUSED, step=5)  # it had been on its way
    scripted.say(RunState.RUNNING, step=5)
    assert shown() == (RunState.RUNNING, 5, None)
    bench.desk.pause()
    scripted.say(RunState.PAUSED, step=6)
    assert shown() == (RunState.PAUSED, 6, None)
    bench.desk.stop()
    assert shown() == (RunState.STOPPING, 6, 7)
    for state in (RunState.RUNNING, RunState.PAUSED, RunState.PAUSING):
        scripted.say(state, step=7)
        assert shown() == (RunState.STOPPING, 7, 8)
    bench.desk.resume()
    bench.desk.pause()
    assert shown() == (RunState.STOPPING, 7, 8)
    scripted.say(RunState.FINISHED, step=9)  # ends are shown when all is closed
    assert shown()[0] is RunState.STOPPING
    scripted.leave.set()
    assert bench.end().state is RunState.FINISHED  # it was faster than the stop


def test_the_last_stop_decides_about_saving(bench_of: Callable[[TrainerFactory], Bench], scripted: Scripted) -> None:
    bench = bench_of(scripted)
    bench.start()
    assert scripted.ready.wait(PATIENCE_S)
    bench.desk.stop(save=True)
    assert (scripted.token.stop_requested, scripted.token.save_on_stop) == (True, True)
    bench.desk.stop(save=False)
    assert scripted.token.save_on_stop is False


def test_a_checkpoint_can_be_asked_for_and_is_noted(
    bench_of: Callable[[TrainerFactory], Bench], scripted: Scripted, tmp_path: Path
) -> None:
    bench = bench_of(scripted)
    bench.desk.save_checkpoint()  # nothing runs
    bench.start()
    assert scripted.ready.wait(PATIENCE_S)
    bench.desk.save_checkpoint()
    assert scripted.token.take_save_request()
    saved = {"path": str(tmp_path / "last.pt"), "step": 9}
    scripted.sink.on_event(Event(1.0, EventKind.CHECKPOINT, Level.INFO, "checkpoint.saved", saved))
    assert bench.facts()["checkpoint"] == {"path": str(tmp_path / "last.pt"), "step": 9, "epoch": 0}


@pytest.mark.parametrize("paused", [False, True])
def test_stop_ends_a_running_and_a_paused_run(bench: Bench, trainer: FakeTrainer, paused: bool) -> None:
    bench.start()
    bench.until(RunState.RUNNING)
    if paused:
        bench.desk.pause()
        bench.until(RunState.PAUSED)
    bench.desk.stop()
    status = bench.end()
    assert (status.state, status.waiting_step) == (RunState.STOPPED, None)
    assert bench.facts()["ended"]["state"] == "stopped"
    bench.desk.stop()  # nothing runs any more
    assert bench.desk.run.get() == status


def test_stop_does_not_wait_for_an_estimate(bench: Bench, trainer: FakeTrainer) -> None:
    bench.answering.clear()
    config = RunConfig(name="slow to trace")
    bench.estimator.request(EstimateRequest(config, CARD, 0, with_levers=False))
    bench.start(config, scenario="leak")
    Watched(bench.desk.run).until(lambda _: bench.records.folder is not None)
    bench.desk.stop()
    status = bench.end()
    assert (status.state, status.run_name, status.scenario) == (RunState.STOPPED, "slow to trace", "leak")
    assert bench.estimator.status.get().state is EstimateState.WORKING
    assert trainer.orders == []
    assert bench.facts()["ended"]["state"] == "stopped"


def test_an_alert_holds_the_run_by_the_users_rule(bench: Bench, trainer: FakeTrainer) -> None:
    bench.start(RunConfig(on_alert="save_and_pause"))
    bench.until(RunState.RUNNING)
    bench.alerts.on_alert(make_alert())
    bench.until(RunState.PAUSED)
    assert trainer.saves == 1
    bench.desk.resume()
    trainer.allow(4)
    assert bench.end().state is RunState.FINISHED


# Runs that go wrong


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (NO_IMAGES, "data.empty_class", NO_IMAGES.message),
        (
            ValueError("wrong\nshape"),
            "run.unexpected",
            "The run failed: ValueError: wrong shape. The log has the details.",
        ),
    ],
)
def test_a_trainer_that_fails_is_one_line(
    bench: Bench, trainer: FakeTrainer, error: Exception, code: str, line: str
) -> None:
    trainer.result = ending(error)
    trainer.allow(4)
    bench.start(scenario="leak")
    status = bench.end()
    assert (status.state, status.error_code, status.error_message) == (RunState.FAILED, code, line)
    assert (status.step, status.scenario) == (4, "leak")
    last = bench.last_event()
    assert (last.kind, last.level, last.code) == (EventKind.ERROR, Level.ERROR, "run.failed")
    assert last.params["error"] == line
    assert bench.facts()["ended"]["error"] == line
    trainer.result = lambda status: status
    trainer.allow(4)
    bench.start()
    assert bench.end().state is RunState.FINISHED


def test_a_failure_that_the_trainer_returns_keeps_its_words(bench: Bench, trainer: FakeTrainer) -> None:
    trainer.result = lambda status: replace(
        status, state=RunState.FAILED, error_code="training.loss_not_finite", error_message="the loss became nan"
    )
    trainer.allow(4)
    bench.start()
    status = bench.end()
    assert (status.error_code, status.error_message) == ("training.loss_not_finite", "the loss became nan")


def test_a_trainer_that_returns_without_an_end_has_failed(bench: Bench, trainer: FakeTrainer) -> None:
    trainer.result = lambda status: replace(status, state=RunState.RUNNING)
    trainer.allow(4)
    bench.start()
    assert bench.end().error_code == "run.unexpected"


@pytest.mark.parametrize("state", ENDED)
def test_every_end_can_come_at_once(bench_of: Callable[[TrainerFactory], Bench], state: RunState) -> None:
    bench = bench_of(lambda *_, **__: RunStatus(state))
    for _ in range(2):
        bench.start(card=None)
        assert bench.end().state is state


@pytest.mark.parametrize("known_cause", [None, "first_optimizer_step"])
def test_out_of_memory_is_an_event_with_the_cause_that_was_forecast(
    bench: Bench, trainer: FakeTrainer, known_cause: str | None
) -> None:
    oom = make_oom(step=5, cause=known_cause)
    trainer.result = lambda status: replace(status, state=RunState.OUT_OF_MEMORY, oom=oom)
    bench.start()
    bench.until(RunState.RUNNING)
    bench.alerts.on_alert(make_alert())
    trainer.allow(4)
    status = bench.end()
    cause = known_cause or "leak"
    assert status.state is RunState.OUT_OF_MEMORY
    assert status.oom == replace(oom, cause=cause)
    last = bench.last_event()
    assert (last.kind, last.level, last.code, last.t_s) == (EventKind.OOM, Level.ERROR, "run.out_of_memory", oom.t_s)
    assert last.params == {"step": 5, "phase": "backward", "cause": cause}
    assert bench.facts()["ended"]["state"] == "out_of_memory"
    assert bench.recorded("SELECT kind FROM events ORDER BY seq DESC LIMIT 1") == [("oom",)]


def test_out_of_memory_without_an_open_alert_has_no_cause(bench: Bench, trainer: FakeTrainer) -> None:
    trainer.result = lambda status: replace(status, state=RunState.OUT_OF_MEMORY, oom=make_oom())
    trainer.allow(4)
    bench.start()
    assert bench.end().oom == make_oom()


def test_a_folder_that_cannot_be_made_fails_the_run_and_leaves_the_last_one_alone(
    bench: Bench, trainer: FakeTrainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer.allow(4)
    bench.start()
    bench.end()
    first = bench.records.folder
    assert first is not None
    before = first.facts_path.read_bytes()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FLOODMARK_DATA", str(tmp_path / "file"))
    bench.start()
    status = bench.end()
    assert (status.state, status.error_code) == (RunState.FAILED, "data_folder.unwritable")
    assert bench.records.folder is None
    assert first.facts_path.read_bytes() == before
    assert len(trainer.orders) == 1


def test_a_new_run_begins_without_the_files_that_the_last_one_left_out(bench: Bench, trainer: FakeTrainer) -> None:
    bench.board.put("data.skipped", "2 files", level="warning")
    bench.board.put("recorder.trouble", "disk full", level="error")
    trainer.allow(4)
    bench.start()
    bench.end()
    assert [notice.code for notice in bench.board.notices.get()] == ["recorder.trouble"]


def test_a_run_that_cannot_begin_shows_why(bench: Bench) -> None:
    error = FloodmarkError("device.no_cuda", "torch is built without CUDA.")
    assert bench.desk.refuse(RunOrder(RunConfig(name="x"), None, scenario="leak"), error)
    status = bench.desk.run.get()
    assert (status.state, status.run_name, status.scenario) == (RunState.FAILED, "x", "leak")
    assert (status.error_code, status.error_message) == ("device.no_cuda", "torch is built without CUDA.")
    assert bench.last_event().kind is EventKind.ERROR
    assert bench.records.folder is None
    bench.desk.stop()
    assert bench.desk.wait(0.0)


# The disk


def test_a_disk_in_trouble_at_the_end_is_tried_again_until_the_program_ends(
    bench: Bench, trainer: FakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    usual = session_database._set_up
    monkeypatch.setattr(session_database, "_set_up", full)
    bench.start()
    bench.until(RunState.RUNNING)
    Watched(bench.desk.run).until(lambda _: bench.troubles)
    trainer.allow(4)
    assert bench.end().state is RunState.FINISHED
    assert "disk is full" in str(bench.troubles[0])
    monkeypatch.setattr(session_database, "_set_up", usual)
    assert bench.records.close(PATIENCE_S)
    assert bench.troubles[-1] is None
    assert bench.recorded("SELECT count(*) FROM steps") == [(4,)]


def test_facts_that_cannot_be_written_do_not_end_a_run(
    bench: Bench, trainer: FakeTrainer, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.start()
    bench.until(RunState.RUNNING)
    assert bench.records.folder is not None
    facts = bench.records.folder.facts_path.with_suffix(".json.new")
    facts.mkdir()  # the draft cannot be opened
    bench.records.note_checkpoint(Path("last.pt"), 1, 1)
    trainer.allow(4)
    assert bench.end().state is RunState.FINISHED
    assert bench.facts()["ended"] is None


def test_no_line_joins_two_runs(bench: Bench, trainer: FakeTrainer) -> None:
    steps = bench.store.history("steps")
    bench.start()
    trainer.allow(4)
    bench.end()
    first_run = steps.version
    bench.start()
    trainer.allow(4)
    bench.end()
    numbers = steps.since(first_run).column("step")
    assert np.isnan(numbers[0])
    assert numbers[1] == 1
