from ipaddress import ip_network

import pytest

from relayctl.doctor import host_reader
from tests.unit.relayctl.test_config import config
from tests.unit.relayctl.test_config_rules import LOCAL


@pytest.mark.parametrize(
    ("network", "own", "host"),
    [
        ("10.2.0.0/24", {}, "10.2.0.1"),
        ("10.2.0.0/24", {"10.2.0.1": "inner0"}, "10.2.0.2"),
        ("10.2.0.2/32", {}, "10.2.0.2"),
        ("10.2.0.2/32", {"10.2.0.2": "inner0"}, "10.2.0.2"),
        ("10.2.0.0/31", {}, "10.2.0.0"),
    ],
)
def test_probe_address_is_not_our_own(network: str, own: dict[str, str], host: str) -> None:
    assert host_reader.probe_address(ip_network(network), own) == host


def test_reads_the_loopback_interface() -> None:
    host = host_reader.read(config(**LOCAL))
    loopback = host.link("lo")
    assert loopback is not None
    assert (loopback.index, loopback.kind, loopback.program) == (1, "", None)
    assert host.by_index(1) is loopback
    assert host.addresses["127.0.0.1"] == "lo"
    route = host.routes[ip_network("127.0.0.0/8")]
    assert route is not None
    assert (route.interface, route.gateway) == ("lo", None)
