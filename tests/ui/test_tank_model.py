"""The levels of the tank are those of the card, the allocator and the estimate; what is unknown stays unknown."""

from __future__ import annotations

import dataclasses

import pytest

from desktop_app.core.forecasts import Forecast
from desktop_app.core.steps import Category, MemoryStats, RunState
from desktop_app.core.telemetry import Reading, Reason
from desktop_app.core.units import GIB, MIB
from desktop_app.services.facade import EstimateState, EstimateStatus
from desktop_app.ui.tank_model import _LAYERS, Segment, TankSource, TankState, tank_state
from desktop_app.ui.tank_reader import MEASURED_STEPS, TankReader, lost_reason, selected_card
from tests.ui import fake_data, fake_forecasts
from tests.ui.fake_data import FakeState
from tests.ui.fake_workspace import FakeWorkspace

NONE = EstimateStatus(EstimateState.NONE)
READY = EstimateStatus(EstimateState.READY, fake_forecasts.ready_estimate())
CARD = fake_data.gtx_1660()
STATS = MemoryStats(
    live_bytes=900 * MIB,
    live_peak_bytes=1000 * MIB,
    reserved_bytes=1100 * MIB,
    reserved_peak_bytes=1200 * MIB,
    idle_split_bytes=0,
    returnable_bytes=0,
    alloc_retries=0,
    outside_bytes=400 * MIB,
    peak_categories={Category.PARAMETERS: 100 * MIB, Category.INPUTS: 7 * MIB, Category.ACTIVATIONS: 500 * MIB},
)


def state(
    *,
    used_bytes: int | None = 1800 * MIB,
    reason: Reason | None = None,
    memory: MemoryStats | None = None,
    estimate: EstimateStatus = NONE,
    run: RunState = RunState.IDLE,
    forecast: Forecast | None = None,
    measured_bytes: int | None = None,
) -> TankState:
    return tank_state(
        card=CARD,
        readings={"memory_used_bytes": Reading(None if used_bytes is None else float(used_bytes), reason)},
        run=run,
        memory=memory,
        estimate=estimate,
        said=estimate,
        forecast=forecast,
        measured_bytes=measured_bytes,
    )


def sizes(shown: TankState) -> dict[Segment, int | None]:
    return {level.segment: level.size_bytes for level in shown.levels}


def test_without_a_card_there_is_only_the_reason() -> None:
    shown = tank_state(
        card=None,
        readings={},
        run=RunState.IDLE,
        memory=None,
        estimate=NONE,
        said=NONE,
        forecast=None,
        no_card_reason=Reason.NO_DRIVER,
    )
    assert shown.source is TankSource.NO_CARD
    assert shown.no_card_reason is Reason.NO_DRIVER
    assert not shown.levels
    assert not shown.overflows


def test_an_idle_card_holds_what_others_use() -> None:
    shown = state()
    assert shown.source is TankSource.EMPTY
    assert sizes(shown) == {Segment.OTHERS: 1800 * MIB}
    assert shown.capacity_bytes == 6 * GIB
    assert shown.free_bytes == 6 * GIB - 1800 * MIB


def test_measured_levels_add_up() -> None:
    shown = state(memory=STATS, run=RunState.RUNNING)
    assert shown.source is TankSource.RUN
    assert sizes(shown) == {
        Segment.OTHERS: 300 * MIB,  # 1800 used - 1100 reserved - 400 outside
        Segment.CONTEXT: 400 * MIB,
        Segment.PARAMETERS: 100 * MIB,
        Segment.GRADIENTS: 0,
        Segment.OPTIMIZER: 0,
        Segment.ACTIVATIONS: 507 * MIB,  # the batch waits among the activations
        Segment.WORKSPACE: 0,
        Segment.IDLE: 200 * MIB,  # 1200 reserved - 1000 live at the peaks
    }
    assert [level.segment for level in shown.levels] == list(Segment)


