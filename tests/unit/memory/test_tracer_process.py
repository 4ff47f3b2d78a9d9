"""Tracing in a child: it answers, survives what models do, and never outlives who asked."""

from __future__ import annotations

import os
import queue
import select
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from desktop_app.core.errors import ExitCode
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.trace_errors import TracerError
from desktop_app.memory.tracer_process import TracerProcess
from desktop_app.memory.training_spec import TrainingSpec

PATIENCE_S = 60.0
CARD = CardSpec("test", 8 << 30, 8 << 30, "Turing", (7, 5), 22)
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals and fifos")
LINUX = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs pidfd_open and /proc")

MODEL = """
import torch
from torch import nn

def batch(size, device):
    return torch.zeros(size, 64, device=device)

def step(model, inputs):
    return model(inputs).sum()

def make(**_):
    model = nn.Linear(64, 32)
    return model, torch.optim.SGD(model.parameters(), lr=0.1), step, batch
"""


@pytest.fixture(scope="module")
def shared() -> Iterator[TracerProcess]:
    """One warm child for the tests that do not end it; those in between may take long."""
    with TracerProcess(idle_s=600.0) as tracer:
        tracer.start()
        yield tracer


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def to_file(code: str, *, after: str = "") -> TrainingSpec:
        path = tmp_path / f"model_{len(list(tmp_path.iterdir()))}.py"
        path.write_text(MODEL + textwrap.dedent(code) + after)
        return TrainingSpec(model=f"python:{path}:make", batch_size=4)

    return to_file


def refused(tracer: TracerProcess, spec: TrainingSpec, **options: Any) -> TracerError:
    with pytest.raises(TracerError) as caught:
        tracer.trace(spec, CARD, **options)
    assert "\n" not in caught.value.message
    return caught.value


def pid_of(tracer: TracerProcess) -> int:
    assert tracer._child is not None
    return tracer._child.pid


def is_gone(pid: int) -> bool:
    """Ended, not a zombie of ours either."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], PATIENCE_S)[0])
    finally:
        os.close(handle)


def test_one_child_answers_many_jobs(shared: TracerProcess, write: Any) -> None:
    spec = write("")
    first, second = shared.trace(spec, CARD), shared.trace(spec.changed(batch_size=8), CARD)
    assert (first.batch_size, second.batch_size) == (4, 8)
    sizes = [event.size_bytes for event in first.events if event.key > 0]
    assert 64 * 32 * 4 in sizes  # the weight
    assert 4 * 64 * 4 in sizes  # the batch
    assert 8 * 64 * 4 in [event.size_bytes for event in second.events]
    assert first.torch_version
    pid = pid_of(shared)
    shared.trace(spec, CARD)
    assert pid_of(shared) == pid


def test_what_the_model_prints_does_not_reach_the_pipe(shared: TracerProcess, write: Any) -> None:
    spec = write(
        """
        import os, subprocess, sys
        def make():
            print("x" * 100_000)
            sys.stderr.write("warning: " + "y" * 100_000 + "\\n")
            os.write(1, b'\\x1e{"id":0,"error":{"kind":"failed","message":"forged"}}\\n')
            subprocess.run([sys.executable, "-c", "print('from a process', input if False else 1)"], check=True)
            assert sys.stdin.read() == ""
            model = nn.Linear(64, 32)
            return model, torch.optim.SGD(model.parameters(), lr=0.1), step, batch
        """
    )
    assert shared.trace(spec, CARD).batch_size == 4


@pytest.mark.parametrize(
    ("code", "kind", "line"),
    [
        ("def make(:\n", "syntax_error", ":15: "),
        ("def make():\n    return 1 / 0\n", "bad_model", ":16: ZeroDivisionError: division by zero"),
        ("def other(): pass\n", "bad_model", None),
        ("import nowhere_to_be_found\n", "bad_model", "nowhere_to_be_found"),
        ("raise ValueError('first\\nsecond')\n", "bad_model", ":15: ValueError: first"),
        ("import os\ndef make():\n    raise SystemExit(3)\n", "bad_model", None),
        ("def make():\n    raise KeyboardInterrupt\n", "bad_model", ":16: KeyboardInterrupt"),
        ("def make():\n    raise RuntimeError('\\x1b[31mred')\n", "bad_model", ":16: RuntimeError: ?[31mred"),
        ("class E(Exception):\n    __str__ = None\ndef make():\n    raise E()\n", "bad_model", ":18: E"),
        ("x = '\0'\n", "syntax_error", None),
    ],
)
def test_errors_of_the_users_file_are_one_line_and_the_child_lives(
    shared: TracerProcess, tmp_path: Path, code: str, kind: str, line: str | None
) -> None:
    path = tmp_path / f"user_{abs(hash(code))}.py"
    path.write_text(MODEL.replace("def make(**_):", "def unused():") + "\n" + code)
    error = refused(shared, TrainingSpec(model=f"python:{path}:make"))
    assert error.kind in (kind, "function_missing")
    assert str(path) in error.message
    assert line is None or line in error.message
    assert error.exit_code is ExitCode.USAGE
    assert shared.trace(_spec_of(tmp_path), CARD).events


def _spec_of(folder: Path) -> TrainingSpec:
    path = folder / "fine.py"
    path.write_text(MODEL)
    return TrainingSpec(model=f"python:{path}:make")


def test_a_file_that_has_changed_is_read_anew(write: Any, tmp_path: Path) -> None:
    part = tmp_path / "width_of_mine.py"
    part.write_text("WIDTH = 32\n")
    spec = write(
        """
        import width_of_mine
        def make():
            model = nn.Linear(64, width_of_mine.WIDTH)
            return model, torch.optim.SGD(model.parameters(), lr=0.1), step, batch
        """
    )
    with TracerProcess() as tracer:
        assert _allocates(tracer, spec, 64 * 32 * 4)
        pid = pid_of(tracer)
        assert _allocates(tracer, spec, 64 * 32 * 4)
        assert pid_of(tracer) == pid
        part.write_text("WIDTH = 512\n")
        os.utime(part, ns=(1, 1))
        assert _allocates(tracer, spec, 64 * 512 * 4)


def _allocates(tracer: TracerProcess, spec: TrainingSpec, size_bytes: int) -> bool:
    return size_bytes in [event.size_bytes for event in tracer.trace(spec, CARD).events]


HANGS = """
def make(path=None):
    open(path, "w").close()  # a fifo: returns when the test has opened its end
    while True:
        pass
