"""Colours, fonts and the style sheet: every visual token of the window in one file.

Three colours of the design pictures were moved so that they can be told apart or read: ``faint`` (axis figures reach
3:1 on every background), ``device`` against ``live`` on the VRAM panel, and the reds and ambers of the light theme for
readers with deuteranopia. ``tests/ui/test_theme.py`` computes all of it.

Widgets take a look from the style sheet by dynamic properties:

=============  ========================================================================
property       values
=============  ========================================================================
``panel``      ``True`` on a ``QFrame``: a card with a line and round corners
``banner``     ``danger``, ``warn``, ``ok``, ``calm`` on a ``QFrame``: the verdict's background
``kind``       ``primary``, ``danger``, ``quiet``, ``segment`` on a button
``role``       ``muted``, ``faint``, ``accent``, ``ok``, ``warn``, ``danger`` on a ``QLabel``: its colour
``chip``       ``plain``, ``warn`` on a ``QLabel`` or ``QFrame``: a pill
=============  ========================================================================
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QFont, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication, QStyleFactory

from desktop_app.ui.style_sheet import style_sheet

__all__ = [
    "DARK",
    "HIGH_CONTRAST_DARK",
    "HIGH_CONTRAST_LIGHT",
    "LIGHT",
    "FontRole",
    "Theme",
    "ThemeMode",
    "apply",
    "build_palette",
    "color",
    "font",
    "mix",
    "resolve_theme",
    "style_sheet",
]

PANEL_RADIUS: Final = 8
CONTROL_RADIUS: Final = 6
GRID: Final = 8  # everything lies on a grid of eight pixels
# Where the system names no size: 9.4 pt are the 12.5 px of the design at 96 dpi.
DEFAULT_POINT_SIZE: Final = 9.4
_BASE_SIZE_PROPERTY: Final = "floodmark_base_point_size"


class ThemeMode(StrEnum):
    """What the user may choose. ``SYSTEM`` follows the desktop, also while the program runs."""

    DARK = "dark"
    LIGHT = "light"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Theme:
    """All colours of one theme, as ``#RRGGBB``."""

    name: str
    is_dark: bool
    # Backgrounds, lowest first.
    window: str
    surface: str  # panels
    raised: str  # fields, chips
    sunken: str  # fields on a panel
    hover: str
    banner_danger: str
    banner_warn: str
    banner_ok: str
    # Lines.
    line: str
    grid: str
    # Text.
    text: str
    muted: str
    faint: str  # figures on axes, decorations; never a sentence
    on_accent: str
    on_danger: str
    # Meaning.
    accent: str
    ok: str
    warn: str
    danger: str
    # Curves.
    loss: str
    validation: str
    accuracy: str
    learning_rate: str
    grad_norm: str
    device: str
    live: str
    utilization: str
    temperature: str
    power: str
    # The tank, from the bottom.
    tank_others: str
    tank_context: str
    tank_parameters: str
    tank_gradients: str
    tank_optimizer: str
    tank_activations: str
    tank_workspace: str
    tank_idle: str
    # Blocks that the tank counts to another layer.
    block_temporaries: str
    block_inputs: str


