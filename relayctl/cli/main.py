"""The command tree of `relayctl`."""

import importlib.metadata

import click

from relayctl.cli.completion import completion
from relayctl.cli.doctor import doctor
from relayctl.cli.drain import drain, undrain
from relayctl.cli.flows import flows
from relayctl.cli.serve import serve
from relayctl.cli.session import shared_options
from relayctl.cli.stats import stats, top
from relayctl.cli.status import clusters, nexthops, status
from relayctl.cli.token import token
from relayctl.cli.unload import unload


def _version() -> str:
    try:
        return importlib.metadata.version("ferryline")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_version(), prog_name="relayctl")
@shared_options
def cli() -> None:
    """Runs and inspects a Ferryline relay.

    Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.
    """


for command in (
    *(serve, status, flows, stats, top, nexthops, clusters),
    *(drain, undrain, token, doctor, unload, completion),
):
    cli.add_command(command)
