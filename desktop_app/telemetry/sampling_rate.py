"""How often the cards may be read."""

from __future__ import annotations

from typing import Final

from desktop_app.core.errors import ExitCode, FloodmarkError

SLOWEST_HZ: Final = 0.1
# Drivers hold a value for a sixth of a second and longer (utilisation repeats above about 6 Hz), and users
# report that reading at 10 Hz by a tool disturbs the card; one tick here costs the driver a handful of calls.
FASTEST_HZ: Final = 10.0


def interval_of(hz: float) -> float:
    """Seconds between ticks at ``hz``. Raises ``FloodmarkError`` for a rate that no card should be read at."""
    if not SLOWEST_HZ <= hz <= FASTEST_HZ:
        raise FloodmarkError(
            "telemetry.rate",
            f"The cards cannot be read {hz:g} times a second: faster reading disturbs the card and gives no newer "
            f"values, slower misses what happens; choose {SLOWEST_HZ:g} to {FASTEST_HZ:g} Hz.",
            exit_code=ExitCode.USAGE,
        )
    return 1.0 / hz
