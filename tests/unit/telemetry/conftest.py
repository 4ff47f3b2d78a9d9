"""A fake driver library, compiled once a session."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fake_nvml.driver import PlaySteps, compile_driver, play_steps


@pytest.fixture(scope="session")
def driver_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a current driver library."""
    return compile_driver(tmp_path_factory.mktemp("nvml") / "current")


@pytest.fixture(scope="session")
def play(driver_folder: Path) -> PlaySteps:
    """Play steps against the current driver library."""
    return lambda steps, **environment: play_steps(driver_folder, steps, **environment)


@pytest.fixture(scope="session")
def play_old(tmp_path_factory: pytest.TempPathFactory) -> PlaySteps:
    """Play steps against a library without memory v2, the newer temperature call and the newer fields."""
    folder = compile_driver(tmp_path_factory.mktemp("nvml") / "old", "-DOLD_DRIVER")
    return lambda steps, **environment: play_steps(folder, steps, **environment)
