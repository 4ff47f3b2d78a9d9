"""Where the program starts: ``python -m desktop_app`` and the installed commands."""

import signal


def main() -> None:
    """Run ``floodmark``. Ctrl+C while modules are still being imported ends it at once, without a stack."""
    handler = signal.getsignal(signal.SIGINT)
    by_default = handler is signal.default_int_handler  # not where somebody has had it ignored
    if by_default:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from desktop_app.cli import main as run_command

    if by_default:
        signal.signal(signal.SIGINT, handler)
    run_command()


if __name__ == "__main__":
    main()
