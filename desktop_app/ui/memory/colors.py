"""The colours of blocks by kind: those of the tank where it has one, so that both pictures read alike."""

from __future__ import annotations

from typing import Final

import numpy as np
from PySide6.QtGui import QColor

from desktop_app.core.steps import Category
from desktop_app.ui.memory.picture import Palette
from desktop_app.ui.memory.timeline_layout import DIMMED, EDGE, SHADES
from desktop_app.ui.theme import Theme, color, mix

TOKENS: Final = {
    Category.PARAMETERS: "tank_parameters",
    Category.GRADIENTS: "tank_gradients",
    Category.OPTIMIZER_STATE: "tank_optimizer",
    Category.ACTIVATIONS: "tank_activations",
    Category.WORKSPACE: "tank_workspace",
    Category.TEMPORARIES: "block_temporaries",
    Category.INPUTS: "block_inputs",
    Category.OTHER: "tank_context",
}
_KINDS: Final = tuple(Category)
_EDGE_SHARE: Final = 0.62
_DIM_SHARE: Final = 0.22


def kind_color(theme: Theme, category: Category) -> QColor:
    return color(getattr(theme, TOKENS[category]))


def shade_color(theme: Theme, shade: int) -> QColor:
    """The colour at a position among the categories: ``timeline_layout.block_shades`` says which a block has."""
    return kind_color(theme, _KINDS[shade])


def picture_palette(theme: Theme) -> Palette:
    """The pixel of each shade of ``timeline_layout``; nothing where no block lies."""
    palette = np.zeros(SHADES, dtype=np.uint32)
    for place, category in enumerate(Category):
        token = getattr(theme, TOKENS[category])
        shades = {
            place: color(token),
            place + EDGE: mix(token, theme.surface, _EDGE_SHARE),
            place + DIMMED: mix(token, theme.surface, _DIM_SHARE),
            place + EDGE + DIMMED: mix(token, theme.surface, _DIM_SHARE * _EDGE_SHARE),
        }
        for shade, made in shades.items():
            palette[shade] = made.rgba()
    return palette