DARK: Final = Theme(
    name="dark",
    is_dark=True,
    window="#0E1116",
    surface="#151A21",
    raised="#1C232D",
    sunken="#0E1116",
    hover="#242D39",
    banner_danger="#3A1F22",
    banner_warn="#33281A",
    banner_ok="#15291F",
    line="#2A3340",
    grid="#1F2732",
    text="#E6EAF0",
    muted="#8A96A8",
    faint="#66738A",
    on_accent="#0E1116",
    on_danger="#0E1116",
    accent="#4CC2FF",
    ok="#3DD68C",
    warn="#FFB224",
    danger="#FF6B6B",
    loss="#4CC2FF",
    validation="#FFB224",
    accuracy="#9DB2C9",
    learning_rate="#4CC2FF",
    grad_norm="#F0A35E",
    device="#7CC4F0",
    live="#3D8BE0",
    utilization="#3DD68C",
    temperature="#FF8A4C",
    power="#C792EA",
    tank_others="#3C4757",
    tank_context="#5B6B80",
    tank_parameters="#2563AC",
    tank_gradients="#3A86C8",
    tank_optimizer="#5AABE3",
    tank_activations="#86CAF3",
    tank_workspace="#B9E4FB",
    tank_idle="#263140",
    block_temporaries="#C48BB4",
    block_inputs="#8DB36B",
)
LIGHT: Final = Theme(
    name="light",
    is_dark=False,
    window="#EEF2F6",
    surface="#FFFFFF",
    raised="#F3F6F9",
    sunken="#EEF2F6",
    hover="#E4EAF1",
    banner_danger="#FBE6E4",
    banner_warn="#FBF0DC",
    banner_ok="#E2F3EA",
    line="#D5DDE6",
    grid="#E6ECF2",
    text="#17202B",
    muted="#566475",
    faint="#7A8899",
    on_accent="#FFFFFF",
    on_danger="#FFFFFF",
    accent="#0B6BCB",
    ok="#14794A",
    warn="#9A5F00",
    danger="#B2202D",
    loss="#0B6BCB",
    validation="#B86E00",
    accuracy="#6B7C90",
    learning_rate="#0B6BCB",
    grad_norm="#9A5A1E",
    device="#4A90D0",
    live="#0F4C8A",
    utilization="#14794A",
    temperature="#C2521A",
    power="#7B3FA0",
    tank_others="#A9B4C2",
    tank_context="#7F8DA0",
    tank_parameters="#0F4C8A",
    tank_gradients="#2A6FB5",
    tank_optimizer="#4A90D0",
    tank_activations="#7DB6E4",
    tank_workspace="#A9CFEE",
    tank_idle="#DEE5EC",
    block_temporaries="#9C5C8E",
    block_inputs="#5C8A3A",
)
HIGH_CONTRAST_DARK: Final = dataclasses.replace(
    DARK,
    name="high-contrast-dark",
    window="#000000",
    surface="#000000",
    raised="#101418",
    sunken="#000000",
    line="#A8B3C2",
    grid="#3A4552",
    text="#FFFFFF",
    muted="#D3DAE3",
    faint="#AEB9C7",
)
HIGH_CONTRAST_LIGHT: Final = dataclasses.replace(
    LIGHT,
    name="high-contrast-light",
    window="#FFFFFF",
    sunken="#FFFFFF",
    raised="#F3F6F9",
    line="#3C4653",
    grid="#C3CCD6",
    text="#000000",
    muted="#2B3541",
    faint="#4E5A68",
)


class FontRole(StrEnum):
    """Sizes relative to the system's own, so that large type and scale factors work."""

    VERDICT = "verdict"
    FIGURE = "figure"  # one large number
    TITLE = "title"
    BODY = "body"
    LABEL = "label"
    TICK = "tick"


# Sizes of the design pictures over their body text (12.5 px), and weights.
_FONT_ROLES: Final = {
    FontRole.VERDICT: (15 / 12.5, QFont.Weight.DemiBold),
    FontRole.FIGURE: (16 / 12.5, QFont.Weight.DemiBold),
    FontRole.TITLE: (12 / 12.5, QFont.Weight.DemiBold),
    FontRole.BODY: (1.0, QFont.Weight.Normal),
    FontRole.LABEL: (11.5 / 12.5, QFont.Weight.Normal),
    FontRole.TICK: (10.5 / 12.5, QFont.Weight.Normal),
}


def font(role: FontRole, base: QFont | None = None) -> QFont:
    """The font of ``role``, with tabular figures where the family has them. ``base`` is else the application's font."""
    scale, weight = _FONT_ROLES[role]
    made = QFont(base) if base is not None else QFont(QApplication.font())
    size = made.pointSizeF()
    made.setPointSizeF((size if size > 0 else DEFAULT_POINT_SIZE) * scale)
    made.setWeight(weight)
    made.setFeature(QFont.Tag("tnum"), 1)
    return made


