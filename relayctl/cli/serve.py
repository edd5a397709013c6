"""`relayctl serve`: run the relay, or only check its configuration."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from relayctl import config_rules
from relayctl.cli import render
from relayctl.cli.session import ConfigError, Session, shared_options, with_session
from relayctl.config import RelayConfig, flow_tables
from relayctl.doctor import obstacles
from relayctl.packet.commands import read_keys
from relayctl.wire.route_token import KeyFileError

_LOCAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_DEFAULT_LOCAL_PORTS = (32768, 60999)  # where the file cannot be read


def _config_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """One flag for each key of the configuration that is no section; `instance` is shared."""
    for name, field in reversed(RelayConfig.model_fields.items()):
        if field.description and name != "instance":
            command = _option(field.alias or name, field)(command)
    return command


def _option(key: str, field: FieldInfo) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    flag, text = f"--{key.replace('_', '-')}", field.description
    if field.annotation is bool:
        return click.option(f"{flag}/--no-{flag[2:]}", default=None, help=text)
    if get_origin(field.annotation) is Literal:
        return click.option(flag, type=click.Choice(get_args(field.annotation)), help=text)
    return click.option(flag, metavar=key.rpartition("_")[2].upper(), help=text)


@click.command()
@click.option("--check", is_flag=True, help="Say what would keep it from serving here, and stop.")
@_config_flags
@shared_options
@with_session
def serve(session: Session, check: bool, **flags: Any) -> None:
    """Run the relay in the foreground until SIGTERM.

    Flags override FERRYLINE_RELAY_* variables, and these the file. --check changes nothing; exit
    code 2 is a fault of the configuration or the key file, 1 one of this host.
    """
    config = session.load_config(flags)
    try:
        read_keys(config.keys_file)
    except KeyFileError as error:
        raise ConfigError(str(error)) from None
    for note in config_rules.advice(config, _local_ports()):
        click.echo(f"warning: {note}", err=True)
    if config.datapath == "xdp":
        click.echo(flow_tables(config), err=not check)
    if check:
        _check(config)
        return
    from relayctl.control.daemon import run

    raise SystemExit(run(config))


def _check(config: RelayConfig) -> None:
    """The configuration was good; is this host?"""
    found = list(obstacles(config))
    for each in found:
        click.echo(render.escape(f"{each.name}: {each.detail}; {each.mend}"), err=True)
    if found:
        raise SystemExit(1)
    click.echo(f"{config.instance}: good")


def _local_ports(path: Path = _LOCAL_PORTS) -> tuple[int, int]:
    try:
        low, high = map(int, path.read_text().split())
    except (OSError, ValueError):
        return _DEFAULT_LOCAL_PORTS
    return low, high
