"""Take a picture of the memory page with the estimate of a real recipe on a simulated card.

python packaging/memory_screenshot.py dark|light en|zh_CN WIDTHxHEIGHT FILE.png
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
CARD = "GeForce GTX 1660"
BATCH = 512
PATIENCE_S = 180.0  # the first trace on a machine builds its shim


def main() -> int:
    theme, language, size, target = sys.argv[1:5]
    with tempfile.TemporaryDirectory() as data:
        os.environ.setdefault("FLOODMARK_DATA", data)
        return take(theme, language, size, Path(target))


def take(theme: str, language: str, size: str, target: Path) -> int:
    from PySide6.QtCore import QCoreApplication

    from desktop_app.app import make_session
    from desktop_app.services.facade import EstimateState
    from desktop_app.training.config import RunConfig
    from desktop_app.ui.application import make_application
    from desktop_app.ui.main_window import MainWindow
    from desktop_app.ui.qt_settings import Settings
    from desktop_app.ui.theme import ThemeMode

    make_application(["floodmark"])
    session = make_session(CARD)
    settings = Settings(Path(os.environ["FLOODMARK_DATA"]) / "window.ini")
    window = MainWindow(session, settings=settings, theme=ThemeMode(theme), language=language)
    window.resize(*map(int, size.split("x")))
    window.show()

    def wait(ready: Callable[[], bool], patience_s: float) -> bool:
        end_s = time.monotonic() + patience_s
        while not ready() and time.monotonic() < end_s:
            QCoreApplication.processEvents()
        return ready()

    def answered() -> bool:
        status = session.estimate.get()
        return status.state is EstimateState.READY and not status.levers_pending

    window.charts.place()
    session.open()
    wait(lambda: bool(session.cards.get()), 30.0)
    window.side_panel.run.show_config(RunConfig(batch_size=BATCH, device="simulated", card=CARD))
    window.centre.show_memory()
    done = wait(answered, PATIENCE_S)
    page = window.centre.memory
    if done and page is not None:
        window.refresh_texts()
        page.modules.show_largest()
        page.modules.clear_choice()
        wait(lambda: page.step.canvas.is_sharp, 10.0)
        window.setFocus()
        done = window.grab_to(target)
    print(f"{target.name}: {'taken' if done else 'no estimate in time'}")
    session.close()
    return 0 if done else 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # the window's objects end with the process, in no order that Qt would like
