"""`transceiver serve`: the command line."""

import logging
import os
import sys
from pathlib import Path
from typing import NoReturn

import click

from relayctl.wire import address
from relayctl.wire.address import Address
from relayctl.wire.settings import SettingsError, load
from transceiver import host, lifeline, workers
from transceiver.config import ENVIRONMENT, TransceiverConfig
from transceiver.worker import Command

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
@click.option(
    "--workers", "count", type=int, help="Processes, each on a port of its own from there."
)
@click.option("--capacity", type=int, help="Calls at once, per process.")
@click.option("--log-level", type=click.Choice(list(LEVELS)), default="info", show_default=True)
@click.option("--check", is_flag=True, help="Check configuration and key file, then end.")
@click.option("--beat", type=int, nargs=2, hidden=True)  # for workers: descriptor, supervisor
def serve(
    file: Path | None,
    listen: str | None,
    count: int | None,
    capacity: int | None,
    log_level: str,
    check: bool,
    beat: tuple[int, int] | None,
) -> None:
    """Serve until SIGINT or SIGTERM.

    SIGTERM takes no more calls and ends with the last one; a second one, or SIGINT, ends at once.
    SIGHUP restarts, one worker after the other. Flags override FERRYLINE_TRANSCEIVER_* variables,
    and these the file.
    """
    try:
        config = load(
            TransceiverConfig,
            toml="" if file is None else _read(file),
            environ=os.environ,
            prefix=ENVIRONMENT,
            flags={"listen": listen, "workers": count, "capacity": capacity},
        )
    except SettingsError as error:
        _fail(str(error), USAGE)
    _configure_log(log_level, f" {config.listen[1]}" if beat else "")
    try:
        if check:
            host.check(config)
            click.echo("configuration is good")
            if config.workers > 1:
                first, last = config.endpoints[0][1], config.endpoints[-1][1]
                click.echo(f"{config.workers} workers: relays have to allow ports {first}-{last}")
        elif config.workers > 1:
            host.check(config)
            host.try_ports(config)
            workers.run(config.endpoints, _worker_command(file, capacity, log_level))
        else:
            _serve(config, beat)
    except host.StartError as error:
        _fail(str(error), USAGE if check else FAILED)


def _serve(config: TransceiverConfig, beat: tuple[int, int] | None) -> None:
    from transceiver import server  # the codec and WebRTC libraries: not for a supervisor

    if beat is None:
        server.run(config)
    else:
        descriptor, supervisor = beat
        lifeline.die_with(supervisor)
        server.run(config, lifeline.Beat(descriptor))


def _worker_command(file: Path | None, capacity: int | None, log_level: str) -> Command:
    """What was asked of us, for one port of the range."""
    given = [] if file is None else ["--config", str(file)]
    given += [] if capacity is None else ["--capacity", str(capacity)]

    def command(endpoint: Address, descriptor: int) -> list[str]:
        return [
            *(sys.executable, "-m", "transceiver", "serve", *given, "--log-level", log_level),
            *("--listen", address.render(endpoint), "--workers", "1"),
            *("--beat", str(descriptor), str(os.getpid())),
        ]

    return command


def _configure_log(level: str, mark: str) -> None:
    logging.basicConfig(
        level=LEVELS[level],
        stream=sys.stderr,
        format=f"%(asctime)s{mark} %(levelname)s %(name)s %(message)s",
    )
    logging.getLogger("uvicorn").setLevel(logging.WARNING)  # it tells its own start and stop
    logging.getLogger("uvicorn.error").addFilter(_is_no_refusal)


def _is_no_refusal(record: logging.LogRecord) -> bool:
    """uvicorn takes a WebSocket that was refused, by a whole HTTP answer, for one forgotten."""
    return "without completing handshake" not in str(record.msg)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError([f"--config '{file}': {error}"]) from None


def _fail(message: str, code: int) -> NoReturn:
    for line in message.splitlines():
        click.echo(f"transceiver: {line}", err=True)
    sys.exit(code)
