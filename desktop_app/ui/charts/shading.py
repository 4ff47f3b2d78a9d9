"""What is shaded in a chart, and what its read-out says of it."""

from __future__ import annotations

from collections.abc import Iterable

from desktop_app.core.store import History
from desktop_app.ui.charts import texts
from desktop_app.ui.charts.shades import TINTS, Band
from desktop_app.ui.charts.throttling import THRESHOLD_PERCENT, Throttle, episodes
from desktop_app.ui.charts.time_axis import View


def bands_in(
    history: History | None, view: View, causes: frozenset[Throttle], *, now_s: float, pixels: float
) -> tuple[Band, ...]:
    """The time in view in which one of ``causes`` held back the card of ``history``. ``pixels``: width of the view."""
    if history is None or not causes or not history.version:
        return ()
    start_s = view.anchor_s + view.left
    end_s = min(view.anchor_s + view.right, max(now_s, start_s))
    pixels *= (end_s - start_s) / view.width
    found = [
        episode
        for cause in Throttle
        if cause in causes
        for episode in episodes(history, cause, start_s, end_s, pixels=pixels)
    ]
    return tuple(
        Band(episode.start_s - view.anchor_s, episode.end_s - view.anchor_s, episode.cause) for episode in found
    )


def causes_at(bands: Iterable[Band], x: float) -> frozenset[Throttle]:
    """What is shaded ``x`` seconds from the anchor."""
    return frozenset(band.cause for band in bands if band.left <= x <= band.right)


def said_of(causes: frozenset[Throttle], history: History | None, t_s: float) -> tuple[tuple[str, str, str], ...]:
    """A row of the read-out for each of ``causes``: name, how much of the time, colour."""
    rows = []
    for cause in sorted(causes):
        share = None if history is None else history.value_at(cause.column, t_s)
        rows.append((texts.readout("throttle"), texts.throttled(cause, share, THRESHOLD_PERCENT), TINTS[cause]))
    return tuple(rows)
