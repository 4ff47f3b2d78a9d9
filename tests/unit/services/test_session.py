"""A session wired as the program wires it, with a card that always answers and a trainer that obeys."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from desktop_app.core.clock import SessionClock
from desktop_app.core.events import Event, EventKind, Level
from desktop_app.core.forecasts import Estimate
from desktop_app.core.lifecycle import StageOutcome
from desktop_app.core.steps import RunState, RunStatus
from desktop_app.core.units import GIB, MIB
from desktop_app.services import session as sessions
from desktop_app.services.estimator import EstimateRequest, Tell
from desktop_app.services.facade import EstimateState, Workspace
from desktop_app.services.locations import sessions_folder
from desktop_app.services.report import exit_code
from desktop_app.services.scenarios import find_scenario
from desktop_app.services.session import Session
from desktop_app.services.session_folder import SavedPoint, SessionFolder, create_session, find_resume_offer
from desktop_app.telemetry.backend import Backend
from desktop_app.training.checkpoints import FILE_NAME
from desktop_app.training.config import RunConfig

from .doubles import PATIENCE_S, FakeBackend, FakeTrainer, Watched, make_card, make_estimate

CARD = make_card()


class Bench:
    def __init__(self, trainer: FakeTrainer, backend: Backend | None = None) -> None:
        self.trainer = trainer
        self.before_estimate: Callable[[], object] = lambda: None
        self.asked: queue.SimpleQueue[EstimateRequest] = queue.SimpleQueue()
        self.session = Session(
            clock=SessionClock(),
            backend=backend or FakeBackend(CARD),
            compute_estimate=self._estimate,
            train=trainer,
            sampling_hz=50.0,
        )

    def _estimate(self, request: EstimateRequest, _: Tell) -> Estimate:
        self.asked.put(request)
        self.before_estimate()
        return make_estimate(batch_size=request.config.batch_size)

    def open(self) -> Session:
        self.session.open()
        assert self.session.wait_for_cards(timeout_s=PATIENCE_S) is not None
        return self.session

    def until(self, *states: RunState) -> RunStatus:
        status: RunStatus = Watched(self.session.run).until(lambda status: status.state in states)
        return status


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLOODMARK_DATA", str(tmp_path / "data"))


@pytest.fixture
def bench_of() -> Iterator[Callable[..., Bench]]:
    made: list[Bench] = []

    def make(trainer: FakeTrainer | None = None, backend: Backend | None = None) -> Bench:
        made.append(Bench(trainer or FakeTrainer(steps=3), backend))
        return made[-1]

    yield make
    for bench in made:
        bench.trainer.let_go.set()
        bench.session.close()
        assert bench.session.wait_for_run(PATIENCE_S)


@pytest.fixture
def bench(bench_of: Callable[..., Bench]) -> Bench:
    return bench_of()


def test_it_is_what_a_window_expects(bench: Bench) -> None:
    workspace: Workspace = bench.session
    assert workspace.run.get().state is RunState.IDLE
    assert workspace.run_config.get() == RunConfig()


# Watching


class WakingBackend(FakeBackend):
    """Counts how often it is told that something uses its card."""

    woken = 0

    def wake(self) -> None:
        self.woken += 1


@pytest.mark.parametrize("simulated", [False, True])
def test_a_run_keeps_the_card_that_it_is_on_awake(
    bench_of: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, simulated: bool
) -> None:
    """And no other: a run on a simulated card lets the laptop's own one sleep."""
    monkeypatch.setattr("desktop_app.services.session.check_trainable", lambda _: None)  # whatever torch is here
    backend, trainer = WakingBackend(make_card(simulated=simulated, torch_index=0)), FakeTrainer(steps=10)
    session = bench_of(trainer, backend).open()
    assert backend.woken == 0
    session.start(RunConfig())
    assert trainer.entered.wait(PATIENCE_S)
    costs = session.cost.version
    Watched(session.cost).until(lambda _: session.cost.version > costs + 1)  # two more seconds
    assert session.run.get().state is RunState.RUNNING
    assert (backend.woken > 0) is not simulated


