"""Ending a process: only the one that is meant, never our own, and every outcome is said."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psutil
import pytest

from desktop_app.core.events import Event, EventKind, EventQueue, Level
from desktop_app.core.telemetry import ProcessSample
from desktop_app.services.facade import EndOutcome
from desktop_app.services.process_control import ProcessControl, ProcessNotEnded, end_process, is_read_only
from desktop_app.telemetry.process_ending import Told, is_running, tell_to_end

SLEEPER = "import signal, sys; print('ready', flush=True); signal.pause()"
# A grandchild whose parent has ended belongs to the system, as another user's program does.
ORPHAN = """
import subprocess, sys
print(subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.DEVNULL).pid)
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


def a_sample(pid: int = 4711, **changes: Any) -> ProcessSample:
    plain = ProcessSample(pid, "GPU-a", "trainer", "ada", None, "compute", 2**30, started_wall_s=1000.0)
    return replace(plain, **changes)


def start_orphan(code: str) -> psutil.Process:
    """A process that is not below this one."""
    starter = subprocess.run(
        [sys.executable, "-c", ORPHAN, code], stdout=subprocess.PIPE, text=True, timeout=30, check=True
    )
    return psutil.Process(int(starter.stdout))


@pytest.fixture
def orphans() -> Iterator[list[psutil.Process]]:
    made: list[psutil.Process] = []
    yield made
    for process in made:
        if process.is_running():
            process.kill()


def sample_of(process: psutil.Process) -> ProcessSample:
    return a_sample(process.pid, started_wall_s=process.create_time())


class TestRefusals:
    @pytest.mark.parametrize(
        ("changes", "code", "outcome"),
        [
            ({"simulated": True}, "process.simulated", EndOutcome.NOT_ALLOWED),
            ({"foreign": True}, "process.foreign", EndOutcome.NOT_ALLOWED),
            ({"own": True}, "process.own", EndOutcome.NOT_ALLOWED),
            ({"started_wall_s": None}, "process.unknown", EndOutcome.NOT_ALLOWED),
        ],
    )
    def test_by_what_is_known_of_it(self, changes: dict[str, Any], code: str, outcome: EndOutcome) -> None:
        with pytest.raises(ProcessNotEnded) as caught:
            end_process(a_sample(**changes), tell=lambda *_, **__: pytest.fail("it was told"))
        assert (caught.value.code, caught.value.outcome) == (code, outcome)
        assert "4711" in caught.value.message
        assert "\n" not in caught.value.message

    @pytest.mark.parametrize(
        ("told", "code", "outcome"),
        [
            (Told.OWN, "process.own", EndOutcome.NOT_ALLOWED),
            (Told.GONE, "process.gone", EndOutcome.GONE),
            (Told.ANOTHER, "process.another", EndOutcome.GONE),
            (Told.DENIED, "process.no_permission", EndOutcome.NO_PERMISSION),
        ],
    )
    def test_by_what_the_system_says(self, told: Told, code: str, outcome: EndOutcome) -> None:
        with pytest.raises(ProcessNotEnded) as caught:
            end_process(a_sample(), tell=lambda *_, **__: told)
        assert (caught.value.code, caught.value.outcome) == (code, outcome)

    def test_in_read_only_mode(self) -> None:
        with pytest.raises(ProcessNotEnded, match="--read-only") as caught:
            end_process(a_sample(), read_only=True, tell=lambda *_, **__: pytest.fail("it was told"))
        assert caught.value.outcome is EndOutcome.NOT_ALLOWED

    def test_of_someone_else_names_the_owner(self) -> None:
        with pytest.raises(ProcessNotEnded, match="belongs to ada"):
            end_process(a_sample(), tell=lambda *_, **__: Told.DENIED)


class TestTheSystem:
    def test_this_program_and_its_children_are_never_ended(self) -> None:
        own = psutil.Process()
        assert tell_to_end(own.pid, started_wall_s=own.create_time(), force=True) is Told.OWN
        child = subprocess.Popen([sys.executable, "-c", SLEEPER], stdout=subprocess.PIPE)
        try:
            started_s = psutil.Process(child.pid).create_time()
            assert tell_to_end(child.pid, started_wall_s=started_s, force=True) is Told.OWN
            assert child.poll() is None
        finally:
            child.kill()
            child.communicate()

    def test_a_pid_that_is_anothers_by_now_is_left_alone(self, orphans: list[psutil.Process]) -> None:
        process = start_orphan(SLEEPER)
        orphans.append(process)
        assert tell_to_end(process.pid, started_wall_s=process.create_time() - 5.0, force=True) is Told.ANOTHER
        assert process.is_running()

    @pytest.mark.parametrize("force", [False, True])
    def test_one_is_ended(self, orphans: list[psutil.Process], force: bool) -> None:
        process = start_orphan(SLEEPER)
        orphans.append(process)
        started_s = process.create_time()
        assert tell_to_end(process.pid, started_wall_s=started_s, force=force) is Told.SENT
        while is_running(process.pid, started_wall_s=started_s):
            pass
        assert tell_to_end(process.pid, started_wall_s=started_s, force=force) is Told.GONE

    def test_the_first_process_and_one_that_is_not_there(self) -> None:
        assert tell_to_end(1, started_wall_s=0.0, force=False) is Told.DENIED
        assert tell_to_end(2**22 - 3, started_wall_s=0.0, force=False) is Told.GONE
        assert not is_running(2**22 - 3, started_wall_s=0.0)


