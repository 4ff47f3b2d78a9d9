"""The style sheet over Fusion: flat panels, one-pixel lines, a focus ring on every control."""

from __future__ import annotations

import dataclasses
import re
from importlib import resources
from string import Template
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from desktop_app.ui.theme import Theme

_PIXELS: Final = re.compile(r"(\d+)px")

# A focused control's line is two pixels of accent; its padding gives the pixel back, so that nothing moves.
_RULES: Final = Template("""
QWidget { outline: 0; }
QMainWindow, QDialog { background: $window; }
QMainWindow::separator { background: transparent; width: 8px; height: 8px; }
QMainWindow::separator:hover { background: $line; }
QToolTip { background: $raised; color: $text; border: 1px solid $line; padding: 4px 6px; }

QFrame[panel="true"] { background: $surface; border: 1px solid $line; border-radius: 8px; }
QFrame[banner="danger"] { background: $banner_danger; border: 0; border-left: 5px solid $danger; }
QFrame[banner="warn"] { background: $banner_warn; border: 0; border-left: 5px solid $warn; }
QFrame[banner="ok"] { background: $banner_ok; border: 0; border-left: 5px solid $ok; }
QFrame[banner="calm"] { background: $surface; border: 0; border-left: 5px solid $line; }

QLabel { background: transparent; }
QLabel[role="muted"] { color: $muted; }
QLabel[role="faint"] { color: $faint; }
QLabel[role="accent"] { color: $accent; }
QLabel[role="ok"] { color: $ok; }
QLabel[role="warn"] { color: $warn; }
QLabel[role="danger"] { color: $danger; }
QLabel[chip="plain"], QFrame[chip="plain"] {
  background: $raised; border: 1px solid $line; border-radius: 13px; padding: 3px 10px; }
QLabel[chip="warn"], QFrame[chip="warn"] {
  color: $warn; border: 1px solid $warn; border-radius: 11px; padding: 2px 10px; }

QPushButton, QToolButton {
  background: $raised; color: $text; border: 1px solid $line; border-radius: 6px; padding: 5px 12px; }
QToolButton { padding: 5px 8px; }
QPushButton:hover, QToolButton:hover { background: $hover; }
QPushButton:pressed, QToolButton:pressed, QToolButton:checked { background: $line; }
QPushButton:focus, QToolButton:focus { border: 2px solid $accent; padding: 4px 11px; }
QToolButton:focus { padding: 4px 7px; }
QPushButton:disabled, QToolButton:disabled { color: $faint; background: $surface; border-color: $grid; }
QPushButton[kind="primary"] { background: $accent; color: $on_accent; border-color: $accent; font-weight: 600; }
QPushButton[kind="danger"] { background: $danger; color: $on_danger; border-color: $danger; font-weight: 600; }
QPushButton[kind="primary"]:hover, QPushButton[kind="danger"]:hover { border-color: $text; }
QPushButton[kind="primary"]:focus, QPushButton[kind="danger"]:focus { border: 2px solid $text; }
QPushButton[kind="primary"]:disabled, QPushButton[kind="danger"]:disabled {
  color: $faint; background: $surface; border-color: $grid; }
QPushButton[kind="quiet"], QToolButton[kind="quiet"] {
  background: transparent; border-color: transparent; color: $muted; }
QPushButton[kind="quiet"]:hover, QToolButton[kind="quiet"]:hover { color: $text; background: $raised; }
QPushButton[kind="quiet"]:focus, QToolButton[kind="quiet"]:focus { border-color: $accent; color: $text; }
QToolButton[kind="segment"] {
  background: transparent; border: 1px solid transparent; color: $muted; padding: 1px 6px; border-radius: 4px; }
QToolButton[kind="segment"]:hover { color: $text; background: $raised; }
QToolButton[kind="segment"]:checked { color: $text; background: $raised; border-color: $line; }
QToolButton[kind="segment"]:focus { border: 1px solid $accent; color: $text; padding: 1px 6px; }
QToolButton::menu-indicator { image: none; width: 0; }

QLineEdit, QComboBox, QSpinBox, QDoubleSpinBox, QPlainTextEdit, QTextEdit {
  background: $sunken; color: $text; border: 1px solid $line; border-radius: 6px; padding: 3px 8px;
  selection-background-color: $accent; selection-color: $on_accent; }
QLineEdit:focus, QComboBox:focus, QSpinBox:focus, QDoubleSpinBox:focus, QPlainTextEdit:focus, QTextEdit:focus {
  border: 2px solid $accent; padding: 2px 7px; }
QLineEdit:disabled, QComboBox:disabled, QSpinBox:disabled, QDoubleSpinBox:disabled {
  color: $faint; background: $surface; border-color: $grid; }
QLineEdit[invalid="true"], QComboBox[invalid="true"], QSpinBox[invalid="true"], QDoubleSpinBox[invalid="true"] {
  border-color: $danger; }
QComboBox::drop-down { border: 0; width: 22px; }
QComboBox::down-arrow { image: url($icons/chevron-down.svg); width: 10px; height: 10px; }
QComboBox QAbstractItemView { background: $surface; color: $text; border: 1px solid $line; padding: 4px;
  selection-background-color: $raised; selection-color: $text; }
QSpinBox::up-button, QDoubleSpinBox::up-button, QSpinBox::down-button, QDoubleSpinBox::down-button {
  border: 0; background: transparent; }
QSpinBox::up-arrow, QDoubleSpinBox::up-arrow { image: url($icons/chevron-up.svg); width: 8px; height: 8px; }
QSpinBox::down-arrow, QDoubleSpinBox::down-arrow { image: url($icons/chevron-down.svg); width: 8px; height: 8px; }
QCheckBox, QRadioButton { background: transparent; spacing: 8px; border: 1px solid transparent; border-radius: 4px; }
QCheckBox:focus, QRadioButton:focus { border-color: $accent; }
QCheckBox::indicator {
  width: 14px; height: 14px; border: 1px solid $muted; border-radius: 4px; background: $sunken; }
QCheckBox::indicator:checked {
  background: $accent; border-color: $accent; image: url($icons/check-$tone.svg); }
QCheckBox::indicator:disabled { border-color: $line; }

QTabWidget::pane { border: 0; border-top: 1px solid $line; }
QTabBar { background: transparent; qproperty-drawBase: 0; }
QTabBar::tab {
  background: transparent; color: $muted; border: 0; border-bottom: 2px solid transparent; padding: 7px 12px; }
QTabBar::tab:hover { color: $text; }
QTabBar::tab:selected { color: $text; border-bottom: 2px solid $accent; }
QTabBar::tab:focus { background: $raised; border-top-left-radius: 6px; border-top-right-radius: 6px; }
QDockWidget { color: $text; }
QDockWidget::title { background: transparent; padding: 6px 8px; }

QScrollArea, QAbstractScrollArea { border: 0; background: transparent; }
QTableView, QTreeView, QListView {
  background: $surface; alternate-background-color: $raised; border: 1px solid transparent; gridline-color: $grid;
  selection-background-color: $raised; selection-color: $text; }
QTableView:focus, QTreeView:focus, QListView:focus, QScrollArea:focus { border: 1px solid $accent; border-radius: 4px; }
QTableView::item:selected:active, QTreeView::item:selected:active, QListView::item:selected:active {
  background: $hover; color: $text; }
QTableView#compareTable::item { padding: 0 5px; }
QTableCornerButton::section { background: $surface; border: 0; border-bottom: 1px solid $line; }
QHeaderView { background: transparent; }
QHeaderView::section {
  background: $surface; color: $muted; border: 0; border-bottom: 1px solid $line; padding: 5px 8px; }
QScrollBar:vertical { background: transparent; width: 10px; margin: 0; }
QScrollBar:horizontal { background: transparent; height: 10px; margin: 0; }
QScrollBar::handle { background: $line; border-radius: 3px; margin: 2px; }
QScrollBar::handle:vertical { min-height: 24px; }
QScrollBar::handle:horizontal { min-width: 24px; }
QScrollBar::handle:hover { background: $faint; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }

QMenuBar { background: $surface; color: $text; }
QMenuBar::item { background: transparent; padding: 5px 10px; border-radius: 4px; }
QMenuBar::item:selected { background: $raised; }
QMenu { background: $surface; color: $text; border: 1px solid $line; padding: 4px; }
QMenu::item { padding: 5px 24px 5px 12px; border-radius: 4px; }
QMenu::item:selected { background: $hover; }
QMenu::item:disabled { color: $faint; }
QMenu::separator { height: 1px; background: $line; margin: 4px 8px; }
QProgressBar {
  background: $raised; border: 0; border-radius: 3px; min-height: 6px; max-height: 6px; color: transparent; }
QProgressBar::chunk { background: $accent; border-radius: 3px; }
QStatusBar { background: $surface; color: $muted; border-top: 1px solid $line; }
QStatusBar::item { border: 0; }
QSplitter::handle { background: transparent; }
""")


def style_sheet(theme: Theme, *, scale: float = 1.0) -> str:
    """The rules with the colours of ``theme``; pixel lengths times ``scale``, except the one-pixel lines."""
    rules = _PIXELS.sub(lambda found: f"{_scaled(int(found[1]), scale)}px", _RULES.template)
    tokens = {field.name: getattr(theme, field.name) for field in dataclasses.fields(theme)}
    icons = str(resources.files("desktop_app.resources").joinpath("icons")).replace("\\", "/")
    return Template(rules).substitute(tokens, icons=icons, tone="dark" if theme.is_dark else "light")


def _scaled(pixels: int, scale: float) -> int:
    return pixels if pixels <= 1 else round(pixels * scale)
