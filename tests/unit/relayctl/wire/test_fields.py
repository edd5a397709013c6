import ipaddress
from pathlib import Path

import pytest

from relayctl.wire.cluster import Cluster
from relayctl.wire.fields import AbsolutePath, ClusterSection
from relayctl.wire.settings import Settings, SettingsError, load


class Service(Settings):
    cluster: ClusterSection
    keys_file: AbsolutePath = Path("/k")


def test_section_makes_a_cluster() -> None:
    config = load(Service, toml="cluster = {id = 7, allow = ['10.2.0.0/24'], ports = [5, 9]}")
    network = ipaddress.ip_network("10.2.0.0/24")
    assert config.cluster.cluster() == Cluster(7, (network,), ports=(5, 9))


@pytest.mark.parametrize(
    ("toml", "fault"),
    [
        ("id = 65536, allow = ['10.2.0.0/24']", "id = 65536: is outside 0-65535"),
        ("id = 7, allow = []", r"allow = \[\]: allows nothing; list"),
        ("id = 7, allow = ['10.2.0.1/24']", "is no network; write '10.2.0.0/24'"),
        ("id = 7, allow = ['here']", "want an address and a prefix length"),
        ("id = 7, allow = [5]", "want a network as text"),
        ("id = 7, allow = ['10.2.0.0/24'], prefix = 'fd00::/64'", "has to be an IPv6 /96"),
        ("id = 7, allow = ['10.2.0.0/24'], prefix = '10.0.0.0/8'", "has to be an IPv6 /96"),
        ("id = 7, allow = ['10.2.0.0/24'], ports = [9, 5]", r"want \[first, last\]"),
        ("id = 7, allow = ['10.2.0.0/24'], ports = [0, 5]", r"want \[first, last\]"),
    ],
)
def test_faults_name_key_value_and_mend(toml: str, fault: str) -> None:
    with pytest.raises(SettingsError, match=fault):
        load(Service, toml=f"cluster = {{{toml}}}")


def test_a_path_has_to_be_whole() -> None:
    toml = "keys_file = 'etc/k'\ncluster = {id = 7, allow = ['10.2.0.0/24']}"
    with pytest.raises(SettingsError, match="write the whole path, such as '/etc/k'"):
        load(Service, toml=toml)
