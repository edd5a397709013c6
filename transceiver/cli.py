"""`transceiver serve`: the command line."""

import logging
import os
import sys
from pathlib import Path
from typing import NoReturn

import click

from relayctl.wire.settings import SettingsError, load
from transceiver import server
from transceiver.config import ENVIRONMENT, TransceiverConfig

FAILED = 1
USAGE = 2  # wrong command line or configuration
LEVELS = {name.lower(): getattr(logging, name) for name in ("DEBUG", "INFO", "WARNING", "ERROR")}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Terminates WebRTC calls behind a Ferryline relay.

    Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.
    """


@cli.command()
@click.option("--config", "file", type=click.Path(path_type=Path), help="TOML file.")
@click.option("--listen", metavar="IP:PORT", help="UDP for media, TCP for the control API.")
@click.option("--capacity", type=int, help="Calls at once.")
@click.option("--log-level", type=click.Choice(list(LEVELS)), default="info", show_default=True)
@click.option("--check", is_flag=True, help="Check configuration and key file, then end.")
def serve(
    file: Path | None, listen: str | None, capacity: int | None, log_level: str, check: bool
) -> None:
    """Serve until SIGINT or SIGTERM.

    Flags override FERRYLINE_TRANSCEIVER_* variables, and these the file.
    """
    try:
        config = load(
            TransceiverConfig,
            toml="" if file is None else _read(file),
            environ=os.environ,
            prefix=ENVIRONMENT,
            flags={"listen": listen, "capacity": capacity},
        )
    except SettingsError as error:
        _fail(str(error), USAGE)
    logging.basicConfig(
        level=LEVELS[log_level],
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # it tells its own start and stop
    try:
        if check:
            server.check(config)
            click.echo("configuration is good")
        else:
            server.run(config)
    except server.StartError as error:
        _fail(str(error), USAGE if check else FAILED)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError([f"--config '{file}': {error}"]) from None


def _fail(message: str, code: int) -> NoReturn:
    for line in message.splitlines():
        click.echo(f"transceiver: {line}", err=True)
    sys.exit(code)
