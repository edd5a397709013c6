"""Versions of the JavaScript clients, as package.json pins them."""

import json
from functools import cache

from tests.interop.install import HERE


def version(package: str) -> str:
    """Name and version, for people."""
    return f"`{package}` {_pinned()[package]}"


@cache
def _pinned() -> dict[str, str]:
    pinned: dict[str, str] = json.loads((HERE / "package.json").read_text())["dependencies"]
    return pinned
