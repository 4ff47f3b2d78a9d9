"""The command line. Qt is imported only when a window is wanted, torch only when something is trained."""

from __future__ import annotations

import argparse
import io
import logging
import os
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from desktop_app import __version__
from desktop_app.core.errors import ExitCode, FloodmarkError
from desktop_app.services.estimate_options import add_options
from desktop_app.services.forecast_options import add_explain_options, add_export_options, add_forecast_options
from desktop_app.services.import_options import add_import_options
from desktop_app.services.metrics_address import MetricsAddress, parse_address
from desktop_app.services.snapshot_options import add_options as add_snapshot_options

if TYPE_CHECKING:
    from desktop_app.launch import Launch

LANGUAGES: Final = ("en", "zh_CN")
THEMES: Final = ("dark", "light", "system")
# Threads that may be left behind when the program ends.
_OURS: Final = frozenset(
    {"trainer", "estimator", "sampler", "forecaster", "recorder", "metrics", "doctor", "card reader", "card errors"}
)
# The names people type for Simplified Chinese.
_LANGUAGE_ALIASES: Final = {"zh": "zh_CN", "zh-cn": "zh_CN", "zh_cn": "zh_CN", "zh-hans": "zh_CN", "en": "en"}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``floodmark`` and leave with a documented exit code (core.errors.ExitCode)."""
    _make_output_safe()
    code = run(list(sys.argv[1:] if arguments is None else arguments))
    code = _flush(code)
    if any(thread.name in _OURS for thread in threading.enumerate()):
        # A thread that hangs in torch or in the driver was given up. Python's own end would join it, or abort in it.
        logging.shutdown()
        os._exit(code)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. Every error is one line on stderr; ``--debug`` adds the stack."""
    options = _parser().parse_args(arguments)
    try:
        from desktop_app.services.log_files import set_up_logging

        set_up_logging(debug=options.debug)
        return int(_dispatch(options))
    except FloodmarkError as error:
        return _say(error, debug=options.debug)
    except BrokenPipeError:  # the reader of our output has gone, as in `floodmark doctor | head`
        return ExitCode.DONE
    except KeyboardInterrupt:
        print("floodmark: interrupted", file=sys.stderr)
        return ExitCode.RUN_FAILED
    except OSError as error:
        what = f" ({error.filename})" if error.filename else ", perhaps while writing the output"
        print(f"floodmark: {error.strerror or error}{what}.", file=sys.stderr)
        return ExitCode.RUN_FAILED
    except Exception as error:  # the program's outermost frame: a user sees one line, the log has the stack
        logging.getLogger(__name__).debug("Unexpected", exc_info=error)
        if options.debug:
            traceback.print_exc()
        print(
            f"floodmark: unexpected error: {type(error).__name__}: {error}. Run again with --debug and report it.",
            file=sys.stderr,
        )
        return ExitCode.RUN_FAILED


def _make_output_safe() -> None:
    """A path that the terminal's encoding lacks is shown escaped; without a terminal (``>&-``) nothing is shown."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _flush(code: int) -> int:
    """Write what is buffered and return the exit code. A reader that has gone (``| head``) is no error."""
    if sys.stdout is None:
        return code
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        print(f"floodmark: the output cannot be written: {error.strerror or error}.", file=sys.stderr)
        return ExitCode.RUN_FAILED
    return code


def _say(error: FloodmarkError, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    print(f"floodmark: {' '.join(error.message.split())}", file=sys.stderr)
    return error.exit_code


def _dispatch(options: argparse.Namespace) -> int:
    from desktop_app import app

    match options.command:
        case "estimate":
            return app.estimate_training(options)
        case "snapshot":
            return app.examine_snapshot(options)
        case "forecast":
            return app.forecast_recorded(options)
        case "explain":
            return app.explain_message(options)
        case "export":
            return app.export_session(options)
        case "import":
            return app.import_logs(options)
        case "doctor":
            return app.diagnose(as_json=options.json, wake=options.wake)
        case "demo" if options.list:
            return app.list_demos()
        case "demo":
            return app.run_demo(
                options.scenario,
                card_name=options.card,
                batch_size=options.batch,
                launch=_launch(options),
            )
        case "train":
            return app.run_training(options.config, card_name=options.card, launch=_launch(options))
        case _:
            return app.open_window(card_name=options.card, launch=_launch(options))


def _launch(options: argparse.Namespace) -> Launch:
    from desktop_app.launch import Launch
    from desktop_app.services.process_control import is_read_only

    return Launch(
        headless=getattr(options, "headless", False),
        seconds=getattr(options, "seconds", None),
        report_path=getattr(options, "report", None),
        screenshot_path=getattr(options, "screenshot", None),
        window_size=getattr(options, "size", None),
        language=options.lang,
        theme=options.theme,
        debug=options.debug,
        read_only=getattr(options, "read_only", False) or is_read_only(),
        metrics=getattr(options, "metrics", None),
    )


class _Parser(argparse.ArgumentParser):
    """Usage errors in one line, with exit code 2."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}. Try '{self.prog} --help'.", file=sys.stderr)
        sys.exit(ExitCode.USAGE)


