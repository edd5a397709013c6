from dataclasses import replace
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

import pytest

from relayctl.datapath.base import DatapathError
from relayctl.datapath.spec import Interface, Role, Spec, Vip, pin_directory
from relayctl.wire.cluster import Cluster

SPEC = Spec(
    instance="relay-a",
    vips=(
        Vip(1, ("203.0.113.10", 3478), ("203.0.113.10", 3478)),
        Vip(2, ("203.0.113.99", 443), ("10.9.8.7", 3478)),
        Vip(3, ("2001:db8::10", 3478), ("2001:db8::10", 3478)),
    ),
    interfaces=(
        Interface("outer0", 3, 1, Role.OUTER),
        Interface("inner0", 4, 2, Role.INNER),
        Interface("both0.10", 6, 63, Role.BOTH, own_carrier=5, tags=(10, 0)),
    ),
    inner_addresses=("10.2.0.1", "fd00:2::1"),
    clusters=(
        Cluster(7, (IPv4Network("10.2.0.0/24"), IPv4Network("10.77.0.1/32"))),
        Cluster(8, (IPv6Network("fd00:2::/112"),), IPv6Network("fd00:2::/96"), (5000, 5015)),
    ),
    own=("10.3.0.2", "fd00:3::2"),
    bpffs="/bpf",
)


def test_json_round_trip() -> None:
    assert Spec.from_json(SPEC.to_json()) == SPEC


def test_defines() -> None:
    assert SPEC.defines() == [
        'PINS="/bpf/ferryline/relay-a/v2"',
        "MAX_FLOWS=262144",
        "MAX_FLOWS_V6=65536",
        "VIPS_V4(V)="
        "V(1, 0xcb00710a, 3478, 0xcb00710a, 3478) V(2, 0xcb007163, 443, 0x0a090807, 3478)",
        "VIPS_V6(V)=V(3, 0x20010db8, 0x00000000, 0x00000000, 0x00000010, 3478, "
        "0x20010db8, 0x00000000, 0x00000000, 0x00000010, 3478)",
        "INTERFACES(I)=I(3, 0x0, OUTER_LEG) I(4, 0x0, INNER_LEG) "
        "I(5, 0xa0000, (OUTER_LEG | INNER_LEG))",
        "CLUSTERS_V6(C)=C(8, 0xfd000002, 0x00000000, 0x00000000)",
        "ALLOWED_V4(N)=N(0x0a020000, 0xffffff00, 1024, 65535) "
        "N(0x0a4d0001, 0xffffffff, 1024, 65535)",
        "ALLOWED_V6(N)=N(0xfd000002, 0x00000000, 0x00000000, 0x00000000, "
        "0xffffffff, 0xffffffff, 0xffffffff, 0xffff0000, 5000, 5015)",
        "OWN_V4(A)=A(0x0a030002)",
        "OWN_V6(A)=A(0xfd000003, 0x00000000, 0x00000000, 0x00000002)",
        "INNER_V4(A)=A(0x0a020001)",
        "INNER_V6(A)=A(0xfd000002, 0x00000000, 0x00000000, 0x00000001)",
        "INNER_PORT_BASE=5100",
        "INNER_PORTS=16",
        "ALLOW_INNER_CLIENTS=0",
        "TRANSPARENT=0",
        "HAS_PEERS=0",
        "PEERS_V4(P)=",
        "PEERS_V6(P)=",
        "FOREIGN_V4(V)=",
        "FOREIGN_V6(V)=",
    ]


def test_defines_of_peers() -> None:
    spec = replace(
        SPEC,
        peers=((2, "10.2.1.1"), (3, "fd00:3::1")),
        foreign_vips=((9, ("203.0.113.20", 3478), (2, 3)),),
    )
    assert Spec.from_json(spec.to_json()) == spec
    assert spec.defines()[-5:] == [
        "HAS_PEERS=1",
        "PEERS_V4(P)=P(2, 0x0a020101)",
        "PEERS_V6(P)=P(3, 0xfd000003, 0x00000000, 0x00000000, 0x00000001)",
        "FOREIGN_V4(V)=V(9, 0xcb007114, 3478, (peer == 0 || peer == 2 || peer == 3))",
        "FOREIGN_V6(V)=",
    ]


def test_ipv6_clusters_have_prefixes() -> None:
    assert SPEC.prefixes == {8: bytes.fromhex("fd0000020000000000000000")}


def test_optional_lists_may_be_empty() -> None:
    defines = replace(SPEC, own=(), interfaces=()).defines()
    assert {"OWN_V4(A)=", "OWN_V6(A)="} <= set(defines)
    assert "INTERFACES(I)=" in defines


def test_pins_are_versioned() -> None:
    assert SPEC.pins == pin_directory("/bpf", "relay-a") == Path("/bpf/ferryline/relay-a/v2")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"vips": ()}, "0 VIPs: the program takes 1 to 8", id="no_vip"),
        pytest.param({"vips": SPEC.vips * 5}, "15 VIPs", id="many_vips"),
        pytest.param({"clusters": ()}, "no allowed network", id="no_network"),
        pytest.param({"clusters": SPEC.clusters * 100}, "300 allowed networks", id="many_networks"),
        pytest.param({"interfaces": SPEC.interfaces * 11}, "33 interfaces", id="many_interfaces"),
        pytest.param(
            {"interfaces": (Interface("eth0.0", 3, 1, Role.OUTER, tags=(4095, 0)),)},
            "eth0.0: VLAN ids",
            id="vlan_id",
        ),
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
