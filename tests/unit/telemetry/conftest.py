"""A fake driver library, compiled once a session, and a way to read cards through it in a fresh process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FAKE = Path(__file__).parents[2] / "fake_nvml"
PlaySteps = Callable[..., dict[str, Any]]


def _compile(folder: Path, *flags: str) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("no C compiler for the fake driver library")
    folder.mkdir()
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", *flags, "-Wl,-soname,libnvidia-ml.so.1"]
    subprocess.run([*command, "-o", folder / "libnvidia-ml.so.1", FAKE / "fake_nvml.c"], check=True)
    return folder


@pytest.fixture(scope="session")
def driver_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a current driver library."""
    return _compile(tmp_path_factory.mktemp("nvml") / "current")


@pytest.fixture(scope="session")
def old_driver_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a driver library that lacks memory v2, the newer temperature call and the newer fields."""
    return _compile(tmp_path_factory.mktemp("nvml") / "old", "-DOLD_DRIVER")


def play_steps(folder: Path, steps: list[dict[str, Any]], **environment: str) -> dict[str, Any]:
    """What the NVML backend said at each step, in a process that finds the library in ``folder``."""
    usual = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_")}
    result = subprocess.run(
        [sys.executable, str(FAKE / "read_cards.py"), json.dumps(steps)],
        env={**usual, "LD_LIBRARY_PATH": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    played: dict[str, Any] = json.loads(result.stdout)
    return played


@pytest.fixture
def play(driver_folder: Path) -> PlaySteps:
    """Play steps against the current driver library."""
    return lambda steps, **environment: play_steps(driver_folder, steps, **environment)


@pytest.fixture
def play_old(old_driver_folder: Path) -> PlaySteps:
    """Play steps against the old driver library."""
    return lambda steps, **environment: play_steps(old_driver_folder, steps, **environment)
