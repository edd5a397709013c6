"""Entry point of `relayctl` and `python -m relayctl`."""

from relayctl.cli.main import cli


def main() -> None:
    """Run the command line; click and rich end quietly when a reader closes the pipe early."""
    cli(prog_name="relayctl")


if __name__ == "__main__":
    main()
