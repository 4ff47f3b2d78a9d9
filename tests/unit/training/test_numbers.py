"""Learning rates, remaining time, verdicts on learning, what an optimizer allocates: values worked out by hand."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from desktop_app.training.config import RunConfig, field_spec
from desktop_app.training.learning import LearningWatch
from desktop_app.training.memory_errors import is_device_out_of_memory, is_host_out_of_memory, requested_bytes
from desktop_app.training.optimizer_memory import first_step_demand
from desktop_app.training.progress import Pace
from desktop_app.training.schedule import Schedule

PEAK = 0.1
CONFIG = RunConfig(learning_rate=PEAK, warmup_steps=4, epochs=2)  # with 10 steps an epoch: a horizon of 20


def rates(config: RunConfig, count: int = 24) -> list[float]:
    schedule = Schedule(config, steps_per_epoch=10)
    return [schedule.rate(step) for step in range(1, count + 1)]


def test_warm_up_rises_in_equal_parts() -> None:
    assert rates(CONFIG)[:5] == pytest.approx([0.02, 0.04, 0.06, 0.08, 0.1])


def test_cosine_is_half_way_down_in_the_middle_and_stays_at_the_floor() -> None:
    # From step 5 (the peak) to step 20 (the floor, 1/100): 15 steps down; the middle lies between 12 and 13.
    values = rates(CONFIG)
    middle = PEAK * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * 7 / 15)))
    assert values[11] == pytest.approx(middle)
    assert values[19:] == pytest.approx([0.001] * 5)


def test_linear_falls_in_equal_parts() -> None:
    values = rates(replace(CONFIG, schedule="linear"))
    falls = [before - after for before, after in itertools.pairwise(values[4:20])]
    assert falls == pytest.approx([0.099 / 15] * 15)


def test_constant_stays() -> None:
    assert rates(replace(CONFIG, schedule="constant"))[4:] == pytest.approx([PEAK] * 20)


def test_one_cycle_starts_at_a_twenty_fifth_and_peaks_at_three_tenths() -> None:
    values = rates(replace(CONFIG, schedule="one-cycle", warmup_steps=0))
    assert values[0] == pytest.approx(PEAK * (1 / 25 + 24 / 25 / 7))
    assert values.index(max(values)) == 6  # step 7 follows six rising ones: 30 % of 20
    assert values[6] == pytest.approx(PEAK)


def test_a_horizon_of_its_own_leaves_the_rest_at_the_floor() -> None:
    values = rates(replace(CONFIG, epochs=100, schedule_epochs=1), 30)
    assert values[9:] == pytest.approx([0.001] * 21)


@given(
    st.sampled_from(field_spec("schedule").choices),
    st.integers(0, 50),
    st.integers(1, 5),
    st.integers(1, 7),
    st.none() | st.integers(1, 9),
)
def test_every_rate_is_positive_and_at_most_the_peak(
    name: str, warmup: int, epochs: int, per_epoch: int, horizon: int | None
) -> None:
    config = replace(CONFIG, schedule=name, warmup_steps=warmup, epochs=epochs, schedule_epochs=horizon)
    schedule = Schedule(config, steps_per_epoch=per_epoch)
    assert all(0 < schedule.rate(step) <= PEAK * (1 + 1e-12) for step in range(1, epochs * per_epoch + 5))


def test_remaining_time_is_robust_against_a_slow_step() -> None:
    pace = Pace()
    assert pace.eta(steps=10, validations=0) is None
    assert pace.median_step_s() is None
    for step in range(100):
        pace.add_step(30.0 if step == 50 else 0.1)
    eta = pace.eta(steps=1000, validations=0)
    assert eta is not None
    assert (eta.eta_s, eta.low_s, eta.high_s) == pytest.approx((100.0, 100.0, 100.0))
    assert pace.median_step_s() == 0.1


def test_the_interval_spans_the_speeds_that_were_seen() -> None:
    pace = Pace()
    for block in range(10):  # ten blocks of ten steps: 0.10, 0.11, … 0.19 s
        for _ in range(10):
            pace.add_step(0.10 + block / 100)
    eta = pace.eta(steps=100, validations=0)
    assert eta is not None
    assert eta.eta_s == pytest.approx(14.5)
    assert (eta.low_s, eta.high_s) == pytest.approx((11.0, 18.0))  # second and last but one


def test_validations_to_come_take_their_time() -> None:
    pace = Pace()
    pace.add_step(0.5)
    pace.add_validation(2.0)
    eta = pace.eta(steps=4, validations=3)
    assert eta is not None
    assert eta.eta_s == pytest.approx(8.0)


def test_guessing_has_the_entropy_of_the_classes() -> None:
    even = LearningWatch([500] * 4)
    assert even.chance_loss == pytest.approx(math.log(4))
    assert even.chance_accuracy == 0.25
    uneven = LearningWatch([900, 100, 0])
    assert uneven.chance_loss == pytest.approx(0.325083, abs=1e-6)  # −0.9 ln 0.9 − 0.1 ln 0.1
    assert uneven.chance_accuracy == 0.9


def test_a_run_that_guesses_is_called_not_learning_and_forgiven_when_it_learns() -> None:
    watch = LearningWatch([500, 500])
    changes = [watch.observe(step=step, loss=0.70, accuracy=0.5, samples=64) for step in range(10, 400, 10)]
    said = [change for change in changes if change is not None]
    assert [(change.stuck, change.params["step"]) for change in said] == [(True, 300)]  # thirty log points
    assert said[0].params["chance_loss"] == pytest.approx(0.6931, abs=1e-4)
    later = [watch.observe(step=step, loss=0.2, accuracy=0.95, samples=64) for step in range(400, 800, 10)]
    assert [change.stuck for change in later if change is not None] == [False]


@pytest.mark.parametrize(("loss", "accuracy"), [(0.66, 0.5), (0.70, 0.62), (0.2, 0.95)])
def test_a_run_that_learns_a_little_is_left_alone(loss: float, accuracy: float) -> None:
    watch = LearningWatch([500, 500])
    assert not any(watch.observe(step=step, loss=loss, accuracy=accuracy, samples=64) for step in range(1, 500))


def test_nothing_is_said_in_the_first_hundred_steps() -> None:
    watch = LearningWatch([500, 500])
    assert not any(watch.observe(step=step, loss=0.69, accuracy=0.5, samples=64) for step in range(1, 100))


def _model() -> nn.Module:
    # 4,000 B and 40 B: rounded to 512 B they are 4,096 B and 512 B.
    return nn.Linear(100, 10)


BIG, SMALL = 4096, 512


@pytest.mark.parametrize(
    ("name", "options", "state", "temporary"),
    [
        ("AdamW", {"foreach": True}, 2 * (BIG + SMALL), BIG + SMALL),
        ("AdamW", {"foreach": False}, 2 * (BIG + SMALL), 2 * BIG),
        ("AdamW", {"fused": True}, 2 * (BIG + SMALL) + 2 * 512, 0),
        ("Adam", {"foreach": True, "weight_decay": 0.1}, 2 * (BIG + SMALL), BIG + SMALL),
        ("Adam", {"foreach": False, "weight_decay": 0.1}, 2 * (BIG + SMALL), 3 * BIG),
        ("SGD", {"momentum": 0.9, "foreach": True, "weight_decay": 0.1}, BIG + SMALL, BIG + SMALL),
        ("SGD", {"momentum": 0.9, "foreach": True}, BIG + SMALL, 0),
        ("SGD", {"foreach": False, "weight_decay": 0.1}, 0, BIG),
        ("SGD", {"foreach": True}, 0, 0),
    ],
)
def test_the_first_update_by_hand(name: str, options: dict[str, object], state: int, temporary: int) -> None:
    optimizer = getattr(torch.optim, name)(_model().parameters(), lr=0.1, **options)
    demand = first_step_demand(optimizer)
    assert demand is not None
    assert (demand.state_bytes, demand.temporary_bytes) == (state, temporary)
    assert demand.total_bytes == state + temporary


def test_state_that_is_there_is_not_demanded_again() -> None:
    model = _model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1, foreach=True)
    model(torch.ones(1, 100)).sum().backward()
    optimizer.step()
    demand = first_step_demand(optimizer)
    assert demand is not None
    assert (demand.state_bytes, demand.temporary_bytes) == (0, BIG + SMALL)


def test_frozen_parameters_and_unknown_optimizers() -> None:
    model = _model()
    model.weight.requires_grad_(False)
    demand = first_step_demand(torch.optim.AdamW(model.parameters(), foreach=True))
    assert demand is not None
    assert demand.state_bytes == 2 * SMALL
    assert first_step_demand(torch.optim.RMSprop(model.parameters())) is None


# The shapes of facts on out-of-memory messages, oldest first.
MESSAGES = [
    (
        RuntimeError(
            "CUDA out of memory. Tried to allocate 12.50 MiB (GPU 0; 10.92 GiB total capacity; 8.57 MiB already "
            "allocated; 9.28 GiB free; 4.68 MiB cached)"
        ),
        13_107_200,
    ),
    (
        torch.OutOfMemoryError(
            "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 5.80 GiB of which 1.00 GiB "
            "is free. Of the allocated memory 3.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch "
            "but unallocated."
        ),
        2 << 30,
    ),
    (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 512 bytes."), 512),
    (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate more than 1EB memory."), None),
    (
        RuntimeError(
            "Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated : 9.00 GiB\n"
            "Requested : 1.50 GiB\nDevice limit : 10.00 GiB"
        ),
        3 << 29,
    ),
    (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), None),
    (RuntimeError("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear if …"), None),
    (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), None),
    (RuntimeError("CUDA error: out of memory"), None),
    (RuntimeError("HIP out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of …"), 20 << 20),
    (
        RuntimeError(
            "MPS backend out of memory (MPS allocated: 8.00 GB …). Tried to allocate 1.00 KB on private pool."
        ),
        1024,
    ),
    (RuntimeError("expandable_segments: memory mapping failed with OOM on device 0"), None),
]


@pytest.mark.parametrize(("error", "size"), MESSAGES)
def test_full_cards_are_recognised(error: Exception, size: int | None) -> None:
    assert is_device_out_of_memory(error)
    assert not is_host_out_of_memory(error)
    assert requested_bytes(str(error)) == size


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:75] DefaultCPUAllocator: can't allocate memory: you tried to allocate"
        ),
        RuntimeError("C10 Out of Memory. Trying to allocate 4096 bytes"),
        MemoryError(),
    ],
)
def test_full_hosts_are_another_matter(error: Exception) -> None:
    assert is_host_out_of_memory(error)
    assert not is_device_out_of_memory(error)


@pytest.mark.parametrize(
    "error", [RuntimeError("mat1 and mat2 shapes cannot be multiplied"), ValueError("out of memory")]
)
def test_other_errors_are_neither(error: Exception) -> None:
    assert not is_device_out_of_memory(error)
    assert not is_host_out_of_memory(error)
