from typing import Any

import pytest

from relayctl import config_rules
from relayctl.config import RelayConfig
from relayctl.wire.settings import SettingsError, load
from tests.unit.relayctl.test_config import CLUSTER, CLUSTER_V6, TOML, V6, VIP, config

LOCAL = {
    "datapath": "socket",
    "dev_local": True,
    "inner_address": "127.0.0.1",
    "vip": [{"id": 1, "public": "127.0.0.1:3478"}],
    "cluster": [{"id": 7, "allow": ["127.0.0.0/8"]}],
    "interface": [],
}
BOTH = [{"name": "eth0", "role": "both"}]
OUTER = {"name": "outer0", "role": "outer"}
OUTERS = [{"name": f"outer{n}", "role": "outer"} for n in range(64)]


def test_dev_local_allows_loopback() -> None:
    assert config(**LOCAL).dev_local


def test_both_with_trust_l2() -> None:
    assert config(interface=BOTH, trust_l2=True).interfaces[0].role == "both"


def test_socket_datapath_needs_no_interface() -> None:
    assert config(datapath="socket", interface=[]).interfaces == ()


def test_families_may_be_mixed() -> None:
    found = config(
        inner_address=["10.2.0.1", "fd00:b::1"],
        vip=[VIP, {"id": 2, "public": "[2001:db8::1]:3478"}],
        cluster=[CLUSTER, CLUSTER_V6],
    )
    assert len(found.clusters) == 2


def test_ipv6_on_loopback() -> None:
    cluster = {"id": 9, "prefix": "::/96", "allow": ["::1/128"]}
    vip = {"id": 1, "public": "[::1]:3478"}
    assert config(**{**LOCAL, "inner_address": "::1", "vip": [vip], "cluster": [cluster]})


def test_transparent_needs_no_inner_address() -> None:
    lines = [line for line in TOML.splitlines() if not line.startswith("inner_address")]
    flags = {"inner": "transparent"}
    assert load(RelayConfig, toml="\n".join(lines), flags=flags).inner_addresses == ()


def test_transparent_with_a_vip_of_each_family() -> None:
    vips = [VIP, {"id": 2, "public": "[2001:db8::1]:3478"}]
    assert config(inner="transparent", vip=vips, cluster=[CLUSTER, CLUSTER_V6])


