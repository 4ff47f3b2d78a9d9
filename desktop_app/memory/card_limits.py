"""What a card's kernels are launched with: multiprocessors, threads, the workspace of cuBLAS. Standard library only."""

from __future__ import annotations

from typing import Final

from desktop_app.core.units import MIB
from desktop_app.memory.card_spec import CardSpec

CUDNN_OP: Final = "cudnn.workspace"  # what books cuDNN's workspace in a trace

# Median SM counts of the catalogue's cards, for a card whose own count is unknown.
_TYPICAL_SM_COUNT: Final = {
    "pascal": 20,
    "volta": 80,
    "turing": 40,
    "ampere": 68,
    "ada lovelace": 58,
    "hopper": 132,
    "blackwell": 84,
}
_DEFAULT_SM_COUNT: Final = 46

# Resident threads per SM: CUDA C++ programming guide, table of technical specifications per compute capability.
_THREADS_PER_SM: Final = {(7, 5): 1024, (8, 6): 1536, (8, 7): 1536, (8, 9): 1536, (12, 0): 1536, (12, 1): 1536}
_DEFAULT_THREADS_PER_SM: Final = 2048

# PyTorch's default CUBLAS_WORKSPACE_CONFIG is :4096:2:16:8, in KiB; :4096:8 where wgmma needs it.
CUBLAS_WORKSPACE_BYTES: Final = 8_519_680
CUBLAS_WORKSPACE_LARGE_BYTES: Final = 32 * MIB
_LARGE_WORKSPACE_MAJORS: Final = frozenset({9, 10, 12})


def sm_count(card: CardSpec) -> int:
    """Streaming multiprocessors; the median of the architecture where the card does not say."""
    if card.sm_count is not None:
        return card.sm_count
    return _TYPICAL_SM_COUNT.get((card.architecture or "").lower(), _DEFAULT_SM_COUNT)


def threads_per_sm(card: CardSpec) -> int:
    """Resident threads of one SM."""
    if card.compute_capability is None:
        return _DEFAULT_THREADS_PER_SM
    return _THREADS_PER_SM.get(card.compute_capability, _DEFAULT_THREADS_PER_SM)


def cublas_workspace_bytes(card: CardSpec) -> int:
    """One cuBLAS workspace. PyTorch makes one per handle, and a handle per thread: forward and backward."""
    major = card.compute_capability[0] if card.compute_capability else 0
    return CUBLAS_WORKSPACE_LARGE_BYTES if major in _LARGE_WORKSPACE_MAJORS else CUBLAS_WORKSPACE_BYTES
