"""The composition root: builds and wires every object. The only module that sees all rooms."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import logging
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from desktop_app.core.clock import SessionClock
from desktop_app.core.errors import ConfigError, ExitCode, FloodmarkError, NoSuchDeviceError
from desktop_app.core.forecasts import Verdict
from desktop_app.core.interrupts import ended_by_interrupts
from desktop_app.core.load import CardLoad
from desktop_app.core.steps import RunState, RunStatus
from desktop_app.core.units import format_bytes
from desktop_app.launch import Job, Launch
from desktop_app.services import report as reports
from desktop_app.services.card_source import machine_cards
from desktop_app.services.metrics_endpoint import MetricsEndpoint, open_endpoint
from desktop_app.services.oom_cause import advise_smaller_model
from desktop_app.services.scenarios import Scenario, check_memory, find_scenario, list_scenarios, on_card
from desktop_app.services.session import DEFAULT_HZ, Session
from desktop_app.telemetry.limited_host import HostLimit, LimitedHost
from desktop_app.telemetry.selection import open_backend
from desktop_app.training.config import load_config

if TYPE_CHECKING:
    from desktop_app.core.telemetry import Card
    from desktop_app.telemetry.backend import Backend

_log = logging.getLogger(__name__)

# A driver that has not answered by then is said to be missing; the window would go on waiting.
_CARDS_PATIENCE_S: Final = 30.0
_ESTIMATE_PATIENCE_S: Final = 60.0
_METRICS_PATIENCE_S: Final = 0.5
_STOP_PATIENCE_S: Final = 30.0  # one step of a large model on a slow computer


def run_demo(scenario_name: str, *, card_name: str | None, batch_size: int | None, launch: Launch) -> int:
    """``floodmark demo``."""
    scenario = find_scenario(scenario_name)
    if card_name is not None:
        scenario = on_card(scenario, card_name)
    config = scenario.config
    if batch_size is not None:
        config = dataclasses.replace(config, batch_size=batch_size)
    return _run(Job(config, scenario), config.card or card_name, launch)


def list_demos() -> int:
    """``floodmark demo --list``."""
    print(list_scenarios())
    return ExitCode.DONE


def run_training(config_path: Path, *, card_name: str | None, launch: Launch) -> int:
    """``floodmark train``."""
    config = load_config(config_path)
    for path, what in ((launch.report_path, "report"), (launch.screenshot_path, "screenshot")):
        if path is not None and path.exists() and path.samefile(config_path):
            raise ConfigError("cli.output", f"The {what} would take the place of the run's own file {config_path}.")
    if card_name is not None:
        config = dataclasses.replace(config, card=card_name)
    return _run(Job(config), config.card, launch)


def open_window(*, card_name: str | None, launch: Launch) -> int:
    """``floodmark``: the window, with nothing running."""
    return _run_with_window(None, card_name, launch)


def diagnose(*, as_json: bool, wake: bool) -> int:
    """``floodmark doctor``: always ends with 0; what is missing is what it is for."""
    from desktop_app.services import doctor

    try:
        with ended_by_interrupts():
            from desktop_app.ui.application import display_problem
    except ImportError as error:
        problem: str | None = f"Qt cannot be loaded: {error}"
    else:
        problem = display_problem()
    facts = doctor.examine(display_problem=problem, wake=wake)
    print(doctor.as_json(facts) if as_json else doctor.as_text(facts))
    return ExitCode.DONE


def estimate_training(options: argparse.Namespace) -> int:
    """``floodmark estimate``: an answer is an answer, also that it does not fit. One that could not be found is not."""
    from desktop_app.services import estimate_report, estimate_words
    from desktop_app.services.estimate_order import carry_out, make_order

    order = make_order(options)
    waiting = estimate_report.Waiting(sys.stderr)
    try:
        estimate = carry_out(order, progress=waiting)
    finally:
        waiting.stop()
    if options.json:
        print(estimate_report.as_json(estimate, order))
    else:
        print(estimate_report.as_lines(estimate, order, estimate_report.terminal_of(sys.stdout)))
    if estimate.verdict is Verdict.CANNOT_SAY:
        raise FloodmarkError("estimate.cannot_say", f"Cannot say: {estimate_words.cannot_say(estimate)}")
    return ExitCode.DONE


def examine_snapshot(options: argparse.Namespace) -> int:
    """``floodmark snapshot``: what is found is an answer, also that memory ran out."""
    from desktop_app.services import snapshot
    from desktop_app.services.estimate_report import terminal_of

    print(snapshot.examine(options, terminal_of(sys.stdout)))
    return ExitCode.DONE


def forecast_recorded(options: argparse.Namespace) -> int:
    """``floodmark forecast``: alerts are an answer as silence is."""
    from desktop_app.services.forecast_report import forecast_trace

    forecast_trace(
        options.trace,
        as_json=options.json,
        capacity_bytes=options.capacity,
        total_steps=options.total_steps,
        steps_per_epoch=options.steps_per_epoch,
    )
    return ExitCode.DONE


def explain_message(options: argparse.Namespace) -> int:
    """``floodmark explain``: 1 when the text holds no out-of-memory message."""
    from desktop_app.services.oom_report import explain_file

    print(explain_file(options.file, as_json=options.json))
    return ExitCode.DONE


def export_session(options: argparse.Namespace) -> int:
    """``floodmark export``: what was recorded, for other programs."""
    from desktop_app.services.session_tables import export_tables
    from desktop_app.services.trace_export import export_trace

    if options.csv is not None:
        counts = export_tables(options.session, options.csv)
        print(f"{sum(counts.values()):,} rows of {len(counts)} tables in {options.csv}")
        return ExitCode.DONE
    count = export_trace(options.session, options.forecast_trace)
    print(f"{count:,} rows in {options.forecast_trace}")
    return ExitCode.DONE


def import_logs(options: argparse.Namespace) -> int:
    """``floodmark import``: what could be read is a session; what could not is said."""
    from desktop_app.services import import_report, import_result, log_import

    result = log_import.import_logs(
        options.files,
        parent=options.out,
        interval_s=options.interval,
        dates=options.dates,
        zone=options.zone,
        start=options.start,
    )
    import_result.check(result)
    print(import_report.as_json(result) if options.json else import_report.as_text(result))
    return ExitCode.DONE


def serve_metrics(session: Session, endpoint: MetricsEndpoint | None) -> Session:
    """The session, whose metrics ``endpoint`` serves from now to its end; a notice says where."""
    if endpoint is not None:
        endpoint.serve(session)
        session.close_first("metrics", endpoint.close, patience_s=_METRICS_PATIENCE_S)
        code, line, level = endpoint.notice()
        session.add_notice(code, line, level=level)
    return session


def make_session(
    card_name: str | None, *, sampling_hz: float = DEFAULT_HZ, must_train: bool = False, read_only: bool = False
) -> Session:
    """A session on the named card (simulated), on the machine's own, or on the default simulated one.

    ``must_train``: pass over cards that the installed torch cannot use; ``read_only``: no process is ended.
    ``NoSuchDeviceError`` for a name that is not in the catalogue. The driver itself is asked later, by the sampler: it
    can block for seconds.
    """
    from desktop_app.services.estimate_service import EstimateService
    from desktop_app.services.trainer import train_order

    clock, load, host_limit = SessionClock(), CardLoad(), HostLimit()
    backend: Backend
    if card_name is not None:
        backend = open_backend(card_name, load=load, clock=clock)
    else:
        backend = machine_cards(
            load=load,
            clock=clock,
            must_train=must_train,
            on_simulated=lambda line: session.add_notice("telemetry.simulated", line, level="info"),
        )

    def load_of(card: Card | None) -> CardLoad:
        """Where a run books its work: cards that joined later have a load of their own."""
        return (None if card is None else session.shelf.load_of(card.uuid)) or load

    estimates = EstimateService()
    session = Session(
        clock=clock,
        backend=backend,
        compute_estimate=estimates,
        tracing=estimates,
        train=functools.partial(train_order, clock=clock, load_of=load_of, host_limit=host_limit),
        sampling_hz=sampling_hz,
        host=LimitedHost(host_limit),
        read_only=read_only,
    )
    return session


def _run(job: Job, card_name: str | None, launch: Launch) -> int:
    _check_output(launch.report_path, what="report")
    _check_output(launch.screenshot_path, what="screenshot")
    if launch.headless:
        if launch.screenshot_path is not None:
            raise ConfigError("cli.no_window", "--screenshot needs a window; leave --headless out.")
        return _run_headless(job, card_name, launch)
    return _run_with_window(job, card_name, launch)


def _run_headless(job: Job, card_name: str | None, launch: Launch) -> int:
    endpoint = open_endpoint(launch.metrics)
    session = serve_metrics(
        make_session(card_name, must_train=job.scenario is not None, read_only=launch.read_only), endpoint
    )
    _stop_on_terminate()
    session.open()
    try:
        code = _train_headless(session, job, launch)
    finally:
        session.close()
    return _with_losses(session, code)


def _train_headless(session: Session, job: Job, launch: Launch) -> int:
    try:
        on_cpu = job.config.device == "cpu"
        card = None if on_cpu else session.wait_for_cards(timeout_s=_CARDS_PATIENCE_S)
        if card is None and not on_cpu:
            raise NoSuchDeviceError(
                "device.no_answer",
                "The GPU driver does not answer. Run 'floodmark doctor', or choose a card by --card.",
            )
        _check_ram(job.scenario, card, session)
        _announce(card)
        session.start_scenario(job.config, scenario=job.scenario, resume_from=job.resume_from)
        session.wait_for_estimate(job.config, timeout_s=_ESTIMATE_PATIENCE_S)
        _say_estimate(session)
        session.wait_until_under_way()
        if not session.wait_for_run(launch.seconds):
            session.stop()
            session.wait_for_run()
    except KeyboardInterrupt:
        print("Stopping before the next step; the last whole one is saved. Once more ends at once.", file=sys.stderr)
        session.stop()
        session.wait_for_run(_STOP_PATIENCE_S)
    return _finish(session, job, launch)


def _with_losses(session: Session, code: int) -> int:
    """After the end: what the disk never took is said, and a run that went well has not ended well."""
    unsaved = session.unsaved()
    for line in unsaved:
        print(f"floodmark: at the end this was lost: {line}", file=sys.stderr)
    return ExitCode.RUN_FAILED if unsaved and code == ExitCode.DONE else code


def _stop_on_terminate() -> None:
    """SIGTERM ends a run as Ctrl+C does: at the next step, with a checkpoint."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def _finish(session: Session, job: Job, launch: Launch) -> int:
    """Write the report and say in one line how it ended."""
    status = session.run.get()
    report = reports.make_report(session, scenario=None if job.scenario is None else job.scenario.name)
    if launch.report_path is not None:
        reports.write_report(report, launch.report_path)
    if status.state is RunState.FAILED:
        print(f"floodmark: {' '.join((status.error_message or 'The run failed').split())}", file=sys.stderr)
    elif status.oom is not None:
        print(f"floodmark: out of memory at step {status.oom.step} ({status.oom.phase.value})", file=sys.stderr)
        if (advice := advise_smaller_model(status.oom)) is not None:
            print(f"floodmark: {advice}", file=sys.stderr)
    else:
        print(_summary(report))
    if status.state is not RunState.FAILED:
        print(_saved(status))
    return int(reports.exit_code(status))