@pytest.mark.parametrize(
    ("flags", "key", "value", "mend"),
    [
        pytest.param(
            {"vip": [VIP, {**VIP, "public": "203.0.113.11:3478"}]},
            "vip.id",
            "1",
            "its own",
            id="vip_id_twice",
        ),
        pytest.param(
            {"vip": [VIP, {"id": 2, "public": "203.0.113.11:3478", "local": "203.0.113.10:3478"}]},
            "vip.local",
            "203.0.113.10:3478",
            "its own",
            id="vip_local_twice",
        ),
        pytest.param(
            {"interface": [OUTER, OUTER, {"name": "inner0", "role": "inner"}]},
            "interface.name",
            "outer0",
            "its own",
            id="interface_twice",
        ),
        pytest.param(
            {"cluster": [CLUSTER, CLUSTER]}, "cluster.id", "7", "its own", id="cluster_twice"
        ),
        pytest.param(
            {"vip": [{"id": n, "public": f"203.0.113.{n}:3478"} for n in range(1, 10)]},
            "vip",
            "9 sections",
            "another instance",
            id="many_vips",
        ),
        pytest.param(
            {"inner_port_base": 1000}, "inner_port_base", "1000", "default", id="low_ports"
        ),
        pytest.param(
            {"inner_port_base": 65530}, "inner_port_base", "65530", "default", id="high_ports"
        ),
        pytest.param(
            {"vip": [{"id": 1, "public": "10.2.0.1:5107"}]},
            "vip[0].local",
            "10.2.0.1:5107",
            "move inner_port_base",
            id="vip_on_inner_port",
        ),
        pytest.param(
            {"interface": [OUTER, *BOTH]},
            "interface[1].role",
            "both",
            "trust_l2 = true",
            id="both",
        ),
        pytest.param({"interface": []}, "interface.role", "none", "[[interface]]", id="none"),
        pytest.param({"interface": [OUTER]}, "interface.role", "outer", "'inner'", id="only_outer"),
        pytest.param(
            {"interface": OUTERS},
            "interface",
            "64 sections",
            "remove some",
            id="many_interfaces",
        ),
        pytest.param(
            {"inner_address": "127.0.0.1"}, "inner_address", "127.0.0.1", "dev_local", id="loop"
        ),
        pytest.param(
            {"vip": [{"id": 1, "public": "127.0.0.1:3478"}]},
            "vip[0].public",
            "127.0.0.1",
            "dev_local",
            id="loopback_vip",
        ),
        pytest.param(
            {"vip": [{**VIP, "local": "127.0.0.1:3478"}]},
            "vip[0].local",
            "127.0.0.1",
            "dev_local",
            id="loopback_local",
        ),
        pytest.param(
            {"dev_local": True}, "dev_local", "xdp", "datapath = 'socket'", id="dev_local_with_xdp"
        ),
        pytest.param(
            {**LOCAL, "vip": [{"id": 1, "public": "8.8.8.8:3478"}]},
            "vip[0].public",
            "8.8.8.8",
            "dev_local = false",
            id="dev_local_with_public_vip",
        ),
        pytest.param(
            {**LOCAL, "cluster": [{"id": 7, "allow": ["169.254.0.0/16"]}]},
            "cluster[0].allow",
            "169.254.0.0/16",
            "list",
            id="dev_local_metadata_service",
        ),
        pytest.param(
            {"inner_address": "fd00:b::1"}, "inner_address", "fd00:b::1", "add our IPv4", id="no_v4"
        ),
        pytest.param(
            {"cluster": [CLUSTER, CLUSTER_V6]},
            "inner_address",
            "10.2.0.1",
            "add our IPv6 address",
            id="no_v6_inner_address",
        ),
        pytest.param(
            {**V6, "inner_address": "::1"}, "inner_address", "::1", "dev_local", id="loopback_v6"
        ),
        pytest.param(
            {**V6, "inner_address": "fd00:a::5", "inner_port_base": 3470},
            "vip[0].local",
            "[fd00:a::5]:3478",
            "move inner_port_base",
            id="v6_vip_on_inner_port",
        ),
        pytest.param(
            {"vip": [{**VIP, "local": "[fd00:a::5]:3478"}]},
            "vip[0].local",
            "[fd00:a::5]:3478",
            "both in one family",
            id="local_of_another_family",
        ),
        pytest.param(
            {"cluster": [{**CLUSTER, "allow": ["fd00:b::/112"]}]},
            "cluster[0].allow",
            "fd00:b::/112",
            "set prefix = 'fd00:b::/96'",
            id="v6_network_without_prefix",
        ),
        pytest.param(
            {"cluster": [{**CLUSTER, "allow": ["::ffff:10.2.0.0/120"]}]},
            "cluster[0].allow",
            "::ffff:",
            "write '10.2.0.0/24'",
            id="mapped_network",
        ),
        pytest.param(
            {"cluster": [CLUSTER, {**CLUSTER_V6, "allow": ["fd00:c::/112"]}]},
            "cluster[1].allow",
            "fd00:c::/112",
            "inside it",
            id="network_outside_the_prefix",
        ),
        pytest.param(
            {"cluster": [CLUSTER, {**CLUSTER_V6, "allow": ["fd00:b::/64"]}]},
            "cluster[1].allow",
            "fd00:b::/64",
            "inside it",
            id="network_larger_than_the_prefix",
        ),
        pytest.param(
            {"cluster": [{**CLUSTER_V6, "allow": ["10.2.0.0/24"]}]},
            "cluster[0].allow",
            "10.2.0.0/24",
            "list IPv6 networks",
            id="v4_network_in_a_v6_cluster",
        ),
        *(
            pytest.param(
                {**V6, "cluster": [{"id": 9, "prefix": f"{host}/96", "allow": [f"{host}/128"]}]},
                "cluster[0].allow",
                f"{host}/128",
                "list the transceivers' own networks",
                id=f"allow_{name}",
            )
            for host, name in (("fe80::", "link_local"), ("ff02::", "multicast"), ("::", "zero"))
        ),
        pytest.param(
            {
                "cluster": [
                    {**CLUSTER, "allow": [f"10.2.{n // 2}.{n % 2 * 128}/25" for n in range(257)]}
                ]
            },
            "cluster.allow",
            "257 networks",
            "larger networks",
            id="many_networks",
        ),
        pytest.param(
            {"inner": "transparent", "datapath": "socket"},
            "inner",
            "transparent",
            "datapath = 'xdp'",
            id="transparent_without_xdp",
        ),
        pytest.param(
            {"inner": "transparent", "vip": [VIP, {"id": 2, "public": "203.0.113.11:3478"}]},
            "vip",
            "2 IPv4 sections",
            "another instance",
            id="transparent_with_two_vips",
        ),
        pytest.param(
            {"inner": "transparent", "cluster": [CLUSTER, CLUSTER_V6]},
            "cluster",
            "no IPv6 [[vip]]",
            "add one",
            id="transparent_cluster_without_vip",
        ),
        pytest.param(
            {"inner": "transparent", "vip": [VIP, {"id": 2, "public": "[2001:db8::1]:3478"}]},
            "vip",
            "no IPv6 [[cluster]]",
            "add one",
            id="transparent_vip_without_cluster",
        ),
        pytest.param(
            {"run_dir": "/" + "d" * 100}, "run_dir", "114 bytes", "shorter", id="long_socket_path"
        ),
        *(
            pytest.param(
                {"cluster": [{**CLUSTER, "allow": ["10.2.0.0/24", network]}]},
                "cluster[0].allow",
                network,
                "list the transceivers' own networks",
                id=f"allow_{network}",
            )
            for network in (
                "127.0.0.0/8",
                "127.0.0.1/32",
                "169.254.169.254/32",
                "224.0.0.0/4",
                "0.0.0.0/8",
                "255.255.255.255/32",
            )
        ),
    ],
)
def test_fault_names_key_value_and_mend(
    flags: dict[str, Any], key: str, value: str, mend: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        config(**flags)
    found = [line for line in str(caught.value).splitlines() if line.startswith(f"{key} = ")]
    assert any(value in line and mend in line for line in found), str(caught.value)


def test_allowing_everything_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"0\.0\.0\.0/0: overlaps 127\.0\.0\.0/8"):
        config(cluster=[{**CLUSTER, "allow": ["0.0.0.0/0"]}])


