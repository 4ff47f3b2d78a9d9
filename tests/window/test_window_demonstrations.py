"""Demonstrations with the window, offscreen and on a virtual screen: the picture and the report show what they must.

What is asserted of ``leak`` and ``first-optimizer-step`` holds on whole cards too; smaller ones take less time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageColor

from desktop_app.ui.theme import DARK, LIGHT, Theme
from tests.window.demonstrations import run_demo

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@dataclass(frozen=True)
class _Look:
    """Where the window is, and how it looks."""

    window: str
    theme: str
    language: str
    size: str


def test_leak_is_forecast_long_before_memory_runs_out(tmp_path: Path) -> None:
    card = ("--card", "GeForce GTX 1660 capped at 2 GiB")
    report = _show(tmp_path, "leak", *card, "--for", "20", look=_Look("offscreen", "light", "en", "1440x900"))
    first, oom = report["alerts"][0], report["oom"]
    assert first["cause"] == "leak"
    assert oom["step"] - first["step"] >= 10
    half_way = report["forecast_half_way"]
    assert half_way["eta_steps"] == pytest.approx(half_way["true_steps"], rel=0.25)
    assert first["eta_steps"] == pytest.approx(oom["step"] - first["step"], rel=0.25)
    assert "CUDA out of memory. Tried to allocate" in oom["message"]
    assert oom["cause"] == "leak"


def test_first_optimizer_step_is_announced_before_the_call(tmp_path: Path) -> None:
    look = _Look("offscreen", "dark", "zh_CN", "1440x900")
    report = _show(tmp_path, "first-optimizer-step", "--for", "5", look=look)
    alert, oom = report["alerts"][0], report["oom"]
    assert alert["cause"] == "first_optimizer_step"
    assert alert["step"] == oom["step"] == 1
    assert alert["t_s"] < oom["t_s"]
    assert oom["phase"] == "optimizer"


@pytest.mark.parametrize(
    ("scenario", "options", "theme", "language", "exit_code"),
    [
        ("cats-dogs", ("--for", "8"), "dark", "zh_CN", 0),
        ("too-big", ("--for", "4", "--card", "GeForce GTX 1660 capped at 1 GiB", "--batch", "256"), "light", "en", 3),
    ],
)
def test_window_shows_the_run(
    tmp_path: Path, scenario: str, options: tuple[str, ...], theme: str, language: str, exit_code: int
) -> None:
    _show(tmp_path, scenario, *options, look=_Look("xvfb", theme, language, "1024x640"), exit_code=exit_code)


def _show(folder: Path, scenario: str, *options: str, look: _Look, exit_code: int = 3) -> dict[str, Any]:
    """The report, after a look at the picture."""
    options += ("--theme", look.theme, "--lang", look.language, "--size", look.size)
    outcome = run_demo(folder, scenario, *options, window=look.window)
    assert outcome.exit_code == outcome.report["exit_code"] == exit_code
    assert outcome.picture is not None
    pixels = np.asarray(Image.open(outcome.picture).convert("RGB")).reshape(-1, 3)
    width, height = map(int, look.size.split("x"))
    assert len(pixels) == width * height
    tokens = DARK if look.theme == "dark" else LIGHT
    for name in ("utilization", "temperature", "power", "text"):
        assert _pixels_of(pixels, tokens, name) > 20, f"no pixel has the colour of {name}"
    return outcome.report


def _pixels_of(pixels: np.ndarray, theme: Theme, token: str) -> int:
    return int((pixels == ImageColor.getrgb(getattr(theme, token))).all(axis=1).sum())