class Stand:
    def __init__(self, *samples: ProcessSample, read_only: bool = False) -> None:
        self.now_s = 10.0
        self.events = EventQueue()
        self.running = True
        self.told: list[bool] = []
        self.control = ProcessControl(
            now_s=lambda: self.now_s,
            events=self.events,
            listed=lambda: {"GPU-a": samples},
            read_only=read_only,
            tell=self.tell,
            runs=lambda *_, **__: self.running,
        )

    def tell(self, pid: int, *, started_wall_s: float, force: bool) -> Told:
        assert (pid, started_wall_s) == (4711, 1000.0)
        self.told.append(force)
        return Told.SENT

    def said(self) -> list[Event]:
        return list(self.events.since(0)[0])


class TestEvents:
    def test_it_is_asked_and_has_ended(self) -> None:
        stand = Stand(a_sample())
        assert stand.control.end("GPU-a", 4711) is EndOutcome.SENT
        stand.control.look()
        stand.running, stand.now_s = False, 11.0
        stand.control.look()
        stand.control.look()
        assert [(event.t_s, event.kind, event.code) for event in stand.said()] == [
            (10.0, EventKind.CHANGE, "process.asked"),
            (11.0, EventKind.CHANGE, "process.ended"),
        ]
        assert stand.said()[0].params == {"pid": 4711, "name": "trainer", "uuid": "GPU-a", "force": False}

    def test_one_that_does_not_end_is_said_once_and_can_be_forced(self) -> None:
        stand = Stand(a_sample())
        stand.control.end("GPU-a", 4711)
        for stand.now_s in (12.0, 19.0, 20.0, 21.0):
            stand.control.look()
        assert [(event.t_s, event.code) for event in stand.said()] == [
            (10.0, "process.asked"),
            (20.0, "process.still_there"),
        ]
        assert stand.control.end("GPU-a", 4711, force=True) is EndOutcome.SENT
        stand.running = False
        stand.control.look()
        assert [event.code for event in stand.said()][2:] == ["process.killed", "process.ended"]
        assert stand.told == [False, True]

    def test_a_refusal_is_an_error_with_its_line(self) -> None:
        stand = Stand(a_sample(), read_only=True)
        assert stand.control.end("GPU-a", 4711) is EndOutcome.NOT_ALLOWED
        (event,) = stand.said()
        assert (event.kind, event.level, event.code) == (EventKind.ERROR, Level.WARNING, "process.read_only")
        assert "read-only" in str(event.params["message"])
        assert stand.told == []

    def test_one_that_has_left_the_card(self) -> None:
        stand = Stand()
        assert stand.control.end("GPU-a", 4711) is EndOutcome.GONE
        assert stand.control.end("GPU-b", 4711) is EndOutcome.GONE
        assert [event.code for event in stand.said()] == ["process.gone", "process.gone"]


@pytest.mark.parametrize(("value", "read_only"), [(None, False), ("", False), ("0", False), ("1", True), ("yes", True)])
def test_the_environment_may_ask_for_it(value: str | None, read_only: bool) -> None:
    environment = {} if value is None else {"FLOODMARK_READ_ONLY": value}
    assert is_read_only(environment) is read_only
    assert "FLOODMARK_READ_ONLY" not in os.environ


@pytest.mark.parametrize("command", [[], ["demo"], ["train", "run.toml"]])
def test_the_command_line_may_ask_for_it(command: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from desktop_app import cli

    parser = cli._parser()
    assert cli._launch(parser.parse_args([*command, "--read-only"])).read_only is True
    assert cli._launch(parser.parse_args(command)).read_only is False
    monkeypatch.setenv("FLOODMARK_READ_ONLY", "1")
    assert cli._launch(parser.parse_args(command)).read_only is True