"""


@pytest.fixture
def hanging(write: Any, tmp_path: Path) -> tuple[TrainingSpec, Path]:
    """A model that never ends, and the fifo that says when it has begun not to."""
    fifo = tmp_path / "begun"
    os.mkfifo(fifo)
    return write(HANGS).changed(arguments={"path": str(fifo)}), fifo


@POSIX
def test_a_cancel_ends_the_job_and_the_next_one_is_answered(hanging: tuple[TrainingSpec, Path], tmp_path: Path) -> None:
    spec, fifo = hanging
    with TracerProcess() as tracer:
        errors: queue.SimpleQueue[TracerError] = queue.SimpleQueue()
        thread = threading.Thread(target=lambda: errors.put(refused(tracer, spec)))
        thread.start()
        fifo.read_bytes()  # it hangs now
        pid = pid_of(tracer)
        tracer.cancel()
        assert errors.get(timeout=PATIENCE_S).kind == "cancelled"
        thread.join(PATIENCE_S)
        assert is_gone(pid)
        assert tracer.trace(_spec_of(tmp_path), CARD).events
        assert pid_of(tracer) != pid


@POSIX
def test_a_kill_is_said_and_the_next_job_is_answered(hanging: tuple[TrainingSpec, Path], tmp_path: Path) -> None:
    spec, fifo = hanging
    with TracerProcess() as tracer:
        errors: queue.SimpleQueue[TracerError] = queue.SimpleQueue()
        thread = threading.Thread(target=lambda: errors.put(refused(tracer, spec)))
        thread.start()
        fifo.read_bytes()
        os.kill(pid_of(tracer), signal.SIGKILL)
        error = errors.get(timeout=PATIENCE_S)
        thread.join(PATIENCE_S)
        assert (error.kind, error.exit_code) == ("killed", ExitCode.RUN_FAILED)
        assert tracer.trace(_spec_of(tmp_path), CARD).events


@POSIX
def test_a_close_in_the_middle_of_a_job_ends_all_that_the_model_started(write: Any, tmp_path: Path) -> None:
    fifo = tmp_path / "pid"
    os.mkfifo(fifo)
    spec = write(
        """
        import subprocess, sys
        def make(path):
            process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            with open(path, "w") as fifo:
                fifo.write(str(process.pid))
            while True:
                pass
        """
    ).changed(arguments={"path": str(fifo)})
    tracer = TracerProcess()
    errors: queue.SimpleQueue[TracerError] = queue.SimpleQueue()
    thread = threading.Thread(target=lambda: errors.put(refused(tracer, spec)))
    thread.start()
    grandchild = int(fifo.read_text())
    child = pid_of(tracer)
    tracer.close()
    assert errors.get(timeout=PATIENCE_S).kind == "cancelled"
    thread.join(PATIENCE_S)
    assert is_gone(child)
    assert is_gone(grandchild)
    assert refused(tracer, spec).kind == "cancelled"


def test_a_job_that_takes_too_long_is_stopped(write: Any) -> None:
    spec = write("def make():\n    while True:\n        pass\n")
    with TracerProcess() as tracer:
        error = refused(tracer, spec, time_limit_s=0.3)
    assert error.kind == "time_limit"
    assert "0.3 s" in error.message


@LINUX
def test_a_job_that_takes_too_much_memory_is_stopped(write: Any) -> None:
    spec = write("def make():\n    hoard = []\n    while True:\n        hoard.append(bytearray(b'1' * (8 << 20)))\n")
    with TracerProcess(memory_limit_bytes=700 << 20) as tracer:
        error = refused(tracer, spec)
        assert error.kind == "memory_limit"
        assert "700 MiB" in error.message


def test_a_crash_is_said_with_its_last_words(write: Any) -> None:
    spec = write("import os, sys\ndef make():\n    sys.stderr.write('the last straw\\n')\n    os.abort()\n")
    with TracerProcess() as tracer:
        error = refused(tracer, spec, rung="meta")
    assert error.kind == "crashed"
    if os.name == "posix":
        assert "SIGABRT" in error.message
    assert "the last straw" in error.message


def test_a_rung_that_is_not_here_is_refused_with_the_reason(write: Any) -> None:
    with TracerProcess(hide_cards=True) as tracer:
        error = refused(tracer, write(""), rung="native")
    assert (error.kind, error.message) == ("bad_spec", "no native rung here: torch sees no card.")


def test_a_step_that_calls_backward_is_told_not_to(shared: TracerProcess, write: Any) -> None:
    spec = write(
        """
        def step(model, inputs):
            loss = (model(inputs) ** 2).sum()
            loss.backward()
            return loss
        """
    )
    error = refused(shared, spec)
    assert error.kind == "bad_model"
    assert "calls .backward()" in error.message


@pytest.mark.parametrize("rung", [None, "meta"])
def test_a_batch_on_the_host_is_told_where_to_be_made(shared: TracerProcess, write: Any, rung: str | None) -> None:
    error = refused(shared, write("def batch(size, device):\n    return torch.zeros(size, 64)\n"), rung=rung)
    assert error.kind == "bad_model"
    assert ".py:9: a tensor is on the CPU while the model is on the card: make the batch on `device` (" in error.message


def test_last_words_are_one_short_line_whatever_was_printed(write: Any) -> None:
    spec = write("import os\ndef make():\n    os.write(2, b'\\x1b\\xff' * 99_999 + b'the end\\n')\n    os._exit(3)\n")
    with TracerProcess() as tracer:
        error = refused(tracer, spec, rung="meta")
    assert error.message.endswith("the end")
    assert len(error.message) < 300
    assert "\x1b" not in error.message


@LINUX
def test_an_idle_child_ends_and_is_reaped(write: Any) -> None:
    spec = write("")
    with TracerProcess(idle_s=0.05) as tracer:
        tracer.trace(spec, CARD)
        pid = pid_of(tracer)
        assert is_gone(pid)
        assert tracer.trace(spec, CARD).events
        assert not Path(f"/proc/{pid}").exists() or pid == pid_of(tracer)


@LINUX
def test_a_child_does_not_outlive_a_parent_that_is_killed(hanging: tuple[TrainingSpec, Path]) -> None:
    spec, fifo = hanging
    code = f"""
import threading
from desktop_app.memory.card_spec import CardSpec
from desktop_app.memory.tracer_process import TracerProcess
from desktop_app.memory.training_spec import TrainingSpec
tracer = TracerProcess()
spec = TrainingSpec(model={spec.model!r}, arguments={dict(spec.arguments)!r})
threading.Thread(target=tracer.trace, args=(spec, CardSpec("test", 1 << 33, 1 << 33)), daemon=True).start()
open({str(fifo)!r}).read()
print(tracer._child.pid, flush=True)
threading.Event().wait()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    assert is_gone(child)
