"""Compile the fake driver library, and read cards through it in a fresh process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
Steps = list[dict[str, Any]]
PlaySteps = Callable[..., dict[str, Any]]


def build_library(folder: Path, *flags: str, without: Sequence[str] = ()) -> bool:
    """Put ``libnvidia-ml.so.1`` into ``folder``, with the symbols in ``without`` missing as in an older driver.

    False: there is no C compiler, or this is not Linux.
    """
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None or not sys.platform.startswith("linux"):
        return False
    folder.mkdir(exist_ok=True)
    if without:
        (folder / "hidden.map").write_text("{ local: " + " ".join(f"{name};" for name in without) + " };")
        flags = (*flags, f"-Wl,--version-script={folder / 'hidden.map'}")
    command = [compiler, "-shared", "-fPIC", "-O1", "-Wall", "-Wextra", *flags, "-Wl,-soname,libnvidia-ml.so.1"]
    subprocess.run([*command, "-o", folder / "libnvidia-ml.so.1", HERE / "fake_nvml.c", "-lpthread"], check=True)
    return True


def compile_driver(folder: Path, *flags: str, without: Sequence[str] = ()) -> Path:
    """``folder`` with ``libnvidia-ml.so.1`` in it; skips the test where there is no C compiler."""
    import pytest  # here, because a benchmark uses the rest

    if not build_library(folder, *flags, without=without):
        pytest.skip("no C compiler for the fake driver library")
    return folder


def play_steps(folder: Path, steps: Steps, **environment: str) -> dict[str, Any]:
    """What the NVML backend said at each step, in a process that finds the library in ``folder``."""
    usual = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_")}
    result = subprocess.run(
        [sys.executable, str(HERE / "read_cards.py"), json.dumps(steps)],
        env={**usual, "LD_LIBRARY_PATH": str(folder), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    played: dict[str, Any] = json.loads(result.stdout)
    return played
