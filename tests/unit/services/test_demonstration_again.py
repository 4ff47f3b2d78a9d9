"""A demonstration that is started again, or taken up after a crash, still has its mistake."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from desktop_app.core.clock import SessionClock
from desktop_app.core.steps import RunState
from desktop_app.core.units import MIB
from desktop_app.services.locations import sessions_folder
from desktop_app.services.scenarios import find_scenario
from desktop_app.services.session import Session
from desktop_app.services.session_folder import SavedPoint, create_session
from desktop_app.training.checkpoints import FILE_NAME
from desktop_app.training.config import RunConfig, config_to_toml

from .doubles import PATIENCE_S, FakeBackend, FakeTrainer, Watched, make_estimate


class Bench:
    def __init__(self) -> None:
        self.trainer = FakeTrainer(steps=1)
        self.session = Session(
            clock=SessionClock(),
            backend=FakeBackend(),
            compute_estimate=lambda *_: make_estimate(),
            train=self.trainer,
            sampling_hz=50.0,
        )
        self.session.open()
        assert self.session.wait_for_cards(timeout_s=PATIENCE_S) is not None

    def run(self, config: RunConfig) -> tuple[str | None, str | None]:
        """What a start from the form becomes: fault and scenario of its order."""
        self.trainer.allow(1)
        self.session.start(config)
        return self.ended()

    def ended(self) -> tuple[str | None, str | None]:
        assert self.session.wait_for_run(PATIENCE_S)
        assert self.session.run.get().state is RunState.FINISHED
        order = self.trainer.orders[-1]
        assert self.session.run.get().scenario == order.scenario
        return order.fault, order.scenario


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    monkeypatch.setenv("FLOODMARK_DATA", str(tmp_path / "data"))
    made = Bench()
    yield made
    made.session.close()


def demonstrate(bench: Bench, name: str) -> RunConfig:
    bench.trainer.allow(1)
    scenario = find_scenario(name)
    bench.session.start_scenario(scenario.config, scenario=scenario)
    bench.ended()
    return scenario.config


def test_the_same_form_is_the_demonstration_again(bench: Bench) -> None:
    config = demonstrate(bench, "neighbour")
    assert bench.run(config) == ("empties-cache", "neighbour")
    assert bench.trainer.orders[-1].stage == find_scenario("neighbour").stage


def test_other_settings_mend_no_mistake(bench: Bench) -> None:
    config = demonstrate(bench, "leak")
    halved = replace(config, batch_size=32)
    assert bench.run(halved) == ("keeps-loss-graph", "leak")
    assert bench.session.run_config.get() == halved
    assert bench.run(config) == ("keeps-loss-graph", "leak")  # and once more


def test_another_run_is_no_demonstration_nor_is_what_follows_it(bench: Bench) -> None:
    config = demonstrate(bench, "leak")
    assert bench.run(replace(config, name="mended")) == (None, None)
    assert bench.run(config) == (None, None)


def test_ones_own_data_is_no_demonstration(bench: Bench, tmp_path: Path) -> None:
    config = demonstrate(bench, "leak")
    assert bench.run(replace(config, data=str(tmp_path))) == (None, None)


def test_a_run_that_had_the_name_before_is_none(bench: Bench) -> None:
    assert bench.run(find_scenario("leak").config) == (None, None)


def test_again_needs_as_much_ram_as_before(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    config = demonstrate(bench, "leak")
    monkeypatch.setattr(bench.session, "host_available_bytes", lambda: 100 * MIB)
    bench.session.start(config)
    assert [notice.code for notice in bench.session.notices.get()] == ["demo.not_enough_ram"]
    assert len(bench.trainer.orders) == 1


def test_one_that_was_cut_off_is_taken_up_with_its_mistake(bench: Bench) -> None:
    config = demonstrate(bench, "leak")
    folder = bench.session.folder
    assert folder is not None
    assert folder.read_facts()["scenario"] == "leak"
    cut_off = create_session(
        sessions_folder(),
        run_name="leak",
        config_toml=config_to_toml(config),
        card={},
        anchor_wall_s=0.0,
        scenario="leak",
    )
    path = cut_off.checkpoints_path / FILE_NAME
    path.write_bytes(b"weights")
    cut_off.note_checkpoint(SavedPoint(path, 12, 3))
    bench.session.find_resume_offer()
    bench.trainer.allow(1)
    bench.session.accept_resume_offer()
    Watched(bench.session.run).until(lambda _: len(bench.trainer.orders) == 2)
    assert bench.ended() == ("keeps-loss-graph", "leak")
    assert bench.trainer.orders[-1].resume_from == path
