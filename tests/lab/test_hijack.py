"""Somebody else wants the call: with its ufrag, its SSRC, its own packets again, or its address.

Whoever reads the client's packets has all of these; none of them proves anything.
"""

import random
import time
from collections.abc import Iterator

import pytest

from relayctl.packet.token_flows import MAX_NEW
from relayctl.reason import Reason
from relayctl.wire.route_token import Route, mint
from tests.kernel.packets import frame
from tests.lab import relay_counts
from tests.lab.attacker import Attacker
from tests.lab.deployment import Deployment, Place, deploy
from tests.lab.hostile import binding_request, datagrams
from tests.lab.relay_counts import RelayCounts
from tests.lab.service_config import CLUSTER
from tests.lab.topology import CLIENT_2
from tests.lab.victim import Victim, dropped, grown, spy_on, target

REPEATS = 20
SWEEP_S = 2.5  # until the relay knows whose an SSRC is
OPENS_S = 0.5
SHOWN_S = 1.5  # until the API knows the flows of the socket datapath; unconfirmed ones live 5 s


@pytest.fixture(scope="module", params=["xdp", "socket"])
def deployment(request: pytest.FixtureRequest, lab_prefix: str) -> Iterator[Deployment]:
    place: Place = request.param
    with deploy(place, lab_prefix, echo="opus", second_client=True) as deployment:
        yield deployment


@pytest.fixture(scope="module")
def victim(deployment: Deployment) -> Iterator[Victim]:
    with spy_on(deployment) as victim:
        yield victim


@pytest.fixture
def attacker(deployment: Deployment) -> Iterator[Attacker]:
    """On another address than the client."""
    with Attacker(deployment.site.client, CLIENT_2) as attacker:
        yield attacker


def test_a_check_without_the_password_is_not_answered(victim: Victim, attacker: Attacker) -> None:
    site, source = victim.services.site, random.Random(1)
    unsigned = victim.check[:20] + b"\x00\x06" + len(victim.username).to_bytes(2, "big")
    unsigned += victim.username + bytes(-len(victim.username) % 4)
    unsigned = unsigned[:2] + (len(unsigned) - 20).to_bytes(2, "big") + unsigned[4:]
    attacker.send([unsigned], site.vip)  # a token may knock 16 times a second, a flow is open
    time.sleep(OPENS_S)
    before = dropped(victim.services)
    for request in (
        binding_request(source, victim.username),
        binding_request(source, victim.token + b":nope"),
        unsigned,
    ):
        attacker.send([request] * REPEATS, site.vip)
    assert attacker.answers() == []
    assert grown(victim.services, before) == {
        "wrong_integrity": REPEATS,
        "wrong_username": REPEATS,
        "no_integrity": REPEATS,
    }
    victim.expect_unharmed()


def test_a_check_sent_again_from_elsewhere_does_not_move_the_call(
    victim: Victim, attacker: Attacker
) -> None:
    """It is authentic and so it is answered, but our own check is not."""
    attacker.send([victim.check] * REPEATS, victim.services.site.vip, 50)
    answers = attacker.answers(2.0)
    assert len(answers) <= REPEATS + 3
    victim.expect_unharmed()


def test_media_sent_again_from_elsewhere_does_not_move_the_call(
    victim: Victim, attacker: Attacker
) -> None:
    time.sleep(SWEEP_S)
    before = RelayCounts.read(victim.services)
    forged = [packet[:12] + bytes(len(packet) - 12) for packet in victim.rtp]
    attacker.send([*victim.rtp[:8], *forged[:8] * 4], victim.services.site.vip, 200)
    assert attacker.answers() == []
    counts = relay_counts.settled(victim.services).since(before)
    assert 16 <= counts.reasons[Reason.SLOW_HINT] <= 32  # an SSRC's share, of one second or two
    victim.expect_unharmed()


def test_noise_in_the_name_of_the_client_costs_it_nothing(
    victim: Victim, attacker: Attacker
) -> None:
    """Its flow lets all of it pass to the transceiver."""
    services = victim.services
    noise = [each.payload for each in datagrams(3, 1500, target(services)) if each.payload]
    alerts = [
        b"\x15\xfe\xfd" + bytes(8) + b"\x00\x02" + kind for kind in (b"\x01\x00", b"\x02\x28")
    ]
    before = dropped(services)
    packets = [
        frame(victim.client, services.site.vip, payload)[14:]
        for payload in [*noise, *alerts, *victim.dtls, *victim.rtp]
    ]
    attacker.send_raw(packets, services.site.vip[0], 500)
    assert attacker.answers() == []
    assert "internal_error" not in grown(services, before)
    victim.expect_unharmed()


def test_a_token_of_another_endpoint_does_not_take_the_flow(
    victim: Victim, attacker: Attacker
) -> None:
    """An authentic one, in the name of the client: somebody with a call of his own has such."""
    services = victim.services
    route = Route(CLUSTER, int.from_bytes(bytes([10, 2, 0, 3]), "big"), 5000, b"abc")
    other = mint(services.setup.key, route).encode()
    request = binding_request(random.Random(1), other + b":abcd")
    packet = frame(victim.client, services.site.vip, request)[14:]
    attacker.send_raw([packet] * REPEATS, services.site.vip[0])
    assert attacker.answers() == []
    victim.expect_unharmed()


def test_one_token_makes_few_flows(victim: Victim, attacker: Attacker) -> None:
    """Sources are free to invent, tokens are not: whoever has one must not fill the table."""
    site = victim.services.site
    request = binding_request(random.Random(1), victim.token + b":abcd")
    sources = [(f"10.1.0.{number}", 40000) for number in range(50, 250)]
    packets = [frame(source, site.vip, request)[14:] for source in sources]
    attacker.send_raw(packets, site.vip[0], 500)
    time.sleep(SHOWN_S)
    new = [flow for flow in victim.services.flows() if flow["state"] == "new"]
    victim.expect_unharmed()
    assert 0 < len(new) <= MAX_NEW
