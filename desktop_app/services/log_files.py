"""The program's log: one rotating file in the data folder, and on the terminal what its user must know."""

from __future__ import annotations

import logging
import logging.handlers
import sys
from typing import Final

from desktop_app.services import notice_board
from desktop_app.services.locations import data_folder

_NAMES: Final = frozenset({"floodmark-terminal", "floodmark-file"})
# Third parties log at INFO and below what no user of this program asked for.
_NOISY: Final = ("PIL", "matplotlib", "filelock", "torch")


def set_up_logging(*, debug: bool) -> None:
    """Log to ``floodmark.log`` in the data folder, and notices to stderr; with ``debug`` everything to stderr too.

    Errors that end a command are printed by the command line, in one line. A log that cannot be written is no reason
    to stop. Called again, it starts anew.
    """
    root = logging.getLogger()
    root.setLevel(logging.DEBUG if debug else logging.INFO)
    # A disk that fills up under the log must not cover the terminal with stacks of the logging module.
    logging.raiseExceptions = debug
    for noisy in _NOISY:
        logging.getLogger(noisy).setLevel(logging.WARNING)
    notices = logging.getLogger(notice_board.__name__)
    _remove_ours(root)
    _remove_ours(notices)
    (root if debug else notices).addHandler(_terminal())
    try:
        root.addHandler(_file())
    except OSError as error:
        nowhere = logging.NullHandler()  # without any handler logging would print warnings by itself
        nowhere.set_name("floodmark-file")
        root.addHandler(nowhere)
        logging.getLogger(__name__).info("No log file: %s", error)


def _terminal() -> logging.Handler:
    handler = logging.StreamHandler(sys.stderr)
    handler.set_name("floodmark-terminal")
    handler.setFormatter(logging.Formatter("floodmark: %(message)s"))
    return handler


def _file() -> logging.Handler:
    """Opened now, not with the first record: a folder that refuses is noticed here. Raises ``OSError``."""
    folder = data_folder()
    folder.mkdir(parents=True, exist_ok=True)
    handler = logging.handlers.RotatingFileHandler(
        folder / "floodmark.log", maxBytes=2_000_000, backupCount=3, encoding="utf-8"
    )
    handler.set_name("floodmark-file")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(threadName)s %(name)s: %(message)s"))
    return handler


def _remove_ours(logger: logging.Logger) -> None:
    for handler in [handler for handler in logger.handlers if handler.name in _NAMES]:
        logger.removeHandler(handler)
        handler.close()
