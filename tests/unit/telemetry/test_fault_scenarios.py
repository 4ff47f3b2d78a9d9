"""What a driver can do wrong, played through the real bindings, backend and sampler: readings, reasons and events."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from desktop_app.core.telemetry import INSTANCE_FIELDS

HERE = Path(__file__).parent
PLAYER = HERE.parents[1] / "fake_nvml" / "play_scenarios.py"
SCENARIOS: list[dict[str, Any]] = [
    scenario
    for name in ("fault_scenarios.toml", "detail_scenarios.toml")
    for scenario in tomllib.loads((HERE / name).read_text(encoding="utf-8"))["scenario"]
]
NAMES = [scenario["name"] for scenario in SCENARIOS]
FOR_PLAYER = frozenset(
    {"name", "script", "seconds", "hz", "environment", "patience_s", "pace_ms", "watch", "container", "holds"}
)
TIME_SLACK_S = 0.21  # one tick at 5 Hz: what happens between two ticks is seen at the next


def uuid_of(card: int | str) -> str:
    return f"GPU-{int(card):08d}-1111-2222-3333-444444444444"


@pytest.fixture(scope="module")
def played(driver_folder: Path) -> dict[str, Any]:
    """All scenarios, one after the other, in one process."""
    given = [{"seconds": 0.3} | {key: s[key] for key in FOR_PLAYER & s.keys()} for s in SCENARIOS]
    usual = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "FAKE_NVML"))}
    result = subprocess.run(
        [sys.executable, str(PLAYER), json.dumps(given)],
        env={**usual, "LD_LIBRARY_PATH": str(driver_folder)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    answers: dict[str, Any] = json.loads(result.stdout)
    return answers


def test_names_are_unique_and_there_are_enough() -> None:
    assert len(set(NAMES)) == len(NAMES) >= 40


@pytest.mark.parametrize("scenario", SCENARIOS, ids=NAMES)
def test_scenario(scenario: dict[str, Any], played: dict[str, Any]) -> None:
    seen = played[scenario["name"]]
    ids = [card["uuid"] for card in seen["cards"]]
    if "ids" in scenario:
        assert ids == scenario["ids"]
    if "listed" in scenario:
        assert [int(card["bus_id"][9:11], 16) - 1 for card in seen["cards"]] == scenario["listed"]
    by_card = {str(int(card["bus_id"][9:11], 16) - 1): card for card in seen["cards"]}
    for number, facts in scenario.get("cards", {}).items():
        check_facts(by_card[number], facts)
    for number, readings in scenario.get("readings", {}).items():
        mine = seen["readings"][by_card[number]["uuid"]]
        assert {name: told(*mine[name]) for name in readings} == approximately(readings)
    for number, settings in scenario.get("settings", {}).items():
        assert {name: by_card[number][name] for name in settings} == settings
    for number, slices in scenario.get("slices", {}).items():
        found = by_card[number]["instances"]
        assert len(found) == len(slices)
        assert [{name: f[name] for name in s} for f, s in zip(found, slices, strict=True)] == slices
    for number, readings in scenario.get("instances", {}).items():
        card, instance = number.split(".")
        mine = seen["instances"][uuid_of(card)][uuid_of(instance).replace("GPU", "MIG")]
        assert set(mine) == set(INSTANCE_FIELDS)
        assert {name: told(*mine[name]) for name in readings} == approximately(readings)
    for number, series in scenario.get("series", {}).items():
        for name, expected in series.items():
            assert [told(*pair[1:]) for pair in seen["series"][f"{uuid_of(number)} {name}"]] == approximately(expected)
    for number, expected in scenario.get("processes", {}).items():
        listed = seen["processes"][uuid_of(number)]
        assert {str(p["pid"]): shown(p, expected.get(str(p["pid"]))) for p in listed} == expected
    check_events(seen["events"], scenario.get("events", []), any_order=scenario.get("any_order", False))
    check_errors(seen["errors"], scenario)
    check_filled(seen["filled"], scenario.get("filled", {}))
    for number, count in scenario.get("samples", {}).items():
        assert seen["samples"][uuid_of(number)] == pytest.approx(count, abs=1)
    for name, expected in scenario.get("mean", {}).items():
        values = [pair[1] for pair in seen["series"][f"{uuid_of(0)} {name}"][1:]]  # the first look has none before it
        assert sum(values) / len(values) == pytest.approx(expected, abs=5)
        assert max(values) - min(values) < 40
    if "missed" in scenario:
        assert seen["missed"] == pytest.approx(scenario["missed"], abs=1)
    assert seen["left_alone"] == scenario.get("left_alone", 0)


def told(value: float | None, reason: str | None) -> float | str:
    """A value, or the reason for none: never both, never neither."""
    assert (value is None) != (reason is None)
    return reason if value is None else value  # type: ignore[return-value]


def shown(process: dict[str, Any], expected: Any) -> Any:
    """The memory of a process, or of what is asked in a table: each a value or its reason."""
    memory = told(process["memory_bytes"], process["memory_reason"])
    if not isinstance(expected, dict):
        return memory
    sm = told(process["sm_percent"], process["sm_reason"])
    known = process | {"memory": memory, "sm": sm, "bus": process["memory_bus_percent"]}
    return {name: "none" if known[name] is None else known[name] for name in expected}


def approximately(expected: Any) -> Any:
    if isinstance(expected, dict):
        return {name: approximately(value) for name, value in expected.items()}
    if isinstance(expected, list):
        return [approximately(value) for value in expected]
    return expected if isinstance(expected, str) else pytest.approx(expected, rel=1e-4)


def check_facts(card: dict[str, Any], facts: dict[str, Any]) -> None:
    for name, expected in facts.items():
        if expected == "none":
            assert card[name] is None
        elif isinstance(expected, str):
            assert (card.get(name), card["reasons"][name]) == (None, expected)
        else:
            assert card[name] == expected


def check_errors(errors: list[list[Any]], scenario: dict[str, Any]) -> None:
    """Times to a tick; of a storm, which takes its own time, that none is lost."""
    if "storm" in scenario:
        card, xid, count = scenario["storm"]
        assert [error[1:] for error in errors] == [[uuid_of(card), xid]] * count
        return
    wanted = [[t_s, uuid_of(card), xid] for t_s, card, xid in scenario.get("errors", [])]
    assert [error[1:] for error in errors] == [error[1:] for error in wanted]
    assert [error[0] for error in errors] == pytest.approx([error[0] for error in wanted], abs=TIME_SLACK_S)


def check_filled(filled: dict[str, list[list[float]]], expected: dict[str, dict[str, Any]]) -> None:
    """The driver's own record of a gap: [first, last, how many, values in order] of each field, by card."""
    spans = {
        name: [pairs[0][0], pairs[-1][0], len(pairs), sorted({value for _, value in pairs})]
        for name, pairs in filled.items()
    }
    wanted = {f"{uuid_of(card)} {name}": span for card, fields in expected.items() for name, span in fields.items()}
    assert spans.keys() == wanted.keys()
    for name, (first_s, last_s, count, values) in wanted.items():
        assert spans[name][:3] == [
            pytest.approx(first_s, abs=0.17),
            pytest.approx(last_s, abs=0.17),
            pytest.approx(count, abs=1),
        ], name
        assert spans[name][3] == pytest.approx(values), name
        times = [t_s for t_s, _ in filled[name]]
        assert all(a < b for a, b in pairwise(times)), name


