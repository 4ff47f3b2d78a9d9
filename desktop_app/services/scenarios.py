"""The demonstrations: real trainings on small data, three of them with a real mistake in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from desktop_app.core.errors import ConfigError, FloodmarkError
from desktop_app.core.units import GIB, format_bytes
from desktop_app.training.config import RunConfig

DEFAULT_SCENARIO: Final = "cats-dogs"
# What a demonstration needs beside what its card holds: the program, torch and the data (0.4 GiB measured), and air.
_BESIDE_BYTES: Final = 2 * GIB


@dataclass(frozen=True, slots=True)
class Scenario:
    """One demonstration. ``fault`` names the mistake in ``training.recipes.faults``; ``fills_card``: the training
    really holds as much memory as the simulated card, in RAM."""

    name: str
    config: RunConfig
    fault: str | None = None
    fills_card: bool = False


SCENARIOS: Final = {
    scenario.name: scenario
    for scenario in (
        Scenario("cats-dogs", RunConfig(name="cats-dogs", epochs=1000, schedule_epochs=20, checkpoint_every_epochs=5)),
        Scenario(
            "leak",
            # Paced, so that an audience can follow and a slow machine still gets there in time.
            RunConfig(name="leak", epochs=200, batch_size=64, max_steps_per_s=9.0, checkpoint_every_epochs=5),
            fault="keeps-loss-graph",
            fills_card=True,
        ),
        Scenario(
            "first-step",
            RunConfig(name="first-step", model="wide-mlp", hidden=18432, depth=2, batch_size=32, warmup_steps=0),
            fills_card=True,
        ),
        Scenario(
            "too-big",
            RunConfig(name="too-big", image_size=176, width=16, batch_size=1280, epochs=10),
            fills_card=True,
        ),
    )
}


def find_scenario(name: str) -> Scenario:
    """The scenario of that name; ``ConfigError`` names all of them."""
    try:
        return SCENARIOS[name]
    except KeyError:
        raise ConfigError(
            "demo.unknown_scenario",
            f"There is no demonstration {name!r}. Choose one of: {', '.join(SCENARIOS)}.",
            params={"name": name},
        ) from None


def check_memory(scenario: Scenario, *, capacity_bytes: int, available_bytes: int | None) -> None:
    """A simulated card's contents are real and lie in RAM. Refuse before the system begins to swap.

    Raises ``FloodmarkError`` when less than the card's capacity and some air is available.
    """
    if not scenario.fills_card or available_bytes is None:
        return
    needed_bytes = capacity_bytes + _BESIDE_BYTES
    if available_bytes < needed_bytes:
        raise FloodmarkError(
            "demo.not_enough_ram",
            f"The demonstration {scenario.name} fills the simulated card in RAM: {format_bytes(needed_bytes)} are "
            f"needed, {format_bytes(available_bytes)} are free. Choose a smaller card, such as "
            '--card "GeForce GTX 1050 Ti", or close other programs.',
            params={"needed_bytes": needed_bytes, "available_bytes": available_bytes},
        )
