"""The lowest rung: closed forms, against published figures and a real trace."""

from __future__ import annotations

import pytest

from desktop_app.core.forecasts import Verdict
from desktop_app.core.steps import Category
from desktop_app.core.units import GIB, MIB
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.estimate_unknowns import Setting
from desktop_app.memory.formula import FormulaFacts, activation_bytes, estimate_by_formula, state_bytes
from desktop_app.memory.training_spec import TrainingSpec

A100 = CardSpec("A100", 40 * GIB, 40 * GIB, "Ampere", (8, 0), 108)
SETTING = Setting(A100, context_bytes=500 * MIB)
BILLION = FormulaFacts(parameters=1_000_000_000)
BERT_LARGE = FormulaFacts(
    parameters=335_000_000, layers=24, hidden=1024, heads=16, sequence_length=512, vocabulary=30522
)


def spec(**changes: object) -> TrainingSpec:
    return TrainingSpec(model="transformers:some", batch_size=8).changed(**changes)


@pytest.mark.parametrize(
    ("changes", "bytes_per_parameter"),
    [
        ({"optimizer": "adamw"}, 16),
        ({"optimizer": "adamw", "precision": "bf16"}, 16),
        ({"optimizer": "AdamW", "precision": "pure_bf16"}, 8),
        ({"optimizer": "sgd"}, 12),
        ({"optimizer": "adamw8bit"}, 10),
        ({"optimizer": "adafactor"}, 8),
    ],
)
def test_states_per_parameter(changes: dict[str, object], bytes_per_parameter: int) -> None:
    """The table that is quoted everywhere: 16 B with Adam, 8 in pure 16 bit, 2 of state with 8-bit Adam."""
    assert sum(state_bytes(spec(**changes), BILLION).values()) == bytes_per_parameter * 1_000_000_000


@pytest.mark.parametrize(
    ("named", "own", "expected"), [(None, "", 16), (None, "sgd", 12), ("adamw", "sgd", 16), ("sgd", "adamw", 12)]
)
def test_an_optimizer_that_is_named_goes_before_the_trainings_own(named: str | None, own: str, expected: int) -> None:
    facts = FormulaFacts(parameters=1000, optimizer=own)
    assert sum(state_bytes(spec(optimizer=named), facts).values()) == expected * 1000


@pytest.mark.parametrize(("sharding", "expected"), [("zero1", 8 + 8 / 4), ("zero2", 4 + 12 / 4), ("zero3", 16 / 4)])
def test_states_of_a_sharded_training(sharding: str, expected: float) -> None:
    found = state_bytes(spec(sharding=sharding, world_size=4), BILLION)
    assert sum(found.values()) == expected * 1_000_000_000


def test_frozen_parameters_have_neither_gradient_nor_state() -> None:
    found = state_bytes(spec(), FormulaFacts(parameters=1000, trainable=10))
    assert list(found.values()) == [4000, 40, 80]


def test_activations_of_a_layer_as_published() -> None:
    """s·b·h·(34 + 5·a·s/h): 24 layers of BERT-large at 8 × 512, by hand."""
    layer = 512 * 8 * 1024 * 34
    head = 4 * 512 * 8 * (1024 + 30522)
    assert activation_bytes(spec(precision="bf16"), BERT_LARGE) == 24 * layer + head
    scores = 5 * 16 * 512 * 512 * 8  # 5·a·s²·b
    assert activation_bytes(spec(precision="bf16", attention="math"), BERT_LARGE) == 24 * (layer + scores) + head
    full = activation_bytes(spec(precision="bf16", checkpointing="full"), BERT_LARGE)
    assert full == 24 * 2 * 512 * 8 * 1024 + layer + head
    every_2 = activation_bytes(spec(precision="bf16", checkpointing="every_2"), BERT_LARGE)
    assert full < every_2 < activation_bytes(spec(precision="bf16"), BERT_LARGE)
    with pytest.raises(ValueError, match="shape"):
        activation_bytes(spec(), BILLION)


def test_a_transformer_by_formula_is_wide_and_names_the_op() -> None:
    found = estimate_by_formula(
        spec(precision="bf16"), SETTING, BERT_LARGE, op="aten.item", others_bytes=0, seconds=0.1
    )
    # 3.4 + 1.5 GiB of traced activations and states is 8.9 GiB with 16 B per parameter: within the band.
    assert found.live_peak_bytes.p50 == sum(found.categories.values())
    assert found.device_peak_bytes.p50 == found.reserved_peak_bytes.p50 + 500 * MIB
    assert found.device_peak_bytes.p95 > 1.35 * found.reserved_peak_bytes.p50
    assert (found.rung, found.verdict, found.largest_batch) == ("formula", Verdict.FITS, None)
    assert found.warnings == ("untraceable:aten.item",)
    assert found.rung_width == 0.25
    others = estimate_by_formula(
        spec(precision="bf16"), SETTING, BERT_LARGE, op="x", others_bytes=36 * GIB, seconds=0.1
    )
    assert others.verdict is Verdict.DOES_NOT_FIT
    assert others.fits_probability < found.fits_probability


def test_parameters_alone_are_a_floor_that_can_only_say_no() -> None:
    found = estimate_by_formula(spec(), SETTING, BILLION, op="x", others_bytes=0, seconds=0.0)
    assert (found.verdict, found.fits_probability) == (Verdict.CANNOT_SAY, 0.0)
    assert found.warnings == ("untraceable:x", "states_only")
    assert found.categories[Category.ACTIVATIONS] == 0
    assert found.live_peak_bytes.p50 == 16_000_000_000
    large = FormulaFacts(parameters=3_000_000_000)
    never = estimate_by_formula(spec(), SETTING, large, op="x", others_bytes=0, seconds=0.0)
    assert never.verdict is Verdict.DOES_NOT_FIT


def test_nothing_known_is_said_so() -> None:
    found = estimate_by_formula(spec(), SETTING, None, op="x", others_bytes=0, seconds=0.0)
    assert (found.rung, found.verdict) == ("none", Verdict.CANNOT_SAY)
    assert found.device_peak_bytes.p50 == 0
