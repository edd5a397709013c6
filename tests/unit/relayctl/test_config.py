import ipaddress
from pathlib import Path
from typing import Any

import pytest

from relayctl.config import ENVIRONMENT, RelayConfig, flow_table_bytes, flow_tables
from relayctl.wire.cluster import Clusters
from relayctl.wire.route_token import Route
from relayctl.wire.settings import SettingsError, load

TOML = """
instance = "relay-a"
keys_file = "/etc/ferryline/route.keys"
inner_address = "10.2.0.1"
[[vip]]
id = 1
public = "203.0.113.10:3478"
[[interface]]
name = "outer0"
role = "outer"
[[interface]]
name = "inner0"
role = "inner"
[[cluster]]
id = 7
allow = ["10.2.0.0/24"]
"""
VIP = {"id": 1, "public": "203.0.113.10:3478"}
CLUSTER = {"id": 7, "allow": ["10.2.0.0/24"]}
CLUSTER_V6 = {"id": 9, "prefix": "fd00:b::/96", "allow": ["fd00:b::/112"]}
V6: dict[str, Any] = {
    "inner_address": "fd00:b::1",
    "vip": [{"id": 1, "public": "[2001:db8::1]:3478", "local": "[fd00:a::5]:3478"}],
    "cluster": [CLUSTER_V6],
}
LEGS = ("outer", "inner")


def config(**flags: Any) -> RelayConfig:
    return load(RelayConfig, toml=TOML, flags=flags)


def test_defaults() -> None:
    found = config()
    assert found.datapath == "xdp"
    assert found.xdp_mode == "native"
    assert (found.max_flows, found.max_flows_v6) == (262144, 65536)
    assert (found.inner, found.inner_addresses) == ("spp", ("10.2.0.1",))
    assert found.inner_port_range == range(5100, 5116)
    assert found.admin == ("127.0.0.1", 9100)
    assert (found.trust_l2, found.dev_local, found.allow_inner_clients) == (False, False, False)
    assert found.vips[0].local == found.vips[0].public == ("203.0.113.10", 3478)
    assert found.clusters[0].ports == (1024, 65535)


def test_paths_carry_the_instance() -> None:
    found = config()
    assert found.pins == Path("/sys/fs/bpf/ferryline/relay-a")
    assert found.socket_path == Path("/run/ferryline/relay-a.sock")
    assert found.lock_path == Path("/run/ferryline/relay-a.lock")


def test_cluster_section_makes_a_cluster() -> None:
    [section] = config().clusters
    endpoint = Clusters([section.cluster()]).endpoint(Route(7, 0x0A020002, 5000, bytes(3)))
    assert endpoint == ("10.2.0.2", 5000)
    assert section.allow == (ipaddress.ip_network("10.2.0.0/24"),)


def test_local_may_differ_behind_nat() -> None:
    [vip] = config(vip=[{**VIP, "local": "10.0.0.5:3478"}]).vips
    assert vip.public == ("203.0.113.10", 3478)
    assert vip.local == ("10.0.0.5", 3478)


def test_environment_beats_the_file() -> None:
    environ = {"FERRYLINE_RELAY_MAX_FLOWS": "64"}
    found = load(RelayConfig, toml=TOML, environ=environ, prefix=ENVIRONMENT)
    assert found.max_flows == 64


def test_is_immutable() -> None:
    with pytest.raises(ValueError, match="frozen"):
        config().max_flows = 5


