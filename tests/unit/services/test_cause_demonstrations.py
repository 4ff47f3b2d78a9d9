"""Each demonstration in the small: the mistake is real, the card fills up by it, and the forecast names it in time.

The whole programs are played by ``benchmarks/demonstrations.py``.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from desktop_app.core.steps import RunState
from desktop_app.core.units import MIB
from desktop_app.services.scenarios import find_scenario

from .stage import play

pytestmark = pytest.mark.timeout(240)
SMALL_CARD = "GeForce GTX 1050 Ti capped at 0.75 GiB"


@pytest.mark.parametrize(
    ("name", "others_mib", "settings", "lead_steps"),
    [
        ("first-optimizer-step", 475, {"hidden": 1100, "batch_size": 4}, 0),
        ("leak", 300, {"card": SMALL_CARD, "batch_size": 16, "image_size": 40}, 10),
        ("checkpoint-save", 224, {"hidden": 500, "batch_size": 160}, 10),
        ("validation", 130, {}, 10),
        ("batch-shape", 200, {"batch_size": 64, "image_size": 32}, 5),
        ("outside-allocator", 300, {"batch_size": 8, "width": 4}, 10),
        ("neighbour", 0, {"batch_size": 16, "image_size": 56, "step_s": 0.5}, 10),
    ],
)
def test_a_mistake_fills_the_card_and_is_named_before(
    name: str, others_mib: int, settings: dict[str, Any], lead_steps: int
) -> None:
    played = play(name, others_bytes=others_mib * MIB, **settings)
    assert played.status.state is RunState.OUT_OF_MEMORY
    assert {alert.cause for alert in played.alerts} == {find_scenario(name).cause}
    assert played.status.oom is not None
    assert played.status.oom.step - played.first.step >= lead_steps


def test_what_a_resume_keeps_is_what_is_too_much() -> None:
    resumed = play("resume", others_bytes=455 * MIB, hidden=1000, batch_size=160, most_steps=20)
    assert resumed.status.state is RunState.OUT_OF_MEMORY
    assert resumed.steps == []
    fresh = play(
        "checkpoint-save", others_bytes=199 * MIB, hidden=1000, batch_size=160, optimizer="adamw", most_steps=9
    )
    assert (fresh.status.state, fresh.status.step) == (RunState.STOPPED, 9)


def test_a_spill_is_slow_and_no_error(monkeypatch: pytest.MonkeyPatch) -> None:

    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    played = play("spill", others_bytes=220 * MIB, hidden=600, batch_size=4, most_steps=44)
    assert played.status.state is RunState.STOPPED
    assert len(slept) == 44 - 40  # the steps after the one that loads the teacher
    assert min(slept) > 0


def test_a_loader_that_keeps_all_images_stops_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    from desktop_app.training.recipes import faults_torch

    monkeypatch.setattr(faults_torch, "_CACHE_ROOM_BYTES", 8 * MIB)
    played = play("host-memory", batch_size=16)
    # 16 images of 448 x 448 bytes a step: two whole steps fit into 8 MiB
    assert played.status.step == 2
    assert (played.status.state, played.status.error_code) == (RunState.FAILED, "training.host_memory")


def test_small_blocks_are_few_and_images_grow_slowly() -> None:
    played = play("fragmentation", image_size=40, batch_size=8, most_steps=40)
    memory = [step.memory for step in played.steps if step.memory is not None]
    assert memory[39].live_bytes - memory[19].live_bytes == 0  # twelve of them from step 12 on
    pixels = [step.batch_pixels or 0 for step in played.steps]
    assert 1.02 * pixels[0] < pixels[39] < 1.25 * pixels[0]
