"""What CUDA allocates beyond an op's outputs, against recorded sizes and the installed headers."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from desktop_app.core.units import GIB
from desktop_app.memory import cuda_autocast
from desktop_app.memory.cuda_autocast import cuda_lowering
from desktop_app.memory.lowering import Kind, Lowering, convolution_workspace, learn_rule
from desktop_app.memory.overheads import CardSpec
from desktop_app.memory.reduction import INDEXED_BYTES, staging_bytes

HOPPER = {"sm_count": 132, "threads_per_sm": 2048}
H100 = CardSpec("H100", 80 * GIB, 80 * GIB, "Hopper", (9, 0), 132)
aten = torch.ops.aten


# Recorded on a Hopper card; the reductions behind them are those of a GPT's training step.
@pytest.mark.parametrize(
    ("shape", "strides", "dims", "accumulator", "expected"),
    [
        ((1024, 1024), (1024, 1), (0,), 4, (8_388_608, 32)),
        ((2048, 1024), (1024, 1), (0,), 4, (16_777_216, 32)),
        ((4096, 1024), (1024, 1), (0,), 4, (33_554_432, 32)),
        ((524_288,), (1,), (), 4, (256, 4)),
        ((2048, 10_000), (1, 2048), (1,), 4, (138_412_032, 64)),
        ((2048, 10_000), (1, 2048), (1,), INDEXED_BYTES, (553_648_128, 64)),
    ],
)
def test_staging_buffers_of_reductions_are_those_of_recordings(
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    dims: tuple[int, ...],
    accumulator: int,
    expected: tuple[int, int],
) -> None:
    assert staging_bytes(shape, strides, dims, **HOPPER, accumulator_bytes=accumulator) == expected


def test_column_sums_pay_512_kib_per_64_rows_at_width_1024() -> None:
    for rows in (1024, 2048, 4096):
        assert staging_bytes((rows, 1024), (1024, 1), (0,), **HOPPER)[0] == rows // 64 * 512 * 1024


def test_small_reductions_and_reductions_of_nothing_need_no_buffer() -> None:
    assert staging_bytes((64, 1024), (1024, 1), (0,), **HOPPER) == (0, 0)
    assert staging_bytes((), (), (), **HOPPER) == (0, 0)
    assert staging_bytes((0, 1024), (1024, 1), (0,), **HOPPER) == (0, 0)
    assert staging_bytes((1024, 0), (1, 1), (0,), **HOPPER) == (0, 0)
    assert staging_bytes((1024, 1, 1), (1, 1, 1), (1,), **HOPPER) == (0, 0)


@given(
    st.lists(st.integers(1, 300), min_size=1, max_size=4),
    st.randoms(use_true_random=False),
    st.sampled_from([(22, 1024), (82, 1536), (132, 2048)]),
)
def test_any_reduction_of_any_contiguous_tensor_has_an_answer(
    shape: list[int], random: object, card: tuple[int, int]
) -> None:
    strides = [1] * len(shape)
    for index in range(len(shape) - 2, -1, -1):
        strides[index] = strides[index + 1] * shape[index + 1]
    for dim in range(len(shape)):
        buffer, semaphores = staging_bytes(shape, strides, (dim,), sm_count=card[0], threads_per_sm=card[1])
        assert buffer >= 0
        assert (buffer > 0) == (semaphores > 0)
        assert staging_bytes(shape, strides, (dim - len(shape),), sm_count=card[0], threads_per_sm=card[1]) == (
            buffer,
            semaphores,
        )


def test_the_reduction_of_an_op_is_read_from_its_arguments() -> None:
    lowering = Lowering(H100)
    columns = torch.empty(4096, 1024, device="meta")
    for name, args, kwargs in [
        ("sum", (columns, [0]), {}),
        ("sum", (columns, [0], True), {}),
        ("mean", (columns, [0]), {}),
        ("amax", (columns, (0,)), {}),
        ("linalg_vector_norm", (columns, 2, [0]), {}),
        ("sum", (columns,), {"dim": [0]}),
    ]:
        ((transient,),) = lowering.transients(name, args, kwargs, (columns,))
        assert transient.sizes_bytes == (33_554_432, 32), name
    _, (indexed,) = lowering.transients("max", (columns, 0), {}, (columns, columns))
    assert indexed.sizes_bytes == (4 * 33_554_432, 32)
    assert lowering.transients("sum", (columns, [1]), {}, (columns,)) == ()


@pytest.mark.parametrize(
    ("kernel", "stride", "depthwise", "share"),
    [((3, 3), (1, 1), False, 2.25), ((3, 3), (2, 2), False, 2), ((1, 1), (1, 1), False, 2), ((3, 3), (1, 1), True, 0)],
)
def test_the_crude_rule_of_convolution_workspaces(
    kernel: tuple[int, int], stride: tuple[int, int], depthwise: bool, share: float
) -> None:
    assert convolution_workspace(1_000_000, kernel=kernel, stride=stride, depthwise=depthwise) == share * 1_000_000


def test_a_convolution_and_its_backward_ask_for_a_workspace_per_kernel() -> None:
    lowering = Lowering(H100)
    inputs, weight = torch.empty(512, 4, 32, 32, device="meta"), torch.empty(8, 4, 3, 3, device="meta")
    output = torch.empty(512, 8, 32, 32, device="meta")
    moved = 512 * (4 + 8) * 1024 * 4
    shape_args = ([1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    ((forward,),) = lowering.transients("convolution", (inputs, weight, None, *shape_args), None, (output,))
    assert (forward.sizes_bytes, forward.optional) == ((int(2.25 * moved),), True)
    args = (output, inputs, weight, [8], *shape_args, [False, True, True])
    to_input, to_weight, to_bias = lowering.transients("convolution_backward", args, None, (None, weight, weight))
    assert to_input == ()
    assert to_weight[0].sizes_bytes == (int(2.25 * moved),)
    assert to_bias[0].sizes_bytes == staging_bytes((512, 8, 32, 32), (8192, 1024, 32, 1), (0, 2, 3), **HOPPER)
    assert to_bias[0].sizes_bytes[0] > 0


def test_foreach_norms_leave_one_number_per_chunk_of_65536() -> None:
    tensors = [torch.empty(200_000, device="meta"), torch.empty(10, device="meta")]
    transients = Lowering(None).transients("_foreach_norm", (tensors,), None, tensors)
    assert [transient.sizes_bytes for transient in transients[-1]] == [(2 * 4 * 4,)]
    assert transients[0] == ()


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
