"""Where the program starts: ``python -m desktop_app`` and the installed commands."""

from desktop_app.core.interrupts import ended_by_interrupts


def main() -> None:
    """Run ``floodmark``. Ctrl+C while modules are still being imported ends it at once, without a stack."""
    with ended_by_interrupts():
        from desktop_app.cli import main as run_command
    run_command()


if __name__ == "__main__":
    main()
