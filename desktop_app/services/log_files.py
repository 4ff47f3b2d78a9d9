"""The program's log: one rotating file in the data folder, warnings on the terminal."""

from __future__ import annotations

import logging
import logging.handlers
import sys

from desktop_app.services.locations import data_folder


def set_up_logging(*, debug: bool) -> None:
    """Log to ``floodmark.log`` in the data folder; with ``debug`` also everything to stderr.

    A log that cannot be written is no reason to stop: the terminal handler stays.
    """
    root = logging.getLogger()
    root.setLevel(logging.DEBUG if debug else logging.INFO)
    # Third parties log at INFO and below what no user of this program asked for.
    for noisy in ("PIL", "matplotlib", "filelock", "torch"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    terminal = logging.StreamHandler(sys.stderr)
    terminal.setLevel(logging.DEBUG if debug else logging.ERROR)
    terminal.setFormatter(logging.Formatter("floodmark: %(message)s"))
    root.addHandler(terminal)
    try:
        folder = data_folder()
        folder.mkdir(parents=True, exist_ok=True)
        log_file = logging.handlers.RotatingFileHandler(
            folder / "floodmark.log", maxBytes=2_000_000, backupCount=3, encoding="utf-8", delay=True
        )
    except OSError as error:
        logging.getLogger(__name__).warning("No log file: %s", error)
        return
    log_file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"))
    root.addHandler(log_file)