def _saved(status: RunStatus) -> str:
    """Where the run could be taken up, or why nowhere."""
    if status.checkpoint_path is not None:
        return f"Checkpoint: {status.checkpoint_path}"
    return f"No checkpoint was saved{'' if status.step else ': no step had ended'}."


def _summary(report: dict[str, Any]) -> str:
    accuracy = report["val_accuracy_best"]
    best = "" if accuracy is None else f", best validation accuracy {100 * accuracy:.1f} %"
    return f"{report['state']}: {report['steps']} steps, {report['epochs']} epochs{best}"


def _announce(card: Card | None) -> None:
    if card is not None:
        capacity = "memory unknown" if card.capacity_bytes is None else format_bytes(card.capacity_bytes)
        print(f"{card.name}{' (simulated)' if card.simulated else ''}, {capacity}")


def _say_estimate(session: Session) -> None:
    estimate = session.estimate.get().estimate
    if estimate is None:
        return
    peak = estimate.device_peak_bytes
    print(
        f"Estimate before the first step: {format_bytes(peak.p50)} (P95 {format_bytes(peak.p95)}) of "
        f"{format_bytes(estimate.capacity_bytes)}: {estimate.verdict.value.replace('_', ' ')}; "
        f"largest batch that fits: {'none' if estimate.largest_batch is None else estimate.largest_batch}"
    )


