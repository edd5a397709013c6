"""`docs/configuration.md` against the models: every key, its default, and examples that load."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from relayctl.config import RelayConfig
from relayctl.wire.address import render
from relayctl.wire.settings import Settings, load
from signaling.config import SignalingConfig
from transceiver.config import TransceiverConfig

DOCUMENT = (Path(__file__).parents[2] / "docs/configuration.md").read_text()
SERVICES: list[tuple[str, type[Settings]]] = [
    ("Relay", RelayConfig),
    ("Transceiver", TransceiverConfig),
    ("Signaling", SignalingConfig),
]


def chapter(title: str) -> str:
    [found] = re.findall(rf"^## {title}\n(.*?)(?=^## |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL)
    return str(found)


def rows(text: str) -> dict[str, set[str]]:
    """Defaults by key, of every table in `text`."""
    found: dict[str, set[str]] = {}
    for key, default in re.findall(r"^\| `(\w+)` \| (.*?) \|", text, re.MULTILINE):
        found.setdefault(key, set()).add(default)
    return found


def sections(base: type[Settings] = Settings) -> Iterator[type[Settings]]:
    for model in base.__subclasses__():
        yield model
        yield from sections(model)


def section_of(field: FieldInfo) -> type[Settings] | None:
    """The model of a section, repeated or not."""
    found = re.findall(r"[\w.]+", str(field.annotation))
    for model in sections():
        if f"{model.__module__}.{model.__qualname__}" in found:  # tests have sections of their own
            return model
    return None


def keys(model: type[Settings]) -> Iterator[tuple[str, FieldInfo]]:
    for name, field in model.model_fields.items():
        section = section_of(field)
        if section is None:
            yield field.alias or name, field
        else:
            yield from keys(section)


def shown(field: FieldInfo) -> str | None:
    """The default as the tables have it; None where they may say it in words."""
    value: Any = field.get_default(call_default_factory=True, validated_data={})
    match value:
        case None:
            return None
        case bool():
            return f"`{str(value).lower()}`"
        case int() | float() | dict():
            return f"`{value}`"
        case (str(), int()):
            return f'`"{render(value)}"`'
        case (int(), int()):
            return f"`[{value[0]}, {value[1]}]`"
        case tuple():
            return "`[" + ", ".join(f'"{each}"' for each in value) + "]`"
        case _ if value is PydanticUndefined:
            return "required"
        case _:
            return f'`"{value}"`'


@pytest.mark.parametrize(("title", "model"), SERVICES)
def test_every_key_stands_in_the_tables_with_its_default(title: str, model: type[Settings]) -> None:
    found = rows(chapter(title) + (chapter("Relay") if title == "Signaling" else ""))
    for key, field in keys(model):
        assert key in found, f"{title}: {key} is missing"
        assert shown(field) in {None, *found[key]}, f"{title}: {key}"


@pytest.mark.parametrize(("title", "model"), SERVICES)
def test_no_key_that_is_gone(title: str, model: type[Settings]) -> None:
    assert rows(chapter(title)).keys() <= {key for key, _ in keys(model)}


@pytest.mark.parametrize(("title", "model"), SERVICES)
def test_the_example_loads(title: str, model: type[Settings]) -> None:
    [example] = re.findall(r"```toml\n(.*?)```", chapter(title), re.DOTALL)
    assert tomllib.loads(example)
    load(model, toml=example)
