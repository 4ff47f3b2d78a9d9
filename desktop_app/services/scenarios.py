"""The demonstrations: real trainings on small data, all but one with a real mistake in it, one for each cause."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from desktop_app.core.errors import ConfigError, FloodmarkError
from desktop_app.core.forecasts import Cause
from desktop_app.core.load import Neighbour
from desktop_app.core.units import GIB, MIB, format_bytes
from desktop_app.telemetry.catalogue import find_simulable_card
from desktop_app.training.config import RunConfig

DEFAULT_SCENARIO: Final = "cats-dogs"
# What a demonstration needs beside what its card holds: the program, torch and the data (0.4 GiB measured), and air.
_BESIDE_BYTES: Final = 2 * GIB
# A card small enough for a laptop with 8 GiB of RAM: what it holds is real and lies there.
_SMALL_CARD: Final = "GeForce GTX 1050 Ti capped at 0.75 GiB"
_SMALLEST_CARD: Final = "GeForce GTX 1050 Ti capped at 0.5 GiB"
_WINDOWS: Final = " under Windows"


@dataclass(frozen=True, slots=True)
class Stage:
    """What is around the training. Everything here is simulated and says so where it shows.

    ``neighbour``: another process on the simulated card. ``host_room_bytes``: how much more RAM the program may take
    on a simulated small computer. ``resumes``: a short training before it makes the checkpoint that it starts from.
    """

    neighbour: Neighbour | None = None
    host_room_bytes: int | None = None
    resumes: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """One demonstration. ``fault`` names the mistake in ``training.recipes.faults``; ``fills_card``: the training
    really holds as much memory as the simulated card, in RAM.

    ``summary`` is the line of ``floodmark demo --list``; windows translate by ``name``. ``cause`` is what must be
    alerted first; ``None``: nothing may be, or (``too-big``) the estimate says it.
    """

    name: str
    config: RunConfig
    summary: str
    fault: str | None = None
    fills_card: bool = False
    cause: Cause | None = None
    runs_out: bool = False  # the run ends for want of memory, when it is left alone
    stage: Stage = field(default_factory=Stage)


def _small(name: str, **settings: object) -> RunConfig:
    """A config on the small simulated card. Paced, so that an audience can follow and two cores can keep up."""
    fixed = {"device": "simulated", "card": _SMALL_CARD, "epochs": 200}
    return RunConfig(name=name, **{**fixed, **settings})  # type: ignore[arg-type]


_ALL: Final = (
    Scenario(
        "cats-dogs",
        RunConfig(name="cats-dogs", epochs=1000, schedule_epochs=20, checkpoint_every_epochs=5),
        "healthy: learns cats and dogs, and nothing is alerted",
    ),
    Scenario(
        "first-optimizer-step",
        _small("first-optimizer-step", model="wide-mlp", hidden=5200, batch_size=32, warmup_steps=0),
        "fits until Adam makes its state in the first optimizer step",
        cause=Cause.FIRST_OPTIMIZER_STEP,
        fills_card=True,
        runs_out=True,
    ),
    Scenario(
        "batch-shape",
        _small("batch-shape", card=_SMALLEST_CARD, image_size=80, width=4, batch_size=32, max_steps_per_s=3.0),
        "data sorted by size: the largest batch comes last and does not fit",
        fault="largest-batches-last",
        cause=Cause.BATCH_SHAPE,
        fills_card=True,
        runs_out=True,
    ),
    Scenario(
        "leak",
        RunConfig(
            name="leak",
            epochs=200,
            batch_size=64,
            width=8,
            image_size=56,
            max_steps_per_s=9.0,
            checkpoint_every_epochs=5,
        ),
        "keeps every loss with its graph: memory grows from step to step",
        fault="keeps-loss-graph",
        cause=Cause.LEAK,
        fills_card=True,
        runs_out=True,
    ),
    Scenario(
        "fragmentation",
        _small(
            "fragmentation",
            card=_SMALLEST_CARD,
            image_size=192,
            width=8,
            hidden=16,
            batch_size=16,
            augment=False,
            max_steps_per_s=4.0,
        ),
        "small tensors kept between large ones: half of the memory is free and none of it fits",
        fault="scatters-small-blocks",
        cause=Cause.FRAGMENTATION,
        fills_card=True,
        runs_out=True,
    ),
    Scenario(
        "neighbour",
        _small("neighbour", image_size=64, width=8, batch_size=32, max_steps_per_s=5.0),
        "another process on the card (simulated) grows, and the run gives back what it will need again",
        fault="empties-cache",
        cause=Cause.NEIGHBOUR,
        fills_card=True,
        runs_out=True,
        stage=Stage(
            neighbour=Neighbour("another training", first_bytes=64 * MIB, bytes_per_s=10 * MIB, delay_s=5.0),
        ),
    ),
    Scenario(
        "validation",
        _small("validation", card=_SMALLEST_CARD, width=8, batch_size=64, max_steps_per_s=6.0),
        "validation keeps its predictions with their graph: more with every epoch",
        fault="keeps-predictions",
        cause=Cause.VALIDATION,
        fills_card=True,
        runs_out=True,
    ),
    Scenario(
        "checkpoint-save",
        _small(
            "checkpoint-save",
            card=_SMALLEST_CARD,
            model="wide-mlp",
            hidden=2100,
            optimizer="sgd",
            batch_size=160,
            max_steps_per_s=3.0,
        ),
        "keeps a copy of the weights on the card at every checkpoint",
        fault="keeps-saved-copies",
        cause=Cause.CHECKPOINT_SAVE,
        fills_card=True,
        runs_out=True,
    ),
    Scenario(
        "resume",
        _small("resume", model="wide-mlp", hidden=3750, batch_size=16, max_steps_per_s=6.0),
        "starts from a checkpoint and keeps it on the card: a fresh run would fit",
        fault="keeps-checkpoint",
        cause=Cause.RESUME,
        fills_card=True,
        runs_out=True,
        stage=Stage(resumes=True),
    ),
    Scenario(
        "outside-allocator",
        _small("outside-allocator", width=8, batch_size=32, max_steps_per_s=5.0),
        "compiles and loads one more kernel in each step: memory that PyTorch does not count",
        fault="compiles-each-step",
        cause=Cause.OUTSIDE_ALLOCATOR,
        runs_out=True,
    ),
    Scenario(
        "host-memory",
        _small("host-memory", image_size=28, batch_size=16, max_steps_per_s=4.0),
        "the loader keeps every image in RAM (of a simulated small computer): the run fails, exit code 1",
        fault="caches-samples",
        cause=Cause.HOST_MEMORY,
        runs_out=True,
        stage=Stage(host_room_bytes=704 * MIB),
    ),
    Scenario(
        "spill",
        replace(
            _small("spill", model="wide-mlp", hidden=3000, batch_size=8, max_steps_per_s=4.0),
            card=f"{_SMALLEST_CARD}{_WINDOWS}",
        ),
        "Windows moves memory to RAM when the card is full: no error, steps several times slower",
        fault="late-teacher",
        cause=Cause.SPILL,
        fills_card=True,
    ),
    Scenario(
        "too-big",
        RunConfig(name="too-big", image_size=176, width=16, batch_size=1280, epochs=10, augment=False),
        "a batch that the estimate refuses before the first step",
        fills_card=True,
        runs_out=True,
    ),
)
SCENARIOS: Final = {scenario.name: scenario for scenario in _ALL}
# The first step on a whole card, as in the first release: it needs 8 GiB of RAM.
_OLDER: Final = {
    "first-step": Scenario(
        "first-step",
        RunConfig(name="first-step", model="wide-mlp", hidden=18432, depth=2, batch_size=32, warmup_steps=0),
        "as first-optimizer-step, on a whole card",
        cause=Cause.FIRST_OPTIMIZER_STEP,
        fills_card=True,
        runs_out=True,
    )
}


def find_scenario(name: str) -> Scenario:
    """The scenario of that name, with hyphens or underscores; ``ConfigError`` names all of them."""
    plain = name.strip().lower().replace("_", "-")
    found = SCENARIOS.get(plain) or _OLDER.get(plain)
    if found is None:
        raise ConfigError(
            "demo.unknown_scenario",
            f"There is no demonstration {name!r}. Choose one of: {', '.join(SCENARIOS)}.",
            params={"name": name},
        )
    return found


def on_card(scenario: Scenario, card_name: str) -> Scenario:
    """The same on a simulated card that somebody has named, under Windows where that is the point."""
    if scenario.config.card is None:
        return scenario
    ending = _WINDOWS if scenario.config.card.endswith(_WINDOWS) and not card_name.endswith(_WINDOWS) else ""
    return replace(scenario, config=replace(scenario.config, card=f"{card_name}{ending}"))


def list_scenarios() -> str:
    """One line for each demonstration."""
    width = max(map(len, SCENARIOS))
    return "\n".join(f"{scenario.name:<{width}}  {scenario.summary}" for scenario in SCENARIOS.values())


def check_memory(scenario: Scenario, *, capacity_bytes: int, available_bytes: int | None) -> None:
    """A simulated card's contents are real and lie in RAM. Refuse before the system begins to swap.

    ``capacity_bytes`` is that of the card in view; a scenario with a card of its own fills that one. Raises
    ``FloodmarkError`` when less than the card's capacity and some air is available.
    """
    if not scenario.fills_card or available_bytes is None:
        return
    if scenario.config.card is not None:
        capacity_bytes = find_simulable_card(scenario.config.card).total_bytes or capacity_bytes
    needed_bytes = capacity_bytes + _BESIDE_BYTES
    if available_bytes < needed_bytes:
        raise FloodmarkError(
            "demo.not_enough_ram",
            f"The demonstration {scenario.name} fills the simulated card in RAM: {format_bytes(needed_bytes)} are "
            f"needed, {format_bytes(available_bytes)} are free. Choose a smaller card, such as "
            '--card "GeForce GTX 1050 Ti", or close other programs.',
            params={"needed_bytes": needed_bytes, "available_bytes": available_bytes},
        )
