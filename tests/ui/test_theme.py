"""Colours can be read and told apart; the style sheet is whole; icons are crisp; nothing heavy is imported."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
import subprocess
import sys
from collections.abc import Sequence

import pytest
from PySide6.QtGui import QColor, QFont, QIcon, QPalette
from PySide6.QtWidgets import QApplication, QPushButton
from pytestqt.qtbot import QtBot

from desktop_app.core.steps import Category
from desktop_app.ui import icons, theme
from desktop_app.ui.icons import IconName
from desktop_app.ui.memory.colors import TOKENS
from desktop_app.ui.theme import DARK, LIGHT, FontRole, Theme, ThemeMode

ALL_THEMES = (DARK, LIGHT, theme.HIGH_CONTRAST_DARK, theme.HIGH_CONTRAST_LIGHT)
BACKGROUNDS = ("window", "surface", "raised", "sunken")
# WCAG 2.2, success criteria 1.4.3 (text) and 1.4.11 (graphics and large text).
READABLE = 4.5
VISIBLE = 3.0
TEXT_PAIRS = [
    *itertools.product(("text", "muted"), (*BACKGROUNDS, "hover", "banner_danger", "banner_warn", "banner_ok")),
    *itertools.product(("accent", "ok", "warn", "danger"), BACKGROUNDS),
    ("on_accent", "accent"),
    ("on_danger", "danger"),
]
CURVES = (
    *("loss", "validation", "accuracy", "learning_rate", "grad_norm"),
    *("device", "live", "utilization", "temperature", "power"),
)
GRAPHIC_PAIRS = [*itertools.product(("faint",), BACKGROUNDS), *itertools.product(CURVES, ("surface",))]
# Colours that mean different things in the same place.
TOGETHER = (
    ("loss", "validation", "accuracy"),
    ("learning_rate", "grad_norm"),
    ("device", "live", "text"),
    ("ok", "warn", "danger"),
)
TANK = (
    *("tank_others", "tank_context", "tank_parameters", "tank_gradients"),
    *("tank_optimizer", "tank_activations", "tank_workspace", "tank_idle"),
)
# Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation of Color Vision Deficiency",
# IEEE TVCG 15 (2009): matrices for linear RGB at severity 1.0.
DEFICIENCIES = {
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
# Stone, Szafir and Setlur, "An Engineering Model for Color Difference as a Function of Size", Color and Imaging
# Conference 2014: of two marks 1/3 degree wide (a legend's swatch), half of the viewers see a difference of this much
# along each axis of CIELAB: p * (A + B / s) with p = 0.5 and s = 1/3.
NOTICEABLE_LAB = (0.5 * (10.16 + 1.50 * 3), 0.5 * (10.68 + 3.08 * 3), 0.5 * (10.70 + 5.74 * 3))


def linear(value: str) -> tuple[float, ...]:
    channels = QColor(value).getRgbF()[:3]
    return tuple(c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)


def contrast(one: str, other: str) -> float:
    """WCAG 2.2 contrast ratio."""
    first, second = (sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear(v), strict=True)) for v in (one, other))
    return (max(first, second) + 0.05) / (min(first, second) + 0.05)


def lab(rgb: Sequence[float]) -> tuple[float, float, float]:
    """CIELAB (D65) of linear RGB."""
    matrix = (
        (0.4124564, 0.3575761, 0.1804375),
        (0.2126729, 0.7151522, 0.0721750),
        (0.0193339, 0.1191920, 0.9503041),
    )
    white = (0.95047, 1.0, 1.08883)

    def bend(t: float) -> float:
        return t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116

    x, y, z = (
        bend(sum(m * c for m, c in zip(row, rgb, strict=True)) / w) for row, w in zip(matrix, white, strict=True)
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def seen(value: str, deficiency: str) -> tuple[float, float, float]:
    rgb = linear(value)
    matrix = DEFICIENCIES[deficiency]
    return lab([min(1.0, max(0.0, sum(m * c for m, c in zip(row, rgb, strict=True)))) for row in matrix])


def difference(one: str, other: str, deficiency: str) -> float:
    """In units of what half of the viewers notice."""
    pairs = zip(seen(one, deficiency), seen(other, deficiency), NOTICEABLE_LAB, strict=True)
    return math.sqrt(sum(((a - b) / unit) ** 2 for a, b, unit in pairs))


def token(look: Theme, name: str) -> str:
    value = getattr(look, name)
    assert isinstance(value, str)
    return value


def test_contrast_is_computed_as_wcag_does() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21.0)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)  # the well-known near miss


def test_lab_of_known_colours() -> None:
    assert lab(linear("#FFFFFF")) == pytest.approx((100.0, 0.0, 0.0), abs=0.02)
    assert lab(linear("#FF0000")) == pytest.approx((53.24, 80.09, 67.20), abs=0.05)


@pytest.mark.parametrize("look", ALL_THEMES, ids=lambda look: look.name)
@pytest.mark.parametrize(("front", "back"), TEXT_PAIRS)
def test_text_can_be_read(look: Theme, front: str, back: str) -> None:
    assert contrast(token(look, front), token(look, back)) >= READABLE


@pytest.mark.parametrize("look", ALL_THEMES, ids=lambda look: look.name)
@pytest.mark.parametrize(("front", "back"), GRAPHIC_PAIRS)
def test_curves_and_figures_of_axes_can_be_seen(look: Theme, front: str, back: str) -> None:
    assert contrast(token(look, front), token(look, back)) >= VISIBLE


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
@pytest.mark.parametrize("look", [DARK, LIGHT], ids=lambda look: look.name)
@pytest.mark.parametrize("names", TOGETHER, ids="-".join)
def test_colours_in_one_place_can_be_told_apart(look: Theme, names: tuple[str, ...], deficiency: str) -> None:
    for one, other in itertools.combinations(names, 2):
        assert difference(token(look, one), token(look, other), deficiency) >= 1.0, (one, other)


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
@pytest.mark.parametrize("look", [DARK, LIGHT], ids=lambda look: look.name)
def test_neighbours_in_the_tank_can_be_told_apart(look: Theme, deficiency: str) -> None:
    for one, other in itertools.pairwise(TANK):
        assert difference(token(look, one), token(look, other), deficiency) >= 1.0, (one, other)


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
@pytest.mark.parametrize("look", [DARK, LIGHT], ids=lambda look: look.name)
@pytest.mark.parametrize("kind", list(Category))
def test_kinds_of_blocks_can_be_told_apart(look: Theme, kind: Category, deficiency: str) -> None:
    """Any two may lie side by side in the timeline."""
    for other in Category:
        if other is not kind:
            assert difference(token(look, TOKENS[kind]), token(look, TOKENS[other]), deficiency) >= 1.0, other


@pytest.mark.parametrize("look", ALL_THEMES, ids=lambda look: look.name)
def test_every_token_is_a_colour(look: Theme) -> None:
    values = [getattr(look, field.name) for field in dataclasses.fields(look) if field.name not in {"name", "is_dark"}]
    assert all(re.fullmatch(r"#[0-9A-F]{6}", value) for value in values)


@pytest.mark.parametrize("look", ALL_THEMES, ids=lambda look: look.name)
def test_palette_sets_every_role_that_fusion_draws_with(look: Theme) -> None:
    palette = theme.build_palette(look)
    role = QPalette.ColorRole
    for which in (role.Window, role.Base, role.Text, role.Button, role.Highlight, role.ToolTipBase, role.Mid):
        assert palette.isBrushSet(QPalette.ColorGroup.Active, which)
    assert palette.color(role.Window).name().upper() == look.window
    disabled = palette.color(QPalette.ColorGroup.Disabled, role.Text)
    assert disabled.name().upper() == look.faint


def test_style_sheet_scales_lengths_but_not_hair_lines() -> None:
    plain, large = theme.style_sheet(DARK), theme.style_sheet(DARK, scale=1.6)
    assert "$" not in plain
    assert "border-radius: 6px" in plain
    assert "border-radius: 10px" in large
    assert "border: 1px solid" in large


def test_every_kind_of_control_shows_its_focus() -> None:
    sheet = theme.style_sheet(DARK)
    for control in ("QPushButton", "QToolButton", "QLineEdit", "QComboBox", "QSpinBox", "QCheckBox", "QTabBar::tab"):
        assert f"{control}:focus" in sheet


def test_fonts_follow_the_base_size() -> None:
    base = QFont()
    base.setPointSizeF(10.0)
    assert theme.font(FontRole.VERDICT, base).pointSizeF() == pytest.approx(12.0)
    assert theme.font(FontRole.BODY, base).pointSizeF() == pytest.approx(10.0)
    assert theme.font(FontRole.LABEL, base).pointSizeF() == pytest.approx(9.2)
    assert theme.font(FontRole.TITLE, base).weight() == QFont.Weight.DemiBold


def test_digits_are_equally_wide(qapp: QApplication) -> None:
    from desktop_app.ui.brush import Typeset

    types = Typeset(qapp.font())
    for kind in (types.label, types.figure, types.tick):
        widths = {round(kind.width(str(digit)), 3) for digit in range(10)}
        assert len(widths) == 1


def test_apply_dresses_the_application_and_scales_from_the_first_size(qapp: QApplication) -> None:
    theme.apply(qapp, DARK)
    size = qapp.font().pointSizeF()
    try:
        theme.apply(qapp, LIGHT, font_scale=1.6)
        assert qapp.font().pointSizeF() == pytest.approx(1.6 * size)
        assert qapp.palette().color(QPalette.ColorRole.Window).name().upper() == LIGHT.window
        theme.apply(qapp, LIGHT, font_scale=1.6)
        assert qapp.font().pointSizeF() == pytest.approx(1.6 * size)
    finally:
        theme.apply(qapp, DARK)
    assert qapp.font().pointSizeF() == pytest.approx(size)
    # Fusion lies under the style sheet: a proxy reports its own name, so look at what was asked for.
    assert "QPushButton" in qapp.styleSheet()


def test_style_sheet_is_accepted_by_qt(qtbot: QtBot) -> None:
    """A rule that Qt cannot parse is a warning, and warnings fail."""
    button = QPushButton("x")
    qtbot.addWidget(button)
    for look in ALL_THEMES:
        button.setStyleSheet(theme.style_sheet(look))
        button.ensurePolished()


def test_resolved_themes(qapp: QApplication) -> None:
    assert theme.resolve_theme(ThemeMode.DARK) in {DARK, theme.HIGH_CONTRAST_DARK}
    assert theme.resolve_theme(ThemeMode.LIGHT) in {LIGHT, theme.HIGH_CONTRAST_LIGHT}
    assert theme.resolve_theme(ThemeMode.SYSTEM) in ALL_THEMES


def test_mix_is_opaque_and_between() -> None:
    made = theme.mix("#FF0000", "#0000FF", 0.25)
    assert made.getRgb() == (64, 0, 191, 255)


@pytest.mark.parametrize("name", IconName)
def test_icons_are_tinted_and_crisp_at_scale_two(qapp: QApplication, name: IconName) -> None:
    pixmap = icons.pixmap(name, LIGHT, 16, ratio=2.0)
    assert (pixmap.width(), pixmap.height()) == (32, 32)
    assert pixmap.devicePixelRatio() == 2.0
    image = pixmap.toImage()
    pixels = [image.pixelColor(x, y) for x in range(32) for y in range(32)]
    solid = {color.name().upper() for color in pixels if color.alpha() == 255}
    assert solid, "nothing is drawn at full strength"
    if name is IconName.LOGO:
        assert {LIGHT.accent, LIGHT.danger} & solid
    else:
        assert LIGHT.text in solid


def test_an_icon_is_faint_when_disabled(qapp: QApplication) -> None:
    made = icons.icon(IconName.STOP, DARK)
    middle = made.pixmap(24, QIcon.Mode.Disabled).toImage().pixelColor(12, 12)
    assert middle.name().upper() == DARK.faint
    assert icons.icon(IconName.STOP, DARK).cacheKey() == made.cacheKey()


def test_application_icon_has_all_sizes(qapp: QApplication) -> None:
    sizes = {(size.width(), size.height()) for size in icons.app_icon().availableSizes()}
    assert (16, 16) in sizes
    assert (256, 256) in sizes


def test_neither_theme_nor_tank_imports_pyqtgraph_or_torch() -> None:
    """The first window shows before pyqtgraph is imported, and torch is never on its path."""
    code = (
        "import sys, desktop_app.ui.theme, desktop_app.ui.icons, desktop_app.ui.tank, desktop_app.ui.tank_reader;"
        "print(sorted({'pyqtgraph', 'torch', 'pynvml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
