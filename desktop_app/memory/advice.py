"""What would lower a training's peak, each found by tracing the changed training, no rule of thumb. Torch-free."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from desktop_app.core.forecasts import Lever
from desktop_app.memory.allocator_settings import DEFAULT_SETTINGS, AllocatorSettings
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.estimate_outlook import Outlook
from desktop_app.memory.estimate_steady import steady
from desktop_app.memory.estimate_table import EventTable
from desktop_app.memory.estimate_unknowns import Setting
from desktop_app.memory.trace_data import Trace
from desktop_app.memory.trace_errors import TracerError, UntraceableError
from desktop_app.memory.training_spec import CHECKPOINTING, DEFAULT_OPTIMIZER, SHARDING, TrainingSpec

EXPANDABLE: Final = "expandable_segments"

# bf16 is computed in hardware from Ampere on, and tensor cores came with Volta (CUDA C++ Programming Guide).
_BF16: Final = (8, 0)
_TENSOR_CORES: Final = (7, 0)
_LORA_RANK: Final = 8
_WORLD_SIZES: Final = (8, 4, 2)
_EIGHT_BIT: Final = {"adam": "adam8bit", "adamw": "adamw8bit"}
# Keep two values per parameter: what Adafactor and SGD do without.
_TWO_STATES: Final = frozenset({"adam", "adamw", "adamax", "nadam", "radam", "adadelta"})
_FUSED: Final = frozenset({"adam", "adamw", "sgd", "adagrad"})  # torch.optim: those with CUDA kernels of their own
_WITHOUT_FOREACH: Final = frozenset({"adam8bit", "adamw8bit"})  # one kernel per parameter
_HALF: Final = frozenset({"bf16", "fp16", "pure_bf16", "pure_fp16"})
_STOPS: Final = frozenset({"cancelled", "interrupted"})  # not the change's fault: the whole advice ends

_WORD: Final = re.compile(r"\w+")

_Source: TypeAlias = Callable[[TrainingSpec, CardSpec], Trace]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change worth trying. ``settings`` are the fields of ``TrainingSpec`` that differ."""

    code: str
    settings: Mapping[str, Any]


def find_levers(
    spec: TrainingSpec,
    setting: Setting,
    base: Outlook,
    trace: Trace,
    *,
    source: _Source,
    allocator: AllocatorSettings = DEFAULT_SETTINGS,
) -> Iterator[Lever]:
    """The changes that lower the median of the device's peak, one by one as they are found, the promising ones first.

    ``base`` and ``trace`` are of the training as it is. One trace each; a change that the training does not take, or
    that saves nothing, is left out. ``Lever.changes`` is empty: only the run's form knows its own fields.
    """
    peak_bytes = base.device().p50
    expandable = _expandable(base, allocator)
    if expandable is not None and expandable < peak_bytes:
        yield _lever(Candidate(EXPANDABLE, {EXPANDABLE: True}), peak_bytes, expandable)
    for candidate in candidates(spec, setting.card, trace):
        changed_spec = spec.changed(**candidate.settings)
        changed = _changed_peak(changed_spec, setting.of(changed_spec), base, source, allocator)
        if changed is not None and changed < peak_bytes:
            yield _lever(candidate, peak_bytes, changed)


def candidates(spec: TrainingSpec, card: CardSpec, trace: Trace) -> Iterator[Candidate]:
    """What could be changed about the training on this card, from what mostly saves most to what takes several cards.

    ``trace`` is that of the training as it is: it says which kernels are assumed and whether there are convolutions.
    """
    for family in (_batch, _precision, _checkpointing, _optimizer, _attention, _trained, _layout, _sharding):
        yield from family(spec, card, trace)


