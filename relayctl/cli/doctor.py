"""`relayctl doctor`: is this host ready for the relay?"""

import dataclasses
from collections.abc import Iterable
from typing import Any

import click

from relayctl.cli import render
from relayctl.cli.session import Session, shared_options, with_session
from relayctl.doctor import examine_host
from relayctl.doctor.result import Result, Status

_STYLES: dict[Status, dict[str, Any]] = {
    Status.OK: {"fg": "green"},
    Status.WARN: {"fg": "yellow"},
    Status.FAIL: {"fg": "red", "bold": True},
    Status.SKIP: {"dim": True},
}


@click.command()
@click.option("--all", "everything", is_flag=True, help="Also what does not apply.")
@shared_options
@with_session
def doctor(session: Session, everything: bool) -> None:
    """Check kernel, interfaces, addresses, routes and files; name the command that mends.

    Changes nothing. Exit code 1 if a check fails.
    """
    results = list(examine_host(session.load_config()))
    if session.json:
        render.json_document([dataclasses.asdict(result) for result in results])
    else:
        _print(result for result in results if everything or result.status is not Status.SKIP)
    if any(result.status is Status.FAIL for result in results):
        raise SystemExit(1)


def _print(results: Iterable[Result]) -> None:
    for result in results:
        status = click.style(f"{result.status:<4}", **_STYLES[result.status])
        click.echo(f"{status} {result.name}: {render.escape(result.detail)}")
        if result.mend:
            click.echo(f"       {render.escape(result.mend)}")
