"""The small rules that data classes carry."""

from __future__ import annotations

import math

import pytest

from desktop_app.core.errors import ConfigError, ExitCode, FloodmarkError, NoSuchDeviceError
from desktop_app.core.steps import STEP_COLUMNS, RunState, StepSample
from desktop_app.core.telemetry import FAST_FIELDS, GPU_FIELDS, HOST_FIELDS, SLOW_FIELDS, Card


@pytest.mark.parametrize(
    ("state", "active"),
    [
        ("idle", False),
        ("preparing", True),
        ("running", True),
        ("pausing", True),
        ("paused", True),
        ("stopping", True),
        ("finished", False),
        ("stopped", False),
        ("failed", False),
        ("out_of_memory", False),
    ],
)
def test_a_run_is_active_while_its_thread_lives(state: str, active: bool) -> None:
    assert RunState(state).active is active


def test_throughput_is_samples_over_time() -> None:
    def sample(step_s: float) -> StepSample:
        return StepSample(1.0, 1, 1, 0.7, None, 1e-3, None, step_s, 64, None)

    assert sample(0.5).samples_per_s == 128.0
    assert math.isnan(sample(0.0).samples_per_s)


@pytest.mark.parametrize(
    ("total", "reserved", "capacity"),
    [(6_442_450_944, 329_252_864, 6_113_198_080), (6_442_450_944, None, 6_442_450_944), (None, 329_252_864, None)],
)
def test_capacity_is_what_the_driver_leaves(total: int | None, reserved: int | None, capacity: int | None) -> None:
    card = Card("GPU-1", "card", 0, None, True, total, driver_reserved_bytes=reserved)
    assert card.capacity_bytes == capacity


@pytest.mark.parametrize("names", [STEP_COLUMNS, GPU_FIELDS, HOST_FIELDS])
def test_columns_have_names_of_their_own(names: tuple[str, ...]) -> None:
    assert len(set(names)) == len(names)


def test_a_card_has_fast_and_slow_fields() -> None:
    assert FAST_FIELDS + SLOW_FIELDS == GPU_FIELDS


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (FloodmarkError("data.empty_class", "class dogs has no image"), ExitCode.RUN_FAILED),
        (FloodmarkError("run.oom", "out of memory", exit_code=ExitCode.OUT_OF_MEMORY), ExitCode.OUT_OF_MEMORY),
        (ConfigError("config.type", "epochs must be a whole number"), ExitCode.USAGE),
        (NoSuchDeviceError("card.unknown", "no such card"), ExitCode.NO_DEVICE),
    ],
)
def test_an_error_is_one_line_with_a_code(error: FloodmarkError, exit_code: ExitCode) -> None:
    assert str(error) == error.message
    assert "." in error.code
    assert error.exit_code is exit_code
    assert error.params == {}
