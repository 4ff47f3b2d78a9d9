"""What one frame of the timeline costs while it is panned and zoomed, and how long until its picture is sharp.

A transformer's step of 20,000 and of 100,000 blocks, at scales 1 and 2. Every frame shows another stretch, so that
every frame begins a new picture: the worst case. Prints CPU milliseconds as p50, p95 and worst, the ratio of the p95 to
that of a frame of the charts (``frame_cost.py``, 10,000 rows, 15 min), and the time to the sharp picture after the
last frame. Budget (design.md §11): no frame over 16 ms. Run: ``python benchmarks/timeline_cost.py``.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QApplication

from desktop_app.core.units import GIB
from desktop_app.ui import theme
from desktop_app.ui.memory.canvas import TimelineCanvas
from desktop_app.ui.memory.stretch import Stretch
from tests.ui.fake_timelines import bert_large_like

BUDGET_MS = 16.0
WIDTH, HEIGHT = 790, 300  # the canvas in a window of 1440 × 900
FRAMES = 120


def stretches(whole: Stretch) -> list[Stretch]:
    """In towards the peak, along the step, and out again."""
    shown, found = whole, []
    for frame in range(FRAMES):
        if frame < FRAMES // 3:
            shown = shown.zoomed(0.9, event=0.4 * whole.events, height_bytes=0.5 * whole.top)
        elif frame < 2 * FRAMES // 3:
            shown = shown.moved(0.07 * shown.width)
        else:
            shown = shown.zoomed(1.1, event=0.5 * whole.events, height_bytes=0.5 * whole.top)
        found.append(shown)
    return found


def sharp(canvas: TimelineCanvas) -> float:
    """CPU seconds until nothing is left to work out."""
    begun_s = time.process_time()
    while not canvas.is_sharp:
        QCoreApplication.processEvents()
    return time.process_time() - begun_s


def measure(canvas: TimelineCanvas) -> tuple[list[float], float]:
    frames_ms = []
    for shown in stretches(canvas.stretch):
        begun_s = time.process_time()
        canvas.show_stretch(shown)
        canvas.repaint()
        frames_ms.append(1e3 * (time.process_time() - begun_s))
    canvas.show_whole()
    canvas.repaint()
    return frames_ms, 1e3 * sharp(canvas)


def chart_frame_ms(app: QApplication) -> float:
    """The p95 of a frame of the charts in the same process."""
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    import frame_cost

    return frame_cost.measure(app, frame_cost.Bench(10_000), rows=10_000, frames=60, span_s=900.0).p95_ms


def main() -> int:
    app = QApplication.instance() or QApplication([])
    assert isinstance(app, QApplication)
    theme.apply(app, theme.DARK)
    charts_ms = chart_frame_ms(app)
    ratio = app.devicePixelRatio()
    print(f"scale {ratio:g}; a frame of the charts: p95 {charts_ms:.1f} ms; budget {BUDGET_MS:g} ms")
    print(f"{'blocks':>8} {'events':>8} {'p50':>6} {'p95':>6} {'worst':>6} {'of charts':>10} {'sharp':>7} {'still':>6}")
    worst_ms = 0.0
    for blocks in (20_000, 100_000):
        timeline = bert_large_like(blocks=blocks)
        canvas = TimelineCanvas(theme.DARK)
        canvas.resize(WIDTH, HEIGHT)
        canvas.set_timeline(timeline, room_bytes=6 * GIB)
        canvas.show()
        QCoreApplication.processEvents()
        sharp(canvas)
        frames_ms, sharp_ms = measure(canvas)
        begun_s = time.process_time()
        canvas.repaint()  # from the picture that is there
        still_ms = 1e3 * (time.process_time() - begun_s)
        p50, p95 = np.percentile(frames_ms, (50, 95))
        worst_ms = max(worst_ms, *frames_ms)
        print(
            f"{len(timeline.size_bytes):8,} {timeline.event_count:8,} {p50:6.1f} {p95:6.1f} {max(frames_ms):6.1f} "
            f"{p95 / charts_ms:9.2f}× {sharp_ms:7.1f} {still_ms:6.1f}"
        )
        canvas.close()
    print("within the budget" if worst_ms <= BUDGET_MS else "OVER THE BUDGET")
    return 0


if __name__ == "__main__":
    sys.exit(main())
