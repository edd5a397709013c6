"""`relayctl unload`: take the program off the interfaces and remove an instance's pins."""

import contextlib

import click

from relayctl.cli.session import Failed, Session, shared_options, with_session
from relayctl.datapath.base import DatapathError
from relayctl.doctor.service import lock_holder
from relayctl.inspect.reader import Place, now

_SILENCE = 3  # units; the packet process beats every half second


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@shared_options
@with_session
def unload(session: Session, yes: bool) -> None:
    """Detach the XDP program and forget every flow. Calls through this relay end.

    Stop the daemon first: stopping it leaves the program attached on purpose.
    """
    place = session.place()
    holder = lock_holder(place.lock)
    if holder is not None:
        raise Failed(f"{place.instance} runs as process {holder}; stop it first: kill {holder}")
    if not place.pins.is_dir():
        click.echo(f"{place.instance}: nothing is pinned below {place.pins}", err=True)
        return
    if _beats(session, place):
        raise Failed(
            f"{place.instance}: its packet process is alive, and its daemon holds no lock at "
            f"{place.lock}; name the right files with --config, or stop the daemon and wait 3 s"
        )
    if not yes:
        click.confirm(f"Detach {place.instance} and end all its calls?", abort=True, err=True)
    try:
        session.unload(place.instance, str(place.bpffs))
    except (OSError, DatapathError) as error:
        raise Failed(f"{place.pins}: {error}") from None
    click.echo(f"{place.instance}: detached, {place.pins} removed", err=True)


def _beats(session: Session, place: Place) -> bool:
    """Whether a daemon works on the pins whose lock is not where we looked."""
    try:
        pinned = session.open_pins(place.instance, place.bpffs)
    except DatapathError:  # pins of another version: nobody here can read them
        return False
    with contextlib.closing(pinned.datapath) as datapath:
        return now() - datapath.alive() <= _SILENCE