def color(value: str, alpha: float = 1.0) -> QColor:
    """A token as ``QColor``. ``alpha`` in [0, 1]."""
    made = QColor(value)
    made.setAlphaF(alpha)
    return made


def mix(value: str, background: str, share: float) -> QColor:
    """``share`` of a token over ``background`` as an opaque colour: what is opaque is drawn faster."""
    over, under = QColor(value), QColor(background)
    return QColor(
        round(share * over.red() + (1 - share) * under.red()),
        round(share * over.green() + (1 - share) * under.green()),
        round(share * over.blue() + (1 - share) * under.blue()),
    )


def resolve_theme(mode: ThemeMode) -> Theme:
    """The theme of ``mode``; asks the desktop for scheme and contrast. Dark where the desktop says nothing."""
    hints = QGuiApplication.styleHints()
    dark = mode is ThemeMode.DARK
    if mode is ThemeMode.SYSTEM:
        dark = hints.colorScheme() is not Qt.ColorScheme.Light
    if _wants_contrast():
        return HIGH_CONTRAST_DARK if dark else HIGH_CONTRAST_LIGHT
    return DARK if dark else LIGHT


def _wants_contrast() -> bool:
    """Whether the desktop asks for more contrast. Qt tells from 6.10 on."""
    accessibility = getattr(QGuiApplication.styleHints(), "accessibility", None)
    if accessibility is None:
        return False
    preference = accessibility().contrastPreference()
    return bool(preference == Qt.ContrastPreference.HighContrast)


def build_palette(theme: Theme) -> QPalette:
    """The palette of a theme, for Fusion: set whole, because ``setColorScheme`` changes nothing without a desktop."""
    role = QPalette.ColorRole
    palette = QPalette()
    colors = {
        role.Window: theme.window,
        role.WindowText: theme.text,
        role.Base: theme.surface,
        role.AlternateBase: theme.raised,
        role.Text: theme.text,
        role.PlaceholderText: theme.muted,
        role.Button: theme.raised,
        role.ButtonText: theme.text,
        role.BrightText: theme.danger,
        role.ToolTipBase: theme.raised,
        role.ToolTipText: theme.text,
        role.Highlight: theme.accent,
        role.HighlightedText: theme.on_accent,
        role.Accent: theme.accent,
        role.Link: theme.accent,
        role.LinkVisited: theme.accent,
        role.Light: theme.line,
        role.Midlight: theme.grid,
        role.Mid: theme.line,
        role.Dark: theme.line,
        role.Shadow: theme.window,
    }
    for which, value in colors.items():
        palette.setColor(which, QColor(value))
    for which in (role.WindowText, role.Text, role.ButtonText, role.HighlightedText):
        palette.setColor(QPalette.ColorGroup.Disabled, which, QColor(theme.faint))
    palette.setColor(QPalette.ColorGroup.Disabled, role.Highlight, QColor(theme.line))
    return palette


def apply(app: QApplication, theme: Theme, *, font_scale: float = 1.0) -> None:
    """Dress the whole application. ``font_scale`` is 1.6 for presentations; sizes in the style sheet follow it."""
    if app.style().name().lower() != "fusion":
        app.setStyle(QStyleFactory.create("Fusion"))
    app.setPalette(build_palette(theme))
    app.setFont(_scaled_font(app, font_scale))
    app.setStyleSheet(style_sheet(theme, scale=font_scale))


def _scaled_font(app: QApplication, font_scale: float) -> QFont:
    """The system's font times ``font_scale``; the first call remembers what the system's size was."""
    made = QFont(app.font())
    base = app.property(_BASE_SIZE_PROPERTY)
    if not isinstance(base, float):
        base = made.pointSizeF() if made.pointSizeF() > 0 else DEFAULT_POINT_SIZE
        app.setProperty(_BASE_SIZE_PROPERTY, base)
    made.setPointSizeF(base * font_scale)
    made.setFeature(QFont.Tag("tnum"), 1)
    return made
