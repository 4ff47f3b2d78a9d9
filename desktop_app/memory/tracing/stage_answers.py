"""What ``torch.cuda`` would say if the chosen card were in this machine.

Models, optimizers, autocast and GradScaler ask before they work; on a machine without a card the answers would send
them down the CPU's path. Everything is put back on exit. For the whole process: one trace at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any, Final, Self

import torch

from desktop_app.memory.card_spec import CardSpec

_CAPABILITY: Final = (8, 0)  # where the card does not say
_SM_COUNT: Final = 108
_CUDNN_VERSION: Final = 91002  # as the shim says
_RNG_STATE_BYTES: Final = 16  # seed and offset
# By TrainingSpec.precision. The pure ones cast the weights instead and open no region.
_AUTOCAST_DTYPES: Final = {
    "fp32": None,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
    "pure_bf16": None,
    "pure_fp16": None,
}


def autocast_dtype(precision: str) -> torch.dtype | None:
    """The dtype of the autocast region that ``precision`` asks for; ``None`` for none. Raises ``ValueError``."""
    if precision not in _AUTOCAST_DTYPES:
        raise ValueError(f"precision must be one of {sorted(_AUTOCAST_DTYPES)}, got {precision!r}")
    return _AUTOCAST_DTYPES[precision]


class Stream:
    """The one stream there is: number 0."""

    stream_id = cuda_stream = 0
    device_index = 0
    device_type = 1

    def __init__(self, *_: Any, **__: Any) -> None:
        self.device = torch.device("cuda", 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def query(self) -> bool:
        return True

    def is_capturing(self) -> bool:
        return False

    def record_event(self, event: Event | None = None) -> Event:
        return event or Event()

    def synchronize(self) -> None: ...

    def wait_event(self, event: Any) -> None: ...

    def wait_stream(self, stream: Any) -> None: ...


class Event:
    """Has always happened."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.device = torch.device("cuda", 0)

    def query(self) -> bool:
        return True

    def elapsed_time(self, end_event: Any) -> float:  # noqa: ARG002 - torch's signature
        return 1.0

    def record(self, stream: Any = None) -> None: ...

    def synchronize(self) -> None: ...

    def wait(self, stream: Any = None) -> None: ...


# Each stand-in is an object of its own: torch._dynamo, imported late by some meta kernels, maps functions to rules.


def _always(value: Any) -> Callable[..., Any]:
    def answer(*_: Any, **__: Any) -> Any:
        return value

    return answer


def _rng_state(*_: Any, **__: Any) -> torch.Tensor:
    return torch.zeros(_RNG_STATE_BYTES, dtype=torch.uint8, device="cpu")


def _properties(card: CardSpec | None) -> SimpleNamespace:
    """The fields of ``torch.cuda.get_device_properties`` that models and libraries read."""
    major, minor = (card and card.compute_capability) or _CAPABILITY
    total_bytes = card.total_bytes if card else 1 << 40
    return SimpleNamespace(
        name=card.name if card else "generic",
        major=major,
        minor=minor,
        total_memory=total_bytes,
        multi_processor_count=(card and card.sm_count) or _SM_COUNT,
        warp_size=32,
        max_threads_per_multi_processor=2048,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=49152,
        is_integrated=False,
        is_multi_gpu_board=False,
        gcnArchName="",
    )


