"""`relayctl serve`: run the relay, or only check its configuration."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from relayctl import config_rules
from relayctl.cli.session import USAGE, Session, shared_options, with_session
from relayctl.config import RelayConfig, flow_table_bytes, megabytes
from relayctl.doctor.result import Status
from relayctl.doctor.service import keys_file

_LOCAL_PORTS = Path("/proc/sys/net/ipv4/ip_local_port_range")
_DEFAULT_LOCAL_PORTS = (32768, 60999)  # where the file cannot be read


def _config_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """One flag for each key of the configuration that is no section; `instance` is shared."""
    for key, field in reversed(RelayConfig.model_fields.items()):
        if field.alias is None and key != "instance":
            command = _option(key, field)(command)
    return command


def _option(key: str, field: FieldInfo) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    flag, text = f"--{key.replace('_', '-')}", field.description
    if field.annotation is bool:
        return click.option(f"{flag}/--no-{flag[2:]}", default=None, help=text)
    if get_origin(field.annotation) is Literal:
        return click.option(flag, type=click.Choice(get_args(field.annotation)), help=text)
    return click.option(flag, metavar=key.rpartition("_")[2].upper(), help=text)


@click.command()
@click.option("--check", is_flag=True, help="Say what is wrong with the configuration, and stop.")
@_config_flags
@shared_options
@with_session
def serve(session: Session, check: bool, **flags: Any) -> None:
    """Run the relay in the foreground until SIGTERM.

    Flags override FERRYLINE_RELAY_* variables, and these the file.
    """
    config = session.load_config(flags)
    for note in config_rules.advice(config, _local_ports()):
        click.echo(f"warning: {note}", err=True)
    if check:
        _check(config)
        return
    from relayctl.control.daemon import run

    raise SystemExit(run(config))


def _check(config: RelayConfig) -> None:
    """The configuration was good; is the key file?"""
    keys = keys_file(config.keys_file)
    if keys.status is Status.FAIL:
        click.echo(f"keys_file = {keys.detail}; {keys.mend}", err=True)
        raise SystemExit(USAGE)
    table = megabytes(flow_table_bytes(config.max_flows))
    click.echo(f"{config.instance}: good; max_flows = {config.max_flows} takes {table}")


def _local_ports(path: Path = _LOCAL_PORTS) -> tuple[int, int]:
    try:
        low, high = map(int, path.read_text().split())
    except (OSError, ValueError):
        return _DEFAULT_LOCAL_PORTS
    return low, high
