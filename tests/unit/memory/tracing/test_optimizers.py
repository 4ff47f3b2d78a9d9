"""Optimizers by name, against what torch's own keep on the CPU and the rules of bitsandbytes."""

from __future__ import annotations

import pytest
import torch

from desktop_app.core.steps import Category
from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracing.optimizers import make_optimizer, optimizer_class
from desktop_app.memory.training_spec import TrainingSpec
from tests.unit.memory.tracing.subjects import (
    Stack,
    batch,
    kept_bytes,
    meta_stage,
    micro_step,
    most_bytes,
    subject_of,
    trace_of,
)

NAMES = "sgd adam AdamW RMSprop adagrad adadelta adamax nadam radam rprop Adafactor".split()  # noqa: SIM905


def made(name: str, **fields: object) -> torch.optim.Optimizer:
    weight = torch.nn.Parameter(torch.empty(4, 4, device="meta"))
    with meta_stage().running():
        return make_optimizer(TrainingSpec(model="timm:any", optimizer=name, **fields), [weight])  # type: ignore[arg-type]


def state_bytes(optimizer: torch.optim.Optimizer) -> int:
    """Counters of steps are on the CPU, with CUDA too."""
    values = [value for state in optimizer.state.values() for value in state.values()]
    return sum(value.nbytes for value in values if isinstance(value, torch.Tensor) and value.dim())


@pytest.mark.parametrize("name", NAMES)
def test_keeps_what_torch_keeps(name: str) -> None:
    model = Stack()
    real = optimizer_class(name)(model.parameters(), **({"momentum": 0.9} if name == "sgd" else {}))  # type: ignore[call-arg]
    micro_step(model, batch(2, torch.device("cpu"))).backward()
    real.step()
    assert kept_bytes(trace_of(optimizer=name), Category.OPTIMIZER_STATE) == state_bytes(real)


def test_eight_bits_as_bitsandbytes_allocates_them() -> None:
    """Two bytes an element and a fp32 maximum per 256 and state; small parameters 8 bytes; two tables of 1 KiB."""
    expected = 2 * 1024
    for parameter in Stack().parameters():
        count = parameter.numel()
        expected += 8 * count if count < 4096 else 2 * count + 2 * 4 * -(-count // 256)
    for name in ("adam8bit", "AdamW_8bit"):
        assert most_bytes(trace_of(optimizer=name), Category.OPTIMIZER_STATE) == expected


def test_an_eight_bit_step_allocates_once_and_nothing_beside_its_state() -> None:
    events = [event for event in trace_of(optimizer="adam8bit").events if str(event.phase) == "optimizer"]
    assert {event.category for event in events if event.key > 0} == {Category.OPTIMIZER_STATE}
    assert {event.step for event in events} == {1}


def test_sgd_has_momentum_unless_it_is_told_not_to() -> None:
    assert made("SGD").defaults["momentum"] == 0.9
    assert made("sgd", optimizer_arguments={"momentum": 0}).defaults["momentum"] == 0


def test_arguments_reach_the_optimizer() -> None:
    optimizer = made("adam", optimizer_arguments={"betas": [0.8, 0.9], "amsgrad": True}, foreach=False)
    assert optimizer.defaults["betas"] == (0.8, 0.9)
    assert optimizer.defaults["amsgrad"]
    assert optimizer.defaults["foreach"] is False


def test_fused_kernels_need_no_room() -> None:
    """A foreach Adam holds a copy of the parameters for a moment, a fused one does not."""
    plain, fused = (
        max(
            event.size_bytes
            for event in trace_of(optimizer="adam", **kernels).events
            if str(event.phase) == "optimizer"
        )
        for kernels in ({"foreach": True}, {"fused": True})
    )
    assert plain >= fused
    together, one_by_one = trace_of(optimizer="adam"), trace_of(optimizer="adam", foreach=False)
    optimizer_peaks = [
        most_bytes_in_optimizer(trace) for trace in (together, one_by_one, trace_of(optimizer="adam", fused=True))
    ]
    assert optimizer_peaks[0] > optimizer_peaks[1] > optimizer_peaks[2] == 0


def most_bytes_in_optimizer(trace: object) -> int:
    """Of what the second step allocates in its optimizer."""
    sizes: dict[int, int] = {}
    live = most = 0
    for event in trace.events:  # type: ignore[attr-defined]
        if event.key > 0 and event.step == 2 and str(event.phase) == "optimizer":
            sizes[event.key] = event.size_bytes
            live += event.size_bytes
            most = max(most, live)
        elif event.key < 0:
            live -= sizes.pop(-event.key, 0)
    return most


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("lion", "torch.optim has no lion; sgd with momentum keeps as much."),
        ("adamm", "No optimizer is called 'adamm'; near: adam, "),
        ("lbfgs", "The optimizer lbfgs cannot be estimated: lbfgs evaluates the loss many times"),
        ("SparseAdam", "cannot be estimated: sparseadam is for sparse gradients"),
        ("", "No optimizer is called ''; there are adadelta, adafactor, adagrad,"),
    ],
)
def test_says_what_there_is(name: str, message: str) -> None:
    with pytest.raises(TracerError) as caught:
        optimizer_class(name)
    assert caught.value.kind == "unknown_optimizer"
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("name", "fields", "message"),
    [
        (
            "adam",
            {"optimizer_arguments": {"momentum": 0.9}},
            "The optimizer adam takes no 'momentum'; it takes lr, betas,",
        ),
        ("adam", {"optimizer_arguments": {"lr": -1}}, "The optimizer adam cannot be made: Invalid learning rate: -1."),
        ("adam", {"fused": True, "foreach": True}, "either fused or foreach"),
        ("rprop", {"fused": True}, "The optimizer rprop has no fused kernels."),
    ],
)
def test_refuses_what_does_not_go(name: str, fields: dict[str, object], message: str) -> None:
    with pytest.raises(TracerError) as caught:
        made(name, **fields)
    assert caught.value.kind == "bad_spec"
    assert message in caught.value.message


def test_the_own_optimizer_stays_unless_another_kind_is_asked_for() -> None:
    assert type(subject_of(optimizer="adam").optimizer) is torch.optim.Adam
    assert type(subject_of().optimizer) is torch.optim.Adam  # adamw is what nobody has asked for
    assert type(subject_of(optimizer="sgd").optimizer) is torch.optim.SGD
    assert subject_of(optimizer="adam", foreach=False).optimizer.param_groups[0]["foreach"] is False


def test_the_own_optimizer_follows_its_parameters() -> None:
    subject = subject_of(arguments={"optimizer": "Adagrad"})
    known = {id(parameter) for parameter in subject.model.parameters()}
    assert {id(parameter) for parameter in subject.optimizer.param_groups[0]["params"]} == known
    assert {id(parameter) for parameter in subject.optimizer.state} == known
    sums = [state["sum"] for state in subject.optimizer.state.values()]
    assert {tensor.device.type for tensor in sums} == {"meta"}
    trace = trace_of(arguments={"optimizer": "Adagrad"})
    assert most_bytes(trace, Category.OPTIMIZER_STATE) == sum(parameter.nbytes for parameter in Stack().parameters())
