"""`signaling serve`, `signaling key`: the command line."""

import logging
import os
import secrets
import sys
from pathlib import Path
from typing import NoReturn

import click

from relayctl.wire.settings import SettingsError, load
from signaling import server
from signaling.access import api_keys
from signaling.access.config import ApiKeySection
from signaling.config import ENVIRONMENT, SignalingConfig

FAILED = 1
USAGE = 2  # wrong command line or configuration
LEVELS = {name.lower(): getattr(logging, name) for name in ("DEBUG", "INFO", "WARNING", "ERROR")}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """HTTP in front of the transceivers: a client's offer in, the answer of a call out.

    Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.
    """


@main.command()
@click.option("--config", "file", type=click.Path(path_type=Path), help="TOML file.")
@click.option("--listen", help="<ip>:<port>, or fd:<number> of an inherited listening socket.")
@click.option(
    "--tls-self-signed",
    "hosts",
    metavar="HOST",
    multiple=True,
    help="Serve https with a certificate for HOST made at first start; may be repeated.",
)
@click.option("--log-level", type=click.Choice(list(LEVELS)), default="info", show_default=True)
@click.option("--check", is_flag=True, help="Check configuration and files, then end.")
def serve(
    file: Path | None, listen: str | None, hosts: tuple[str, ...], log_level: str, check: bool
) -> None:
    """Serve until SIGINT or SIGTERM. Environment FERRYLINE_SIGNALING_* goes over the file."""
    try:
        config = load(
            SignalingConfig,
            toml=_read(file) if file else "",
            environ=os.environ,
            prefix=ENVIRONMENT,
            flags={"listen": listen, "tls_self_signed": hosts or None},
        )
        if check:
            server.check(config)
            click.echo("configuration is good")
            return
        server.serve(config, LEVELS[log_level])
    except SettingsError as error:
        _fail(str(error), USAGE)
    except server.StartError as error:
        _fail(str(error), USAGE if check else FAILED)


@main.command()
@click.argument("subject", default="default")
def key(subject: str) -> None:
    """Make an API key for SUBJECT. The key is shown this once; the section is for the
    configuration, and holds its digest only."""
    text = api_keys.render(secrets.token_bytes(api_keys.RANDOM_BYTES))
    digest = api_keys.digest_of(text).hex()
    try:
        section = ApiKeySection(subject=subject, sha256=digest)
    except ValueError:
        _fail("SUBJECT: use up to 64 letters, digits, '.', '_', '@', '-'", USAGE)
    click.echo(f"# key, for whoever calls: {text}")
    click.echo(f'[[api_key]]\nsubject = "{section.subject}"\nsha256 = "{section.sha256}"')


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError as error:
        raise SettingsError([f"--config '{file}': {error.strerror}"]) from None
    except UnicodeDecodeError:
        raise SettingsError([f"--config '{file}': is not UTF-8 text"]) from None


def _fail(message: str, code: int) -> NoReturn:
    for line in message.splitlines():
        click.echo(f"signaling: {line}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
