"""The demonstrations with the window, offscreen and on a virtual screen: the picture shows what it must."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageColor

from desktop_app.ui.theme import DARK, LIGHT, Theme
from tests.window.demonstrations import run_demo

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.mark.parametrize(
    ("scenario", "seconds", "window", "theme", "language", "size", "exit_code"),
    [
        ("cats-dogs", "15", "xvfb", "dark", "zh_CN", "1024x640", 0),
        ("leak", "90", "offscreen", "light", "en", "1440x900", 3),
        ("first-step", "25", "offscreen", "dark", "zh_CN", "1440x900", 3),
        ("too-big", "25", "xvfb", "light", "en", "1024x640", 3),
    ],
)
def test_window_shows_the_run(
    tmp_path: Path, scenario: str, seconds: str, window: str, theme: str, language: str, size: str, exit_code: int
) -> None:
    options = ("--for", seconds, "--theme", theme, "--lang", language, "--size", size)
    outcome = run_demo(tmp_path, scenario, *options, window=window)
    assert outcome.exit_code == outcome.report["exit_code"] == exit_code
    assert outcome.picture is not None
    pixels = np.asarray(Image.open(outcome.picture).convert("RGB")).reshape(-1, 3)
    width, height = map(int, size.split("x"))
    assert len(pixels) == width * height
    tokens = DARK if theme == "dark" else LIGHT
    for name in ("utilization", "temperature", "power", "text"):
        assert _pixels_of(pixels, tokens, name) > 20, f"no pixel has the colour of {name}"


def _pixels_of(pixels: np.ndarray, theme: Theme, token: str) -> int:
    return int((pixels == ImageColor.getrgb(getattr(theme, token))).all(axis=1).sum())