def test_cards_and_costs_are_known_after_the_first_second(bench: Bench) -> None:
    session = bench.session
    assert session.wait_for_cards(timeout_s=0.0) is None
    assert not session.is_watching()
    assert bench.open().selected_card() == CARD
    assert session.is_watching()
    assert session.card_uuid.get() == CARD.uuid
    assert (session.host_available_bytes() or 0) > 100 * MIB
    cost = session.cost.get()
    assert (cost.rss_bytes or 0) > 10 * MIB
    assert session.readings.get()[CARD.uuid]["memory_used_bytes"].value == 256 * MIB
    cost = Watched(session.cost).until(lambda cost: cost.cpu_percent is not None)
    assert 0 <= cost.cpu_percent < 200
    assert cost.samples > 0


def test_a_card_is_selected_between_runs_only(bench_of: Callable[..., Bench]) -> None:
    other = make_card("SIM-2")
    bench = bench_of(None, FakeBackend(CARD, other))
    session = bench.open()
    session.select_card(other.uuid)
    assert session.selected_card() == other
    session.start(RunConfig())
    session.select_card(CARD.uuid)
    assert session.selected_card() == other
    bench.until(RunState.RUNNING)
    assert bench.trainer.orders[0].card == other


def test_the_rate_can_be_changed_while_it_samples(bench: Bench) -> None:
    session = bench.open()
    session.set_sampling_hz(10.0)
    session.note_frame(0.01)
    assert session.is_watching()


# Estimates


def test_an_estimate_is_made_for_the_selected_card_beside_the_others(bench: Bench) -> None:
    session = bench.open()
    Watched(session.cost).until(lambda _: session._use.others_bytes)
    session.request_estimate(RunConfig(batch_size=32))
    status = session.wait_for_estimate(RunConfig(batch_size=32), timeout_s=PATIENCE_S)
    assert status.state is EstimateState.READY
    asked = bench.asked.get(timeout=PATIENCE_S)
    assert (asked.card, asked.others_bytes) == (CARD, 256 * MIB)


def test_a_device_that_is_not_there_fails_the_estimate_in_words(bench: Bench) -> None:
    session = bench.open()
    session.request_estimate(RunConfig(device="cuda:1"))
    status = session.estimate.get()
    assert (status.state, status.error_code) == (EstimateState.FAILED, "device.no_such_index")
    session.request_estimate(RunConfig(device="cpu"))
    assert session.wait_for_estimate(RunConfig(device="cpu"), timeout_s=PATIENCE_S) == status


def test_a_start_uses_the_estimate_that_is_there(bench: Bench) -> None:
    session = bench.open()
    config = RunConfig(batch_size=16)
    session.request_estimate(config)
    session.wait_for_estimate(config, timeout_s=PATIENCE_S)
    bench.asked.get(timeout=PATIENCE_S)
    session.start(config)
    bench.until(RunState.RUNNING)
    assert bench.asked.empty()


def test_nobody_waits_for_the_estimate_of_a_run_that_has_failed(bench: Bench) -> None:
    never = threading.Event()
    bench.before_estimate = lambda: never.wait(PATIENCE_S)
    session = bench.open()
    config = RunConfig(device="auto")
    session.request_estimate(config)
    waited = threading.Thread(target=session.wait_for_estimate, args=(config,), kwargs={"timeout_s": 600.0})
    waited.start()
    session.start(RunConfig(device="cuda:9"))
    waited.join(PATIENCE_S)
    assert not waited.is_alive()
    never.set()


# Runs


