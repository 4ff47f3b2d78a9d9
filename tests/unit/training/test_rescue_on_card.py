"""On a simulated card: the same errors where the card would raise them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from desktop_app.core.events import EventKind
from desktop_app.core.steps import Phase, RunState
from desktop_app.services.oom_cause import advise_smaller_model, likely_cause

from .rescue_bench import CARD_RUN, FULL, events_of, losses_of, train_on_card


@pytest.mark.parametrize(("free_mib", "batch"), [(30, 8)])
def test_under_a_cap_a_run_settles_within_one_step_and_finishes(free_mib: int, batch: int) -> None:
    outcome, sink = train_on_card(CARD_RUN, free_mib=free_mib)
    assert outcome.state is RunState.FINISHED
    assert (outcome.status.batch_size, outcome.status.accumulation) == (batch, 64 // batch)
    assert {rescue.step for rescue in outcome.status.rescues if rescue.phase is not Phase.VALIDATION} == {1}
    memory = [sample.memory for sample in sink.steps if sample.memory is not None]
    assert len(memory) == 3
    assert all(stats.reserved_peak_bytes <= free_mib << 20 for stats in memory)
    configured, whole = train_on_card(
        replace(CARD_RUN, batch_size=batch, accumulation=64 // batch, on_oom="end"), free_mib=None
    )
    assert configured.state is RunState.FINISHED
    assert losses_of(sink) == pytest.approx(losses_of(whole), rel=1e-5)
    # Nothing of the failed steps is kept: between steps it holds what a run holds that never failed.
    assert [stats.live_bytes for stats in memory] == [s.memory.live_bytes for s in whole.steps if s.memory is not None]


def test_large_images_settle_in_the_first_step_under_each_cap() -> None:
    """The run of ``benchmarks/rescue_caps.py`` with a sixty-fourth of its memory, and of the room of its caps."""
    config = replace(CARD_RUN, image_size=128, model="wide-mlp", hidden=4, depth=1, batch_size=1536, epochs=2)
    _, whole = train_on_card(config, free_mib=None)
    for free_mib, batch in {115: 768, 43: 192}.items():
        outcome, sink = train_on_card(config, free_mib=free_mib)
        assert outcome.state is RunState.FINISHED
        assert (outcome.status.batch_size, outcome.status.accumulation) == (batch, 1536 // batch)
        assert {rescue.step for rescue in outcome.status.rescues if rescue.phase is not Phase.VALIDATION} == {1}
        assert losses_of(sink) == pytest.approx(losses_of(whole), rel=1e-5)


def test_the_first_update_is_made_tensor_by_tensor_where_only_that_fits() -> None:
    config = replace(CARD_RUN, batch_size=16, model="wide-mlp", hidden=1024, depth=8)
    outcome, sink = train_on_card(config, free_mib=170)  # 182 with the temporaries of all tensors, 162 without
    assert outcome.state is RunState.FINISHED
    assert [event.code for event in events_of(sink, EventKind.RESCUE)] == ["rescue.update"]
    _, whole = train_on_card(config, free_mib=None)
    assert losses_of(sink) == pytest.approx(losses_of(whole), rel=1e-6)


# 8 tensors of wide-mlp on images of 28 x 28 and two classes, in blocks of 512 bytes.
MLP = replace(CARD_RUN, batch_size=128, model="wide-mlp", hidden=1000, depth=3)
MLP_BYTES = sum(-(-4 * n // 512) * 512 for n in (784_000, 1000, 1_000_000, 1000, 1_000_000, 1000, 2000, 2))
LOOPED_BYTES = 2 * 4_000_256  # temporaries of the largest tensor


@pytest.mark.parametrize(("free_mib", "on_oom"), [(30, "shrink"), (42, "shrink"), (42, "end")])
def test_a_model_that_fits_at_no_batch_is_no_batch_problem(free_mib: int, on_oom: str) -> None:
    """Parameters, gradients and two moments: 42.6 MiB, whatever the batch, and 7.6 for the update itself."""
    outcome, _ = train_on_card(replace(MLP, on_oom=on_oom), free_mib=free_mib)
    assert outcome.state is RunState.OUT_OF_MEMORY
    assert outcome.status.rescues == ()
    assert outcome.status.batch_size == 128
    oom = outcome.oom
    assert oom is not None
    assert oom.fits_no_batch
    assert oom.least_bytes == 4 * MLP_BYTES + LOOPED_BYTES
    assert oom.room_bytes == pytest.approx(free_mib << 20, rel=0.01)
    owners = dict(oom.largest_owners)
    assert owners["parameters"] == owners["gradients"] == MLP_BYTES
    assert owners["optimizer_state"] == 2 * MLP_BYTES
    assert likely_cause(oom) == "neighbour"  # the bench's card is mostly somebody else's, and the message says so
    assert likely_cause(replace(oom, message=FULL)) == "first_optimizer_step"
    assert "SGD" in (advise_smaller_model(oom) or "")


def test_one_sample_is_tried_where_what_is_live_is_not_the_batch() -> None:
    """58 MiB are more than is needed, but segments of 20 MiB leave no place for cuBLAS's workspaces."""
    outcome, sink = train_on_card(MLP, free_mib=58)
    assert outcome.state is RunState.OUT_OF_MEMORY
    assert outcome.status.rescues == ()
    assert sink.steps == []
    oom = outcome.oom
    assert oom is not None
    assert oom.least_bytes is not None
    assert oom.least_bytes < (oom.room_bytes or 0)
    assert oom.fits_no_batch
    assert dict(oom.largest_owners)["gradients"] == MLP_BYTES
    fits, _ = train_on_card(replace(MLP, batch_size=1, on_oom="end"), free_mib=58)
    assert fits.state is RunState.OUT_OF_MEMORY


def test_what_validation_gives_back_leaves_the_next_step_its_place() -> None:
    """Workspaces that the training's rescue has placed stay where they are when a validation has no room."""
    config = replace(CARD_RUN, image_size=64, model="wide-mlp", hidden=4, depth=1, batch_size=1536, epochs=2)
    outcome, sink = train_on_card(config, free_mib=40)
    assert outcome.state is RunState.FINISHED
    assert Phase.VALIDATION in {rescue.phase for rescue in outcome.status.rescues}
    assert {rescue.step for rescue in outcome.status.rescues if rescue.phase is not Phase.VALIDATION} == {1}
    _, whole = train_on_card(config, free_mib=None)
    assert losses_of(sink) == pytest.approx(losses_of(whole), rel=1e-5)
