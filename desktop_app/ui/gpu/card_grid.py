"""All cards side by side, in as many columns as there is room for."""

from __future__ import annotations

import math
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QGridLayout, QScrollArea, QWidget

from desktop_app.services.facade import Workspace
from desktop_app.ui.gpu.card_tile import CardTile
from desktop_app.ui.gpu.tile_reader import TileReader
from desktop_app.ui.texts import gpu
from desktop_app.ui.theme import Theme

_GAP: Final = 8


class CardGrid(QScrollArea):
    """``card_chosen`` carries the UUID of the tile that was clicked. Runs in: GUI thread."""

    card_chosen = Signal(str)

    def __init__(self, workspace: Workspace, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._reader = TileReader(workspace)
        self._columns = 0
        self.tiles: list[CardTile] = []
        self._content = QWidget()
        self._content.setObjectName("panelContent")
        self._grid = QGridLayout(self._content)
        self._grid.setContentsMargins(1, 1, 1, 1)
        self._grid.setSpacing(_GAP)
        self._grid.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidget(self._content)
        self.retranslate()

    def refresh(self, chosen: str | None) -> None:
        """Newest values; tiles are made anew only when the cards are others."""
        states = self._reader.read()
        self._reader.forget_the_found()
        if [tile.uuid for tile in self.tiles] != [state.uuid for state in states]:
            self._remove()
            self.tiles = [CardTile(state, self._theme, self._content) for state in states]
            for tile in self.tiles:
                tile.clicked.connect(lambda _checked=False, tile=tile: self._on_clicked(tile))
                tile.moved.connect(lambda step, tile=tile: self._on_moved(tile, step))
            self._columns = 0
            self._arrange()
        for tile, state in zip(self.tiles, states, strict=True):
            tile.show_state(state)
            tile.setChecked(tile.uuid == chosen)

    def _remove(self) -> None:
        for tile in self.tiles:
            self._grid.removeWidget(tile)
            tile.hide()
            tile.deleteLater()

    def _on_clicked(self, tile: CardTile) -> None:
        for other in self.tiles:
            other.setChecked(other is tile)
        self.card_chosen.emit(tile.uuid)

    def _on_moved(self, tile: CardTile, step: tuple[int, int]) -> None:
        place = self.tiles.index(tile) + step[0] + step[1] * self._columns
        if 0 <= place < len(self.tiles):
            self.tiles[place].setFocus(Qt.FocusReason.TabFocusReason)
            self.ensureWidgetVisible(self.tiles[place])

    # -- columns --------------------------------------------------------------------------------------------------

    @property
    def columns(self) -> int:
        return self._columns

    def _arrange(self) -> None:
        if not self.tiles:
            return
        least = self.tiles[0].minimumSizeHint().width()
        columns = columns_for(len(self.tiles), width=self.viewport().width() - 2, least=least, gap=_GAP)
        if columns == self._columns:
            return
        for column in range(max(columns, self._columns)):
            self._grid.setColumnStretch(column, 1 if column < columns else 0)
        self._columns = columns
        for place, tile in enumerate(self.tiles):
            self._grid.addWidget(tile, place // columns, place % columns, Qt.AlignmentFlag.AlignTop)
            tile.show()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def set_theme(self, theme: Theme) -> None:
        self._theme = theme
        for tile in self.tiles:
            tile.set_theme(theme)
        self._columns = 0  # sizes follow the type
        self._arrange()

    def retranslate(self) -> None:
        self.setAccessibleName(gpu.parts()[1])


def columns_for(count: int, *, width: float, least: float, gap: float) -> int:
    """As many columns as fit, then as few as make the same number of rows, so that the last row is not nearly empty."""
    fitting = max(1, int((width + gap) // (least + gap)))
    rows = math.ceil(count / fitting)
    return max(1, math.ceil(count / rows))
