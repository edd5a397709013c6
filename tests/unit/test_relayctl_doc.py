"""`docs/relayctl.md` against the command tree and the names it explains."""

import re
from pathlib import Path

import click
import pytest

from relayctl.cli.main import cli
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


@pytest.mark.parametrize("word", [*UserPath, *Change, *Expiry])
def test_word_is_explained(word: str) -> None:
    assert f"`{word}`" in DOCUMENT
