"""The cases of ``../shared/cases/cases.csv`` that are scripts: each runs the part of ours that the case is about."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import oom_case_traces as traces

from desktop_app.core.units import GIB, MIB, format_bytes
from desktop_app.forecast.trace_replay import TraceReplay
from desktop_app.memory.allocator import CachingAllocator, ReplicaOutOfMemoryError
from desktop_app.memory.oom_message import format_oom_message
from desktop_app.services.card_use import CardUse
from desktop_app.services.oom_explanation import OomAction, OomCause, explain

Answer = tuple[bool, str]
TIMEOUT_S = 240.0


def floodmark(*arguments: str, folder: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "FLOODMARK_DATA": folder, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "desktop_app", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=TIMEOUT_S, check=False)


MODEL = """
import torch

class Evaluation(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(8, 8)

    def forward(self, x):
        kept = torch.zeros(200_000, 77, 50_000, device=x.device)
        return self.head(x) + kept.sum()

def make():
    model = Evaluation()
    return model, (torch.zeros(1, 8),)
"""


def too_large_output() -> Answer:
    """OOM-26: predictions of 200,000 x 77 x 50,000 values are refused before anything runs."""
    expected = 200_000 * 77 * 50_000 * 4
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "evaluation.py"
        path.write_text(MODEL)
        done = floodmark(
            "estimate",
            "--model",
            f"python:{path}:make",
            "--gpu",
            "RTX 4090",
            "--optimizer",
            "sgd",
            "--json",
            folder=folder,
        )
    try:
        answer = json.loads(done.stdout)
        peak = answer["device_peak_bytes"]["p50"]
        verdict = answer["verdict"]
    except (ValueError, KeyError, TypeError):
        return False, f"exit {done.returncode}: {done.stderr.strip()[:200]}"
    return peak >= expected and verdict == "does_not_fit", f"{format_bytes(peak)}: {verdict}"


def grown_checkpoint() -> Answer:
    """OOM-33: a checkpoint of 900 MB after one of 500 MB."""
    try:
        from desktop_app.services.checkpoint_sizes import growth
    except ImportError:
        return False, "nothing compares the sizes of checkpoints"
    with tempfile.TemporaryDirectory() as folder:
        before, after = Path(folder) / "before.pt", Path(folder) / "after.pt"
        for path, size in ((before, 500_000_000), (after, 900_000_000)):
            with path.open("wb") as file:
                file.truncate(size)
        found = growth(before, after)
        same = growth(before, before)
    return found is not None and same is None, str(found)


def writer_out_of_memory() -> Answer:
    """OOM-40: RAM runs out after a part of the checkpoint; the one before is still whole."""
    import torch

    from desktop_app.training.checkpoints import Checkpoint, Progress, load_checkpoint, save_checkpoint

    def checkpoint(step: int) -> Checkpoint:
        progress = Progress(step=step)
        return Checkpoint({}, "", ("a", "b"), progress, {"w": torch.ones(4)}, None, torch.get_rng_state(), None)

    original = torch.save

    def fail(_: object, stream: object) -> None:
        stream.write(b"x" * 600)  # type: ignore[attr-defined]
        raise MemoryError

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "last.pt"
        save_checkpoint(path, checkpoint(1))
        torch.save = fail  # type: ignore[assignment]
        try:
            save_checkpoint(path, checkpoint(2))
        except MemoryError:
            pass
        else:
            return False, "the error was swallowed"
        finally:
            torch.save = original
        step = load_checkpoint(path).progress.step
        left = [entry.name for entry in Path(folder).iterdir()]
    return step == 1 and left == ["last.pt"], f"step {step} is kept; {', '.join(left)}"


def unsynchronised_accumulation() -> Answer:
    """OOM-49: one micro-step takes 36 GB; with whole gradients kept between micro-steps the sixth has no room in 64."""
    quiet, loud = TraceReplay(), TraceReplay()
    silent = not any(
        quiet.take(row).changes.raised for row in traces.accumulation(micro_steps=1, per_micro_step=12 * GIB)
    )
    raised = [
        alert.cause.value
        for row in traces.unsynchronised(micro_steps=6, per_micro_step=8 * GIB)
        for alert in loud.take(row).changes.raised
    ]
    return silent and bool(
        raised
    ), f"silent at 36 GB: {silent}; {', '.join(raised) or 'silent'} before the micro-step without room"


def chopped_segment() -> Answer:
    """OOM-65: a block of 11.6 GB is freed, small tensors settle in it, and it cannot be had again."""
    large, capacity = 11_643_387_904, 21 * GIB
    replica = CachingAllocator(limit_bytes=capacity)
    block = replica.allocate(large)
    replica.free(block)
    kept, between = [], []
    for _ in range(43):  # 499 MB in all, spread over the whole of it
        kept.append(replica.allocate(11 * MIB + 512))
        between.append(replica.allocate(250 * MIB))
    for hole in between:
        replica.free(hole)
    try:
        replica.allocate(large)
    except ReplicaOutOfMemoryError as error:
        message = format_oom_message(
            error.segment_bytes,
            total_bytes=capacity,
            free_bytes=capacity - error.reserved_bytes,
            allocated_bytes=error.live_bytes,
            reserved_bytes=error.reserved_bytes,
        )
    else:
        second = replica.reserved_bytes
        return False, f"there was room: {format_bytes(second)} reserved"
    found = explain(message)
    right = (
        found is not None
        and found.cause is OomCause.FRAGMENTATION
        and found.actions[0] is OomAction.EXPANDABLE_SEGMENTS
    )
    return (
        right,
        f"{found and found.cause.value}: {format_bytes(replica.idle_split_bytes)} idle, {len(kept)} pieces live",
    )


def held_by_nobody() -> Answer:
    """OOM-83: used, and no process is listed: it is others', not nothing."""
    use = CardUse()
    for _ in range(5):
        use.observe("GPU-0", used_bytes=11_409 * MIB, processes=[], memory=None, training=False)
    return use.others_bytes == 11_409 * MIB, f"others hold {format_bytes(use.others_bytes)}, owner unknown"


def good_size_after_a_bad_one() -> Answer:
    """OOM-85: the batch that does not fit is survived, and the smaller one then runs to the end."""
    config = (
        'name = "too-big"\ndevice = "simulated"\ncard = "GeForce GTX 1050 Ti capped at 0.5 GiB"\nimage_size = 64\n'
        'width = 16\nbatch_size = 1024\nepochs = 1\non_oom = "shrink"\ncpu_threads = 1\nmax_seconds = 20.0\n'
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.toml"
        path.write_text(config)
        report_path = Path(folder) / "report.json"
        done = floodmark("train", str(path), "--headless", "--report", str(report_path), folder=folder)
        report = json.loads(report_path.read_text()) if report_path.exists() else {}
    rescues = report.get("rescues") or []
    said = f"exit {done.returncode}, {len(rescues)} rescues, {report.get('steps')} steps {done.stderr.strip()[-160:]}"
    return done.returncode == 0 and bool(report.get("steps")), said
