"""IP packets that ordinary sockets do not send, and packets that come in by the wrong side."""

import itertools
import struct
from collections.abc import Callable, Iterator

import pytest

from relayctl.reason import Reason
from relayctl.wire import spp
from relayctl.wire.address import Address
from tests.kernel.packets import frame
from tests.lab import http, relay_counts, topology
from tests.lab.attacker import Attacker
from tests.lab.deployment import Deployment, Place, deploy
from tests.lab.hostile import FORGED
from tests.lab.relay_counts import PROGRAM, SLOW, RelayCounts
from tests.lab.victim import authentic_request

CLIENT = (topology.CLIENT, 40000)
OUTSIDE = ("10.3.0.1", 40000)  # the router: nothing stands between it and the relay
MORE = 0x2000  # fragments


@pytest.fixture(scope="module", params=["xdp", "socket"])
def deployment(request: pytest.FixtureRequest, lab_prefix: str) -> Iterator[Deployment]:
    place: Place = request.param
    with deploy(place, lab_prefix) as deployment:
        yield deployment


@pytest.fixture
def grown(deployment: Deployment) -> Iterator[Callable[[], RelayCounts]]:
    """What the relay counted since the test began. In the end it has to be well."""
    services, site = deployment.services, deployment.site
    before = relay_counts.settled(services)
    yield lambda: relay_counts.settled(services).since(before)
    assert services.relay.running
    assert http.request(site.relay, f"{site.admin_url}/readyz").status == 200
    assert services.flows() == []


def packet(payload: bytes, vip: Address, source: Address = CLIENT, **changes: object) -> bytes:
    """An IPv4 packet for a raw socket."""
    return frame(source, vip, payload, **changes)[14:]  # type: ignore[arg-type]


def fragments(payload: bytes, vip: Address, *cuts: int, id: int = 7) -> list[bytes]:
    """The same packet in pieces; `cuts` are offsets in the UDP datagram, multiples of 8."""
    whole = packet(payload, vip)[20:]
    edges = [0, *cuts, len(whole)]
    pieces = []
    for start, end in itertools.pairwise(edges):
        field = start // 8 | (MORE if end < len(whole) else 0)
        made = packet(b"", vip, id=id, fragment=field, ip_length=20 + end - start)
        pieces.append(_with_header_sum(made[:20]) + whole[start:end])
    return pieces


def _with_header_sum(header: bytes) -> bytes:
    words = struct.unpack("!10H", header[:10] + bytes(2) + header[12:])
    total = sum(words)
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    return header[:10] + struct.pack("!H", ~total & 0xFFFF) + header[12:]


def odd_packets(vip: Address) -> dict[str, list[bytes]]:
    """What the program leaves to the kernel, which hands most of it to the packet process."""
    whole = fragments(FORGED, vip, 8, id=21)
    return {
        "last hop": [packet(FORGED, vip, ttl=2)],  # 1 behind the router
        "no operation": [packet(FORGED, vip, options=b"\x01\x01\x01\x00")],
        "record route": [packet(FORGED, vip, options=b"\x07\x07\x04" + bytes(5))],
        "router alert": [packet(FORGED, vip, options=b"\x94\x04\x00\x00")],
        "trailer": [packet(FORGED, vip, udp_length=8 + 24)],
        "fragments": whole,
        "fragments in reverse": list(reversed(fragments(FORGED, vip, 8, 16, 48, id=22))),
        "overlap": [*fragments(FORGED, vip, 16, id=23)[:1], *fragments(FORGED, vip, 8, id=23)[1:]],
        "only a first": fragments(FORGED, vip, 24, id=24)[:1],
        "only a last": fragments(FORGED, vip, 24, id=25)[1:],
        "too long when joined": [
            packet(b"", vip, id=26, fragment=0x1FFF, ip_length=28 + 64) + bytes(64)
        ],
    }


def test_odd_packets_are_not_answered(
    deployment: Deployment, grown: Callable[[], RelayCounts]
) -> None:
    site = deployment.site
    odd = [each for several in odd_packets(site.vip).values() for each in several]
    with Attacker(site.client, site.client_host) as attacker:
        sent = attacker.send_raw(odd, site.vip[0], 100)
        assert attacker.answers() == []
    if deployment.place == "xdp":
        counts = grown()
        assert counts.total(PROGRAM) == counts.reasons[Reason.PUNT_ODD] == sent, counts.nonzero()
        assert counts.total(SLOW) == counts.received


def test_lengths_that_contradict_each_other_are_dropped(
    deployment: Deployment, grown: Callable[[], RelayCounts]
) -> None:
    vip = deployment.site.vip
    wrong = [
        packet(FORGED, vip, udp_length=8 + len(FORGED) + 1),
        packet(FORGED, vip, udp_length=0xFFFF),
        packet(FORGED, vip, udp_length=7),
        packet(FORGED, vip, udp_length=0),
    ]
    with Attacker(deployment.site.client, deployment.site.client_host) as attacker:
        attacker.send_raw(wrong, vip[0], 100)
        assert attacker.answers() == []
    if deployment.place == "xdp":
        assert grown().nonzero() == {"drop_bad_length": len(wrong)}