@pytest.mark.parametrize(
    ("flags", "key", "value", "mend"),
    [
        pytest.param({"instance": "a.b"}, "instance", "a.b", "a-z", id="dot_in_instance"),
        pytest.param({"instance": "../x"}, "instance", "../x", "a-z", id="path_in_instance"),
        pytest.param({"datapath": "dpdk"}, "datapath", "dpdk", "'socket'", id="datapath"),
        pytest.param({"xdp_mode": "skb"}, "xdp_mode", "skb", "'generic'", id="xdp_mode"),
        pytest.param({"keys_file": "keys"}, "keys_file", "keys", "'/keys'", id="relative_path"),
        pytest.param({"bpffs": "bpf"}, "bpffs", "bpf", "'/bpf'", id="relative_bpffs"),
        pytest.param({"run_dir": "run"}, "run_dir", "run", "'/run'", id="relative_run_dir"),
        pytest.param({"max_flows": 15}, "max_flows", "15", "16-16777216", id="few_flows"),
        pytest.param({"max_flows": 10**8}, "max_flows", "100000000", "16-16777216", id="flows"),
        pytest.param({"inner_address": "10.2.0"}, "inner_address", "10.2.0", "give", id="no_ip"),
        pytest.param({"max_flows": "many"}, "max_flows", "many", "digits", id="text"),
        pytest.param({"max_flows": 1.5}, "max_flows", "1.5", "digits", id="fraction"),
        pytest.param({"max_flows_v6": 15}, "max_flows_v6", "15", "16-16777216", id="few_v6"),
        pytest.param({"trust_l2": "maybe"}, "trust_l2", "maybe", "neither true nor", id="bool"),
        pytest.param({"instance": 7}, "instance", "7", "quotes", id="number_for_text"),
        pytest.param({"vip": "a"}, "vip", "a", "brackets", id="text_for_list"),
        pytest.param({"vip": ["a"]}, "vip[0]", "a", "no section", id="text_for_section"),
        pytest.param({"inner": "nat"}, "inner", "nat", "'transparent'", id="inner"),
        pytest.param({"inner_address": 5}, "inner_address", "5", "as text", id="number_as_ip"),
        pytest.param({"inner_address": "224.0.0.1"}, "inner_address", "224.0.0.1", "give", id="mc"),
        pytest.param({"inner_address": "ff02::1"}, "inner_address", "ff02::1", "give", id="mc_v6"),
        pytest.param({"inner_address": "fe80::1"}, "inner_address", "fe80::1", "give", id="ll_v6"),
        pytest.param(
            {"inner_address": "fd00::1%eth0"}, "inner_address", "%eth0", "give", id="zone"
        ),
        pytest.param(
            {"inner_address": "::ffff:10.2.0.1"}, "inner_address", "::ffff", "'10.2.0.1'", id="v4m"
        ),
        pytest.param(
            {"inner_address": ["fd00::1", "fd00::2"]},
            "inner_address",
            "fd00::2",
            "one of each family",
            id="two_of_a_family",
        ),
        pytest.param({"inner_ports": 12}, "inner_ports", "12", "power of two", id="not_power"),
        pytest.param({"inner_ports": 128}, "inner_ports", "128", "up to 64", id="many_ports"),
        pytest.param({"inner_ports": 0}, "inner_ports", "0", "power of two", id="no_ports"),
        pytest.param({"admin": "9100"}, "admin", "9100", "<ip>:<port>", id="admin"),
        pytest.param({"vip": []}, "vip", "[]", "add a section", id="no_vip"),
        pytest.param({"vip": [{**VIP, "id": 0}]}, "vip[0].id", "0", "1-4095", id="vip_0"),
        pytest.param({"vip": [{**VIP, "id": 4096}]}, "vip[0].id", "4096", "1-4095", id="vip_4096"),
        pytest.param(
            {"vip": [{**VIP, "public": "203.0.113.10"}]},
            "vip[0].public",
            "203.0.113.10",
            "<ip>:<port>",
            id="vip_without_port",
        ),
        pytest.param(
            {"vip": [{**VIP, "local": "169.254.1.1:3478"}]},
            "vip[0].local",
            "169.254.1.1",
            "give one",
            id="link_local_vip",
        ),
        pytest.param(
            {"interface": [{"name": "an interface name", "role": "both"}]},
            "interface[0].name",
            "an interface name",
            "ip link",
            id="interface_name",
        ),
        pytest.param(
            {"interface": [{"name": "outer0", "role": "wan"}]},
            "interface[0].role",
            "wan",
            "'outer'",
            id="interface_role",
        ),
        pytest.param({"cluster": []}, "cluster", "[]", "add a section", id="no_cluster"),
        pytest.param(
            {"cluster": [{**CLUSTER, "id": 65536}]}, "cluster[0].id", "65536", "0-65535", id="id"
        ),
        pytest.param(
            {"cluster": [{**CLUSTER, "allow": []}]},
            "cluster[0].allow",
            "[]",
            "list",
            id="empty_allow_list",
        ),
        pytest.param(
            {"cluster": [{**CLUSTER, "allow": ["10.2.0.7/24"]}]},
            "cluster[0].allow[0]",
            "10.2.0.7/24",
            "'10.2.0.0/24'",
            id="host_bits",
        ),
        pytest.param(
            {"cluster": [{**CLUSTER, "allow": ["pods"]}]},
            "cluster[0].allow[0]",
            "pods",
            "prefix length",
            id="no_network",
        ),
        pytest.param(
            {"cluster": [{**CLUSTER, "allow": [10]}]},
            "cluster[0].allow[0]",
            "10",
            "as text",
            id="number_as_network",
        ),
        pytest.param(
            {"cluster": [{**CLUSTER, "prefix": "fd00::/64"}]},
            "cluster[0].prefix",
            "fd00::/64",
            "IPv6 /96; for IPv4 write '::ffff:0:0/96'",
            id="prefix_length",
        ),
        pytest.param(
            {"cluster": [{**CLUSTER, "ports": [5000, 4000]}]},
            "cluster[0].ports",
            "[5000, 4000]",
            "first <= last",
            id="ports",
        ),
    ],
)
def test_fault_names_key_value_and_mend(
    flags: dict[str, Any], key: str, value: str, mend: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        config(**flags)
    [fault] = caught.value.faults
    assert fault.startswith(f"{key} = ")
    assert value in fault
    assert mend in fault.partition(":")[2]


@pytest.mark.parametrize(
    "given",
    ["10.2.0.1,fd00::1", "10.2.0.1, FD00::0001", ["10.2.0.1", "fd00::1"]],
)
def test_inner_address_of_each_family(given: Any) -> None:
    found = config(inner_address=given)
    assert found.inner_addresses == ("10.2.0.1", "fd00::1")
    assert found.inner_address_for("203.0.113.1") == "10.2.0.1"
    assert found.inner_address_for("2001:db8::1") == "fd00::1"
    assert config().inner_address_for("2001:db8::1") is None


def test_inner_addresses_of_the_environment() -> None:
    environ = {"FERRYLINE_RELAY_INNER_ADDRESS": "10.2.0.1,fd00::1"}
    found = load(RelayConfig, toml=TOML, environ=environ, prefix=ENVIRONMENT)
    assert found.inner_addresses == ("10.2.0.1", "fd00::1")


def test_ipv6_throughout() -> None:
    found = config(**V6)
    assert found.vips[0].local == ("fd00:a::5", 3478)
    [cluster] = [section.cluster() for section in found.clusters]
    assert Clusters([cluster]).endpoint(Route(9, 5, 5000, bytes(3))) == ("fd00:b::5", 5000)


def test_vlan_devices() -> None:
    names = ["eth0.10", "eth0.20"]
    interfaces = [{"name": name, "role": role} for name, role in zip(names, LEGS, strict=True)]
    assert [each.name for each in config(interface=interfaces).interfaces] == names


@pytest.mark.parametrize("flags", [{}, {"inner_address": ["10.2.0.1", "fd00::1"]}])
def test_survives_json(flags: dict[str, Any]) -> None:
    found = config(**flags)
    assert RelayConfig.model_validate_json(found.model_dump_json(by_alias=True)) == found


@pytest.mark.parametrize("key", ["instance", "keys_file", "inner_address"])
def test_mandatory_keys(key: str) -> None:
    lines = [line for line in TOML.splitlines() if not line.startswith(key)]
    with pytest.raises(SettingsError, match=f"^{key}: missing"):
        load(RelayConfig, toml="\n".join(lines))


def test_a_cluster_without_allow_list_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"^cluster\[0\]\.allow: missing"):
        config(cluster=[{"id": 7}])


