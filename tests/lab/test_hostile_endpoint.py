"""Hostile datagrams straight at a transceiver: from a relay's address, and from elsewhere."""

import random
from collections.abc import Iterator

import pytest

from relayctl.wire import spp
from relayctl.wire.address import Address
from tests.lab import topology
from tests.lab.attacker import Attacker
from tests.lab.deployment import Deployment, deploy
from tests.lab.hostile import binding_request, datagrams
from tests.lab.victim import Victim, dropped, grown, spy_on, target

SEED = 21
COUNT = 1450
CLIENT = ("192.0.2.9", 4000)


@pytest.fixture(scope="module")
def deployment(lab_prefix: str) -> Iterator[Deployment]:
    with deploy("socket", lab_prefix, echo="opus") as deployment:
        yield deployment


@pytest.fixture(scope="module")
def victim(deployment: Deployment) -> Iterator[Victim]:
    with spy_on(deployment) as victim:
        yield victim


@pytest.fixture
def relay(deployment: Deployment) -> Iterator[Attacker]:
    """Somebody at the relay's address."""
    with Attacker(deployment.site.relay, topology.RELAY_INNER, sockets=3) as attacker:
        yield attacker


def framed(payload: bytes, vip: Address, client: Address = CLIENT) -> bytes:
    return spp.encode(spp.Header(client, vip)) + payload


def test_without_a_proxy_header(deployment: Deployment, victim: Victim, relay: Attacker) -> None:
    services, site = deployment.services, deployment.site
    header = framed(b"", site.vip)
    bare = [each.payload for each in datagrams(SEED, COUNT, target(services))]
    bare = [each for each in bare if each[:2] != b"\x56\xec"]
    cut = [header[:length] for length in range(len(header) + 1)]
    before = dropped(services)
    sent = relay.send([*bare, *cut], site.endpoint)
    assert relay.answers() == []
    assert grown(services, before) == {"not_spp": sent}
    victim.expect_unharmed()


def test_in_the_name_of_strangers(deployment: Deployment, victim: Victim, relay: Attacker) -> None:
    """Framed as a relay does it: each datagram is dropped for one reason."""
    services, site = deployment.services, deployment.site
    hostile = [each.payload for each in datagrams(SEED, COUNT, target(services)) if each.payload]
    before = dropped(services)
    sent = relay.send((framed(each, site.vip) for each in hostile), site.endpoint)
    assert relay.answers() == []
    found = grown(services, before)
    assert sum(found.values()) == sent, found
    assert "internal_error" not in found
    victim.expect_unharmed()


def test_attributes_that_run_past_the_end(
    deployment: Deployment, victim: Victim, relay: Attacker
) -> None:
    """Behind the right USERNAME, so that the relay and the mux let them pass."""
    services, site = deployment.services, deployment.site
    overrun = []
    for at in attributes_at(victim.check)[1:]:
        for length in (0xFFFF, 0xFFFC, 0x8000, len(victim.check) - at - 4 + 1):
            bent = bytearray(victim.check)
            bent[at + 2 : at + 4] = length.to_bytes(2, "big")
            overrun.append(framed(bytes(bent), site.vip))
    before = dropped(services)
    sent = relay.send(overrun, site.endpoint)
    assert relay.answers() == []
    assert grown(services, before) == {"malformed": sent}
    victim.expect_unharmed()


def attributes_at(message: bytes) -> list[int]:
    """Where the attributes of a STUN message begin; USERNAME is the first."""
    found, at = [], 20
    while at < len(message):
        found.append(at)
        size = int.from_bytes(message[at + 2 : at + 4], "big")
        at += 4 + size + -size % 4
    assert message[found[0] : found[0] + 2] == b"\x00\x06"
    return found


def test_with_the_ufrag_of_a_call(deployment: Deployment, victim: Victim, relay: Attacker) -> None:
    services, site, source = deployment.services, deployment.site, random.Random(SEED)
    foreign = ("203.0.113.99", 3478)
    before = dropped(services)
    forged = binding_request(source, victim.username)
    relay.send(
        [framed(victim.check, foreign), framed(forged, foreign), framed(forged, site.vip)],
        site.endpoint,
    )
    assert relay.answers() == []
    assert grown(services, before) == {"wrong_vip": 2, "wrong_integrity": 1}
    victim.expect_unharmed()


def test_checks_in_the_name_of_odd_clients(
    deployment: Deployment, victim: Victim, relay: Attacker
) -> None:
    """A relay in whom we trust may be wrong, and the call must not pay for it."""
    services, site = deployment.services, deployment.site
    odd = (("0.0.0.0", 0), ("255.255.255.255", 65535), ("2001:db8::1", 4000), ("::", 0))
    before = dropped(services)
    relay.send([framed(victim.check, site.vip, client) for client in odd], site.endpoint)
    relay.answers(0.5)
    assert grown(services, before) == {}
    victim.expect_unharmed()


def test_from_elsewhere(deployment: Deployment, victim: Victim) -> None:
    services, site = deployment.services, deployment.site
    hostile = [each.payload for each in datagrams(SEED, 290, target(services))]
    hostile += [framed(each, site.vip) for each in (*hostile, victim.check, *victim.rtp)]
    before = dropped(services)
    with Attacker(site.signaling, topology.SIGNALING_INNER) as attacker:
        sent = attacker.send(hostile, site.endpoint)
        assert attacker.answers() == []
    assert grown(services, before) == {"not_a_relay": sent}
    victim.expect_unharmed()