def test_a_card_sampled_before_the_allocator_grew_makes_no_negative_layer() -> None:
    assert sizes(state(used_bytes=1000 * MIB, memory=STATS, run=RunState.RUNNING))[Segment.OTHERS] == 0


def test_an_unknown_reading_stays_unknown_with_its_reason() -> None:
    shown = state(used_bytes=None, reason=Reason.GPU_LOST, memory=STATS, run=RunState.RUNNING)
    others = shown.levels[0]
    assert (others.size_bytes, others.reason) == (None, Reason.GPU_LOST)
    assert (shown.free_bytes, shown.free_reason) == (None, Reason.GPU_LOST)
    assert sizes(shown)[Segment.CONTEXT] == 400 * MIB


def test_before_a_run_the_levels_are_the_estimate_s() -> None:
    shown = state(estimate=READY)
    assert shown.source is TankSource.ESTIMATE
    assert sizes(shown)[Segment.OTHERS] == 1800 * MIB  # what others use now, not what the estimate had assumed
    assert sizes(shown)[Segment.PARAMETERS] == int(0.52 * GIB)
    assert (shown.flood_low_bytes, shown.flood_high_bytes) == (int(4.31 * GIB), int(4.6 * GIB))
    assert not shown.overflows


def test_a_run_that_has_begun_is_not_counted_twice() -> None:
    shown = state(estimate=READY, run=RunState.PREPARING, used_bytes=4 * GIB)
    assert sizes(shown)[Segment.OTHERS] == fake_data.OTHERS_BYTES


def test_a_forecast_over_the_brim_overflows() -> None:
    forecast = fake_forecasts.leak_forecast(10.0)
    shown = state(memory=STATS, run=RunState.RUNNING, forecast=forecast)
    assert (shown.flood_low_bytes, shown.flood_high_bytes) == (int(6.2 * GIB), int(6.5 * GIB))
    assert shown.overflows


def test_the_forecast_of_a_run_that_is_over_is_not_shown() -> None:
    shown = state(memory=STATS, run=RunState.FINISHED, forecast=fake_forecasts.leak_forecast(10.0))
    assert shown.flood_low_bytes is None


def test_error_is_measured_over_said() -> None:
    shown = state(memory=STATS, estimate=READY, run=RunState.RUNNING, measured_bytes=int(4.34 * GIB))
    assert shown.error_share == pytest.approx(0.007, abs=0.0001)  # the picture's +0.7 %
    assert state(estimate=READY).error_share is None


# -- the reader -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("which", "source"),
    [
        (FakeState.NO_GPU, TankSource.NO_CARD),
        (FakeState.NO_DRIVER, TankSource.NO_CARD),
        (FakeState.NOTHING, TankSource.EMPTY),
        (FakeState.ESTIMATING, TankSource.EMPTY),
        (FakeState.TOO_BIG, TankSource.ESTIMATE),
        (FakeState.PREPARING, TankSource.ESTIMATE),
        (FakeState.HEALTHY, TankSource.RUN),
        (FakeState.LEAK, TankSource.RUN),
        (FakeState.GPU_LOST, TankSource.RUN),
        (FakeState.FINISHED, TankSource.RUN),
    ],
)
def test_reader_chooses_the_source(which: FakeState, source: TankSource) -> None:
    assert TankReader(FakeWorkspace(which)).read().source is source


def test_reading_twice_gives_equal_states() -> None:
    reader = TankReader(FakeWorkspace(FakeState.HEALTHY))
    assert reader.read() == reader.read()


def test_the_first_steps_are_what_the_estimate_is_compared_with() -> None:
    """Later growth is the forecast's business: the leak of ``FakeState.LEAK`` begins long after them."""
    workspace = FakeWorkspace(FakeState.LEAK)
    shown = TankReader(workspace).read()
    peaks = workspace.store.history("steps").since(0).column("reserved_peak_bytes")
    answer = workspace.estimate.get().estimate
    stats = workspace.memory.get()
    assert answer is not None
    assert stats is not None
    expected = peaks[:MEASURED_STEPS].max() + stats.outside_bytes + answer.others_bytes
    assert shown.measured_bytes == int(expected)
    assert shown.measured_bytes < peaks[-1] + stats.outside_bytes + answer.others_bytes


