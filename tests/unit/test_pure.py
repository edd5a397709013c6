"""Pure modules stay pure: bytes, values and `now` in, values out."""

import ast
import importlib.util
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

PACKAGES = ("relayctl", "transceiver", "signaling")
PURE = (
    "relayctl.wire.*",
    "relayctl.address_policy",
    "relayctl.cached_flow",
    "relayctl.control.astray",
    "relayctl.control.facts",
    "relayctl.control.flow_slice",
    "relayctl.control.hint_table",
    "relayctl.control.link",
    "relayctl.control.network",
    "relayctl.datapath.base",
    "relayctl.datapath.budgets",
    "relayctl.datapath.memory_flows",
    "relayctl.datapath.socket",
    "relayctl.flow",
    "relayctl.hints",
    "relayctl.inspect.flow_changes",
    "relayctl.inspect.records",
    "relayctl.messages",
    "relayctl.packet.actions",
    "relayctl.packet.decide",
    "relayctl.packet.from_client",
    "relayctl.packet.from_endpoint",
    "relayctl.packet.lookups",
    "relayctl.packet.newcomers",
    "relayctl.packet.raw_datagram",
    "relayctl.packet.routing",
    "relayctl.packet.stamp_clock",
    "relayctl.packet.takeover",
    "relayctl.packet.token_flows",
    "relayctl.peers",
    "relayctl.reason",
    "relayctl.routes",
    "transceiver.audio.order",
    "transceiver.admission",
    "transceiver.allowance",
    "transceiver.backends.base",
    "transceiver.backends.realtime.backlog",
    "transceiver.backends.realtime.complaints",
    "transceiver.backends.realtime.configuration",
    "transceiver.backends.realtime.names",
    "transceiver.backends.realtime.out",
    "transceiver.backends.realtime.replay",
    "transceiver.backends.realtime.replies",
    "transceiver.backends.realtime.table",
    "transceiver.backends.realtime.unfinished",
    "transceiver.backends.realtime.target",
    "transceiver.backends.realtime.wire",
    "transceiver.backoff",
    "transceiver.counts",
    "transceiver.demux",
    "transceiver.dialects.*",
    "transceiver.events",
    "transceiver.flight",
    "transceiver.framing",
    "transceiver.handshake",
    "transceiver.ice.*",
    "transceiver.lateness",
    "transceiver.lifecycle",
    "transceiver.masking",
    "transceiver.playback",
    "transceiver.remembered",
    "transceiver.resume.record",
    "transceiver.rtcp",
    "transceiver.rtp",
    "transceiver.sdp.*",
    "transceiver.sdp_answer",
    "transceiver.session.*",
    "transceiver.tally",
    "transceiver.turns.*",
    "transceiver.wheel",
    "signaling.access.api_keys",
    "signaling.access.limits",
    "signaling.faces.form",
    "signaling.faces.sdp_fragment",
    "signaling.http.gate",
    "signaling.ice",
    "signaling.ice_servers",
    "signaling.offer",
    "signaling.refusal",
    "signaling.session",
)
CONNECTS = "relayctl.wire.redis_client"  # what three services share, and no format
TOUCHES_THE_WORLD = {
    *("asyncio", "bcc", "ctypes", "fastapi", "fcntl", "httpx", "logging", "os"),
    *("pyroute2", "random", "secrets", "select", "signal", "socket", "starlette", "subprocess"),
    *("redis", "sys", "threading", "time", "uvicorn"),
}


def modules() -> dict[str, Path]:
    found = {}
    for package in PACKAGES:
        for path in Path(package).rglob("*.py"):
            parts = path.with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def is_pure(module: str) -> bool:
    return module != CONNECTS and any(
        fnmatchcase(module, pattern) or f"{module}.*" == pattern for pattern in PURE
    )


def imports(path: Path) -> set[str]:
    """Modules that `path` imports, first-party ones by their full name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inside & MODULES.keys()) or {node.module}
    return found


@pytest.mark.parametrize("module", sorted(filter(is_pure, MODULES)))
def test_imports_nothing_that_touches_the_world(module: str) -> None:
    imported = imports(MODULES[module])
    assert not {name.partition(".")[0] for name in imported} & TOUCHES_THE_WORLD
    ours = {name for name in imported if name.partition(".")[0] in PACKAGES}
    assert {name for name in ours if not is_pure(name) and name not in PACKAGES} == set()


@pytest.mark.parametrize("pattern", PURE)
def test_every_pattern_names_a_module(pattern: str) -> None:
    assert any(fnmatchcase(module, pattern) for module in MODULES)


def test_every_module_can_be_found() -> None:
    assert all(importlib.util.find_spec(module) for module in MODULES)
