"""From growth, demand and room to the number of steps until the allocator finds no more memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from desktop_app.forecast.demand import SEGMENT_BYTES, Demand
from desktop_app.forecast.outlook import StepsToGo
from desktop_app.forecast.reserve_risers import Brim
from desktop_app.forecast.trend import Trend

# Share of the memory that is idle at a peak which still will be of use, and its deviation. While the allocator has to
# ask the driver for all growth, nothing idle is of use to steps of one shape; varied ones leave some wholly free
# segments, which go back when the driver refuses (facts/allocator.md rule 8). While it does not ask: any share.
_USED_WHILE_ASKING: Final = (0.0, 0.02)
_USED_WHEN_VARIED: Final = (0.25, 0.3)
_USED_WHILE_NOT_ASKING: Final = (0.5, 1.0 / math.sqrt(12.0))
_NOISE_WHILE_ASKING: Final = 0.5  # of the troughs' noise: reserved memory only follows their highest
_IDLE_DOUBT: Final = 0.3  # relative deviation of the growth that is not of live bytes: it comes in whole segments
_SELECTED: Final = 1.15  # a slope is looked at because it is large; from the interval's coverage on made-up leaks
_MODEL_SPREAD: Final = 0.02  # of the steps to go, for what no fit can see
_HIGHEST_NOISE: Final = 1.5  # deviations
_RISER_TIMING: Final = 0.05  # of their distance: how much the next riser may be early or late even after regular ones
_ONE_MORE: Final = 0.35  # deviation in risers: one more or less than the room says is the usual error
_MAX_SPREAD: Final = 1.5


@dataclass(frozen=True, slots=True)
class Exhaustion:
    """What the peak of a step takes of the allocator's room now, how fast that grows, and when the room is gone."""

    held_bytes: float
    headroom_bytes: float
    bytes_per_step: float
    to_go: StepsToGo


def exhaustion(trend: Trend, demand: Demand, room_bytes: float, brim: Brim | None = None) -> Exhaustion:
    """``room_bytes``: the most that the allocator can reserve. ``brim``: how much of it can be used, where known."""
    if brim is not None:
        return _to_brim(trend, room_bytes, brim)
    needed = trend.level_bytes + demand.typical_bytes
    idle = max(0.0, trend.reserved_bytes - trend.level_bytes - demand.high_bytes)
    share, doubt = _idle_of_use(trend, demand)
    noise = trend.noise_bytes * (_NOISE_WHILE_ASKING if trend.reserved_slope else 1.0)
    if trend.stairs is not None and trend.reserved_slope:
        share, doubt = 0.0, trend.reserved_sd_bytes / idle if idle else 0.0
    held = max(needed, trend.reserved_bytes - share * idle)
    headroom = max(0.0, room_bytes - held)
    speed = max(trend.slope, trend.reserved_slope)
    if trend.stairs is not None:
        to_go = _stairs_to_go(trend, headroom, doubt_bytes=doubt * idle)
    else:
        to_go = _line_to_go(trend, headroom, speed, level_sd_bytes=math.hypot(doubt * idle, noise))
    return Exhaustion(held, headroom, speed, to_go)


def _to_brim(trend: Trend, room_bytes: float, brim: Brim) -> Exhaustion:
    noise = _HIGHEST_NOISE * trend.noise_bytes  # the highest of noisy peaks gets there first
    headroom = max(0.0, brim.live_bytes - brim.peak_bytes - noise)
    doubt = math.hypot(brim.sd_bytes, trend.noise_bytes)
    if trend.stairs is not None:
        to_go = _stairs_to_go(trend, headroom, doubt_bytes=doubt)
    else:
        to_go = _line_to_go(trend, headroom, trend.slope, level_sd_bytes=doubt)
    return Exhaustion(room_bytes - headroom, headroom, trend.slope, to_go)


def _idle_of_use(trend: Trend, demand: Demand) -> tuple[float, float]:
    if trend.reserved_slope == 0.0:
        return _USED_WHILE_NOT_ASKING
    return _USED_WHEN_VARIED if demand.varied else _USED_WHILE_ASKING


def _line_to_go(trend: Trend, headroom: float, speed: float, *, level_sd_bytes: float) -> StepsToGo:
    median = headroom / speed
    if median <= 0:
        return StepsToGo(0.0, 0.0)
    beyond_live = speed - trend.slope
    from_slope = math.hypot(_SELECTED * trend.slope_sd, _IDLE_DOUBT * beyond_live) / speed
    from_wander = trend.wander_bytes / (speed * math.sqrt(median))
    from_level = math.hypot(level_sd_bytes, SEGMENT_BYTES / math.sqrt(12.0)) / headroom
    spread = math.hypot(from_slope, from_wander, from_level, _MODEL_SPREAD)
    return StepsToGo(median, min(spread, _MAX_SPREAD))


def _stairs_to_go(trend: Trend, headroom: float, *, doubt_bytes: float) -> StepsToGo:
    stairs = trend.stairs
    assert stairs is not None
    median = stairs.steps_until_full(headroom)
    timing = math.hypot(_RISER_TIMING + stairs.distance_spread, _ONE_MORE) * stairs.distance_steps / max(median, 1.0)
    # Whether it is one riser more or less is the largest doubt of all when the room is near a multiple of them.
    doubt_bytes = math.hypot(doubt_bytes, SEGMENT_BYTES, stairs.jump_spread * headroom / math.sqrt(stairs.risers))
    risers = stairs.steps_until_full(headroom + doubt_bytes) - stairs.steps_until_full(max(headroom - doubt_bytes, 0.0))
    return StepsToGo(median, min(math.hypot(stairs.spread, timing, 0.5 * risers / max(median, 1.0)), _MAX_SPREAD))