def _options(*, absent: str | None = None) -> tuple[_Parser, _Parser]:
    """Options of every command, and of those with a window. ``absent``: the value of one that is not given."""
    shared = _Parser(add_help=False, argument_default=absent)
    shared.add_argument("--debug", action="store_true", help="log everything and show the stack of errors")
    window = _Parser(add_help=False, argument_default=absent)
    window.add_argument("--lang", type=_language, metavar="LANG", help="language of the window: en or zh_CN")
    window.add_argument("--theme", choices=THEMES, help="colours of the window")
    window.add_argument("--card", metavar="NAME", help='simulate this card of the catalogue, e.g. "RTX 4090"')
    window.add_argument(
        "--metrics",
        type=_metrics_address,
        default=argparse.SUPPRESS,  # before a command it holds as behind it
        metavar="[HOST:]PORT",
        help="serve metrics for Prometheus there, to this machine alone unless a HOST is given",
    )
    window.add_argument("--read-only", action="store_true", help="end no process of the card, whatever is clicked")
    return shared, window


def _parser() -> argparse.ArgumentParser:
    # Behind a command what is not given must not take back what was given before it.
    shared, window = _options(absent=argparse.SUPPRESS)
    running = _Parser(add_help=False)
    running.add_argument("--headless", action="store_true", help="without a window; needs no display")
    running.add_argument(
        "--for",
        dest="seconds",
        type=_seconds,
        metavar="SECONDS",
        help="end so long after the first step",
    )
    running.add_argument("--report", type=Path, metavar="FILE", help="write what happened as JSON")
    running.add_argument("--screenshot", type=Path, metavar="FILE", help="save the window as PNG before it closes")
    running.add_argument("--size", type=_size, metavar="WxH", help="size of the window, e.g. 1024x640")

    parser = _Parser(
        prog="floodmark",
        description="Train on your own GPU, see the card and the loss on one time axis, and know that memory will run "
        "out before it does.",
        parents=list(_options()),
        epilog="Exit codes: 0 done, 1 the run failed, 2 bad usage or configuration, 3 out of memory (caught), "
        "4 no such device.",
    )
    parser.add_argument("--version", action="version", version=f"floodmark {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)

    demo = commands.add_parser("demo", parents=[shared, window, running], help="a running demonstration")
    demo.add_argument(
        "scenario",
        nargs="?",
        default="cats-dogs",
        help="one of those that --list prints; default: cats-dogs (healthy)",
    )
    demo.add_argument("--list", action="store_true", help="print the demonstrations, one a line, and end")
    demo.add_argument("--batch", type=int, metavar="N", help="batch size instead of the demonstration's own")
    train = commands.add_parser("train", parents=[shared, window, running], help="run a training from a TOML file")
    train.add_argument("config", type=Path, metavar="CONFIG.toml", help="the run (docs/guide/training.md)")
    estimate = commands.add_parser(
        "estimate", parents=[shared], help="the peak of GPU memory of a training, before its first step"
    )
    add_options(estimate)
    estimate.set_defaults(lang=None, theme=None, card=None)
    snapshot = commands.add_parser(
        "snapshot", parents=[shared], help="what a recording of torch.cuda.memory tells: when, whose, in what pieces"
    )
    add_snapshot_options(snapshot)
    snapshot.set_defaults(lang=None, theme=None, card=None)
    forecast = commands.add_parser(
        "forecast",
        parents=[shared],
        help="when and why a recorded run would have run out of memory, as if it were live",
    )
    add_forecast_options(forecast)
    forecast.set_defaults(lang=None, theme=None, card=None)
    explain = commands.add_parser(
        "explain", parents=[shared], help="an out-of-memory message: what was full, whose it was, what to change"
    )
    add_explain_options(explain)
    explain.set_defaults(lang=None, theme=None, card=None)
    export = commands.add_parser("export", parents=[shared], help="a recorded session as a file for other programs")
    add_export_options(export)
    export.set_defaults(lang=None, theme=None, card=None)
    logs = commands.add_parser("import", parents=[shared], help="a session from the logs of other tools")
    add_import_options(logs)
    logs.set_defaults(lang=None, theme=None, card=None)
    doctor = commands.add_parser("doctor", parents=[shared], help="what is there, and a reason for everything missing")
    doctor.add_argument("--json", action="store_true", help="as JSON")
    doctor.add_argument("--wake", action="store_true", help="ask the driver although a card sleeps to save power")
    doctor.set_defaults(lang=None, theme=None, card=None)
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = float("nan")
    if not 0 < seconds <= 31_536_000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return seconds


def _metrics_address(text: str) -> MetricsAddress:
    try:
        return parse_address(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _language(text: str) -> str:
    try:
        return _LANGUAGE_ALIASES[text.lower()]
    except KeyError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a language of Floodmark; choose en or zh_CN") from None


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal() and 320 <= int(width) <= 16384 and 240 <= int(height) <= 16384):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; give WIDTHxHEIGHT such as 1024x640")
    return int(width), int(height)
