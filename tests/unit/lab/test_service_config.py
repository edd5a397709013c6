"""What we write is what the services read."""

import dataclasses
from ipaddress import ip_address
from pathlib import Path

import pytest

from relayctl.config import RelayConfig
from relayctl.wire.route_token import Key, parse_keys
from relayctl.wire.settings import load
from signaling.config import SignalingConfig
from tests.lab import service_config, topology
from tests.lab.node import Node
from tests.lab.program import Programs
from tests.lab.service_config import Cluster, Setup, Vip
from tests.lab.site import LoopbackPlace, RelayPlace, Site, in_lab
from tests.lab.topology import Lab
from transceiver.config import TransceiverConfig

KEYS = Path("/etc/ferryline/route.keys")


@pytest.fixture(params=["lab", "loopback"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Site:
    if request.param == "loopback":
        place = LoopbackPlace("unit", 23478)
        place.programs = Programs(tmp_path)
        return place.site()
    lab = Lab("unit-")  # never built
    lab.host = Node(None, Programs(tmp_path))
    lab._nodes = dict.fromkeys(("client", "relay-a", "signaling", "transceiver-1"), lab.host)
    return in_lab(lab)


@pytest.fixture
def setup(site: Site) -> Setup:
    return Setup(
        key=Key(1, bytes(range(32))),
        control_token="t" * 32,
        vips=(
            Vip(1, site.vip, site.vip),
            Vip(2, ("192.168.0.7", 3478), (site.vip[0], site.vip[1] + 8)),
        ),
        datapath="socket" if site.dev_local else "xdp",
        model={"mode": "opus"},
    )


def test_keys(setup: Setup) -> None:
    assert parse_keys(service_config.keys(setup)) == {1: setup.key}


def test_relay(site: Site, setup: Setup) -> None:
    config = load(RelayConfig, toml=service_config.relay(site, setup, KEYS))
    assert config.datapath == setup.datapath
    assert config.admin == site.relay_admin
    assert [vip.public for vip in config.vips] == [site.vip, ("192.168.0.7", 3478)]
    assert config.vips[1].local == (site.vip[0], site.vip[1] + 8)
    assert config.clusters[0].cluster().allows(site.endpoint)
    assert site.vip[1] not in config.inner_port_range


def test_relay_of_both_families(site: Site, setup: Setup) -> None:
    both = dataclasses.replace(
        setup,
        vips=(*setup.vips, Vip(3, ("2001:db8::10", 3478), ("fd00:a::5", 3478))),
        inner_addresses=("fd00:2::1",),
        clusters=(Cluster(8, "fd00:2::/112"),),
    )
    config = load(RelayConfig, toml=service_config.relay(site, both, KEYS))
    assert config.inner_addresses == (site.relay_inner, "fd00:2::1")
    assert config.clusters[1].cluster().allows(("fd00:2::5", 5000))


def test_site_of_ipv6(site: Site, setup: Setup) -> None:
    v6 = dataclasses.replace(
        site, relay_inner="fd00:2::1", endpoint=("fd00:2::2", 5000), allow="fd00:2::/112"
    )
    relay = load(RelayConfig, toml=service_config.relay(v6, setup, KEYS))
    transceiver = load(TransceiverConfig, toml=service_config.transceiver(v6, setup, KEYS))
    assert relay.clusters[0].cluster().allows(transceiver.listen)
    assert transceiver.cluster_prefix == relay.clusters[0].prefix
    assert [str(network) for network in transceiver.relay_networks] == ["fd00:2::1/128"]


def test_transparent(site: Site, setup: Setup) -> None:
    plain = dataclasses.replace(setup, inner="transparent", vips=setup.vips[:1], datapath="xdp")
    assert 'inner = "transparent"' in service_config.relay(site, plain, KEYS)
    config = load(TransceiverConfig, toml=service_config.transceiver(site, plain, KEYS))
    assert config.inner == "plain"


def test_transceiver(site: Site, setup: Setup) -> None:
    config = load(TransceiverConfig, toml=service_config.transceiver(site, setup, KEYS))
    assert config.listen == site.endpoint
    assert config.echo.mode == "opus"


@pytest.mark.parametrize("certificate_for", ["", "192.168.0.7"])
def test_signaling(site: Site, setup: Setup, certificate_for: str) -> None:
    text = service_config.signaling(
        site, setup, KEYS, listen="fd:3", vip=site.vip, certificate_for=certificate_for
    )
    config = load(SignalingConfig, toml=text)
    assert config.listen == 3
    assert config.ingresses[0].vips == (site.vip,)
    assert config.ingresses[0].admin == (site.admin_url,)
    assert config.tls_self_signed == ((certificate_for,) if certificate_for else ())


def test_two_relays_of_one_vip(site: Site, setup: Setup) -> None:
    second = RelayPlace("relay-b", site.relay, "10.2.0.7", ("10.2.0.7", 9100))
    both = dataclasses.replace(site, more_relays=(second,))
    assert both.at_relay(0) == both
    relay = load(RelayConfig, toml=service_config.relay(both.at_relay(1), setup, KEYS))
    assert (relay.instance, relay.admin) == ("relay-b", second.admin)
    assert relay.inner_addresses == ("10.2.0.7",)
    transceiver = load(TransceiverConfig, toml=service_config.transceiver(both, setup, KEYS))
    assert [network.network_address for network in transceiver.relay_networks] == [
        ip_address(site.relay_inner),
        ip_address("10.2.0.7"),
    ]
    text = service_config.signaling(both, setup, KEYS, listen="fd:3", vip=site.vip)
    (ingress,) = load(SignalingConfig, toml=text).ingresses
    assert ingress.admin == (site.admin_url, "http://10.2.0.7:9100")


def test_with_redis_there_is_no_list_of_transceivers(site: Site, setup: Setup) -> None:
    setup = dataclasses.replace(setup, redis="redis://:hush@10.2.0.5:6379/0")
    assert "hush" not in repr(setup)
    text = service_config.transceiver(site, setup, KEYS, 8)
    transceiver = load(TransceiverConfig, toml=text)
    assert (transceiver.cluster, transceiver.redis) == (8, setup.redis)
    text = service_config.signaling(site, setup, KEYS, listen="fd:3", vip=site.vip)
    signaling = load(SignalingConfig, toml=text)
    assert (signaling.endpoints, signaling.redis) == ((), setup.redis)


def test_secrets_stay_out_of_sight(setup: Setup) -> None:
    assert "t" * 32 not in repr(setup)
    assert setup.key.secret.hex() not in repr(setup)


def test_two_labs_have_two_directories() -> None:
    assert topology.directory_of("fl-") != topology.directory_of("ft-")


def test_parrot(site: Site, setup: Setup) -> None:
    one = dataclasses.replace(setup, backend="parrot", model={})
    config = load(TransceiverConfig, toml=service_config.transceiver(site, one, KEYS))
    assert (config.backend, config.parrot.vad) == ("parrot", "silero")


def test_realtime(site: Site, setup: Setup) -> None:
    model = {"url": "ws://127.0.0.1:9/v1/realtime", "model": "m"}
    one = dataclasses.replace(setup, backend="realtime", model=model)
    config = load(TransceiverConfig, toml=service_config.transceiver(site, one, KEYS))
    assert (config.realtime.url, config.realtime.model) == (model["url"], "m")
