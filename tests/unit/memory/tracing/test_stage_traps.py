"""Every trap of a machine without a GPU, on both rungs: each test fails when the trace falls into its trap."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.unit.memory.tracing.staged import adopted, host_copies, kernel_taken, loss_on_host, questions, training

OnRung = Callable[..., Any]
# cuDNN comes first on Hopper since torch 2.10 (docs of torch.nn.attention); before, it had to be asked for.
_CUDNN_FIRST = tuple(int(part) for part in torch.__version__.split(".")[:2]) >= (2, 10)
ON_HOPPER = "cudnn" if _CUDNN_FIRST else "flash"
ON_HOPPER_MASKED = "cudnn" if _CUDNN_FIRST else "efficient"  # flash takes no mask


def rounded(size_bytes: int) -> int:
    return -(-size_bytes // 512) * 512


def made(result: dict[str, Any], *, phase: str | None = None, op: str | None = None) -> list[int]:
    """Sizes of what was allocated."""
    return [
        entry[1]
        for entry in result["allocated"]
        if (phase is None or entry[2] == phase) and (op is None or op in entry[0])
    ]


PERCEPTRON = sum(rounded(count * 4) for count in (256 * 256, 256, 256 * 8, 8))


def kept_by_convolutions(result: dict[str, Any]) -> int:
    return sum(
        entry[1]
        for entry in result["allocated"]
        if entry[0] == "convolution" and entry[2] == "FORWARD" and entry[4] == 1
    )


def test_backward_runs_and_gives_gradients(on_rung: OnRung) -> None:
    result = on_rung(training, model="perceptron")
    gradients = [entry[1] for entry in result["allocated"] if entry[3] == "GRADIENTS" and entry[4] == 2]
    assert sorted(gradients) == sorted(count * 4 for count in (256 * 256, 256, 256 * 8, 8))
    assert result["kept"] == ["PARAMETERS", "WORKSPACE"]


def test_torch_cuda_speaks_of_the_chosen_card_and_only_inside(on_rung: OnRung) -> None:
    result = on_rung(questions)
    assert result["heard"] == [True, 1, 0, [9, 0], 40 * 2**30, 108, True, True, True]
    assert result["after"]


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_mixed_precision_is_not_traced_as_full_precision(on_rung: OnRung, precision: str) -> None:
    """Seven outputs of 8 channels are kept until backward: 16 bits per element."""
    full = kept_by_convolutions(on_rung(training, model="convolutions", batch_size=256))
    half = kept_by_convolutions(on_rung(training, model="convolutions", batch_size=256, precision=precision))
    assert full == 2 * half == 7 * 256 * 8 * 16 * 16 * 4


def test_an_autocast_region_that_the_model_opens_itself_is_on(on_rung: OnRung) -> None:
    half = kept_by_convolutions(on_rung(training, model="convolutions", arguments={"region": True}, batch_size=256))
    assert half == 7 * 256 * 8 * 16 * 16 * 2


def test_the_casts_of_weights_die_with_the_region(on_rung: OnRung) -> None:
    """One cast per weight, step and validation; none lives when the optimizer works."""
    result = on_rung(training, model="perceptron", precision="bf16")
    casts = [entry for entry in result["allocated"] if entry[0] == "_to_copy" and entry[1] == 256 * 256 * 2]
    assert [entry[2] for entry in casts] == ["FORWARD", "FORWARD", "VALIDATION"]
    assert result["kept"] == ["PARAMETERS", "WORKSPACE"]


def test_the_scaler_of_fp16_is_on_and_asks_without_guessing(on_rung: OnRung) -> None:
    result = on_rung(training, model="perceptron", precision="fp16", optimizer="adamw", grad_clip=1.0)
    assert result["guesses"] == {}
    assert "OPTIMIZER_STATE" in result["kept"]  # no step was skipped
    assert any(op == "full" for op, *_ in result["allocated"])  # the scale, on the card


@pytest.mark.parametrize(
    ("precision", "kernel"),
    [("fp32", "attention: efficient"), ("bf16", "attention: flash"), ("fp16", "attention: flash")],
)
def test_attention_does_not_take_the_math_path(on_rung: OnRung, precision: str, kernel: str) -> None:
    result = on_rung(training, model="attends", precision=precision)
    assert result["kernels"] == [kernel]
    scores = 4 * 8 * 128 * 128
    assert not {2 * scores, 4 * scores} & set(made(result, phase="FORWARD"))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_recomputing_takes_the_same_kernel_and_the_same_precision(on_rung: OnRung, precision: str) -> None:
    plain = on_rung(training, model="attends", precision=precision, batch_size=32)
    again = on_rung(training, model="attends", precision=precision, batch_size=32, arguments={"recompute": True})
    assert again["kernels"] == plain["kernels"]
    assert again["peaks"]["FORWARD"] < plain["peaks"]["FORWARD"]
    attends = "_scaled_dot_product_"
    recomputed = [
        size for size in made(again, phase="BACKWARD", op=attends) if size in made(plain, phase="FORWARD", op=attends)
    ]
    assert set(made(plain, phase="FORWARD", op=attends)) == set(recomputed)


@pytest.mark.parametrize(
    ("call", "kernel"),
    [
        ({"capability": (8, 0)}, "flash"),
        ({"capability": (8, 0), "dtype": "float32"}, "efficient"),
        ({"capability": (8, 0), "mask": True}, "efficient"),
        ({"capability": (8, 0), "head": 512}, "efficient"),
        ({"capability": (8, 0), "head": 80}, "flash"),
        ({"capability": (8, 0), "head": 70}, "flash"),
        ({"capability": (8, 0), "head": 70, "mask": True}, "math"),
        ({"capability": (8, 0), "dtype": "float64"}, "math"),
        ({"capability": (8, 6), "head": 208}, "efficient"),
        ({"capability": (8, 0), "head": 208}, "flash"),
        ({"capability": (7, 5), "dtype": "float16"}, "efficient"),
        ({"capability": (7, 5), "dtype": "bfloat16"}, "math"),
        ({"capability": (6, 1), "dtype": "float32", "head": 63}, "efficient"),
        ({"capability": (8, 0), "dtype": "float32", "head": 63}, "math"),
        ({"capability": (8, 0), "key_heads": 2}, "flash"),
        ({"capability": (8, 0), "key_heads": 2, "dtype": "float32"}, "math"),
        ({"capability": (9, 0)}, ON_HOPPER),
        ({"capability": (9, 0), "mask": True}, ON_HOPPER_MASKED),
        ({"capability": (10, 0), "head": 256}, "flash"),
        ({"capability": (9, 0), "head": 256}, ON_HOPPER),
        ({"capability": (9, 0), "dtype": "float32"}, "efficient"),
        ({"capability": (12, 0)}, "flash"),
        ({"capability": (8, 0), "only": "MATH"}, "math"),
        ({"capability": (8, 0), "only": "EFFICIENT_ATTENTION"}, "efficient"),
        ({"capability": (8, 0), "only": "CUDNN_ATTENTION"}, "cudnn"),
        ({"capability": (8, 0), "attention": "math"}, "math"),
        ({"capability": (8, 0), "attention": "efficient"}, "efficient"),
        ({"capability": (8, 0), "attention": "cudnn"}, "cudnn"),
        ({"capability": (8, 0), "attention": "flash", "dtype": "float32"}, "efficient"),
    ],
)
def test_the_kernel_is_the_one_that_the_card_would_take(on_rung: OnRung, call: dict[str, Any], kernel: str) -> None:
    assert on_rung(kernel_taken, **call) == [kernel]


def test_multi_tensor_kernels_are_the_default(on_rung: OnRung) -> None:
    """Two copies of state and one temporary; parameter by parameter only the largest temporary."""
    assert on_rung(training, model="perceptron", optimizer="adamw")["demand"] == 3 * PERCEPTRON
    alone = on_rung(training, model="perceptron", optimizer="adamw_loop")["demand"]
    assert 2 * PERCEPTRON < alone <= 2 * PERCEPTRON + 2 * 256 * 256 * 4
    fused = on_rung(training, model="perceptron", optimizer="adamw_fused")["demand"]
    assert fused == 2 * PERCEPTRON + 4 * 512  # and a step count per parameter on the card


@pytest.mark.parametrize(
    ("optimizer", "copies"),
    [
        ("adagrad", 1),
        ("rmsprop", 1),
        ("adamax", 2),
        ("nadam", 2),
        ("radam", 2),
        ("adadelta", 2),
        ("rprop", 2),
        ("asgd", 1),
    ],
)
def test_other_optimizers_work_and_keep_their_state(on_rung: OnRung, optimizer: str, copies: int) -> None:
    result = on_rung(training, model="perceptron", optimizer=optimizer)
    state = sum(rounded(entry[1]) for entry in result["allocated"] if entry[3] == "OPTIMIZER_STATE")
    assert state == pytest.approx(copies * PERCEPTRON, abs=8 * 4 * 512)


def test_clipping_takes_the_multi_tensor_norm_and_no_copy_of_the_gradients(on_rung: OnRung) -> None:
    result = on_rung(training, model="perceptron", grad_clip=1.0)
    assert made(result, phase="OPTIMIZER", op="_foreach_norm")
    assert sum(made(result, phase="OPTIMIZER")) < 8192


def test_a_dropout_mask_has_one_byte_per_element(on_rung: OnRung) -> None:
    result = on_rung(training, model="perceptron", arguments={"dropout": 0.5}, batch_size=100)
    masks = [size for size in made(result, phase="FORWARD") if size == 100 * 256]
    assert len(masks) == 2  # one per step
    outputs = [size for size in made(result, phase="FORWARD") if size == 100 * 256 * 4]
    assert len(outputs) == 2 * 3 + 2 * 1  # addmm, relu and dropout, and the images


def test_batch_norm_keeps_two_statistics_in_training_and_none_in_validation(on_rung: OnRung) -> None:
    result = on_rung(training, model="normed", batch_size=100)
    image = 100 * 16 * 16 * 4
    for phase, expected in (("FORWARD", [image, 4, 4] * 2), ("VALIDATION", [image])):
        sizes = made(result, phase=phase, op="batch_norm")
        assert [size for size in sizes if size] == expected


@pytest.mark.parametrize(
    ("look", "guess"),
    [
        ("item", "local_scalar_dense"),
        ("bool", "local_scalar_dense"),
        ("tolist", "local_scalar_dense"),
        ("nonzero", "nonzero"),
        ("mask", "index"),
        ("masked_select", "masked_select"),
        ("unique", "unique2"),
        ("where", "nonzero"),
    ],
)
def test_values_are_made_up_and_counted(on_rung: OnRung, look: str, guess: str) -> None:
    result = on_rung(training, model="looks", arguments={"look": look})
    assert set(result["guesses"]) == {"to_copy" if look == "tolist" and result["rung"] == "meta" else guess}
    assert sum(result["guesses"].values()) >= 3  # two steps and a validation batch
    if look == "nonzero":
        assert 4 * 8 * 2 * 8 in made(result, phase="FORWARD")  # every element: two indices of 8 bytes


def test_copies_to_the_host_are_zeros_and_counted_and_never_what_the_heap_had(on_rung: OnRung) -> None:
    seen = on_rung(host_copies)
    assert {name: found[:2] for name, found in seen.items()} == {
        **{name: [0.0, "float32"] for name in ("cpu", "forced", "into", "all into", "like")},
        "to": [0.0, "float64"],
    }
    counted = {name: found[2] for name, found in seen.items()}
    assert counted.pop("like") in (0, 20)  # zeros by its own name: no guess where they are real
    assert counted == dict.fromkeys(("cpu", "to", "forced", "into", "all into"), 20)


def test_a_loss_on_the_host_sends_its_gradient_back_to_the_card(on_rung: OnRung) -> None:
    result = on_rung(loss_on_host)
    assert result["found"] == [True, 0.0]
    assert result["guesses"] == {"to_copy": 1}
    assert 400 in made(result, phase="BACKWARD")  # the gradient, on the card


def test_models_are_adopted_with_ties_marks_and_memory_formats(on_rung: OnRung) -> None:
    result = on_rung(adopted)
    assert len(result["devices"]) == 1
    assert result["tied"]
    assert result["tag"] == "mine"
    assert result["strides"] == [36, 1, 12, 4]
    assert result["dtypes"] == ["torch.float16"]
    assert result["frozen"] == ["conv.bias"]
    assert result["parameters"] == 3


def test_gradients_that_are_not_set_to_none_stay(on_rung: OnRung) -> None:
    gone = on_rung(training, model="perceptron")
    kept = on_rung(training, model="perceptron", set_to_none=False)
    assert "GRADIENTS" not in gone["kept"]
    assert "GRADIENTS" in kept["kept"]
    assert kept["peaks"]["VALIDATION"] - gone["peaks"]["VALIDATION"] == PERCEPTRON


def test_accumulation_adds_into_the_gradients(on_rung: OnRung) -> None:
    once = on_rung(training, model="perceptron")
    twice = on_rung(training, model="perceptron", accumulation=2)
    assert len(made(twice, phase="FORWARD")) > 1.9 * len(made(once, phase="FORWARD"))
    assert 0 <= twice["peaks"]["ALL"] - once["peaks"]["ALL"] <= 2 * PERCEPTRON


def test_saving_takes_nothing_on_the_card(on_rung: OnRung) -> None:
    result = on_rung(training, model="perceptron", optimizer="adamw", saves=True)
    assert made(result, phase="SAVE") == []
