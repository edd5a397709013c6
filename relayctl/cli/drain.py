"""`relayctl drain`, `undrain`: tell the router that packets should come by another relay."""

import time

import click

from relayctl.cli.session import Failed, Session, shared_options, with_session
from relayctl.inspect.reader import Reader

QUIET_S = 10.0  # without any client packet: the router has moved them all
DEADLINE_S = 60.0

_LOOK_S = 1.0


@click.command()
@click.option("--wait", is_flag=True, help="Until no client packet came for 10 s.")
@click.option(
    "--deadline",
    type=click.FloatRange(min=0),
    default=DEADLINE_S,
    show_default=True,
    help="Longest wait, in seconds.",
)
@shared_options
@with_session
def drain(session: Session, wait: bool, deadline: float) -> None:
    """Fail /readyz and change nothing else: calls go on, new ones are served.

    With --wait the exit code is 1 if client packets still come at the deadline.
    """
    with session.reader() as reader:
        reader.drain(True)
        click.echo("draining: /readyz says 503, packets are forwarded as before", err=True)
        if wait and not _quiet(reader, deadline):
            raise Failed(f"client packets still come after {deadline:g} s; the relay stays drained")
        if wait:
            click.echo(f"quiet: no client packet for {QUIET_S:g} s", err=True)


@click.command()
@shared_options
@with_session
def undrain(session: Session) -> None:
    """Let /readyz tell the truth again."""
    with session.reader() as reader:
        reader.drain(False)
        status = reader.status()
    faults = ", ".join(status["not_ready"])
    click.echo(f"not ready: {faults}" if faults else "ready", err=True)


def _quiet(reader: Reader, deadline_s: float) -> bool:
    end = time.monotonic() + deadline_s
    while min((flow["idle_s"] for flow in reader.flows()), default=QUIET_S) < QUIET_S:
        if time.monotonic() >= end:
            return False
        time.sleep(min(_LOOK_S, max(0.0, end - time.monotonic())))
    return True
