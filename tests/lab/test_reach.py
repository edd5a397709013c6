"""Whatever the family of client and endpoint, however the relay is wired: bytes come through, the
endpoint learns the true client, and after the first packet the kernel carries everything."""

import random
import select
import socket
import struct
from collections.abc import Iterator

import pytest

from relayctl.wire import route_token, spp
from relayctl.wire.address import Address, pack_host, unpack_host
from relayctl.wire.route_token import Route
from tests.lab import namespace
from tests.lab.reach import (
    CLIENT,
    CLUSTER,
    ENDPOINT,
    FAMILIES,
    INNER_MTU,
    KEY,
    NATTED,
    VIP,
    Family,
    Reach,
    udp,
)

PACKETS = 200
REASONS_IN_KERNEL = ("forward", "return")

if reason := namespace.unavailable():
    pytest.skip(reason, allow_module_level=True)


@pytest.fixture(scope="module", params=["two_arms", "one_arm"])
def kernel(request: pytest.FixtureRequest) -> Iterator[Reach]:
    with Reach("fr-", arms="one" if request.param == "one_arm" else "two") as reach:
        yield reach


@pytest.fixture(scope="module")
def user() -> Iterator[Reach]:
    with Reach("fr-", datapath="socket") as reach:
        yield reach


@pytest.fixture(scope="module")
def transparent() -> Iterator[Reach]:
    with Reach("fr-", inner="transparent") as reach:
        yield reach


def token(endpoint: Family) -> bytes:
    host, port = ENDPOINT[endpoint]
    low = int.from_bytes(pack_host(host)[12:], "big")
    nonce = random.randbytes(3)
    return route_token.mint(KEY, Route(CLUSTER[endpoint], low, port, nonce)).encode()


def request(token: bytes) -> bytes:
    username = token + b":abcd"
    padded = username + bytes(-len(username) % 4)
    attribute = struct.pack("!HH", 6, len(username)) + padded
    header = struct.pack("!HHI12s", 1, len(attribute), 0x2112A442, random.randbytes(12))
    return header + attribute


def connect(
    reach: Reach, client: Family, endpoint: Family, vip: Address, tries: int = 1
) -> socket.socket:
    """A client whose first packet went through and came back."""
    sock = udp(reach.client, CLIENT[client])
    sock.connect(vip)
    first = request(token(endpoint))
    for _ in range(tries - 1):
        sock.send(first)
        if select.select([sock], [], [], 0.2)[0]:
            break
    else:
        sock.send(first)
    assert sock.recv(2048) == first
    return sock


def rtp(sequence: int, size: int) -> bytes:
    return struct.pack("!BBHII", 0x80, 111, sequence, 0, 77) + random.randbytes(size)


def true_client(reach: Reach, sock: socket.socket) -> Address:
    """Whom the endpoint took for the client of its last datagram."""
    datagram, sender = reach.endpoint.seen[-1]
    if reach.inner == "transparent":
        return unpack_host(pack_host(sender[0])), sender[1]
    return spp.decode(datagram[: spp.HEADER_SIZE]).client


def talk(reach: Reach, sock: socket.socket) -> None:
    for sequence in range(PACKETS):
        sent = rtp(sequence, random.randrange(1100))
        sock.send(sent)
        assert sock.recv(2048) == sent
    assert true_client(reach, sock) == sock.getsockname()[:2]


def in_kernel(reach: Reach, before: dict[str, int]) -> list[int]:
    now = reach.reasons()
    return [now.get(name, 0) - before.get(name, 0) for name in REASONS_IN_KERNEL]


@pytest.mark.parametrize("endpoint", FAMILIES)
@pytest.mark.parametrize("client", FAMILIES)
def test_any_client_reaches_any_endpoint(kernel: Reach, client: Family, endpoint: Family) -> None:
    with connect(kernel, client, endpoint, VIP[client]) as sock:
        talk(kernel, sock)  # the first of them may find nexthops unresolved
        before = kernel.reasons()
        talk(kernel, sock)
        assert in_kernel(kernel, before) == [PACKETS, PACKETS]


@pytest.mark.parametrize("endpoint", FAMILIES)
@pytest.mark.parametrize("client", FAMILIES)
def test_a_vip_may_have_another_public_address(
    kernel: Reach, client: Family, endpoint: Family
) -> None:
    public, local = NATTED[client]
    with connect(kernel, client, endpoint, local) as sock:
        talk(kernel, sock)
        assert spp.decode(kernel.endpoint.seen[-1].datagram[: spp.HEADER_SIZE]).proxy == public


@pytest.mark.parametrize("endpoint", FAMILIES)
@pytest.mark.parametrize("client", FAMILIES)
def test_packets_too_large_for_the_inner_link_arrive_whole(
    kernel: Reach, client: Family, endpoint: Family
) -> None:
    with connect(kernel, client, endpoint, VIP[client]) as sock:
        talk(kernel, sock)
        before = kernel.reasons()
        size = INNER_MTU - 40 - 8 - 12 if kernel.arms == "one" else 1400
        for sequence in range(5):
            sent = rtp(sequence, size)
            sock.send(sent)
            assert sock.recv(2048) == sent
        now = kernel.reasons()
        assert now["punt_nexthop"] - before.get("punt_nexthop", 0) == 5


@pytest.mark.parametrize("endpoint", FAMILIES)
@pytest.mark.parametrize("client", FAMILIES)
def test_the_socket_datapath_reaches_as_far(user: Reach, client: Family, endpoint: Family) -> None:
    with connect(user, client, endpoint, VIP[client]) as sock:
        talk(user, sock)
        sent = rtp(0, 1400)
        sock.send(sent)
        assert sock.recv(2048) == sent


@pytest.mark.parametrize("family", FAMILIES)
def test_transparent_endpoints_see_their_clients(transparent: Reach, family: Family) -> None:
    # The first reply may come before the MAC address of a client on the link is known; it is then
    # dropped, since only the kernel could carry it.
    with connect(transparent, family, family, VIP[family], tries=3) as sock:
        talk(transparent, sock)
        before = transparent.reasons()
        talk(transparent, sock)
        assert in_kernel(transparent, before) == [PACKETS, PACKETS]


def test_what_a_transparent_endpoint_sends_unasked_does_not_get_out(transparent: Reach) -> None:
    before = transparent.reasons()
    with udp(transparent.client, CLIENT["v4"], 40999) as stranger:
        stranger.settimeout(0.3)
        for sock in transparent.endpoint._sockets[:1]:
            sock.sendto(rtp(0, 10), (CLIENT["v4"], 40999))
        with pytest.raises(TimeoutError):
            stranger.recv(2048)
    name = "drop_reply_without_flow"
    assert transparent.reasons()[name] - before.get(name, 0) == 1