def check_events(events: list[list[Any]], expected: list[list[Any]], *, any_order: bool) -> None:
    """Kind, card and reason exactly; times to a tick."""
    wanted = [[kind, t, None if card == "all" else uuid_of(card), reason or None] for kind, t, card, reason in expected]
    if any_order:
        events, wanted = (sorted(each, key=lambda event: str(event[2])) for each in (events, wanted))
    assert [[e[0], *e[2:]] for e in events] == [[e[0], *e[2:]] for e in wanted], events
    for event, [_, t_s, *_] in zip(events, wanted, strict=True):
        assert event[1] == pytest.approx(t_s, abs=TIME_SLACK_S), events


FORK = """
import os, sys
from desktop_app.core.clock import SessionClock
from desktop_app.telemetry.backend import BackendUnavailable
from desktop_app.telemetry.nvml_backend import NvmlBackend
from desktop_app.telemetry.sampler import Sampler
from tests.fake_nvml.play_scenarios import NoHost, Notes, load_library

library, backend = load_library(), NvmlBackend(SessionClock())
(card,) = backend.open()
sampler = Sampler(backend, SessionClock(), sink=Notes([]), host=NoHost())
calls = library.fake_nvml_calls()
child = os.fork()
if child == 0:
    refused = 0
    for ask in (backend.open, lambda: backend.read_fast(card), lambda: backend.processes(card)):
        try:
            ask()
        except BackendUnavailable:
            refused += 1
    backend.close()
    os._exit(10 * refused + (sampler.stop() and library.fake_nvml_calls() == calls))
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(code, backend.read_fast(card)["utilization_percent"].value)
"""


def test_a_forked_child_leaves_the_driver_alone(driver_folder: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", FORK],
        env={**os.environ, "LD_LIBRARY_PATH": str(driver_folder)},
        cwd=HERE.parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.stdout.split() == ["31", "97.0"], result.stderr
