"""Entry point of `transceiver` and `python -m transceiver`."""

from transceiver.cli import cli


def main() -> None:
    """Run the command line."""
    cli(prog_name="transceiver")


if __name__ == "__main__":
    main()