def test_unknown_key() -> None:
    with pytest.raises(SettingsError, match=r"^max_flow: unknown key"):
        config(max_flow=1)


def test_nearest_known_name_of_a_variable() -> None:
    environ = {"FERRYLINE_RELAY_INNER_ADRESS": "10.2.0.1", "FERRYLINE_RELAY_QQ": "1", "HOME": "/"}
    with pytest.raises(SettingsError) as caught:
        load(RelayConfig, toml=TOML, environ=environ, prefix=ENVIRONMENT)
    assert caught.value.faults == (
        "FERRYLINE_RELAY_INNER_ADRESS: unknown variable; "
        "did you mean FERRYLINE_RELAY_INNER_ADDRESS?",
        "FERRYLINE_RELAY_QQ: unknown variable; unset FERRYLINE_RELAY_QQ",
    )


def test_flow_tables_take_about_144_and_160_bytes_a_flow() -> None:
    v4, v6 = flow_table_bytes(262144, 1), flow_table_bytes(1, 262144)
    assert (v4 / 262144, v6 / 262144) == pytest.approx((144, 160), abs=1)


def test_flow_tables_are_told() -> None:
    assert flow_tables(config(max_flows=1 << 20, max_flows_v6=1 << 20)) == (
        "flow tables: 318.8 MB for 1048576 + 1048576 flows (IPv4 + IPv6 clients)"
    )


@pytest.mark.parametrize(
    ("key", "size"), [("max_flows", r"14,\d\d\d\.\d MB"), ("max_flows_v6", r"16,\d\d\d\.\d MB")]
)
def test_refused_max_flows_shows_what_it_would_take(key: str, size: str) -> None:
    with pytest.raises(SettingsError, match=size):
        config(**{key: 10**8})
