"""Draw every state of the window from made-up workspaces, for a person to look at. No torch, no card, no threads.

    python packaging/window_states.py FOLDER [--state NAME ...] [--theme dark|light] [--lang en|zh_CN]
                                      [--size 1440x900] [--scale 2]

States are those of ``tests/ui/fake_data.py`` by the tab that matters, and the dialogs.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

if TYPE_CHECKING:
    from PySide6.QtWidgets import QWidget

    from desktop_app.ui.main_window import MainWindow
    from tests.ui.fake_workspace import FakeWorkspace

TABS = {
    "leak": "ALERTS",
    "several_alerts": "ALERTS",
    "validation_ahead": "ALERTS",
    "host_full": "ALERTS",
    "rescued": "POST_MORTEM",
    "out_of_memory": "POST_MORTEM",
}
MESSAGE = (
    "RuntimeError: CUDA out of memory. Tried to allocate 1.22 GiB (GPU 0; 10.76 GiB total capacity; 6.90 GiB already "
    "allocated; 398.62 MiB free; 9.20 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try "
    "setting max_split_size_mb to avoid fragmentation."
)
NEIGHBOUR = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 23.64 GiB "
    "of which 120.00 MiB is free. Process 4711 has 9.80 GiB memory in use. Including non-PyTorch memory, this process "
    "has 13.72 GiB memory in use. Of the allocated memory 12.90 GiB is allocated by PyTorch, and 310.00 MiB is "
    "reserved by PyTorch but unallocated."
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--state", nargs="*")
    parser.add_argument("--theme", choices=("dark", "light"), default="dark")
    parser.add_argument("--lang", choices=("en", "zh_CN"), default="en")
    parser.add_argument("--size", default="1440x900")
    parser.add_argument("--scale", default="1")
    options = parser.parse_args()
    os.environ["QT_SCALE_FACTOR"] = options.scale
    options.folder.mkdir(parents=True, exist_ok=True)
    draw(options)
    return 0


def draw(options: argparse.Namespace) -> None:
    from desktop_app.ui.application import make_application
    from tests.ui.fake_workspace import FakeState

    app = make_application(["floodmark"])
    names = options.state or [*(state.value for state in FakeState if state is not FakeState.LONG_RUN), *DIALOGS]
    suffix = f"{options.theme}-{options.lang}-{options.size}" + ("" if options.scale == "1" else f"@{options.scale}")
    with tempfile.TemporaryDirectory() as settings:
        for name in names:
            target = options.folder / f"{name}-{suffix}.png"
            opened = DIALOGS.get(name)
            state = name if opened is None else opened[0]
            window, workspace = make_window(state, options, Path(settings) / f"{name}.ini")
            settle()
            if opened is None:
                from desktop_app.ui.side_panel import Tab

                if name in TABS:
                    window.open_tab(Tab[TABS[name]])
                settle()
                window.grab_to(target)
            else:
                dialog = opened[1](window, workspace)
                settle()
                dialog.grab().save(str(target))
                dialog.close()
            print(target.name)
            window.pulse.stop()
            window.hide()
    del app


def make_window(state: str, options: argparse.Namespace, settings: Path) -> tuple[MainWindow, FakeWorkspace]:
    from desktop_app.ui.main_window import MainWindow
    from desktop_app.ui.qt_settings import Settings
    from desktop_app.ui.theme import ThemeMode
    from tests.ui.fake_workspace import FakeWorkspace

    workspace = FakeWorkspace(state)
    window = MainWindow(workspace, settings=Settings(settings), theme=ThemeMode(options.theme), language=options.lang)
    window.resize(*map(int, options.size.split("x")))
    window.show()
    window.charts.place()
    return window, workspace


def settle() -> None:
    from PySide6.QtCore import QCoreApplication, QEvent

    for _ in range(4):
        QCoreApplication.processEvents()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def explained(text: str) -> Callable[[MainWindow, FakeWorkspace], QWidget]:
    def opened(window: MainWindow, _workspace: FakeWorkspace) -> QWidget:
        from desktop_app.ui.explain_dialog import ExplainDialog

        window.dialogs.explain(text)
        dialog = window.findChild(ExplainDialog)
        assert dialog is not None
        return dialog

    return opened


def settings_of(window: MainWindow, _workspace: FakeWorkspace) -> QWidget:
    from desktop_app.ui.settings_dialog import SettingsDialog

    window.dialogs.show_settings()
    dialog = window.findChild(SettingsDialog)
    assert dialog is not None
    return dialog


def demos_of(window: MainWindow, _workspace: FakeWorkspace) -> QWidget:
    from desktop_app.ui.demos_dialog import DemosDialog

    window.dialogs.show_demos()
    dialog = window.findChild(DemosDialog)
    assert dialog is not None
    return dialog


# Name: (state of the window behind it, what opens it).
DIALOGS: dict[str, tuple[str, Callable[[MainWindow, FakeWorkspace], QWidget]]] = {
    "explain-empty": ("nothing", explained("")),
    "explain-fragmentation": ("nothing", explained(MESSAGE)),
    "explain-neighbour": ("nothing", explained(NEIGHBOUR)),
    "explain-unrecognised": ("nothing", explained("Traceback (most recent call last):\nKeyError: 'loss'")),
    "explain-overflow": ("nothing", explained("CUDA out of memory. Tried to allocate more than 1EB memory.")),
    "settings": ("nothing", settings_of),
    "demos": ("nothing", demos_of),
    "demos-active": ("healthy", demos_of),
}

if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the windows' objects end with the process, in no order that Qt would like