def _cuda_answers(card: CardSpec | None) -> dict[str, Any]:
    properties = _properties(card)
    capability = (properties.major, properties.minor)
    stream = Stream()
    answers: dict[str, Any] = {
        "is_available": _always(value=True),
        "is_initialized": _always(value=True),
        "device_count": _always(1),
        "current_device": _always(0),
        "get_device_name": _always(properties.name),
        "get_device_capability": _always(capability),
        "get_device_properties": _always(properties),
        "get_arch_list": _always([f"sm_{capability[0]}{capability[1]}"]),
        "is_bf16_supported": lambda including_emulation=True: bool(including_emulation) or capability >= (8, 0),
        "mem_get_info": _always((properties.total_memory, properties.total_memory)),
        "current_stream": _always(stream),
        "default_stream": _always(stream),
        "stream": lambda stream=None: stream or Stream(),
        "Stream": Stream,
        "ExternalStream": Stream,
        "Event": Event,
        "get_rng_state": _rng_state,
        "get_rng_state_all": lambda: [_rng_state()],
        "initial_seed": _always(0),
        "memory_stats": _always({}),
        "is_current_stream_capturing": _always(value=False),
        "can_device_access_peer": _always(value=False),
        "_exchange_device": _always(0),
        "_maybe_exchange_device": _always(0),
    }
    quiet = (
        "_lazy_init init _lazy_call set_device synchronize set_stream empty_cache ipc_collect manual_seed "
        "manual_seed_all seed seed_all set_rng_state set_rng_state_all reset_peak_memory_stats "
        "reset_accumulated_memory_stats reset_max_memory_allocated reset_max_memory_cached "
        "set_per_process_memory_fraction"
    )
    answers.update((name, _always(None)) for name in quiet.split())
    sizes = "memory_allocated max_memory_allocated memory_reserved max_memory_reserved memory_cached max_memory_cached"
    answers.update((name, _always(0)) for name in sizes.split())
    return answers


def _accelerator_answers() -> dict[str, Any]:
    """Optimizers of 2.14 ask here whether a stream is being captured, which a CUDA build asks its driver."""
    stream = Stream()
    return {
        "device_count": _always(1),
        "is_available": _always(value=True),
        "current_accelerator": _always(torch.device("cuda")),
        "current_device_index": _always(0),
        "current_device_idx": _always(0),
        "current_stream": _always(stream),
        "set_device_index": _always(None),
        "set_device_idx": _always(None),
        "set_stream": _always(None),
        "synchronize": _always(None),
        "empty_cache": _always(None),
    }


@contextmanager
def card_answers(card: CardSpec | None) -> Iterator[None]:
    """``torch.cuda`` and ``torch.backends.cudnn`` speak of this card; ``None`` is a recent one without limits."""
    from torch.cuda.amp import common

    with ExitStack() as stack:
        for name, value in _cuda_answers(card).items():
            patch(stack, torch.cuda, name, value)
        for name, value in (
            ("get_rng_state", _rng_state),
            ("set_rng_state", _always(None)),
            ("manual_seed_all", _always(None)),
        ):
            patch(stack, torch.cuda.random, name, value)
        if hasattr(torch, "accelerator"):  # 2.6 has it
            for name, value in _accelerator_answers().items():
                patch(stack, torch.accelerator, name, value)
        patch(stack, common, "amp_definitely_not_available", _always(value=False))
        patch(stack, torch.backends.cudnn, "is_available", _always(value=True))
        patch(stack, torch.backends.cudnn, "version", _always(_CUDNN_VERSION))
        patch(stack, torch.backends.cuda, "is_built", _always(value=True))
        yield


def patch(stack: ExitStack, owner: Any, name: str, value: Any) -> None:
    """Set an attribute until the stack closes; nothing where this torch does not have it.

    Threads that trace at the same time may close in any order: the last one puts back what was there before the first.
    """
    if not hasattr(owner, name):
        return
    token = object()
    with _patching:
        values = _patched.setdefault((id(owner), name), {_BEFORE: owner.__dict__.get(name, getattr(owner, name))})
        values[token] = value
        setattr(owner, name, value)
    stack.callback(_unpatch, owner, name, token)


def _unpatch(owner: Any, name: str, token: object) -> None:
    with _patching:
        values = _patched[id(owner), name]
        del values[token]
        setattr(owner, name, [*values.values()][-1])
        if len(values) == 1:
            del _patched[id(owner), name]


_BEFORE: Final = object()
_patching: Final = threading.Lock()
_patched: Final[dict[tuple[int, str], dict[object, Any]]] = {}  # what was there before, then what is set, oldest first
