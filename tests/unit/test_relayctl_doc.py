"""`docs/relayctl.md` against the command tree and the names it explains."""

import re
from pathlib import Path
from unittest import mock

import click
import pytest
from starlette.routing import Route

from relayctl.cli.main import cli
from relayctl.control.api import create_app
from relayctl.flow import Expiry
from relayctl.inspect.flow_changes import Change
from relayctl.inspect.records import UserPath

DOCUMENT = (Path(__file__).parents[2] / "docs/relayctl.md").read_text()


def verbs(group: click.Group) -> list[str]:
    found: list[str] = []
    for name, command in group.commands.items():
        found += verbs(command) if isinstance(command, click.Group) else [name]
    return found


@pytest.mark.parametrize("verb", verbs(cli))
def test_verb_is_in_the_table(verb: str) -> None:
    table = "\n".join(re.findall(r"^\| (`.*?) \|", DOCUMENT, re.MULTILINE))
    assert re.search(rf"`(\w+ )?{verb}`", table)


def routes() -> list[str]:
    """Method and path of everything the API serves."""
    app = create_app(mock.Mock(), writable=True)
    return [
        f"{method} {route.path}"
        for route in app.routes
        if isinstance(route, Route)
        for method in sorted((route.methods or set()) - {"HEAD"})
    ]


def test_every_route_is_in_the_table() -> None:
    table = re.findall(r"^\| `((?:GET|PUT|DELETE|POST) .*?)` \|", DOCUMENT, re.MULTILINE)
    assert sorted(table) == sorted(routes())


@pytest.mark.parametrize("word", [*UserPath, *Change, *Expiry])
def test_word_is_explained(word: str) -> None:
    assert f"`{word}`" in DOCUMENT
