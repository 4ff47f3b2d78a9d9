"""Traces in columns: owners, partners, temporaries, and the third step."""

from __future__ import annotations

import numpy as np
import pytest

from desktop_app.core.steps import Category, Phase
from desktop_app.core.units import MIB
from desktop_app.memory.card_limits import CUDNN_OP
from desktop_app.memory.estimate_replay import (
    block_bytes,
    owners_at,
    phase_maxima,
    replay_table,
    spans,
)
from desktop_app.memory.estimate_steady import steady, with_third_step
from desktop_app.memory.estimate_table import CATEGORIES, PHASES, EventTable
from desktop_app.memory.trace_data import TraceEvent
from tests.unit.memory.made_traces import Script, network


def categories(table: EventTable) -> list[Category]:
    return [CATEGORIES[index] for index in table.categories]


def test_partners_lead_from_birth_to_death_and_back() -> None:
    script = Script()
    script.take("a", 1)
    script.take("b", 1)
    script.drop("a")
    table = EventTable.from_events(script.events)
    assert table.partners.tolist() == [2, 3, 0]  # b is never freed: the number of rows
    assert table.allocates.tolist() == [True, True, False]


def test_what_dies_in_the_phase_that_made_it_is_a_temporary() -> None:
    script = Script()
    script.enter(Phase.FORWARD, 1)
    script.take("kept", 10)
    script.take("short", 10)
    script.drop("short")
    script.take("kernel", 10, Category.WORKSPACE, op="reduce.staging")
    script.drop("kernel")
    script.take("batch", 10, Category.INPUTS)
    script.drop("batch")
    script.enter(Phase.BACKWARD)
    script.take("gradient", 10, Category.GRADIENTS)
    script.drop("gradient", "kept")
    script.enter(Phase.OPTIMIZER)
    script.take("update", 10, Category.WORKSPACE, op="_foreach_sqrt")
    script.drop("update")
    table = EventTable.from_events(script.events)
    born = [categories(table)[row] for row in np.flatnonzero(table.allocates)]
    assert born == [
        Category.ACTIVATIONS,
        Category.TEMPORARIES,
        Category.WORKSPACE,
        Category.INPUTS,
        Category.GRADIENTS,
        Category.TEMPORARIES,
    ]
    deaths = np.flatnonzero(~table.allocates)
    assert [categories(table)[row] for row in deaths] == [categories(table)[row] for row in table.partners[deaths]]


def test_two_micro_batches_are_two_stretches_of_the_same_phase() -> None:
    script = Script()
    for _ in range(2):
        script.enter(Phase.FORWARD, 1)
        script.take("x", 10)
        script.enter(Phase.BACKWARD)
        script.drop("x")
    table = EventTable.from_events(script.events)
    assert spans(table) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert categories(table)[0] is Category.ACTIVATIONS  # alive across a change of phase


def test_a_trace_that_frees_what_does_not_live_is_refused() -> None:
    with pytest.raises(ValueError, match="does not live"):
        EventTable.from_events([TraceEvent(-1, 0, "", Phase.FORWARD, 1, Category.OTHER)])


def test_the_least_room_leaves_out_what_a_kernel_can_do_without() -> None:
    script = Script()
    script.enter(Phase.FORWARD, 1)
    script.take("a", 1000)  # 1024 in blocks of 512
    script.blink(1 << 30, op=CUDNN_OP)
    script.blink(5000, op="reduce.staging")  # 5120
    script.take("b", 512)
    script.drop("a")
    assert EventTable.from_events(script.events).least_live_bytes() == 1024 + 5120


def test_peaks_of_a_training_as_added_up_on_paper() -> None:
    """8 samples of 2 MiB, 32 MiB of parameters, Adam; the loss is one block of 512 B."""
    table = EventTable.of(network(8, optimizer_states=2))
    curves = replay_table(table)
    loss = 512
    assert phase_maxima(table, curves.live_bytes) == {
        Phase.BUILD: 32 * MIB,
        Phase.FORWARD: (32 * 3 + 16 * 3) * MIB + loss,  # state, images, hidden, out
        Phase.BACKWARD: (32 * 3 + 16 * 3 + 32) * MIB + loss,  # gradient of out for out, and that of the weight
        Phase.OPTIMIZER: (32 * 5 + 16) * MIB + loss,  # gradient and the update
        Phase.ZERO: (32 * 3 + 16) * MIB + loss,
        Phase.VALIDATION: (32 * 3 + 16 * 2) * MIB + loss,
    }
    assert curves.live_peak_bytes == 176 * MIB + loss


@pytest.mark.parametrize(("batch_size", "phase"), [(1, Phase.OPTIMIZER), (16, Phase.BACKWARD)])
def test_where_the_peak_is(batch_size: int, phase: Phase) -> None:
    table = EventTable.of(network(batch_size))
    assert PHASES[table.phases[replay_table(table).peak_index]] is phase


def test_owners_sum_up_to_the_live_level_at_every_event() -> None:
    table = EventTable.of(steady(network(3, convolves=True)))
    curves = replay_table(table)
    for index in range(0, len(table), 3):
        owners = owners_at(table, curves, index)
        assert sum(owners.values()) == curves.live_bytes[index]
        assert min(owners.values()) >= 0
    assert block_bytes(curves).sum() > 0


# The third step


@pytest.mark.parametrize("validates", [True, False])
def test_a_third_step_is_the_second_once_more(validates: bool) -> None:
    events = network(4, validates=validates).events
    longer = with_third_step(events)
    second = [event for event in events if event.step == 2 and event.phase is not Phase.VALIDATION]
    third = [event for event in longer if event.step == 3 and event.phase is not Phase.VALIDATION]
    assert [(event.op, event.size_bytes, event.phase) for event in third if event.key > 0] == [
        (event.op, event.size_bytes, event.phase) for event in second if event.key > 0
    ]
    before, after = (replay_table(EventTable.from_events(found)) for found in (events, longer))
    assert before.live_bytes[-1] == after.live_bytes[-1]  # nothing leaks, nothing is freed twice
    assert before.live_peak_bytes == after.live_peak_bytes


def test_steps_that_do_not_join_up_are_left_alone() -> None:
    script = Script()
    for step in (1, 2):
        script.enter(Phase.FORWARD, step)
        script.take(f"kept{step}", 10)  # a leak: nobody lets go of it
    assert with_third_step(script.events) == tuple(script.events)
    assert with_third_step(()) == ()
