"""A recorded session, exported and forecast again: the same samples in the same order, the same first alert."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from desktop_app.cli import run
from desktop_app.core.events import Event, EventKind, EventQueue, Level
from desktop_app.core.forecasts import Alert
from desktop_app.core.steps import (
    BatchShape,
    MemoryStats,
    Phase,
    PhaseSample,
    StepSample,
    Surroundings,
)
from desktop_app.core.store import Cell, Store
from desktop_app.core.units import GIB, MIB
from desktop_app.forecast.forecaster import Forecaster
from desktop_app.forecast.trace_samples import RowReader, Sample, Setting
from desktop_app.services.forecast_trace import TraceFile
from desktop_app.services.notice_board import NoticeBoard
from desktop_app.services.recorder import Recorder
from desktop_app.services.run_feed import RunFeed
from desktop_app.services.session_folder import SessionFolder, create_session
from desktop_app.services.trace_export import export_trace
from desktop_app.services.trace_recording import TraceRecording

CAPACITY = 16 * GIB
STEPS = 60


def memory(live: int, *, peak: int | None = None) -> MemoryStats:
    top = peak if peak is not None else live
    return MemoryStats(live, top, top + 96 * MIB, top + 128 * MIB, 32 * MIB, 64 * MIB + top - live, 2, 300 * MIB, {})


def leaking_run() -> list[Sample]:
    """What a trainer and a sampler say in 60 steps of a leak, validation and saving among them."""
    samples: list[Sample] = [Setting(total_steps=900, steps_per_epoch=30)]
    for step in range(1, STEPS + 1):
        live, t_s = GIB + step * 24 * MIB, 10.0 + step
        samples.append(Surroundings(t_s, live + 3 * GIB, 512 * MIB, 300 * MIB, CAPACITY, GIB, 8 * GIB, children=2))
        coming = BatchShape(8, 1024, None)
        samples.append(PhaseSample(t_s + 0.1, step, Phase.FORWARD, memory(live), batch=coming))
        if step == 1:
            samples.append(PhaseSample(t_s + 0.2, step, Phase.OPTIMIZER, memory(live), known_demand_bytes=64 * MIB))
        stats = memory(live + 24 * MIB, peak=live + 2 * GIB)
        epoch = 1 + (step - 1) // 30
        samples.append(StepSample(t_s + 0.5, step, epoch, 0.5, None, 1e-3, None, 0.4, 32, stats, 1024, None, 8))
        if step % 20 == 0:
            parts = (PhaseSample(t_s + 0.6, step, Phase.VALIDATION, stats, done=done, count=3) for done in range(3))
            samples.extend(parts)
            samples.append(PhaseSample(t_s + 0.7, step, Phase.VALIDATION, stats, done=3, count=3, ended=True))
            copy = 128 * MIB
            samples.append(
                PhaseSample(t_s + 0.8, step, Phase.SAVE, stats, known_demand_bytes=copy, known_host_bytes=2 * copy)
            )
            samples.append(PhaseSample(t_s + 0.9, step, Phase.SAVE, stats, ended=True))
    return samples


def record(samples: list[Sample], folder: SessionFolder) -> None:
    """Through the feed and the recorder, as in the app."""
    store, events = Store(), EventQueue()
    feed = RunFeed(
        store,
        events,
        memory=Cell(None),
        listener=None,
        publish=lambda _: None,
        on_checkpoint=lambda *_: None,
        notices=NoticeBoard(),
    )
    trace = TraceRecording(store)
    recorder = Recorder(
        folder, store=store, events=events, start_at={}, first_event=0, on_trouble=lambda _: None, interval_s=0.05
    )
    recorder.start()
    for sample in samples:
        if isinstance(sample, StepSample):
            feed.on_step(sample)
        elif isinstance(sample, PhaseSample):
            feed.on_phase(sample)
        elif isinstance(sample, Surroundings):
            trace.on_surroundings(sample)
        else:
            trace.on_length(10.0, total_steps=sample.total_steps, steps_per_epoch=sample.steps_per_epoch)
    events.post(Event(70.0, EventKind.ALERT, Level.WARNING, "alert", {"cause": "leak", "severity": "likely"}))
    events.post(Event(71.0, EventKind.OOM, Level.ERROR, "run.oom", {"step": STEPS}))
    assert recorder.stop()


def live_alerts(samples: list[Sample]) -> list[Alert]:
    forecaster = Forecaster(capacity_bytes=CAPACITY, total_steps=900, steps_per_epoch=30)
    raised: list[Alert] = []
    for sample in samples:
        if isinstance(sample, StepSample):
            raised += forecaster.update_step(sample).changes.raised
        elif isinstance(sample, PhaseSample):
            raised += forecaster.update_phase(sample).changes.raised
        elif isinstance(sample, Surroundings):
            raised += forecaster.update_surroundings(sample).changes.raised
    return raised


@pytest.fixture
def session(tmp_path: Path) -> SessionFolder:
    return create_session(tmp_path, run_name="leak", config_toml="", card={}, anchor_wall_s=0.0)


def test_every_sample_comes_back(session: SessionFolder, tmp_path: Path) -> None:
    samples = leaking_run()
    record(samples, session)
    out = tmp_path / "trace.csv"
    assert export_trace(session.path, out) == len(samples) + 2
    reader = RowReader()
    with TraceFile(out) as trace:
        again = [sample for row in trace.rows() for sample in reader.samples(row)]
    assert [sample for sample in again if not isinstance(sample, StepSample)] == [
        sample for sample in samples if not isinstance(sample, StepSample)
    ]
    # Loss and learning rate are no part of a trace, nor is the size of a micro-batch.
    for old, new in zip(
        (sample for sample in samples if isinstance(sample, StepSample)),
        (sample for sample in again if isinstance(sample, StepSample)),
        strict=True,
    ):
        for name in ("t_s", "step", "epoch", "step_s", "batch_samples", "batch_tokens", "memory"):
            assert getattr(new, name) == getattr(old, name)


def test_the_forecast_of_the_export_is_that_of_the_run(
    session: SessionFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    samples = leaking_run()
    record(samples, session)
    out = tmp_path / "trace.csv"
    assert run(["export", str(session.path), "--forecast-trace", str(out)]) == 0
    capsys.readouterr()
    assert run(["forecast", "--json", str(out)]) == 0
    *alerts, summary = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    live = live_alerts(samples)
    assert live
    assert [(alert["step"], alert["cause"], alert["severity"], alert["eta_steps"]) for alert in alerts] == [
        (alert.step, alert.cause.value, alert.severity.value, alert.eta_steps) for alert in live
    ]
    assert summary["first_alert_step"] == live[0].step


def test_what_is_no_session_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "samples.db").write_bytes(b"not a database" * 100)
    for session in (tmp_path / "none", tmp_path, tmp_path / "samples.db"):
        assert run(["export", str(session), "--forecast-trace", str(tmp_path / "out.csv")]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_a_folder_that_cannot_be_written(
    session: SessionFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(leaking_run()[:10], session)
    assert run(["export", str(session.path), "--forecast-trace", str(tmp_path / "no" / "out.csv")]) == 1
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["samples.db", "session.json", "link"])
def test_no_file_of_the_session_is_written_over(
    name: str, session: SessionFolder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record(leaking_run()[:10], session)
    target = session.path / ("samples.db" if name == "link" else name)
    out = tmp_path / "trace.csv" if name == "link" else target
    if name == "link":
        out.symlink_to(target)
    before = target.read_bytes()
    assert run(["export", str(session.path), "--forecast-trace", str(out)]) == 2
    assert "is a file of the session itself" in capsys.readouterr().err
    assert target.read_bytes() == before


def test_an_export_that_fails_leaves_the_trace_before_it(
    session: SessionFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from desktop_app.services import trace_export

    record(leaking_run()[:10], session)
    out = tmp_path / "trace.csv"
    out.write_text("of another run\n")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(trace_export, "write_rows", full)
    assert run(["export", str(session.path), "--forecast-trace", str(out)]) == 1
    assert out.read_text() == "of another run\n"


def test_a_database_without_tables_is_no_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.db"
    empty.write_bytes(b"")
    assert run(["export", str(empty), "--forecast-trace", str(tmp_path / "out.csv")]) == 2
    assert "has no table" in capsys.readouterr().err
    assert not (tmp_path / "out.csv").exists()
