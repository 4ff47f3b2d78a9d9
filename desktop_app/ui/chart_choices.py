"""What the user has chosen about the charts: which measure of load, and what is shaded. Remembered, and in one menu."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QObject, QPoint, Qt
from PySide6.QtWidgets import QMenu, QWidget

from desktop_app.services.facade import Workspace
from desktop_app.ui.actions import Actions
from desktop_app.ui.centre import Centre
from desktop_app.ui.charts.load import Load, why_not
from desktop_app.ui.charts.throttling import Throttle
from desktop_app.ui.commands import BY_ID
from desktop_app.ui.qt_settings import Settings
from desktop_app.ui.tank_reader import selected_card

LOADS: Final = {load: f"view.load_{load.value}" for load in Load}
SHADES: Final = {cause: f"view.shade_{cause.value}" for cause in Throttle}


class ChartChoices(QObject):
    """Stands between settings, actions and charts."""

    def __init__(
        self, centre: Centre, workspace: Workspace, actions: Actions, settings: Settings, window: QWidget
    ) -> None:
        super().__init__(window)
        self._centre = centre
        self._workspace = workspace
        self._actions = actions
        self._settings = settings
        self._window = window
        centre.chart_menu_wanted.connect(self.open_menu)
        self._apply()

    def _apply(self) -> None:
        load, shades = self._settings.load, self._settings.shades
        self._centre.charts.set_load(load)
        self._centre.set_shades(shades)
        self._actions.check(LOADS[load], True)
        for cause, command in SHADES.items():
            self._actions.check(command, cause in shades)

    def set_load(self, load: Load) -> None:
        self._settings.load = load
        self._apply()

    def toggle_shade(self, cause: Throttle) -> None:
        self._settings.shades = self._settings.shades ^ {cause}
        self._apply()

    def refresh(self) -> None:
        """Say of what cannot be chosen why not, in its name: menus show no tooltips to those who use keys."""
        from desktop_app.ui.charts import texts  # late: it is read with the first picture of the charts

        card = selected_card(self._workspace)
        readings = self._workspace.readings.get().get(card.uuid, {}) if card is not None else {}
        for load, command in LOADS.items():
            reason = why_not(load, card, readings)
            title = BY_ID[command].title
            text = title if reason is None else f"{title}  ({texts.load_missing(load, reason)})"
            if self._actions[command].text() != text:
                self._actions[command].setText(text)

    def open_menu(self, key: str, where: QPoint) -> None:
        """At the panel ``key``: its measures, where it has several, and what is shaded in all of them."""
        self.refresh()
        menu = QMenu(self._window)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.setObjectName("chartMenu")
        if key == "utilization":
            menu.addActions([self._actions[command] for command in LOADS.values()])
            menu.addSeparator()
        menu.addActions([self._actions[command] for command in reversed(SHADES.values())])
        menu.popup(where)