def test_all_faults_are_told_at_once() -> None:
    with pytest.raises(SettingsError) as caught:
        config(interface=BOTH, inner_port_base=1000)
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("local_ports", "met"),
    [((32768, 60999), False), ((1024, 65535), True), ((5115, 6000), True), ((5116, 6000), False)],
)
def test_advice_on_ports_that_the_kernel_hands_out(local_ports: tuple[int, int], met: bool) -> None:
    notes = config_rules.advice(config(), local_ports)
    assert any(note.startswith("inner_port_base = 5100:") for note in notes) is met


@pytest.mark.parametrize(
    ("found", "key"),
    [(config(xdp_mode="generic"), "xdp_mode"), (config(**LOCAL), "dev_local")],
)
def test_advice(found: RelayConfig, key: str) -> None:
    [note] = config_rules.advice(found, (32768, 60999))
    assert note.startswith(key)


def test_nothing_to_advise() -> None:
    assert config_rules.advice(config(), (32768, 60999)) == []


PEER = {"id": 2, "address": "10.9.1.1", "admin": "10.9.1.1:9100"}
FAR = {"id": 70, "allow": ["10.2.0.0/24"], "via": [2]}  # may overlap with networks of our own


def test_a_cluster_behind_a_peer() -> None:
    vips = [{"id": 9, "public": "203.0.113.20:3478"}]
    found = config(cluster=[CLUSTER, FAR], peer=[PEER | {"vips": vips}])
    assert found.via() == {70: (2,)}
    [relay] = found.relays()
    assert (relay.host, relay.vips) == ("10.9.1.1", {("203.0.113.20", 3478): 9})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cluster": [CLUSTER, FAR]}, "cluster[1].via = 2: no [[peer]] has this id"),
        ({"cluster": [FAR], "peer": [PEER]}, "cluster.via: every cluster has it"),
        ({"peer": [PEER, PEER]}, "peer.id = 2: stands 2 times"),
        ({"peer": [PEER, PEER | {"id": 3}]}, "peer[1].address = 10.9.1.1: stands twice"),
        ({"peer": [PEER | {"address": "10.2.0.1"}]}, "peer[0].address = 10.2.0.1: is our own"),
        ({"peer": [PEER | {"address": "10.2.0.9"}]}, "is inside cluster 7's allow"),
        ({"peer": [PEER | {"address": "fd00::9"}]}, "there is no inner_address of its family"),
        ({"peer": [PEER | {"id": 256}]}, "is outside 1-255"),
        ({"peer": [PEER | {"vips": [{"id": 1, "public": "203.0.113.20:1"}]}]}, "a VIP of ours"),
        (
            {
                "peer": [
                    PEER | {"vips": [{"id": 9, "public": "203.0.113.20:1"}]},
                    PEER
                    | {
                        "id": 3,
                        "address": "10.9.1.2",
                        "vips": [{"id": 9, "public": "203.0.113.21:1"}],
                    },
                ]
            },
            "one id means one VIP",
        ),
        ({"inner": "transparent", "peer": [PEER]}, "has no peer relays"),
    ],
)
def test_faults_of_peers(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        config(**changes)
    assert said in str(caught.value)
