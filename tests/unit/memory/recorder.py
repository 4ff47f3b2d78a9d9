"""Writes recordings in the form of ``torch.cuda.memory._snapshot()``, from any allocator that says what it does.

The form is that of torch 2.13: torch/cuda/memory.py, torch/csrc/cuda/memory_snapshot.cpp and Module.cpp.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from desktop_app.memory.allocator import AllocatorSettings, Block, CachingAllocator, ReplicaOutOfMemoryError
from desktop_app.memory.segments import FREE, LIVE

STATES = {FREE: "inactive", LIVE: "active_allocated"}


def frame(filename: str, line: int, name: str) -> dict[str, Any]:
    return {"filename": filename, "line": line, "name": name}


TRAIN = frame("/home/ada/project/train.py", 42, "step")
MODEL = frame("/home/ada/project/model.py", 7, "forward")
LINEAR = frame("/usr/lib/python3/dist-packages/torch/nn/modules/linear.py", 125, "forward")
ADDMM = frame("??", 0, "at::native::addmm_out_cuda(at::Tensor const&, at::Tensor const&)")
EMPTY = frame("??", 0, "at::native::empty_cuda(c10::ArrayRef<long>)")
BACKWARD = frame("??", 0, "torch::autograd::generated::AddmmBackward0::apply(std::vector<at::Tensor>&&)")
ENGINE = frame("??", 0, "torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)")

FORWARD_STACK = [EMPTY, ADDMM, LINEAR, MODEL, TRAIN]
BACKWARD_STACK = [EMPTY, BACKWARD, ENGINE]


@dataclass
class Recorder:
    """Carries out calls on an allocator and writes down what torch would."""

    limit_bytes: int | None = None
    total_bytes: int | None = None
    settings_text: str = ""
    entries: list[dict[str, Any]] = field(default_factory=list)
    recording: bool = True

    def __post_init__(self) -> None:
        settings = AllocatorSettings.parse(self.settings_text)
        self.expandable = settings.expandable_segments
        self.allocator = CachingAllocator(limit_bytes=self.limit_bytes, total_bytes=self.total_bytes, settings=settings)
        self.stacks: dict[int, list[dict[str, Any]]] = {}
        self.time_us = 1_700_000_000_000_000

    def alloc(self, size: int, *, stream: int = 0, stack: list[dict[str, Any]] | None = None) -> Block:
        frames = FORWARD_STACK if stack is None else stack
        before = self._spans()
        try:
            block = self.allocator.allocate(size, stream=stream)
        except ReplicaOutOfMemoryError:
            self._drive(before)
            self._write("oom", size=-(-size // 512) * 512, stream=stream, frames=frames, device_free=3 << 20)
            raise
        self._drive(before)
        self._write("alloc", addr=block.address, size=size, stream=stream, frames=frames)
        self.stacks[block.address] = frames
        return block

    def free(self, block: Block, *, completed: bool = True) -> None:
        self._write("free_requested", addr=block.address, size=block.requested_bytes, stream=block.stream)
        facts = {"addr": block.address, "size": block.requested_bytes, "stream": block.stream}
        self.allocator.free(block)
        if completed:
            self._write("free_completed", **facts)

    def complete(self, block: Block) -> None:
        facts = {"addr": block.address, "size": block.requested_bytes, "stream": block.stream}
        self.allocator.complete(block)
        self._write("free_completed", **facts)

    def empty_cache(self) -> None:
        before = self._spans()
        self.allocator.empty_cache()
        self._drive(before)

    def snapshot(self, *, devices: int = 1, device: int = 0) -> dict[str, Any]:
        traces: list[list[dict[str, Any]]] = [[] for _ in range(devices)]
        traces[device] = list(self.entries)
        return {
            "segments": [self._segment(view, device) for view in self.allocator.segments()],
            "device_traces": traces,
            "allocator_settings": {
                "PYTORCH_CUDA_ALLOC_CONF": self.settings_text,
                "max_split_size": -1,
                "garbage_collection_threshold": 0.0,
                "expandable_segments": self.expandable,
                "pinned_num_register_threads": 1,
                "release_lock_on_cudamalloc": False,
                "pinned_use_cuda_host_register": False,
                "roundup_power2_divisions": {str(1 << power): 0 for power in range(16)},
            },
            "external_annotations": [],
        }

    def _segment(self, view: Any, device: int) -> dict[str, Any]:
        return {
            "device": device,
            "address": view.address,
            "total_size": view.size_bytes,
            "allocated_size": sum(block.size_bytes for block in view.blocks if block.state == LIVE),
            "active_size": sum(block.size_bytes for block in view.blocks if block.state != FREE),
            "requested_size": sum(block.requested_bytes for block in view.blocks if block.state != FREE),
            "stream": view.stream,
            "segment_type": "small" if view.small else "large",
            "segment_pool_id": view.pool,
            "is_expandable": view.expandable,
            "frames": [],
            "blocks": [
                {
                    "address": block.address,
                    "size": block.size_bytes,
                    "requested_size": block.requested_bytes,
                    "state": STATES.get(block.state, "active_pending_free"),
                    "frames": self.stacks.get(block.address, []),
                }
                for block in view.blocks
            ],
        }

    def _spans(self) -> set[tuple[int, int, int]]:
        """Address, size and stream of every segment, or of every 2 MiB of mapped pages."""
        page = 2 << 20
        if not self.expandable:
            return {(view.address, view.size_bytes, view.stream) for view in self.allocator.segments()}
        return {
            (view.address + offset, page, view.stream)
            for view in self.allocator.segments()
            for offset in range(0, view.size_bytes, page)
        }

    def _drive(self, before: set[tuple[int, int, int]]) -> None:
        """What came and went at the driver, what went first; pages that lie together as one event."""
        after = self._spans()
        names = ("segment_unmap", "segment_map") if self.expandable else ("segment_free", "segment_alloc")
        for name, spans in zip(names, (before - after, after - before), strict=True):
            for address, size, stream in join(spans) if self.expandable else sorted(spans):
                self._write(name, addr=address, size=size, stream=stream)

    def _write(self, action: str, **facts: Any) -> None:
        self.time_us += 10
        if self.recording:
            facts.setdefault("frames", [])
            self.entries.append({"action": action, **facts, "time_us": self.time_us, "compile_context": "N/A"})


def join(spans: set[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    joined: list[tuple[int, int, int]] = []
    for address, size, stream in sorted(spans):
        if joined and joined[-1][0] + joined[-1][1] == address and joined[-1][2] == stream:
            joined[-1] = (joined[-1][0], joined[-1][1] + size, stream)
        else:
            joined.append((address, size, stream))
    return joined