def test_what_was_said_stays_while_the_form_is_edited() -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    reader = TankReader(workspace)
    said = reader.read().said
    edited = dataclasses.replace(workspace.run_config.get(), batch_size=512)
    other = dataclasses.replace(fake_forecasts.ready_estimate(), largest_batch=7)
    workspace.estimate.set(EstimateStatus(EstimateState.READY, other, edited))
    assert reader.read().said == said
    assert reader.read().source is TankSource.RUN


def test_after_a_run_an_edited_form_fills_the_tank() -> None:
    workspace = FakeWorkspace(FakeState.FINISHED)
    reader = TankReader(workspace)
    assert reader.read().source is TankSource.RUN
    edited = dataclasses.replace(workspace.run_config.get(), batch_size=512)
    workspace.estimate.set(EstimateStatus(EstimateState.READY, fake_forecasts.ready_estimate(), edited))
    assert reader.read().source is TankSource.ESTIMATE


def test_a_new_run_forgets_the_old_one() -> None:
    workspace = FakeWorkspace(FakeState.HEALTHY)
    reader = TankReader(workspace)
    assert reader.read().measured_bytes is not None
    workspace.set_run(started_t_s=workspace.clock.now_s())
    assert reader.read().measured_bytes is None


def test_selected_card_falls_back_to_the_first() -> None:
    workspace = FakeWorkspace(FakeState.NOTHING)
    workspace.cards.set(tuple(fake_data.h100(index) for index in range(8)))
    workspace.card_uuid.set(fake_data.h100(3).uuid)
    assert selected_card(workspace) == fake_data.h100(3)
    workspace.card_uuid.set("gone")
    assert selected_card(workspace) == fake_data.h100(0)
    assert selected_card(FakeWorkspace(FakeState.NO_GPU)) is None


def test_lost_reason() -> None:
    lost = FakeWorkspace(FakeState.GPU_LOST)
    assert lost_reason(lost, selected_card(lost)) is Reason.GPU_LOST
    well = FakeWorkspace(FakeState.NOTHING)
    assert lost_reason(well, selected_card(well)) is None
    assert lost_reason(FakeWorkspace(FakeState.NO_DRIVER), None) is Reason.NO_DRIVER


def test_every_category_is_in_one_layer_of_the_water() -> None:
    """Also those that only a trace tells apart: what the tank shows adds up to what is live."""
    layers = [category for categories in _LAYERS.values() for category in categories]
    assert sorted(layers) == sorted(Category)
    sizes = {category: 2**place * MIB for place, category in enumerate(Category)}
    estimate = dataclasses.replace(fake_forecasts.ready_estimate(), categories=sizes)
    status = EstimateStatus(EstimateState.READY, estimate)
    shown = tank_state(
        card=CARD, readings={}, run=RunState.IDLE, memory=None, estimate=status, said=status, forecast=None
    )
    outside = estimate.context_bytes + estimate.others_bytes + estimate.idle_bytes
    assert shown.filled_bytes == sum(sizes.values()) + outside


def test_after_the_end_everything_is_as_at_the_last_step() -> None:
    """The neighbour that filled the card may be gone, and the run's memory is free again."""
    workspace = FakeWorkspace(FakeState.OUT_OF_MEMORY)
    full = TankReader(workspace).read()
    uuid = workspace.card_uuid.get()
    assert uuid is not None
    workspace.readings.set({uuid: {"memory_used_bytes": Reading(0.0)}})
    after = TankReader(workspace).read()
    assert (after.levels, after.free_bytes) == (full.levels, full.free_bytes)
    assert full.free_bytes is not None
    assert full.free_bytes < GIB