def test_a_bad_checksum_is_dropped_by_the_socket(
    deployment: Deployment, grown: Callable[[], RelayCounts]
) -> None:
    vip = deployment.site.vip
    request = authentic_request(deployment.services)
    wrong = [packet(request, vip, sum=number) for number in (1, 0xFFFF, 0x1234)]
    with Attacker(deployment.site.client, deployment.site.client_host) as attacker:
        attacker.send_raw(wrong, vip[0], 100)
        assert attacker.answers() == []
    counts = grown()
    assert counts.socket_drops == len(wrong)
    assert counts.total(SLOW) == counts.received == 0


LIES: tuple[Address, ...] = (
    ("0.1.2.3", 40000),
    ("127.0.0.1", 40000),
    ("169.254.7.7", 40000),
    ("224.0.0.1", 40000),
    ("240.0.0.1", 40000),
    ("255.255.255.255", 40000),
    (topology.VIP, 40000),
    (topology.VIP, 3478),
    (topology.RELAY_INNER, 5100),
    (topology.RELAY_OUTER, 40000),
    (topology.TRANSCEIVERS[0], 5000),
    ("10.2.0.200", 40000),  # in the allow-list
    (topology.CLIENT, 0),
)


def test_addresses_that_no_client_has_are_refused(
    deployment: Deployment, grown: Callable[[], RelayCounts]
) -> None:
    assert deployment.lab is not None
    site, router = deployment.site, deployment.lab.node("router")
    with Attacker(router, OUTSIDE[0]) as attacker:
        lies = [packet(FORGED, site.vip, lie) for lie in LIES]
        attacker.send_raw(lies, site.vip[0], 100)
        assert attacker.answers() == []
    counts = grown()
    if deployment.place == "xdp":
        assert counts.nonzero() == {"drop_bad_source": len(LIES)}
    else:  # the kernel took some for itself
        assert counts.nonzero().keys() == {"drop_bad_source"}


def test_each_leg_has_its_side(deployment: Deployment, grown: Callable[[], RelayCounts]) -> None:
    assert deployment.lab is not None
    site = deployment.site
    header = spp.encode(spp.Header(("192.0.2.9", 4000), site.vip))
    with (
        Attacker(site.transceiver, topology.TRANSCEIVERS[0]) as inside,
        Attacker(deployment.lab.node("router"), OUTSIDE[0]) as outside,
    ):
        inside.send([FORGED] * 3, site.vip)
        ip = packet(header + FORGED, (site.relay_inner, 5100), (site.endpoint[0], site.endpoint[1]))
        outside.send_raw([ip] * 4, topology.RELAY_OUTER)
        assert inside.answers(0.5) + outside.answers(0.5) == []
    assert grown().nonzero() == {"drop_wrong_side": 7}


OTHERS = (  # of the relay's host, beside what is ours
    (topology.VIP, 3479),
    (topology.RELAY_OUTER, 3478),
    (topology.RELAY_OUTER, 5100),
)
INSIDE = ((topology.RELAY_INNER, 5099), (topology.RELAY_INNER, 5116))  # 5100-5115 are ours


def test_datagrams_of_other_services_of_the_host_pass(
    deployment: Deployment, grown: Callable[[], RelayCounts]
) -> None:
    site = deployment.site
    payload = spp.encode(spp.Header(("192.0.2.9", 4000), site.vip)) + FORGED
    for theirs in (*OTHERS, *INSIDE):
        host = site.transceiver if theirs in INSIDE else site.client
        with site.relay.udp(*theirs) as service, Attacker(host, "0.0.0.0") as somebody:
            assert somebody.send([payload], theirs) == 1
            assert service.recv(2000) == payload
    assert grown().nonzero() == {}


def test_an_inner_host_that_is_no_endpoint_of_the_flow_makes_none(
    deployment: Deployment, grown: Callable[[], RelayCounts]
) -> None:
    site = deployment.site
    own = spp.encode(spp.Header(("192.0.2.9", 4000), site.vip))
    foreign = spp.encode(spp.Header(("192.0.2.9", 4000), ("203.0.113.99", 3478)))
    inner_client = spp.encode(spp.Header((site.endpoint[0], 4000), site.vip))
    inner = (site.relay_inner, 5100)
    six = spp.encode(spp.Header(("2001:db8::c000:209", 4000), site.vip))
    six_proxy = spp.encode(spp.Header(("192.0.2.9", 4000), ("2001:db8::cb00:710a", 3478)))
    ours = topology.RELAY_OUTER, 4000  # no VIP: an address that the host has besides
    nowhere = [
        spp.encode(spp.Header(client, site.vip)) + FORGED
        for client in (("224.0.0.1", 4000), ("192.0.2.9", 0), ("127.0.0.1", 4000), site.vip, ours)
    ]
    with Attacker(site.transceiver, topology.TRANSCEIVERS[0]) as attacker:
        attacker.send([b"", b"\x56", b"\x56\xec", own, own[:37], FORGED], inner)
        attacker.send([six + FORGED, six_proxy + FORGED], inner)
        attacker.send([foreign + FORGED], inner)
        attacker.send([inner_client + FORGED, *nowhere], inner)
        assert attacker.answers() == []
    counts = grown().nonzero()
    assert counts == {
        "drop_not_spp": 8,
        "drop_foreign_vip": 1,
        "punt_return": 6,
        "slow_bad_source": 6,
    }
