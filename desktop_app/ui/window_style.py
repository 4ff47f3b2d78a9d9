"""What the main window adds to the style sheet: its bars, pills and rows."""

from __future__ import annotations

import dataclasses
import re
from importlib import resources
from string import Template
from typing import Final

from desktop_app.ui.theme import Theme

_PIXELS: Final = re.compile(r"(\d+)px")
_RULES: Final = Template("""
#header { background: $surface; border: 0; border-bottom: 1px solid $line; }
#statusBar { background: $surface; border: 0; border-top: 1px solid $line; }
#divider { background: $line; border: 0; }
#panelContent { background: transparent; }
#body { background: $window; }

#simulatedChip { border-radius: 9px; min-height: 15px; }
#cardChip, #cardChip:focus { border-radius: 12px; padding: 5px 10px; text-align: left; }
#cardChip::menu-indicator { image: none; width: 0; }
#searchField { background: $sunken; color: $muted; text-align: left; }
#searchField:hover { background: $raised; }
#menuButton { padding: 6px; }

#sideTabs::tab { padding: 7px 9px; }
#sideTabs QToolButton, #memoryTabs QToolButton { background: $surface; border: 1px solid $line; padding: 0; }

#moreSettings, #fold { padding-left: 0; text-align: left; }
#runForm QLineEdit:disabled, #runForm QComboBox:disabled, #runForm QCheckBox:disabled { color: $text; }
#runForm QComboBox:disabled::drop-down { width: 0; }
#runForm QComboBox::down-arrow:disabled { image: none; }
#runForm QToolButton { padding: 3px 5px; }
#runForm QToolButton:focus { padding: 2px 4px; }

#cardRow { background: transparent; border: 1px solid transparent; text-align: left; }
#cardRow:hover { background: $raised; }
#cardRow:checked { background: $raised; border-color: $line; }
#cardRow:focus { border: 2px solid $accent; }
#alertCard { background: $raised; border: 1px solid transparent; border-radius: 6px; }
#alertCard:focus { border-color: $accent; }

#processTable::item, #blockTable::item, #moduleTree::item { padding: 0 6px; }
#blockTable QHeaderView::section, #moduleTree QHeaderView::section { padding: 5px 6px; }
#processTable QHeaderView::section { padding: 5px 9px; }
#processTable QHeaderView::down-arrow, #processTable QHeaderView::up-arrow { image: none; width: 0; }
#moduleTree QHeaderView::down-arrow, #moduleTree QHeaderView::up-arrow {
  width: 8px; height: 8px; subcontrol-origin: padding; subcontrol-position: right center; }
#moduleTree QHeaderView::down-arrow { image: url($icons/chevron-down.svg); }
#moduleTree QHeaderView::up-arrow { image: url($icons/chevron-up.svg); }
#moduleTree, #blockTable { border: 1px solid transparent; border-radius: 4px; }
#moduleTree:focus, #blockTable:focus { border-color: $accent; }
#moduleTree::item:selected, #blockTable::item:selected { background: $hover; color: $text; border: 0; }
#memoryTabs::tab { padding: 6px 10px; }
#memoryPage { padding-left: 0; text-align: left; }
#moreLevers { padding-left: 0; text-align: left; }
#message { background: $surface; }
#codeLine { background: $sunken; border: 1px solid $line; border-radius: 6px; }

#palette { background: $surface; border: 1px solid $line; }
#palette QListView { background: $surface; }
""")


def window_style(theme: Theme, *, scale: float = 1.0) -> str:
    """The rules with the colours of ``theme``; pixel lengths times ``scale``, except the one-pixel lines."""
    rules = _PIXELS.sub(lambda found: f"{_scaled(int(found[1]), scale)}px", _RULES.template)
    tokens = {field.name: getattr(theme, field.name) for field in dataclasses.fields(theme)}
    icons = str(resources.files("desktop_app.resources").joinpath("icons")).replace("\\", "/")
    return Template(rules).substitute(tokens, icons=icons)


def _scaled(pixels: int, scale: float) -> int:
    return pixels if pixels <= 1 else round(pixels * scale)