def test_a_scenario_is_run_with_its_mistake(bench: Bench) -> None:
    session = bench.open()
    scenario = find_scenario("leak")
    bench.trainer.allow(3)
    session.start_scenario(scenario.config, scenario=scenario)
    assert session.wait_for_run(PATIENCE_S)
    status = session.run.get()
    assert (status.state, status.scenario, status.step) == (RunState.FINISHED, "leak", 3)
    (order,) = bench.trainer.orders
    assert (order.fault, order.scenario, order.card) == ("keeps-loss-graph", "leak", CARD)
    assert session.run_config.get() == scenario.config
    assert session.folder is not None
    assert session.store.history("steps").since(0).column("step").tolist() == [1.0, 2.0, 3.0]


def test_a_demonstration_is_started_by_its_name_or_said_not_to_be(bench: Bench) -> None:
    session = bench.open()
    session.start_demo("no-such-thing")
    assert [notice.code for notice in session.notices.get()] == ["demo.unknown_scenario"]
    assert session.run.get().state is RunState.IDLE
    bench.trainer.allow(3)
    session.start_demo("cats-dogs")
    assert bench.until(RunState.FINISHED).scenario == "cats-dogs"
    assert session.run_config.get() == find_scenario("cats-dogs").config


def test_a_start_while_one_is_active_changes_nothing(bench: Bench) -> None:
    session = bench.open()
    session.start_scenario(RunConfig(name="first"), scenario=None)
    bench.until(RunState.RUNNING)
    session.start(RunConfig(name="second"))
    session.pause()
    bench.until(RunState.PAUSED)
    session.start(RunConfig(name="third"))
    assert session.run_config.get().name == "first"
    assert session.run.get().run_name == "first"
    session.resume()
    session.save_checkpoint()
    Watched(session.run).until(lambda _: bench.trainer.saves)
    session.stop()
    assert session.wait_for_run(PATIENCE_S)
    assert session.run.get().state is RunState.STOPPED


@pytest.mark.parametrize(
    ("device", "opened", "code"),
    [("auto", False, "device.not_known_yet"), ("cuda:3", True, "device.no_such_index")],
)
def test_a_run_without_its_card_fails_in_words_and_leaves_no_folder(
    bench: Bench, device: str, opened: bool, code: str
) -> None:
    session = bench.open() if opened else bench.session
    session.start(RunConfig(device=device))
    status = session.run.get()
    assert (status.state, status.error_code, int(exit_code(status))) == (RunState.FAILED, code, 4)
    assert session.folder is None
    assert not sessions_folder().exists()


