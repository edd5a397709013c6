from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from relayctl.datapath.base import DatapathError
from relayctl.datapath.spec import Interface, Role, Spec, Vip, pin_directory

SPEC = Spec(
    instance="relay-a",
    vips=(
        Vip(1, ("203.0.113.10", 3478), ("203.0.113.10", 3478)),
        Vip(2, ("203.0.113.99", 443), ("10.9.8.7", 3478)),
    ),
    interfaces=(
        Interface("outer0", 3, 1, Role.OUTER),
        Interface("inner0", 4, 2, Role.INNER),
        Interface("both0", 5, 63, Role.BOTH),
    ),
    inner_address="10.2.0.1",
    allow=(IPv4Network("10.2.0.0/24"), IPv4Network("10.77.0.1/32")),
    own=("10.3.0.2",),
    bpffs="/bpf",
)


def test_json_round_trip() -> None:
    assert Spec.from_json(SPEC.to_json()) == SPEC


def test_defines() -> None:
    assert SPEC.defines() == [
        'PINS="/bpf/ferryline/relay-a/v1"',
        "MAX_FLOWS=262144",
        "VIPS(V)=V(1, 0xcb00710a, 3478, 0xcb00710a, 3478) V(2, 0xcb007163, 443, 0x0a090807, 3478)",
        "INTERFACES(I)=I(3, OUTER_LEG) I(4, INNER_LEG) I(5, (OUTER_LEG | INNER_LEG))",
        "ALLOWED(N)=N(0x0a020000, 0xffffff00) N(0x0a4d0001, 0xffffffff)",
        "OWN(A)=A(0x0a030002)",
        "INNER_ADDRESS=0x0a020001",
        "INNER_PORT_BASE=5100",
        "INNER_PORTS=16",
        "ALLOW_INNER_CLIENTS=0",
    ]


def test_optional_lists_may_be_empty() -> None:
    defines = replace(SPEC, own=(), interfaces=()).defines()
    assert "OWN(A)=" in defines
    assert "INTERFACES(I)=" in defines


def test_pins_are_versioned() -> None:
    assert SPEC.pins == pin_directory("/bpf", "relay-a") == Path("/bpf/ferryline/relay-a/v1")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"vips": ()}, "0 VIPs: the program takes 1 to 8", id="no_vip"),
        pytest.param({"vips": SPEC.vips * 5}, "10 VIPs", id="many_vips"),
        pytest.param({"allow": ()}, "no allowed network", id="no_network"),
        pytest.param(
            {"interfaces": (Interface("eth0", 3, 0, Role.OUTER),)},
            "eth0: egress port 0, want 1-63",
            id="port_0",
        ),
        pytest.param(
            {"interfaces": (Interface("eth0", 3, 64, Role.OUTER),)},
            "eth0: egress port 64, want 1-63",
            id="port_64",
        ),
    ],
)
def test_what_the_program_cannot_express(changes: dict[str, object], message: str) -> None:
    with pytest.raises(DatapathError, match=message):
        replace(SPEC, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["", "[]", "{}", SPEC.to_json().replace("outer", "under")])
def test_unreadable_json(text: str) -> None:
    with pytest.raises(DatapathError, match="the spec on stdin is unreadable"):
        Spec.from_json(text)
