# ruff: noqa: E501 - the messages are quoted as they were printed
"""Messages explained: what was full, whose it was, what to change; found in long logs, and never a traceback."""

from __future__ import annotations

import gzip
import json
import random
import textwrap
from pathlib import Path

import pytest

from desktop_app.cli import run
from desktop_app.core.units import GIB, MIB
from desktop_app.services.oom_explanation import (
    Backend,
    Explanation,
    Full,
    Note,
    OomAction,
    OomCause,
    Wording,
    explain,
    explain_parts,
)
from desktop_app.services.oom_report import as_json_text, as_text

OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 352.00 MiB (GPU 0; 7.92 GiB total capacity; 1.67 GiB already "
    "allocated; 156.00 MiB free; 120.00 MiB cached)"
)
NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 1 has a total capacity of 23.64 GiB of "
    "which 200.00 MiB is free. Process 1234 has 10.00 GiB memory in use. Including non-PyTorch memory, this process has "
    "13.40 GiB memory in use. Of the allocated memory 12.50 GiB is allocated by PyTorch, and 300.00 MiB is reserved by "
    "PyTorch but unallocated."
)
SECOND = (
    "RuntimeError: Trying to backward through the graph a second time (or directly access saved tensors after they have "
    "already been freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). "
    "Specify retain_graph=True if you need to backward through the graph a second time"
)


def found(text: str) -> Explanation:
    explanation = explain(text)
    assert explanation is not None
    return explanation


def test_others_are_what_is_left_over() -> None:
    """OOM-46: 7.92 - 1.67 - 0.12 - 0.15 GiB."""
    explanation = found(OLD)
    assert explanation.not_own_bytes == pytest.approx(5.98 * GIB, abs=0.01 * GIB)
    assert (explanation.full, explanation.cause) == (Full.CARD, OomCause.OTHER_PROCESSES)
    assert explanation.actions[0] is OomAction.END_OTHER_PROCESSES
    assert "5.98 GiB" in as_text(explanation)


def test_processes_are_named() -> None:
    explanation = found(NEW)
    assert explanation.processes == {1234: 10 * GIB}
    assert explanation.device == 1
    assert "process 1234" in as_text(explanation)
    assert json.loads(as_json_text(explanation))["processes"] == {"1234": 10 * GIB}


def test_the_hint_to_retain_the_graph_is_not_repeated_as_advice() -> None:
    explanation = found(SECOND)
    assert explanation.cause is OomCause.GRAPH_USED_TWICE
    assert explanation.actions[0] is OomAction.ONE_BACKWARD
    assert Note.RETAINED_GRAPH not in explanation.notes
    assert "alone" in as_text(explanation)


def test_a_graph_that_is_kept_is_noticed_beside_the_error() -> None:
    assert Note.RETAINED_GRAPH in found(f"    loss.backward(retain_graph=True)\n{NEW}").notes


def test_figures_that_no_memory_holds() -> None:
    """OOM-72, OOM-74."""
    wsl = found(
        "CUDA out of memory. Tried to allocate 30.00 GiB. GPU 0 has a total capacty of 15.99 GiB of which 0 bytes is free. "
        "Including non-PyTorch memory, this process has 17179869184.00 GiB memory in use. Of the allocated memory 30.00 GiB "
        "is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated."
    )
    assert {Note.NONSENSE_FIGURE, Note.ABOVE_TOTAL} <= set(wsl.notes)
    assert max(wsl.figures.values()) <= 64 * GIB
    bug = found("CUDA out of memory. Tried to allocate 16.00 EiB (GPU 0; 7.80 GiB total capacity; 5.00 GiB free)")
    assert (bug.cause, bug.actions) == (OomCause.OVERFLOWED_SIZE, (OomAction.CHECK_SHAPES,))


def test_free_far_above_the_request_is_no_reason_for_a_smaller_batch() -> None:
    """OOM-75."""
    explanation = found(
        "CUDA out of memory. Tried to allocate 12.50 MiB (GPU 0; 10.92 GiB total capacity; 8.57 MiB already allocated; "
        "9.28 GiB free; 4.68 MiB cached)"
    )
    assert explanation.full is Full.UNKNOWN
    assert Note.FREE_ABOVE_REQUEST in explanation.notes
    assert {OomAction.CHECK_COMMIT_LIMIT, OomAction.END_OTHER_PROCESSES} <= set(explanation.actions)
    assert OomAction.REDUCE_BATCH not in explanation.actions