def test_a_real_card_needs_a_torch_that_knows_it(
    bench_of: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    from desktop_app.core.errors import NoSuchDeviceError

    def cannot(_: object) -> None:
        raise NoSuchDeviceError("device.no_cuda", "torch is built without CUDA.")

    monkeypatch.setattr(sessions, "check_trainable", cannot)
    real = make_card("GPU-1", simulated=False)
    bench = bench_of(None, FakeBackend(real))
    session = bench.open()
    session.request_estimate(RunConfig())  # an estimate needs no CUDA
    assert session.wait_for_estimate(RunConfig(), timeout_s=PATIENCE_S).state is EstimateState.READY
    session.start(RunConfig())
    assert session.run.get().error_code == "device.no_cuda"
    assert bench.trainer.orders == []


def test_a_run_that_names_a_card_gets_it_beside_the_others(bench: Bench) -> None:
    session = bench.open()
    config = RunConfig(card="RTX 3090")
    session.request_estimate(config)
    session.wait_for_estimate(config, timeout_s=PATIENCE_S)
    assert bench.asked.get(timeout=PATIENCE_S).card.name == "GeForce RTX 3090"
    assert session.cards.get() == (CARD,)  # an estimate puts no card there
    bench.trainer.allow(3)
    session.start(config)
    assert session.wait_for_run(PATIENCE_S)
    card = bench.trainer.orders[0].card
    assert card is not None
    assert (card.name, card.simulated) == ("GeForce RTX 3090", True)
    assert session.selected_card() == card
    Watched(session.readings).until(lambda readings: readings.get(card.uuid, {}).get("fan_percent") is not None)
    assert [known.uuid for known in session.cards.get()] == [CARD.uuid, card.uuid]


def test_a_simulated_run_beside_a_real_card_gets_the_default_one(bench_of: Callable[..., Bench]) -> None:
    bench = bench_of(None, FakeBackend(make_card("GPU-1", simulated=False)))
    session = bench.open()
    bench.trainer.allow(3)
    session.start(RunConfig(device="simulated"))
    assert session.wait_for_run(PATIENCE_S)
    card = bench.trainer.orders[0].card
    assert card is not None
    assert (card.name, card.simulated) == ("GeForce GTX 1660", True)


def test_a_card_that_is_not_in_the_catalogue_fails_run_and_estimate_in_words(bench: Bench) -> None:
    session = bench.open()
    session.request_estimate(RunConfig(card="RTX 9999"))
    assert session.estimate.get().error_code == "device.unknown_card"
    session.start(RunConfig(card="RTX 9999"))
    assert session.run.get().error_code == "device.unknown_card"
    assert session.cards.get() == (CARD,)


def test_a_run_on_the_cpu_needs_no_card_at_all(bench: Bench) -> None:
    session = bench.session  # not even opened
    bench.trainer.allow(3)
    session.start(RunConfig(device="cpu"))
    assert session.wait_for_run(PATIENCE_S)
    assert bench.trainer.orders[0].card is None
    assert session.run.get().state is RunState.FINISHED


def test_others_on_the_card_reach_the_forecast(bench_of: Callable[..., Bench]) -> None:
    backend = FakeBackend(CARD)
    bench = bench_of(FakeTrainer(steps=1000), backend)
    session = bench.open()
    session.start(RunConfig())
    bench.until(RunState.RUNNING)
    bench.trainer.allow(1)
    Watched(session.memory).until(lambda memory: memory is not None)
    backend.used_bytes = 2 * GIB  # of which the allocator holds 512 MiB

    def seen(_: object) -> bool:
        bench.trainer.allow(1)
        forecast = session.forecast.get()
        return forecast is not None and forecast.device_bytes == 2 * GIB

    Watched(session.forecast).until(seen)


def test_alerts_can_be_ignored(bench: Bench) -> None:
    bench.session.ignore_alert(4)
    assert bench.session.ignored_alerts.get() == {4}


# Notices


def test_trouble_of_the_recorder_is_a_notice_until_it_is_over(bench: Bench) -> None:
    session = bench.session
    session._on_recorder_trouble("database or disk is full")
    session.add_notice("telemetry.simulated", "no card", level="info")
    assert [(n.code, n.level) for n in session.notices.get()] == [
        ("recorder.trouble", "error"),
        ("telemetry.simulated", "info"),
    ]
    session._on_recorder_trouble(None)
    assert [n.code for n in session.notices.get()] == ["telemetry.simulated"]


# Taking up a run


def cut_off_run(name: str = "cats") -> SessionFolder:
    folder = create_session(
        sessions_folder(),
        run_name=name,
        config_toml='name = "cats"\nbatch_size = 48\n',
        card={},
        anchor_wall_s=0.0,
    )
    path = folder.checkpoints_path / FILE_NAME
    path.write_bytes(b"weights")
    folder.note_checkpoint(SavedPoint(path, 12, 3))
    return folder


def test_a_run_that_was_cut_off_is_taken_up_as_it_was(bench: Bench) -> None:
    folder = cut_off_run()
    session = bench.open()
    session.accept_resume_offer()  # nothing was found yet
    session.find_resume_offer()
    offer = session.resume_offer.get()
    assert offer is not None
    assert (offer.run_name, offer.step, offer.epoch) == ("cats", 12, 3)
    session.accept_resume_offer()
    bench.until(RunState.RUNNING)
    assert session.resume_offer.get() is None
    (order,) = bench.trainer.orders
    assert order.config == RunConfig(name="cats", batch_size=48)
    assert order.resume_from == folder.checkpoints_path / FILE_NAME
    assert session.run_config.get() == order.config
    assert find_resume_offer(sessions_folder()) is None  # it is being written
    bench.trainer.allow(3)
    assert session.wait_for_run(PATIENCE_S)
    assert find_resume_offer(sessions_folder()) is None


def test_a_run_that_is_left_is_not_offered_again(bench: Bench) -> None:
    folder = cut_off_run()
    session = bench.session
    session.dismiss_resume_offer()
    session.find_resume_offer()
    session.dismiss_resume_offer()
    assert session.resume_offer.get() is None
    Watched(session.run).until(lambda _: folder.read_facts()["ended"] is not None)
    assert folder.read_facts()["ended"]["state"] == "abandoned"
    assert find_resume_offer(sessions_folder()) is None


def test_a_run_whose_file_is_damaged_is_said(bench: Bench) -> None:
    folder = cut_off_run()
    folder.config_path.write_text("batch_size = ")
    session = bench.open()
    session.find_resume_offer()
    session.accept_resume_offer()
    (notice,) = Watched(session.notices).until(bool)
    assert (notice.code, notice.level) == ("resume.failed", "error")
    assert "not valid TOML" in notice.message
    assert session.run.get().state is RunState.IDLE


# The end


def test_close_ends_a_run_and_everything_else_in_order(bench: Bench) -> None:
    session = bench.open()
    session.start(RunConfig())
    bench.until(RunState.RUNNING)
    results = session.close()
    assert [result.name for result in results] == ["trainer", "sampler", "estimator", "recorder"]
    assert {result.outcome for result in results} == {StageOutcome.DONE}
    assert session.run.get().state is RunState.STOPPED
    assert session.folder is not None
    assert session.folder.read_facts()["ended"]["state"] == "stopped"
    assert session.close() == results


def test_close_before_anything_was_opened_is_harmless(bench: Bench) -> None:
    assert {result.outcome for result in bench.session.close()} == {StageOutcome.DONE}


def test_a_trainer_that_does_not_stop_leaves_a_folder_that_can_be_resumed(
    bench_of: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sessions._PATIENCE_S, "trainer", 0.05)  # type: ignore[index]
    trainer = FakeTrainer(deaf=True)
    bench = bench_of(trainer)
    session = bench.open()
    session.start(RunConfig(name="stuck"))
    assert trainer.entered.wait(PATIENCE_S)
    folder = session.folder
    assert folder is not None
    path = folder.checkpoints_path / FILE_NAME
    path.write_bytes(b"weights")
    folder.note_checkpoint(SavedPoint(path, 7, 1))
    last_words = Event(session.clock.now_s(), EventKind.LEARNING, Level.INFO, "learning.last_words")
    session.events.post(last_words)
    results = {result.name: result for result in session.close()}
    assert results["trainer"].outcome is StageOutcome.FAILED
    assert results["recorder"].outcome is StageOutcome.DONE
    assert "doubles.py" in caplog.text  # where the trainer is
    offer = find_resume_offer(sessions_folder())
    assert offer is not None
    assert (offer.run_name, offer.step) == ("stuck", 7)
    assert_recorded(folder, "learning.last_words")


def assert_recorded(folder: SessionFolder, code: str) -> None:
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(folder.database_path)) as connection:
        codes: list[tuple[Any, ...]] = connection.execute("SELECT code FROM events").fetchall()
    assert (code,) in codes


def test_the_program_ends_in_ten_seconds_whatever_hangs() -> None:
    assert sum(sessions._PATIENCE_S.values()) + 0.2 * len(sessions._PATIENCE_S) <= 10.0


def test_a_lost_second_of_cost_is_not_made_up() -> None:
    """Until the second look nobody knows what the program costs."""
    session = Bench(FakeTrainer()).session
    assert session.cost.get() == replace(session.cost.get(), cpu_percent=None, rss_bytes=None, samples=0)
    session.close()
