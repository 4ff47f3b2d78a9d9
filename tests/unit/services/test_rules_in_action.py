"""The rules with everything real: training, simulated card, forecaster and alert desk, in one thread."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from desktop_app.core.clock import SessionClock
from desktop_app.core.events import Event, EventKind, EventQueue
from desktop_app.core.forecasts import Alert, Cause
from desktop_app.core.steps import PhaseSample, RunState, RunStatus, StepSample, ValidationSample
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.forecaster import Forecaster, Update
from desktop_app.memory.overheads import CardSpec
from desktop_app.memory.simulated_device import SimulatedDevice
from desktop_app.services.alert_desk import AlertDesk, Rule
from desktop_app.training.checkpoints import load_checkpoint
from desktop_app.training.config import RunConfig
from desktop_app.training.control import ControlToken, Shrink
from desktop_app.training.devices import SimulatedCudaDevice
from desktop_app.training.loop import Trainer
from desktop_app.training.recipes.faults import FAULTS
from desktop_app.training.recipes.recipe import RECIPES

# Sorted by size: the last batches need about twice the room, the first ones a quarter of it.
SORTED = RunConfig(image_size=20, width=32, batch_size=64, epochs=1, augment=False, checkpoint_every_epochs=0)
ROOM_BYTES = 128 * MIB
CARD = CardSpec("Small", 2 * GIB, 2 * GIB, "turing", (7, 5), 14)


@dataclass
class Watched:
    """The sink of the run; a paused run is stopped, since nobody would let it go on."""

    forecaster: Forecaster
    desk: AlertDesk
    token: ControlToken
    states: list[RunState] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    steps: list[StepSample] = field(default_factory=list)

    def on_status(self, status: RunStatus) -> None:
        self.states.append(status.state)
        self.forecaster.set_environment(
            total_steps=status.total_steps,
            longest_batch=status.longest_batch,
            longest_batch_step=status.longest_batch_step,
        )
        if status.state is RunState.PAUSED:
            self.token.stop(save=False)

    def on_step(self, sample: StepSample) -> None:
        self.steps.append(sample)
        self._take(self.forecaster.update_step(sample))

    def on_phase(self, sample: PhaseSample) -> None:
        self._take(self.forecaster.update_phase(sample))

    def on_validation(self, sample: ValidationSample) -> None: ...

    def on_event(self, event: Event) -> None:
        self.codes.append(event.code)

    def _take(self, update: Update) -> None:
        for alert in update.changes.raised:
            self.desk.on_alert(alert)
        for alert in update.changes.cleared:
            self.desk.on_cleared(alert)


@dataclass
class Ended:
    """What became of the run."""

    status: RunStatus
    sink: Watched
    done: list[str]
    raised: tuple[Alert, ...]


def play(on_alert: str, folder: Path) -> Ended:
    config, recipe = replace(SORTED, on_alert=on_alert, output_dir=str(folder)), RECIPES[SORTED.recipe]
    fault = FAULTS["largest-batches-last"]()
    data = fault.alter_data(recipe.prepare(config))
    events, token = EventQueue(), ControlToken()
    desk = AlertDesk(events)
    desk.begin_run(
        Rule(
            on_alert=on_alert,
            pause=token.pause,
            save_checkpoint=token.request_save,
            shrink=lambda part: token.request_shrink(Shrink(part)),
            shrink_to=lambda samples: token.request_shrink(to=samples),
            stop=lambda: token.stop(save=True),
        )
    )
    with SimulatedDevice(CARD) as memory:
        outside_bytes = memory.outside_bytes
        memory.set_others(CARD.capacity_bytes - outside_bytes - ROOM_BYTES)
        forecaster = Forecaster(capacity_bytes=ROOM_BYTES + outside_bytes, outside_bytes=outside_bytes)
        sink = Watched(forecaster, desk, token)
        outcome = Trainer(
            recipe,
            config,
            data,
            device=SimulatedCudaDevice(memory),
            sink=sink,
            token=token,
            clock=SessionClock(),
            fault=fault,
            threads=1,
        ).run()
    done = [event.code for event in events.since(0)[0] if event.kind is EventKind.CHANGE]
    return Ended(outcome.status, sink, done, desk.raised())


@pytest.mark.parametrize(
    ("on_alert", "end"),
    [
        ("notify", RunState.OUT_OF_MEMORY),
        ("pause", RunState.STOPPED),
        ("save", RunState.OUT_OF_MEMORY),
        ("save_and_pause", RunState.STOPPED),
        ("stop", RunState.STOPPED),
        ("shrink", RunState.FINISHED),
    ],
)
def test_a_rule_has_its_effect_before_the_card_is_full(on_alert: str, end: RunState, tmp_path: Path) -> None:
    ended = play(on_alert, tmp_path)
    assert ended.raised[0].cause is Cause.BATCH_SHAPE
    assert ended.status.state is end
    assert set(ended.done) == ({f"rule.{on_alert}"} if on_alert != "notify" else set())
    assert (RunState.PAUSED in ended.sink.states) == ("pause" in on_alert)
    alerted = ended.raised[0].step
    if "save" in on_alert or on_alert == "stop":
        saved = load_checkpoint(tmp_path / "last.pt").progress.step
        assert alerted - 1 <= saved <= ended.status.step  # a rule acts before the step that the alert is about
    if on_alert == "shrink":
        assert ended.status.batch_size < SORTED.batch_size
        assert ended.status.batch_size * ended.status.accumulation == SORTED.effective_batch
        assert ended.status.rescues == ()
        assert "run.shrunk" in ended.sink.codes
        assert len(ended.raised) == 1  # what it was about does not come any more
