import ipaddress
from pathlib import Path
from typing import Any

import pytest

from relayctl.config import ENVIRONMENT, RelayConfig, flow_table_bytes
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


def config(**flags: Any) -> RelayConfig:
    return load(RelayConfig, toml=TOML, flags=flags)


def test_defaults() -> None:
    found = config()
    assert found.datapath == "xdp"
    assert found.xdp_mode == "native"
    assert found.max_flows == 262144
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
        pytest.param({"inner_address": "fd00::1"}, "inner_address", "fd00::1", "IPv4", id="v6"),
        pytest.param({"inner_address": "224.0.0.1"}, "inner_address", "224.0.0.1", "give", id="mc"),
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
            {"vip": [{**VIP, "public": "[2001:db8::1]:3478"}]},
            "vip[0].public",
            "2001:db8::1",
            "IPv4",
            id="v6_vip",
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
            {"cluster": [{**CLUSTER, "allow": ["fd00::/64"]}]},
            "cluster[0].allow",
            "fd00::/64",
            "IPv4 networks",
            id="v6_network",
        ),
        pytest.param(
            {"cluster": [{**CLUSTER, "prefix": "fd00::/64"}]},
            "cluster[0].prefix",
            "fd00::/64",
            "IPv6 /96; for IPv4 write '::ffff:0:0/96'",
            id="prefix_length",
        ),
        pytest.param(
            {"cluster": [{**CLUSTER, "prefix": "fd00::/96"}]},
            "cluster[0].prefix",
            "fd00::/96",
            "'::ffff:0:0/96'",
            id="v6_prefix",
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


def test_flow_table_takes_about_150_bytes_a_flow() -> None:
    assert 130 < flow_table_bytes(262144) / 262144 < 160


def test_refused_max_flows_shows_what_it_would_take() -> None:
    with pytest.raises(SettingsError, match=r"14,\d\d\d\.\d MB"):
        config(max_flows=10**8)
