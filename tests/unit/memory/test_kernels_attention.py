"""Workspaces of the attention kernels, against recorded sizes and the formulas of their sources."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from desktop_app.core.steps import Phase
from tests.unit.memory.kernel_calls import A100, T4, inside, made, meta

aten = torch.ops.aten


def heads_first(batch: int, heads: int, tokens: int, size: int, dtype: torch.dtype) -> torch.Tensor:
    """(B, H, S, D) as it comes from (B, S, H, D)."""
    return meta(batch, tokens, heads, size, dtype=dtype).transpose(1, 2).requires_grad_()


def backward(op: Any, shape: tuple[int, int, int, int], dtype: torch.dtype, **options: Any) -> list[tuple[str, int]]:
    query, key, value = (heads_first(*shape, dtype) for _ in range(3))
    out = op(query, key, value)
    gradient = meta(*out.transpose(1, 2).shape, dtype=dtype).transpose(1, 2)
    return made(lambda: out.backward(gradient), phase=Phase.BACKWARD, **options)  # type: ignore[no-untyped-call]


def efficient(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    out: torch.Tensor = aten._scaled_dot_product_efficient_attention(query, key, value, None, True)[0]
    return out


def flash(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    out: torch.Tensor = aten._scaled_dot_product_flash_attention(query, key, value)[0]
    return out


def test_the_efficient_backward_in_full_precision_as_recorded_in_22_layers() -> None:
    """TinyLlama: 32 heads, 1,000 tokens, head size 64."""
    assert backward(efficient, (1, 32, 1000, 64), torch.float32) == [
        ("_scaled_dot_product_efficient_attention_backward", 8_192_000),
        ("_scaled_dot_product_efficient_attention_backward", 8_192_000),
        ("_scaled_dot_product_efficient_attention_backward", 8_192_000),
        ("mul", 8_192_000),
        ("sum", 128_000),
        ("clone", 128_000),
        ("attention.workspace", 8_396_800),
    ]


def test_the_efficient_forward_keeps_a_log_sum_per_32_rows_and_its_seed_on_the_host() -> None:
    query = heads_first(1, 32, 1000, 64, torch.float32)
    call = aten._scaled_dot_product_efficient_attention
    assert made(lambda: call(query, query, query, None, True)) == [
        ("_scaled_dot_product_efficient_attention", 8_192_000),
        ("_scaled_dot_product_efficient_attention", 131_072),
    ]


def test_in_half_precision_the_kernel_makes_delta_itself() -> None:
    taken = backward(efficient, (2, 8, 512, 64), torch.float16, card=T4)[3:]
    assert taken == [("empty", 2 * 8 * 512 * 4), ("attention.workspace", 2 * 8 * 8 * (64 * 64 + 4) * 4)]


def test_flash_backward_sums_in_full_precision() -> None:
    """flash_api.cpp: softmax_d of rows rounded up to 128, dq_accum of heads rounded up to 32."""
    taken = backward(flash, (2, 8, 1000, 80), torch.bfloat16, card=A100)
    assert taken[3:] == [("softmax_d", 2 * 8 * 1024 * 4), ("dq_accum", 2 * 1024 * 8 * 96 * 4)]


def test_a_gradient_in_another_layout_is_copied() -> None:
    query = heads_first(2, 8, 256, 64, torch.bfloat16)
    out = flash(query, query, query)
    gradient = meta(2, 8, 256, 64, dtype=torch.bfloat16)
    taken = inside(lambda: out.backward(gradient), phase=Phase.BACKWARD)  # type: ignore[no-untyped-call]
    assert ("clone", 2 * 8 * 256 * 64 * 2) in taken


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_attention_on_real_tensors_costs_what_cudas_kernel_would(dtype: torch.dtype) -> None:
    """The CPU has a kernel of its own, with another log sum and no workspace."""
    shape = (2, 4, 200, 64)
    real = [torch.randn(2, 200, 4, 64, dtype=dtype).transpose(1, 2).requires_grad_() for _ in range(3)]
    traced = [heads_first(*shape, dtype) for _ in range(3)]
    kept: list[torch.Tensor] = []
    forward = flash if dtype is torch.bfloat16 else efficient
    live = made(lambda: kept.append(functional.scaled_dot_product_attention(*real)), device="cpu", card=A100)
    planned = made(lambda: kept.append(forward(*traced)), card=A100)
    assert [size for _, size in live] == [size for _, size in planned]
    gradients = [torch.empty(2, 200, 4, 64, dtype=dtype, device=device).transpose(1, 2) for device in ("cpu", "meta")]
    back = [
        made(lambda: out.backward(gradient), device=gradient.device.type, card=A100, phase=Phase.BACKWARD)  # noqa: B023
        for out, gradient in zip(kept, gradients, strict=True)
    ]
    assert [size for _, size in back[0]] == [size for _, size in back[1]]