@pytest.mark.parametrize(
    ("text", "backend", "full"),
    [
        ("HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8.00 GiB of which 1.00 GiB is free. Of the allocated memory 6.00 GiB is allocated by PyTorch, and 10.00 MiB is reserved by PyTorch but unallocated.", Backend.HIP, Full.CARD),
        ("MPS backend out of memory (MPS allocated: 6.04 GB, other allocations: 1.04 GB, max allowed: 6.77 GB). Tried to allocate 459.07 MB on private pool.", Backend.MPS, Full.LIMIT),
        ("CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate(handle)", Backend.CUDA, Full.CARD),
        ("RuntimeError: DataLoader worker (pid 9) is killed by signal: Killed.", Backend.HOST, Full.HOST),
        ("RuntimeError: DataLoader worker (pid 31) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.", Backend.HOST, Full.SHARED_MEMORY),
        ("MemoryError", Backend.HOST, Full.HOST),
    ],
)  # fmt: skip
def test_what_was_full(text: str, backend: Backend, full: Full) -> None:
    explanation = found(f"epoch 3\n{text}\n")
    assert (explanation.backend, explanation.full) == (backend, full)
    assert "What to change:" in as_text(explanation)


def test_colours_boxes_and_wraps_do_not_matter() -> None:
    boxed = "\n".join(f"│ \x1b[31m{line}\x1b[0m │" for line in textwrap.wrap(NEW, 70))
    assert found(boxed).figures == found(NEW).figures


def test_a_message_in_the_midst_of_a_long_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Wherever it stands, also across the seams of the blocks in which a file is read."""
    line = "step 12 loss 0.3 nothing to see\n"
    for before in (0, 32_760, 33_000):
        path = tmp_path / "log.txt"
        path.write_text(line * before + NEW + "\n" + line * 40_000)
        assert run(["explain", "--json", str(path)]) == 0
        assert json.loads(capsys.readouterr().out)["figures"]["tried_bytes"] == 512 * MIB


def test_the_last_message_with_figures_counts() -> None:
    assert found(f"{OLD}\n{NEW}\nRuntimeError: CUDA error: out of memory").device == 1
    assert explain_parts([OLD, "nothing", NEW[:100], NEW[100:], "MemoryError"]) == found(NEW)


def test_gzip_and_powershell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for content in (gzip.compress(NEW.encode()), NEW.encode("utf-16")):
        path = tmp_path / "log"
        path.write_bytes(content)
        assert run(["explain", str(path)]) == 0
        assert "512 MiB" in capsys.readouterr().out


def test_nothing_to_explain_is_one_line_and_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.txt"
    path.write_text("all is well\n")
    assert run(["explain", str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert run(["explain", str(tmp_path / "none")]) == 2
    path.write_bytes(gzip.compress(NEW.encode() * 50)[:-20])
    assert run(["explain", str(path)]) == 2


def test_every_code_has_words() -> None:
    from desktop_app.services import oom_report

    for words, codes in (
        (oom_report._FULL, Full),
        (oom_report._CAUSES, OomCause),
        (oom_report._ACTIONS, OomAction),
        (oom_report._NOTES, Note),
        (oom_report._BACKENDS, Backend),
    ):
        assert set(words) == set(codes)


def test_two_thousand_damaged_messages_end_in_an_answer_or_none() -> None:
    rng = random.Random(4)
    texts = [
        OLD,
        NEW,
        SECOND,
        "MPS backend out of memory (MPS allocated: 6.04 GB, other allocations: 1.04 GB, max allowed: 6.77 GB). Tried to allocate 459.07 MB",
    ]
    noise = [
        "out of memory",
        "GiB",
        "1EB",
        "-",
        "9" * 40,
        "\0",
        "\n",
        "Process 1 has 3.00 GiB memory in use. ",
        "e9",
        ".",
    ]
    answers = 0
    for _ in range(2000):
        text = rng.choice(texts)
        for _ in range(rng.randint(1, 5)):
            at, length = rng.randrange(len(text) + 1), rng.choice((0, 0, 1, 3, 12))
            text = text[:at] + rng.choice([*noise, chr(rng.randrange(1, 0x3000))]) + text[at + length :]
        explanation = explain(text)
        if explanation is not None:
            answers += 1
            assert as_text(explanation)
            assert explanation.wording in Wording
            assert all(size >= 0 for size in explanation.shares.values())
    assert answers > 500