def _check_ram(scenario: Scenario | None, card: Card | None, session: Session) -> None:
    if scenario is None or card is None or not card.simulated or card.capacity_bytes is None:
        return
    check_memory(scenario, capacity_bytes=card.capacity_bytes, available_bytes=session.host_available_bytes())


def _check_output(path: Path | None, *, what: str) -> None:
    """An output that cannot be written is said before an hour of training, not after it."""
    if path is None:
        return
    if path.is_dir() or not path.parent.is_dir():
        raise ConfigError(
            "cli.output",
            f"Cannot write the {what} to {path}: {'it is a folder' if path.is_dir() else 'no such folder'}.",
        )


def _run_with_window(job: Job | None, card_name: str | None, launch: Launch) -> int:
    try:
        with ended_by_interrupts():
            from desktop_app.ui.application import display_problem
    except ImportError as error:
        raise FloodmarkError(
            "qt.unloadable",
            f"Qt cannot be loaded ({error}). Run 'floodmark doctor', or add --headless to run without a window.",
        ) from error
    problem = display_problem()
    if problem is not None:
        raise FloodmarkError("qt.no_display", problem)
    if sys.platform == "win32" and job is not None:
        import torch  # noqa: F401 - before Qt: docs/decisions/002
    with ended_by_interrupts():
        from desktop_app.window import open_main_window

    must_train = job is not None and job.scenario is not None
    endpoint = open_endpoint(launch.metrics)  # before the window: a port in use is said on the terminal

    def make(sampling_hz: float) -> Session:
        session = make_session(card_name, sampling_hz=sampling_hz, must_train=must_train, read_only=launch.read_only)
        return serve_metrics(session, endpoint)

    return open_main_window(make, job, launch)
