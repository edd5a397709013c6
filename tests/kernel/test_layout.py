"""The structures of `bpf/flow.h` have the sizes and offsets that Python packs and unpacks."""

import os
import re
import struct
from pathlib import Path

import pytest

from relayctl.datapath import compile as compiler
from relayctl.datapath import maps
from relayctl.datapath.base import NEXTHOP, ROUTE_KEY
from relayctl.flow import CONFIRMED, KEY_V4, KEY_V6, VALUE
from relayctl.peers import SLOTS

FLOW_H = Path("bpf/flow.h").read_text()
KEY = ["client", "vip"]
ROUTE_KEY_FIELDS = ["tag", "seal", "valid"]
FLOW = [
    "token",
    "host",
    "port",
    "cluster",
    "nexthop_in",
    "nexthop_out",
    "sport",
    "back",
    "flags",
    "seen_up",
    "seen_down",
    "ssrc",
    "contended",
    "packets_up",
    "packets_down",
    "born",
    "answers",
    "bytes_up",
    "bytes_down",
]
NEXTHOP_FIELDS = [
    "valid",
    "port",
    "mtu",
    "tags",
    "destination_mac",
    "source_mac",
    "gateway",
]


def offsets(layout: struct.Struct, joined: tuple[int, ...] = ()) -> list[int]:
    """Where each field of a struct format begins; `joined` ones continue the field before."""
    parts = re.findall(r"\d*[a-zA-Z]", layout.format)
    codes = []
    for part in parts:  # "4s" and "4x" are one field, "8I" are eight
        count, code = part[:-1], part[-1]
        codes += [part] if code in "sx" else [code] * int(count or 1)
    starts = [struct.calcsize("=" + "".join(codes[:i])) for i in range(len(codes))]
    return [start for i, start in enumerate(starts) if i not in joined]


@pytest.mark.parametrize(
    ("name", "fields", "layout", "joined"),
    [
        pytest.param("flow_key_v4", KEY, KEY_V4, (), id="key_v4"),
        pytest.param("flow_key_v6", [*KEY, "zero"], KEY_V6, (), id="key_v6"),
        pytest.param("flow", FLOW, VALUE, (), id="flow"),
        pytest.param("nexthop", NEXTHOP_FIELDS, NEXTHOP, (4,), id="nexthop"),
        pytest.param("route_key", [*ROUTE_KEY_FIELDS, "zero"], ROUTE_KEY, (), id="route_key"),
    ],
)
def test_compiler_and_python_agree(
    name: str, fields: list[str], layout: struct.Struct, joined: tuple[int, ...]
) -> None:
    claims = [f"sizeof(struct {name}) == {layout.size}"]
    for field, offset in zip(fields, offsets(layout, joined), strict=True):
        claims.append(f"__builtin_offsetof(struct {name}, {field}) == {offset}")
    expect(claims)


@pytest.mark.parametrize("name", ["flow_key_v4", "flow_key_v6"])
def test_the_port_of_a_client_follows_its_address(name: str) -> None:
    """Python has both as one field."""
    end = f"sizeof(((struct {name} *)0)->client)"
    expect([f"__builtin_offsetof(struct {name}, client_port) == {end}"])


def expect(claims: list[str]) -> None:
    """Raises unless the compiler agrees."""
    bcc = pytest.importorskip("bcc")
    os.environ["BCC_KERNEL_SOURCE"] = str(compiler.SOURCE)
    asserts = "\n".join(f'_Static_assert({claim}, "{claim}");' for claim in claims)
    text = f'#include <linux/types.h>\n#include "flow.h"\n#include "token.h"\n{asserts}'
    bcc.BPF(text=text.encode(), cflags=compiler.flags([])).cleanup()


def test_every_field_was_compared() -> None:
    body = re.search(r"struct flow \{(.*?)\};", FLOW_H, re.DOTALL)
    assert body is not None
    assert re.findall(r"(\w+);", re.sub(r"/\*.*?\*/", "", body[1])) == FLOW


def test_flags_agree() -> None:
    assert f"#define FLOW_CONFIRMED {CONFIRMED:#04x} " in FLOW_H


def test_map_sizes_agree() -> None:
    source = Path("bpf/relay.c").read_text()
    declared = dict(re.findall(r"(\w+), (\w+), PINS", source))
    declared |= dict(re.findall(r"int, (\w+), (\d+)\)", source))
    wanted = {shape.name: str(shape.entries) for shape in maps.shapes(1, 2)}
    named = {"MAX_FLOWS": "1", "MAX_FLOWS_V6": "2", "REASON_COUNTERS": "128"}
    named["BUDGET_SLOTS"] = str(maps.BUDGETS)
    named["PEER_SLOTS"] = str(SLOTS)
    assert {name: named.get(size, size) for name, size in declared.items()} == {
        name: entries for name, entries in wanted.items() if name in declared
    }
    assert set(wanted) - set(declared) == {"slow_reasons"}
