"""Levers: which apply to which training, and that each is measured by tracing the changed training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from desktop_app.core.forecasts import Lever
from desktop_app.core.units import GIB, MIB
from desktop_app.memory.advice import candidates, find_levers
from desktop_app.memory.allocator_settings import AllocatorSettings
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.estimate_outlook import Outlook
from desktop_app.memory.estimate_steady import steady
from desktop_app.memory.estimate_table import EventTable
from desktop_app.memory.estimate_unknowns import Setting
from desktop_app.memory.trace_data import Trace
from desktop_app.memory.trace_errors import TracerError, UntraceableError
from desktop_app.memory.training_spec import TrainingSpec
from tests.unit.memory.made_traces import network

AMPERE = CardSpec("RTX 3090", 24 * GIB, 24 * GIB, "Ampere", (8, 6), 82)
TURING = CardSpec("RTX 2080 Ti", 11 * GIB, 11 * GIB, "Turing", (7, 5), 68)
PASCAL = CardSpec("GTX 1080", 8 * GIB, 8 * GIB, "Pascal", (6, 1), 20)
SPEC = TrainingSpec(model="timm:resnet50", batch_size=12)


Settings = dict[str, Any]


def offered(
    spec: TrainingSpec = SPEC, card: CardSpec = AMPERE, trace: Trace | None = None
) -> dict[str, list[Settings]]:
    found: dict[str, list[Settings]] = {}
    for candidate in candidates(spec, card, trace or network(4)):
        found.setdefault(candidate.code, []).append(dict(candidate.settings))
    return found


def test_every_candidate_is_another_training() -> None:
    for precision in ("fp32", "bf16", "pure_bf16"):
        spec = SPEC.changed(precision=precision)
        for candidate in candidates(spec, AMPERE, network(4, convolves=True, kernels=("attention: flash, math",))):
            assert spec.changed(**candidate.settings) != spec
            assert all(getattr(spec, name) != value for name, value in candidate.settings.items())


@pytest.mark.parametrize(
    ("batch_size", "accumulation", "expected"),
    [(12, 1, (6, 2)), (9, 2, (3, 6)), (7, 1, (1, 7)), (2, 8, (1, 16))],
)
def test_a_smaller_batch_keeps_the_samples_per_step(
    batch_size: int, accumulation: int, expected: tuple[int, int]
) -> None:
    (settings,) = offered(SPEC.changed(batch_size=batch_size, accumulation=accumulation))["batch_accumulate"]
    spec = SPEC.changed(batch_size=batch_size, accumulation=accumulation).changed(**settings)
    assert (spec.batch_size, spec.accumulation) == expected
    assert "batch_accumulate" not in offered(SPEC.changed(batch_size=1))


def test_precisions_are_those_of_the_card() -> None:
    assert {"bf16", "pure_bf16"} <= set(offered())
    assert "fp16" not in offered()
    assert {"bf16", "pure_bf16"}.isdisjoint(offered(card=TURING))
    assert offered(card=PASCAL)["fp16"] == [{"precision": "fp16"}]
    assert "pure_bf16" in offered(SPEC.changed(precision="bf16"))
    assert {"bf16", "pure_bf16", "fp16"}.isdisjoint(offered(SPEC.changed(precision="pure_bf16")))
    assert "bf16" in offered(card=replace(AMPERE, compute_capability=None))


def test_checkpointing_only_gets_stronger() -> None:
    names = {"checkpoint_full", "checkpoint_every_2", "checkpoint_every_3"}
    assert names <= set(offered())
    assert names & set(offered(SPEC.changed(checkpointing="every_3"))) == {"checkpoint_full", "checkpoint_every_2"}
    assert names.isdisjoint(offered(SPEC.changed(checkpointing="full")))


def test_optimizers_that_keep_less() -> None:
    assert offered()["adam8bit"] == [{"optimizer": "adamw8bit"}]
    assert offered(SPEC.changed(optimizer="Adam"))["adam8bit"] == [{"optimizer": "adam8bit"}]
    assert {"sgd", "adafactor", "no_foreach", "fused"} <= set(offered())
    sgd = offered(SPEC.changed(optimizer="sgd"))
    assert {"sgd", "adafactor", "adam8bit"}.isdisjoint(sgd)
    assert {"no_foreach", "fused"} <= set(sgd)
    given = SPEC.changed(optimizer_arguments={"betas": [0.9, 0.95]}, fused=True)
    # Arguments are Adam's, and the kernels are chosen anew.
    assert offered(given)["sgd"] == [{"optimizer": "sgd", "optimizer_arguments": {}, "fused": None}]
    assert {"no_foreach", "fused"}.isdisjoint(offered(given))
    assert "no_foreach" not in offered(SPEC.changed(foreach=False))
    assert offered(SPEC.changed(foreach=True))["fused"] == [{"fused": True, "foreach": None}]
    assert "clear_gradients" in offered(SPEC.changed(set_to_none=False))
    assert "clear_gradients" not in offered()


def test_a_training_that_names_no_optimizer_is_advised_on_the_one_that_was_seen() -> None:
    assert offered(SPEC.changed(optimizer=None))["adam8bit"] == [{"optimizer": "adamw8bit"}]
    seen = replace(network(4), optimizer="adam")
    assert offered(SPEC.changed(optimizer=None), trace=seen)["adam8bit"] == [{"optimizer": "adam8bit"}]
    assert {"sgd", "adafactor", "adam8bit"}.isdisjoint(offered(trace=replace(seen, optimizer="sgd")))
    assert "adam8bit" in offered(SPEC.changed(optimizer="adamw"), trace=replace(seen, optimizer="sgd"))


def test_fused_attention_only_where_the_whole_matrix_is_written() -> None:
    math = network(4, kernels=("attention: flash, math",))
    assert {"flash", "efficient"}.isdisjoint(offered(trace=network(4, kernels=("attention: flash",))))
    assert "efficient" in offered(trace=math)
    assert "flash" not in offered(trace=math)  # fp32
    assert "flash" in offered(SPEC.changed(precision="bf16"), trace=math)
    assert "flash" not in offered(SPEC.changed(precision="fp16"), TURING, math)


def test_what_is_trained_and_how_it_lies() -> None:
    assert offered()["freeze_backbone"] == [{"frozen": ("backbone",)}]
    assert offered()["lora_8"] == [{"lora_rank": 8}]
    assert {"freeze_backbone", "lora_8"}.isdisjoint(offered(SPEC.changed(lora_rank=4)))
    half, convolves = SPEC.changed(precision="bf16"), network(4, convolves=True)
    assert "channels_last" in offered(half, trace=convolves)
    assert "channels_last" not in offered(half)  # no convolution
    assert "channels_last" not in offered(SPEC, trace=convolves)  # fp32
    assert "channels_last" not in offered(SPEC.changed(precision="fp16"), PASCAL, convolves)


def test_sharding_over_the_cards_there_are() -> None:
    found = offered()
    assert [settings["world_size"] for settings in found["zero3"]] == [8, 4, 2]
    assert found["zero1"][0] == {"sharding": "zero1", "world_size": 8}
    two = offered(SPEC.changed(sharding="zero1", world_size=2))
    assert two["zero3"] == [{"sharding": "zero3"}]
    assert "zero1" not in two


# Measured


class Trainings:
    """Traces by what the spec says, as a tracer would make them."""

    def __init__(self) -> None:
        self.asked: list[TrainingSpec] = []

    def __call__(self, spec: TrainingSpec, card: CardSpec) -> Trace:
        assert card is AMPERE
        self.asked.append(spec)
        if spec.lora_rank is not None:
            raise TracerError("bad_spec", "there is no linear layer")
        if spec.checkpointing == "full":
            raise UntraceableError("aten.nonzero")
        states = {"adamw": 2, "sgd": 1, "adafactor": 0}.get(spec.optimizer, 2)
        sample = 2 * MIB if spec.precision == "fp32" else MIB
        return network(spec.batch_size, optimizer_states=states, sample_bytes=sample)


def advised(source: Trainings, spec: TrainingSpec = SPEC) -> tuple[Outlook, list[Lever]]:
    trace = source(spec, AMPERE)
    setting = Setting(AMPERE, context_bytes=300 * MIB, workspaces_known=True)
    base = Outlook(EventTable.of(steady(trace)), setting.unknowns(trace), room_bytes=AMPERE.capacity_bytes)
    return base, list(find_levers(spec, setting, base, trace, source=source))


def test_a_lever_is_the_difference_between_two_trainings() -> None:
    base, levers = advised(Trainings())
    by_code = {lever.code: lever for lever in levers}
    for lever in levers:
        assert lever.saved_bytes > 0
        assert lever.device_peak_bytes == base.device().p50 - lever.saved_bytes
        assert lever.changes == {}
    setting = Setting(AMPERE, context_bytes=300 * MIB, workspaces_known=True)
    half = network(6)
    expected = Outlook(EventTable.of(steady(half)), setting.unknowns(half), room_bytes=AMPERE.capacity_bytes)
    assert by_code["batch_accumulate"].device_peak_bytes == expected.device().p50
    assert by_code["batch_accumulate"].settings == {"batch_size": 6, "accumulation": 2}
    assert {"bf16", "sgd", "adafactor"} <= set(by_code)
    assert by_code["adafactor"].saved_bytes > by_code["sgd"].saved_bytes


def test_what_saves_nothing_or_does_not_go_is_left_out() -> None:
    source = Trainings()
    _, levers = advised(source)
    codes = {lever.code for lever in levers}
    assert {"lora_8", "checkpoint_full", "checkpoint_every_2", "zero3", "fused"}.isdisjoint(codes)
    asked = {spec.checkpointing for spec in source.asked}
    assert {"full", "every_2", "every_3"} <= asked


def test_expandable_segments_are_the_same_trace_replayed() -> None:
    """Activations that grow a little every step: fixed segments pile up, expandable ones do not."""
    spec = SPEC.changed(batch_size=11)
    trace = network(11, sample_bytes=MIB + 300_000)
    setting = Setting(AMPERE, context_bytes=0, workspaces_known=True)
    table, unknowns = EventTable.of(steady(trace)), setting.unknowns(trace)
    base = Outlook(table, unknowns, room_bytes=AMPERE.capacity_bytes)

    def none(spec: TrainingSpec, card: CardSpec) -> Trace:
        raise UntraceableError(spec.model, card.name)

    levers = list(find_levers(spec, setting, base, trace, source=none))
    settings = AllocatorSettings(expandable_segments=True)
    expected = Outlook(table, unknowns, room_bytes=AMPERE.capacity_bytes, settings=settings).device().p50
    assert expected < base.device().p50
    assert [(lever.code, lever.device_peak_bytes) for lever in levers] == [("expandable_segments", expected)]
    on = Outlook(table, unknowns, room_bytes=AMPERE.capacity_bytes, settings=settings)
    assert list(find_levers(spec, setting, on, trace, source=none, allocator=settings)) == []


def test_advice_that_is_cancelled_ends() -> None:
    class Cancelled(Trainings):
        def __call__(self, spec: TrainingSpec, card: CardSpec) -> Trace:
            if self.asked:
                raise TracerError("cancelled", "for a newer one")
            return super().__call__(spec, card)

    with pytest.raises(TracerError, match="newer"):
        advised(Cancelled())