def _batch(spec: TrainingSpec, card: CardSpec, trace: Trace) -> Iterator[Candidate]:  # noqa: ARG001
    """A smaller micro-batch and as many samples per step as before."""
    parts = next((parts for parts in range(2, spec.batch_size + 1) if spec.batch_size % parts == 0), None)
    if parts is not None:
        sizes = {"batch_size": spec.batch_size // parts, "accumulation": spec.accumulation * parts}
        yield Candidate("batch_accumulate", sizes)


def _precision(spec: TrainingSpec, card: CardSpec, trace: Trace) -> Iterator[Candidate]:  # noqa: ARG001
    if card.compute_capability is None or card.compute_capability >= _BF16:
        if spec.precision == "fp32":
            yield Candidate("bf16", {"precision": "bf16"})
        if not spec.precision.startswith("pure"):
            yield Candidate("pure_bf16", {"precision": "pure_bf16"})
    elif spec.precision == "fp32":
        yield Candidate("fp16", {"precision": "fp16"})


def _checkpointing(spec: TrainingSpec, card: CardSpec, trace: Trace) -> Iterator[Candidate]:  # noqa: ARG001
    strengths = ("full", "every_2", "every_3", "every_4", "none")
    assert set(strengths) == set(CHECKPOINTING)
    for name in strengths[: min(3, strengths.index(spec.checkpointing))]:
        yield Candidate(f"checkpoint_{name}", {"checkpointing": name})


def _optimizer(spec: TrainingSpec, card: CardSpec, trace: Trace) -> Iterator[Candidate]:  # noqa: ARG001
    """What takes the place of the optimizer that the training names, else of the one that was seen to step."""
    name = (spec.optimizer or trace.optimizer or DEFAULT_OPTIMIZER).lower().replace("_", "").replace("-", "")
    other: dict[str, Any] = {"optimizer_arguments": {}, "foreach": None, "fused": None}
    if name in _EIGHT_BIT:
        yield Candidate("adam8bit", {"optimizer": _EIGHT_BIT[name], **_differing(spec, other)})
    if name in _TWO_STATES:
        yield Candidate("sgd", {"optimizer": "sgd", **_differing(spec, other)})
        yield Candidate("adafactor", {"optimizer": "adafactor", **_differing(spec, other)})
    if spec.foreach is not False and not spec.fused and name not in _WITHOUT_FOREACH:
        yield Candidate("no_foreach", {"foreach": False})
    if not spec.fused and name in _FUSED:
        yield Candidate("fused", {"fused": True, **_differing(spec, {"foreach": None})})
    if not spec.set_to_none:
        yield Candidate("clear_gradients", {"set_to_none": True})


def _attention(spec: TrainingSpec, card: CardSpec, trace: Trace) -> Iterator[Candidate]:
    """Fused kernels, where the training was seen to take the one that writes the whole matrix of scores."""
    attention = (kernel for kernel in trace.kernels_assumed if kernel.startswith("attention"))
    taken = {word for kernels in attention for word in _WORD.findall(kernels)}
    if "math" not in taken:
        return
    ampere = card.compute_capability is None or card.compute_capability >= _BF16
    if ampere and spec.precision in _HALF and spec.attention != "flash":
        yield Candidate("flash", {"attention": "flash"})
    if spec.attention != "efficient":
        yield Candidate("efficient", {"attention": "efficient"})


def _trained(spec: TrainingSpec, card: CardSpec, trace: Trace) -> Iterator[Candidate]:  # noqa: ARG001
    """Fewer parameters that learn."""
    if spec.lora_rank is not None:
        return
    if not spec.frozen:
        yield Candidate("freeze_backbone", {"frozen": ("backbone",)})
    yield Candidate(f"lora_{_LORA_RANK}", {"lora_rank": _LORA_RANK, **_differing(spec, {"frozen": ()})})


def _layout(spec: TrainingSpec, card: CardSpec, trace: Trace) -> Iterator[Candidate]:
    """Tensor cores work on channels_last: elsewhere cuDNN only copies back and forth."""
    cores = card.compute_capability is None or card.compute_capability >= _TENSOR_CORES
    if cores and trace.convolutions and not spec.channels_last and spec.precision in _HALF:
        yield Candidate("channels_last", {"channels_last": True})


def _sharding(spec: TrainingSpec, card: CardSpec, trace: Trace) -> Iterator[Candidate]:  # noqa: ARG001
    if spec.world_size > 1:
        sizes: tuple[int, ...] = (spec.world_size,)
    else:
        sizes = _WORLD_SIZES
    for sharding in reversed(SHARDING[SHARDING.index(spec.sharding) + 1 :]):
        for world_size in sizes:
            yield Candidate(sharding, {"sharding": sharding, **_differing(spec, {"world_size": world_size})})


def _differing(spec: TrainingSpec, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those settings that the training does not have anyway."""
    return {name: value for name, value in settings.items() if getattr(spec, name) != value}


def _changed_peak(
    spec: TrainingSpec, setting: Setting, base: Outlook, source: _Source, allocator: AllocatorSettings
) -> int | None:
    try:
        trace = source(spec, setting.card)
    except UntraceableError:
        return None
    except TracerError as error:
        if error.kind in _STOPS:
            raise
        return None
    changed = Outlook(
        EventTable.of(steady(trace)), setting.unknowns(trace), room_bytes=base.room_bytes, settings=allocator
    )
    return changed.device().p50


def _expandable(base: Outlook, allocator: AllocatorSettings) -> int | None:
    """The same trace with expandable segments; ``None`` where they are on."""
    if allocator.expandable_segments:
        return None
    settings = dataclasses.replace(allocator, expandable_segments=True)
    return Outlook(base.table, base.unknowns, room_bytes=base.room_bytes, settings=settings).device().p50


def _lever(candidate: Candidate, peak_bytes: int, changed_bytes: int) -> Lever:
    return Lever(candidate.code, {}, peak_bytes - changed_bytes, changed_bytes, settings=dict(candidate.settings))
