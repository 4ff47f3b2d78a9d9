"""What the attention kernels of CUDA allocate beside their results, and what those of the CPU stand for.

From ATen/native/transformers/cuda: attention_backward.cu, mem_eff_attention/kernel_backward.h and
flash_attn/flash_api.cpp.
The fp32 backward of the efficient kernel is checked against recorded allocations (32 heads, 1,000 tokens, size 64).
"""

from __future__ import annotations

from typing import Final

import torch

from desktop_app.memory.kernels_plan import (
    Give,
    Keep,
    Kernels,
    Make,
    OpCall,
    Plan,
    Planner,
    Step,
    Take,
    bytes_of,
    copied,
    makes,
)

WORKSPACE_OP: Final = "attention.workspace"

_FLOAT: Final = 4
_FLASH_ROWS: Final = 128  # flash_api.cpp: seqlen_q_rounded
_FLASH_HEAD: Final = 32  # head_size_rounded up to 192, 256 beyond
_FLASH_WIDE_HEAD: Final = 192
_LSE_ROWS: Final = 32  # kAlignLSE
_SMALL_BLOCK: Final = 64
_LARGE_BLOCK: Final = 128  # for heads above 64 where shared memory allows: compute capability 8.0, 9.x, 10.x
_LOCK_WORDS: Final = 4  # GradQTempStorage: lock, counter, padding
_FORWARD_REGISTERS: Final = 128  # wider values are accumulated in memory
_RNG_STATE_BYTES: Final = 16  # flash keeps seed and offset on the card: two and one uint64
_RNG_OFFSET_BYTES: Final = 8
FLASH_FROM: Final = (8, 0)
_FLASH: Final = "_scaled_dot_product_flash_attention"
_EFFICIENT: Final = "_scaled_dot_product_efficient_attention"


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _efficient_workspace(batch: int, heads: int, queries: int, head: int, kernels: Kernels) -> int:
    """Gradients of the queries are summed over blocks of keys in fp32."""
    capability = kernels.capability or FLASH_FROM
    roomy = capability == FLASH_FROM or capability[0] in (9, 10)
    block = _LARGE_BLOCK if head > _SMALL_BLOCK and roomy else _SMALL_BLOCK
    words = -(-queries // block) * -(-head // block) * (block * block + _LOCK_WORDS)
    return batch * heads * _up(words, 4) * _FLOAT


def _efficient_backward(call: OpCall, kernels: Kernels) -> Plan:
    """A copy of the gradient where it is laid out otherwise, then the results, then the sums."""
    grad, query = call.get("grad_out_"), call.get("query")
    fused = call.name == "_scaled_dot_product_efficient_attention_backward"
    copy = copied(grad, wanted=not (grad.transpose(1, 2) if fused else grad).is_contiguous())
    results = makes(sum(isinstance(output, torch.Tensor) for output in call.outputs))
    return (*copy, *results, *_efficient_sums(query if fused else query.transpose(1, 2), kernels, takes=len(copy)))


def _efficient_sums(query: torch.Tensor, kernels: Kernels, *, takes: int) -> tuple[Step, ...]:
    """delta = sum(gradient × result), which 16-bit kernels make themselves, and the workspace. (B, H, S, D)."""
    batch, heads, queries, head = query.shape
    delta = batch * heads * queries * _FLOAT
    workspace = Take(WORKSPACE_OP, _efficient_workspace(batch, heads, queries, head, kernels))
    if query.dtype is not torch.float32:
        return Take("empty", delta), workspace
    product = Take("mul", query.numel() * _FLOAT)
    return product, Take("sum", delta), Take("clone", delta), Give(takes + 1), Give(takes), workspace


def _efficient_forward(call: OpCall, kernels: Kernels) -> Plan:  # noqa: ARG001 - one signature for all
    """Seed and offset stay on the host. Wide 16-bit values are accumulated in fp32."""
    query, value = call.get("query"), call.get("value")
    steps: list[Step] = [Make(0), Make(1), Make(2, 0), Make(3, 0)]
    if value.shape[-1] > _FORWARD_REGISTERS and query.dtype is not torch.float32:
        steps.append(Take("empty", call.outputs[0].numel() * _FLOAT))
    return tuple(steps)


def _flash_backward(call: OpCall, kernels: Kernels) -> Plan:  # noqa: ARG001
    """Gradients, then softmax_d and dq_accum in fp32, then gradients of keys and values spread over all heads."""
    grad, query, key, value, out = (call.get(name) for name in ("grad_out", "query", "key", "value", "out"))
    fused = call.name.startswith("_scaled")
    heads_dim, rows_dim = (1, 2) if fused else (2, 1)
    steps: list[Step] = []
    for tensor in (grad, out):
        steps += copied(tensor, wanted=not (tensor.transpose(1, 2) if fused else tensor).is_contiguous())
    steps += makes(3)
    steps += _flash_sums(query.shape[0], query.shape[heads_dim], query.shape[rows_dim], query.shape[3])
    if key.shape[heads_dim] != query.shape[heads_dim]:
        groups = query.shape[heads_dim] // key.shape[heads_dim]
        steps += [Take("empty", bytes_of(key) * groups), Take("empty", bytes_of(value) * groups)]
    return tuple(steps)


def _flash_sums(batch: int, heads: int, queries: int, head: int) -> tuple[Step, ...]:
    rows = batch * heads * _up(queries, _FLASH_ROWS)
    width = _up(head, _FLASH_HEAD) if head <= _FLASH_WIDE_HEAD else 256
    return Take("softmax_d", rows * _FLOAT), Take("dq_accum", rows * width * _FLOAT)


def _cudnn_backward(call: OpCall, kernels: Kernels) -> Plan:  # noqa: ARG001
    """cuDNN does not say what it takes: as much as flash, for the same sums in fp32."""
    query = call.get("query")
    sums = _flash_sums(query.shape[0], query.shape[1], query.shape[2], query.shape[3])
    size_bytes = sum(step.size_bytes for step in sums if isinstance(step, Take))
    return (*makes(3), Take(WORKSPACE_OP, size_bytes))


def takes_flash(query: torch.Tensor, mask: torch.Tensor | None, kernels: Kernels) -> bool:
    """Whether CUDA runs the flash kernel for what the CPU's own kernel has run."""
    recent = kernels.capability is None or kernels.capability >= FLASH_FROM
    return recent and mask is None and query.dtype in (torch.float16, torch.bfloat16)


def _cpu_forward(call: OpCall, kernels: Kernels) -> Plan:
    query = call.get("query")
    batch, heads, queries, _ = query.shape
    if takes_flash(query, call.get("attn_mask"), kernels):
        sums = Make(1, batch * heads * queries * _FLOAT, _FLASH)
        state = (Keep(_FLASH, _RNG_STATE_BYTES, 1), Keep(_FLASH, _RNG_OFFSET_BYTES, 1))
        return (Make(0, None, _FLASH), sums, *state)
    trains = torch.is_grad_enabled() and any(call.get(name).requires_grad for name in ("query", "key", "value"))
    rows = batch * heads * _up(queries, _LSE_ROWS) if trains else 0  # without backward CUDA keeps no log sum
    return Make(0, None, _EFFICIENT), Make(1, rows * _FLOAT, _EFFICIENT)


def _cpu_backward(call: OpCall, kernels: Kernels) -> Plan:
    grad, query = call.get("grad_out"), call.get("query")
    copy = copied(grad, wanted=not grad.transpose(1, 2).is_contiguous())
    flash = takes_flash(query, call.get("attn_mask"), kernels)
    results = tuple(Make(index, None, f"{_FLASH if flash else _EFFICIENT}_backward") for index in range(3))
    sums = _flash_sums(*query.shape) if flash else _efficient_sums(query, kernels, takes=len(copy))
    return (*copy, *results, *sums)


PLANNERS: Final[dict[str, Planner]] = {
    "_scaled_dot_product_efficient_attention": _efficient_forward,
    "_scaled_dot_product_efficient_attention_backward": _efficient_backward,
    "_efficient_attention_backward": _efficient_backward,
    "_scaled_dot_product_flash_attention_backward": _flash_backward,
    "_flash_attention_backward": _flash_backward,
    "_scaled_dot_product_cudnn_attention_backward": _cudnn_backward,
    "_scaled_dot_product_flash_attention_for_cpu": _cpu_forward,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _cpu_backward,
}
