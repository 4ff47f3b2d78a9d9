"""What the outputs of an op are, and CUDA's mixed precision against the installed headers."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
import torch

from desktop_app.memory import cuda_autocast
from desktop_app.memory.cuda_autocast import cuda_lowering
from desktop_app.memory.lowering import Kind, learn_rule

aten = torch.ops.aten


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        (aten.add.Tensor, Kind.FRESH),
        (aten.add_.Tensor, Kind.VIEW),
        (aten.view.default, Kind.VIEW),
        (aten.detach.default, Kind.VIEW),
        (aten._foreach_mul_.Scalar, Kind.VIEW),
        (aten._foreach_sqrt.default, Kind.FRESH),
        (aten.reshape.default, Kind.MAY_ALIAS),
        (aten._unsafe_view.default, Kind.MAY_ALIAS),
        (aten.resize_.default, Kind.RESIZES),
        (aten.add.out, Kind.RESIZES),
        (aten.lift_fresh.default, Kind.HOST),
    ],
)
def test_what_the_outputs_of_an_op_are(op: torch._ops.OpOverload, kind: Kind) -> None:
    assert learn_rule(op).kind is kind


# Mixed precision


def autocast_lists() -> dict[str, set[str]]:
    spec = importlib.util.find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    path = Path(spec.origin).parent / "include" / "ATen" / "autocast_mode.h"
    text = path.read_text(encoding="utf-8")
    lists = {}
    for macro in ("LOWER_PRECISION_FP", "FP32", "FP32_SET_OPT_DTYPE", "PROMOTE"):
        body = re.search(rf"#define AT_FORALL_{macro}\(_\)(.*?)\n\n", text, re.S)
        if body is None:
            pytest.skip("this torch keeps its cast lists elsewhere")
        lists[macro] = {
            name + (f".{overload}" if overload else "")
            for name, overload in re.findall(r"_\((\w+)(?:, (\w+))?\)", body[1])
        }
    return lists


def test_the_cast_lists_are_those_of_the_installed_torch() -> None:
    lists = autocast_lists()
    assert set(cuda_autocast.LOWER_PRECISION) == lists["LOWER_PRECISION_FP"]
    assert set(cuda_autocast.FULL_PRECISION) == lists["FP32"]
    assert set(cuda_autocast.FULL_PRECISION_RESULT) == lists["FP32_SET_OPT_DTYPE"]
    assert set(cuda_autocast.WIDEST) == lists["PROMOTE"]


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_ops_cast_as_under_cuda_autocast(device: str) -> None:
    a = torch.ones(4, 4, device=device)
    half = a.bfloat16()
    with cuda_lowering(torch.bfloat16):
        assert (a @ a).dtype == torch.bfloat16
        assert torch.nn.functional.linear(a, a).dtype == torch.bfloat16
        assert torch.nn.functional.conv1d(a, a.view(4, 4, 1)).dtype == torch.bfloat16
        assert torch.exp(half).dtype == torch.float32
        assert half.softmax(0).dtype == torch.float32
        assert half.sum().dtype == torch.float32
        assert half.sum(0, dtype=torch.bfloat16).dtype == torch.bfloat16
        assert torch.nn.functional.layer_norm(half, (4,)).dtype == torch.float32
        assert torch.addcmul(a, half, half).dtype == torch.float32
        assert torch.relu(half).dtype == torch.bfloat16
        assert torch.ones(2, dtype=torch.int64, device=device).sum().dtype == torch.int64
        assert (a.double() @ a.double()).dtype == torch.float64
    assert (a @ a).dtype == torch.float32
    with cuda_lowering(None):
        assert (a @ a).dtype == torch.float32
        assert torch.exp(half).dtype == torch.bfloat16


def test_a_weight_is_cast_once_per_region_and_its_gradient_is_full() -> None:
    weight = torch.ones(4, 4, requires_grad=True)
    with cuda_lowering(torch.bfloat16):
        first = torch.ones(2, 4) @ weight
        second = torch.ones(2, 4) @ weight
        (cached,) = cuda_autocast._state.casts.values()
        assert cached[1].dtype == torch.bfloat16
    assert not cuda_autocast._state.casts
    (first.float() + second.float()).sum().backward()  # type: ignore[no-untyped-call]
    assert weight.grad is not None
    assert weight.grad.dtype == torch.float32
    assert torch.equal(weight.grad, torch.full((4, 4), 4.0))


def test_results_are_those_of_cpu_autocast_where_the_lists_agree() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
    inputs = torch.randn(3, 8)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        expected = model(inputs)
    with cuda_lowering(torch.bfloat16):
        assert torch.equal(model(inputs), expected)


def test_an_error_inside_leaves_everything_as_it_was() -> None:
    a = torch.ones(4, 4)
    with pytest.raises(RuntimeError), cuda_lowering(torch.bfloat16):
        a @ torch.ones(5, 5)
    assert (a @ a).dtype == torch.float32
    assert cuda_autocast._state.depth == 0
