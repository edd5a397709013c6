"""Every framing, one by one: lengths, cuts, tags, extension headers, sums, times to live.

Pure. The scenes of a node hold the same frames every time, so they are the part of the comparison
that leaves nothing to chance.
"""

import random
from collections.abc import Iterator

from relayctl.flow import Flow, FlowKey
from relayctl.wire import spp
from relayctl.wire.address import Address
from tests.oracle import node, payloads
from tests.oracle.damage import ETHERNET
from tests.oracle.frame import PLAIN, PROVIDER, VLAN, Shape, build
from tests.oracle.node import Node
from tests.oracle.scene import NOW, Scene, Sent
from tests.oracle.shapes import EXTENSIONS

LONGEST = 1514  # bytes of a frame on an ordinary link
FRAMES = 100  # in a scene

_CLIENTS = ("192.0.2.77", 40000), ("2001:db8:c::77", 40000)
_ENDPOINTS = ("10.2.0.9", 5000), ("fd00:2::9", 5000)

Leg = tuple[Address, Address, bytes]
"""Source, destination, and what stands in front of the payload."""


def scenes(relay: Node) -> Iterator[Scene]:
    """All frames of the matrix, in scenes; clients and endpoints in every mix of families."""
    for client in _CLIENTS:
        for endpoint in _ENDPOINTS:
            v6 = ":" in client[0]
            if relay.transparent and v6 != (":" in endpoint[0]):
                continue
            vip = next(vip for vip in relay.vips if (":" in vip.local[0]) == v6)
            flow = Flow(
                endpoint=endpoint,
                cluster=node.cluster_of(endpoint),
                sport=5107,
                token=_token(endpoint)[:8],
                nexthop_in=node.STACKED,
                nexthop_out=node.TAGGED,
                born=NOW,
            )
            flows = ((FlowKey(client, vip.id), flow),)
            outer: Leg = client, vip.local, b""
            inner: Leg = endpoint, client, b""
            if not relay.transparent:
                ours = next(h for h in relay.inner if (":" in h) == (":" in endpoint[0]))
                inner = endpoint, (ours, 5107), spp.encode(spp.Header(client, vip.public))
            sent = list(_frames(outer, inner, endpoint))
            for at in range(0, len(sent), FRAMES):
                yield Scene(relay.name, tuple(sent[at : at + FRAMES]), flows)


def _token(endpoint: Address) -> bytes:
    return payloads.route_token(random.Random(1), endpoint, node.KEYS[1])


def _frames(outer: Leg, inner: Leg, endpoint: Address) -> Iterator[Sent]:
    check = payloads.check(random.Random(2), _token(endpoint))
    for carrier, leg in (("outer", outer), ("inner", inner)):
        frames = (*_lengths(leg), *_cuts(leg, check), *_shapes(leg), *_contents(leg, check))
        yield from (Sent(carrier, frame) for frame in frames)
        yield from _tags(leg)


def _make(leg: Leg, content: bytes, shape: Shape = PLAIN) -> bytes:
    source, destination, front = leg
    return build(source, destination, front + content, shape)


def _lengths(leg: Leg) -> Iterator[bytes]:
    """Frames of every length, with RTP as far as it fits, a prefix of such a frame below that."""
    content = random.Random(3).randbytes(LONGEST)
    shortest = _make(leg, b"")
    for length in range(ETHERNET, LONGEST + 1):
        if length <= len(shortest):
            yield shortest[:length]
        else:
            yield _make(leg, b"\x80" + content[: length - len(shortest) - 1])


def _cuts(leg: Leg, check: bytes) -> Iterator[bytes]:
    """A Binding request cut off at every byte, plain and under two tags."""
    for shape in (PLAIN, Shape(tags=((PROVIDER, 4094), (VLAN, 30)))):
        whole = _make(leg, check, shape)
        yield from (whole[:length] for length in range(ETHERNET, len(whole)))


def _contents(leg: Leg, check: bytes) -> Iterator[bytes]:
    """One byte of every value, and a Binding request with every byte of it turned."""
    yield from (_make(leg, bytes([first])) for first in range(256))
    yield from (_make(leg, bytes([0x80, second]) + bytes(20)) for second in range(256))
    for at in range(len(check)):
        yield _make(leg, check[:at] + bytes([check[at] ^ 0x80]) + check[at + 1 :])


def _shapes(leg: Leg) -> Iterator[bytes]:
    for shape in (*_common_shapes(), *(_v6_shapes() if ":" in leg[1][0] else _v4_shapes())):
        yield _make(leg, b"\x80" + bytes(19), shape)


def _common_shapes() -> Iterator[Shape]:
    yield from (Shape(ttl=ttl) for ttl in (0, 1, 2, 255))
    yield from (Shape(tos=tos) for tos in range(256))
    yield from (Shape(sum=sum) for sum in (0, 1, 0xFFFE, 0xFFFF))
    yield from (Shape(behind=bytes(size)) for size in range(1, 20))
    yield from (Shape(padding=bytes(size)) for size in range(1, 20))
    yield from (Shape(udp_length=length) for length in (*range(100), 0xFFFF))
    yield from (Shape(ip_length=length) for length in (*range(160), 0xFFFF))
    yield from (Shape(protocol=number) for number in range(256))
    yield from (Shape(version=version) for version in range(1, 16))


def _v4_shapes() -> Iterator[Shape]:
    yield from (Shape(options=bytes(4 * words)) for words in range(1, 11))
    yield from (Shape(ihl=words) for words in range(16))
    yield from (Shape(fragment=1 << bit) for bit in range(16))
    yield from (Shape(fragment=1 << bit, ip_length=20) for bit in range(16))


def _v6_shapes() -> Iterator[Shape]:
    for first in EXTENSIONS:
        yield from (Shape(extensions=((first, bytes(7)),), protocol=n) for n in range(256))
        yield from (
            Shape(extensions=((first, bytes(7)), (second, bytes(7)))) for second in EXTENSIONS
        )
        yield from (Shape(extensions=((first, bytes(7)),), ip_length=n) for n in range(20))


def _tags(leg: Leg) -> Iterator[Sent]:
    """Each number of tags, on each device, of every kind."""
    stacks: list[tuple[int, ...]] = [(), (0,), (10,), (20,), (30,), (4094, 30), (30, 4094)]
    stacks += [(0, 10), (10, 0), (10, 10), (4094, 30, 1), (0, 0), (0, 0, 0)]
    for carrier in (*node.CARRIERS, node.ROLELESS):
        for ids in stacks:
            for kind in (VLAN, PROVIDER, 0x9100):
                for priority in (0, 0xF000):
                    tags = tuple((kind, priority | id) for id in ids)
                    yield Sent(carrier, _make(leg, b"\x80" + bytes(19), Shape(tags=tags)))
