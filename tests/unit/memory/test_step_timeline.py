"""One step as a picture: every block where it belongs, and the curve that the replay gave."""

from __future__ import annotations

import numpy as np
import pytest

from desktop_app.core.estimates import ALIVE, Timeline
from desktop_app.core.steps import Category, Phase
from desktop_app.core.units import MIB
from desktop_app.memory.card_limits import CUDNN_OP
from desktop_app.memory.estimate_replay import Curves, replay_table
from desktop_app.memory.estimate_table import CATEGORIES, EventTable
from desktop_app.memory.step_timeline import step_timeline
from tests.unit.memory.made_traces import Script, convolution, network


def picture(table: EventTable, curves: Curves, **options: object) -> Timeline:
    found = step_timeline(table, curves, **options)  # type: ignore[arg-type]
    assert found is not None
    return found


@pytest.mark.parametrize("batch_size", [1, 8])
def test_the_blocks_alive_at_each_event_sum_up_to_the_live_bytes(batch_size: int) -> None:
    table = EventTable.of(network(batch_size, convolves=True))
    timeline = picture(table, replay_table(table))
    for index in range(timeline.event_count):
        alive = (timeline.born <= index) & (timeline.died > index)
        assert timeline.size_bytes[alive].sum() == timeline.live_bytes[index]
    assert (timeline.reserved_bytes >= timeline.live_bytes).all()


def test_what_was_there_before_comes_first_and_the_others_in_order_of_birth() -> None:
    table = EventTable.of(network(8))
    timeline = picture(table, replay_table(table), title="network")
    categories = [CATEGORIES[index] for index in timeline.category]
    before = int((np.diff(timeline.born, prepend=0) == 0).sum())
    assert before == 5
    assert categories[:5] == [
        Category.PARAMETERS,
        Category.INPUTS,  # of the first step, still in the loop's hands
        Category.ACTIVATIONS,  # its loss
        Category.OPTIMIZER_STATE,
        Category.OPTIMIZER_STATE,
    ]
    assert (np.diff(timeline.born) >= 0).all()
    assert timeline.died[0] == ALIVE
    assert timeline.died[1] == 0  # the first event of the step lets the batch before go
    assert timeline.size_bytes[0] == 32 * MIB
    assert timeline.owners[timeline.owner[0]] == "body.first"
    assert timeline.title == "network"
    assert timeline.ops[timeline.op[0]] == "to"


def test_phases_cover_the_step_without_validation() -> None:
    table = EventTable.of(network(8))
    timeline = picture(table, replay_table(table))
    assert [span.phase for span in timeline.phases] == [
        Phase.FORWARD,
        Phase.BACKWARD,
        Phase.OPTIMIZER,
        Phase.ZERO,
    ]
    assert timeline.phases[0].first == 0
    assert timeline.phases[-1].last == timeline.event_count - 1
    for span, following in zip(timeline.phases, timeline.phases[1:], strict=False):
        assert following.first == span.last + 1


def test_what_did_nothing_is_not_in_the_picture() -> None:
    script = Script()
    for step in (1, 2):
        script.enter(Phase.FORWARD, step)
        script.take("x", MIB)
        script.blink(MIB, op=CUDNN_OP, call=convolution(1))
        script.drop("x")
    table = EventTable.from_events(script.events, tuple(script.convolutions))
    sizes = table.sizes_bytes.copy()
    sizes[table.calls >= 0] = 0
    without = picture(table, replay_table(table, sizes))
    assert without.live_bytes.tolist() == [MIB, 0]
    assert picture(table, replay_table(table)).event_count == 4


def test_no_picture_of_a_step_that_is_not_there() -> None:
    table = EventTable.of(network(2))
    assert step_timeline(table, replay_table(table), step=7) is None
