"""The physics of the simulated card: clock, power, heat and energy from the share of time it computes.

A model, not a random walk: the same duty gives the same curves. Constants are orders of magnitude of air-cooled cards;
where a capture or a measurement stands behind one, it is named.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

AMBIENT_C: Final = 25.0
# Idle draw over rated power: captures show 9 of 70 W (T4), 20 to 30 of 350 W (RTX 3090), about 50 of 400 W (A100).
IDLE_SHARE: Final = 0.10
# A busy training at full clock draws a little under the limit; pure matrix products measured 338 of 400 W (FlagPerf,
# A100), games and convolutions on GeForce sit at the limit.
LOAD_SHARE: Final = 0.97
# Share of a micro-step in which at least one kernel runs: launches leave gaps (95 to 99 % on healthy trainings).
KERNEL_SHARE: Final = 0.97
# Supply voltage over its value at boost clock, linear in the clock: about 0.65 V at the bottom to 1.05 V at the top.
_VOLTAGE_FLOOR: Final = 0.6
# GPU Boost takes one 15 MHz bin away for every 5 °C or so of warming.
_BIN_START_C: Final = 55.0
_BIN_MHZ_PER_C: Final = 3.0
# Stock coolers are laid out so that full load settles 20 to 25 °C below the slowdown threshold.
DESIGN_MARGIN_C: Final = 22.0
# Heat sink and die as one body: full load is reached with a time constant of one to two minutes.
TIME_CONSTANT_S: Final = 75.0
# Above the slowdown threshold the clock falls in proportion; captures put shutdown 3 °C higher.
_SLOWDOWN_SPAN_C: Final = 4.0
_SLOWEST_SHARE: Final = 0.2
# Fan curve: 30 % up to 40 °C, 100 % at the slowdown threshold, quadratic between.
_FAN_MIN: Final = 0.30
_FAN_START_C: Final = 40.0
# Part of the cooling that works without the fan.
_STILL_AIR_SHARE: Final = 0.4
# Clocks stay up this long after the last kernel (a card does not drop to P8 between two batches).
_CLOCKS_UP_S: Final = 2.0
_AVERAGE_S: Final = 1.0  # NVML field 185: a one-second average
_MAX_SUBSTEP_S: Final = 0.5  # a sixth of the closed loop's time constant while throttling: no oscillation


@dataclass(frozen=True, slots=True)
class CardPhysics:
    """Constants of one card. ``boost_clock_mhz`` and ``idle_clock_mhz`` in MHz, powers in W, temperatures in °C."""

    tdp_w: float
    power_limit_w: float
    boost_clock_mhz: float
    idle_clock_mhz: float = 300.0  # typical of P8 (210 to 345 MHz in captures)
    slowdown_c: float = 93.0
    ambient_c: float = AMBIENT_C
    fan: bool = True

    @property
    def idle_w(self) -> float:
        return IDLE_SHARE * self.tdp_w

    @property
    def load_w(self) -> float:
        """Draw at full duty and boost clock, before any cap."""
        return LOAD_SHARE * self.tdp_w

    @property
    def design_c(self) -> float:
        """Where full load settles in a room at ``AMBIENT_C``."""
        return self.slowdown_c - DESIGN_MARGIN_C

    @property
    def design_conductance_w_per_c(self) -> float:
        """Cooling at the design point: full-load power over its rise above room temperature."""
        return self.load_w / (self.design_c - AMBIENT_C)

    @property
    def heat_capacity_j_per_c(self) -> float:
        return TIME_CONSTANT_S * self.design_conductance_w_per_c


@dataclass(frozen=True, slots=True)
class CardState:
    """The card at one moment. Shares are of the last interval; ``energy_j`` counts from the start."""

    duty: float
    clock_mhz: float
    power_w: float
    power_average_w: float
    temperature_c: float
    fan_share: float
    throttle_power_share: float
    throttle_thermal_share: float
    energy_j: float
    idle: bool


class CardModel:
    """Advances one card in time. Starts idle and settled. Not shared between threads."""

    def __init__(self, physics: CardPhysics) -> None:
        self._physics = physics
        self._cap = clock_under_cap(physics)
        self._temperature_c = settled_temperature_c(physics, physics.idle_w)
        self._average_w = physics.idle_w
        self._energy_j = 0.0
        self._waiting_s = _CLOCKS_UP_S  # time since the last kernel
        self.state = self._snapshot(duty=0.0, clock=0.0, power_w=physics.idle_w, shares=(0.0, 0.0))

    def advance(self, duty: float, dt_s: float) -> CardState:
        """The card after ``dt_s`` seconds in which it computed for the share ``duty`` of the time.

        Power, throttling and clock are those of the interval; a long interval is cut so that the loop of heat and
        clock stays stable.
        """
        if dt_s <= 0:
            return self.state
        pieces = math.ceil(dt_s / _MAX_SUBSTEP_S)
        piece_s = dt_s / pieces
        power_w = clock = 0.0
        capped = slowed = 0  # pieces
        for _ in range(pieces):
            clock, by_power, by_heat = clock_share(self._physics, self._temperature_c, cap=self._cap)
            power_w += self._advance_piece(duty, clock, piece_s) / pieces
            capped += by_power
            slowed += by_heat
        shares = (duty * (capped / pieces), duty * (slowed / pieces))
        self.state = self._snapshot(duty=duty, clock=clock, power_w=power_w, shares=shares)
        return self.state

    def _advance_piece(self, duty: float, clock: float, dt_s: float) -> float:
        """Heat, energy and time of one piece at constant draw, which is returned (W)."""
        physics = self._physics
        power_w = physics.idle_w + duty * (busy_power_w(physics, clock) - physics.idle_w)
        conductance = conductance_w_per_c(physics, self._temperature_c)
        settled_c = physics.ambient_c + power_w / conductance
        decay = math.exp(-dt_s * conductance / physics.heat_capacity_j_per_c)
        self._temperature_c = settled_c + (self._temperature_c - settled_c) * decay
        self._average_w += (power_w - self._average_w) * -math.expm1(-dt_s / _AVERAGE_S)
        self._energy_j += power_w * dt_s
        self._waiting_s = 0.0 if duty > 0 else self._waiting_s + dt_s
        return power_w

    def _snapshot(self, *, duty: float, clock: float, power_w: float, shares: tuple[float, float]) -> CardState:
        idle = self._waiting_s >= _CLOCKS_UP_S
        return CardState(
            duty=duty,
            clock_mhz=self._physics.idle_clock_mhz if idle else clock * self._physics.boost_clock_mhz,
            power_w=power_w,
            power_average_w=self._average_w,
            temperature_c=self._temperature_c,
            fan_share=fan_share(self._physics, self._temperature_c),
            throttle_power_share=shares[0],
            throttle_thermal_share=shares[1],
            energy_j=self._energy_j,
            idle=idle,
        )


def busy_power_w(physics: CardPhysics, clock: float) -> float:
    """Draw while kernels run at ``clock`` (1 = boost): switching power f V², V linear in f, on top of idle."""
    return physics.idle_w + (physics.load_w - physics.idle_w) * _switching(clock)


def clock_share(physics: CardPhysics, temperature_c: float, *, cap: float) -> tuple[float, bool, bool]:
    """(clock while busy as a share of boost, held by the power limit, held by heat). ``cap``: ``clock_under_cap``."""
    bins = _BIN_MHZ_PER_C * max(0.0, temperature_c - _BIN_START_C) / physics.boost_clock_mhz
    over = (temperature_c - physics.slowdown_c) / _SLOWDOWN_SPAN_C
    by_heat = min(1.0, max(_SLOWEST_SHARE, 1.0 - over))
    clock = max(_SLOWEST_SHARE, min(1.0 - bins, by_heat, cap))
    return clock, cap <= clock and cap < 1.0, by_heat <= clock and by_heat < 1.0


def fan_share(physics: CardPhysics, temperature_c: float) -> float:
    """Fan speed in [0, 1]."""
    rise = (temperature_c - _FAN_START_C) / (physics.slowdown_c - _FAN_START_C)
    return _FAN_MIN + (1.0 - _FAN_MIN) * min(1.0, max(0.0, rise)) ** 2


def conductance_w_per_c(physics: CardPhysics, temperature_c: float) -> float:
    """Heat carried away per degree above the room: a part in still air, the rest with the fan's speed.

    A card without a fan of its own sits in a server's constant stream of air.
    """
    if not physics.fan:
        return physics.design_conductance_w_per_c
    relative = fan_share(physics, temperature_c) / fan_share(physics, physics.design_c)
    return physics.design_conductance_w_per_c * (_STILL_AIR_SHARE + (1.0 - _STILL_AIR_SHARE) * relative)


def settled_temperature_c(physics: CardPhysics, power_w: float) -> float:
    """Where constant power settles: the root of P = G(T) (T - ambient), by bisection."""
    low, high = physics.ambient_c, physics.ambient_c + 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        carried_w = conductance_w_per_c(physics, middle) * (middle - physics.ambient_c)
        low, high = (middle, high) if carried_w < power_w else (low, middle)
    return (low + high) / 2


def _switching(clock: float) -> float:
    voltage = _VOLTAGE_FLOOR + (1.0 - _VOLTAGE_FLOOR) * clock
    return clock * voltage**2


def clock_under_cap(physics: CardPhysics) -> float:
    """The highest clock whose busy draw stays under the power limit."""
    if busy_power_w(physics, 1.0) <= physics.power_limit_w:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if busy_power_w(physics, middle) <= physics.power_limit_w else (low, middle)
    return low
