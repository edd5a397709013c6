"""The example configurations are complete and fit together."""

import re
import tomllib
from pathlib import Path

import pytest

from relayctl.config import RelayConfig
from relayctl.wire.cluster import Clusters
from relayctl.wire.settings import load
from signaling.config import SignalingConfig
from transceiver.config import TransceiverConfig

RELAY = Path("deploy/relay.toml").read_text()
TOKEN = {"X_CONTROL_TOKEN": "a-secret-of-the-environment"}


def test_examples_fit_together() -> None:
    relay = load(RelayConfig, toml=RELAY)
    transceiver = load(
        TransceiverConfig,
        toml=Path("deploy/transceiver.toml").read_text(),
        environ=TOKEN,
        prefix="X_",
    )
    signaling = load(
        SignalingConfig, toml=Path("deploy/signaling.toml").read_text(), environ=TOKEN, prefix="X_"
    )
    clusters = Clusters(section.cluster() for section in relay.clusters)
    assert {clusters.owner(each) for each in transceiver.endpoints} == {transceiver.cluster}
    assert signaling.endpoints == transceiver.endpoints
    assert len(transceiver.endpoints) > 1
    assert [vip for ingress in signaling.ingresses for vip in ingress.vips] == [
        vip.public for vip in relay.vips
    ]


def example(title: str) -> RelayConfig:
    """The file with one commented example in place of the sections and keys it names."""
    [text] = re.findall(rf"^# --- {title}\b.*\n((?:#.*\n)+)", RELAY, re.MULTILINE)
    base, change = tomllib.loads(RELAY), tomllib.loads(re.sub("^# ?", "", text, flags=re.MULTILINE))
    for section in {"vip", "cluster"} & change.keys():
        change[section] = base[section] + change[section]
    return load(RelayConfig, flags=base | change)


def test_ipv6_example() -> None:
    relay = example("IPv6")
    assert [vip.public[0] for vip in relay.vips] == ["203.0.113.10", "2001:db8::10"]
    [_, cluster] = [section.cluster() for section in relay.clusters]
    assert cluster.allows(("fd00:2::5", 5000))
    assert relay.inner_address_for("fd00:2::5") == "fd00:2::1"


@pytest.mark.parametrize(
    ("title", "interfaces"),
    [
        ("VLAN", [("eth0.10", "outer"), ("eth0.20", "inner")]),
        ("One interface", [("eth0", "both")]),
    ],
)
def test_interface_examples(title: str, interfaces: list[tuple[str, str]]) -> None:
    assert [(each.name, each.role) for each in example(title).interfaces] == interfaces


def test_transparent_example() -> None:
    assert example("Transparent").inner == "transparent"


def test_peer_example() -> None:
    relay = example("Another region")
    [peer] = relay.peers
    assert relay.via() == {relay.clusters[-1].id: (peer.id,)}


def test_every_example_is_loaded_here() -> None:
    assert len(re.findall("^# --- ", RELAY, re.MULTILINE)) == 5
