"""Parsers of hostile input, each with what it may raise and what has to hold when it does not.

Pure. An exception that leaves a target is a finding.
"""

import contextlib
import ipaddress
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from relayctl.wire import address, call_id, packet_class, route_token, spp, stun
from relayctl.wire.cluster import Cluster, Clusters, RouteError
from transceiver import rtcp, rtp, sdp
from transceiver.framing import FramingError, SppFraming
from transceiver.ice import stun as ice_stun

VECTORS = Path(__file__).parents[1] / "vectors"

_KEY = route_token.Key(1, bytes(range(32)))
_TOKEN = route_token.mint(_KEY, route_token.Route(7, 0x0A020002, 5000, b"\1\2\3")).encode()
_CLUSTERS = (
    Cluster(7, (ipaddress.ip_network("10.2.0.0/24"),)),
    Cluster(
        8, (ipaddress.ip_network("fd00:2::/112"),), ipaddress.IPv6Network("fd00:2::/96"), (4, 9000)
    ),
)
_CHECK = bytes.fromhex("000100282112a442") + bytes(12) + b"\0\6\0\x1d" + _TOKEN + b":abcd\0\0\0"
_CHECK += bytes.fromhex("002400046e0001ff")
_ADDRESSES = "203.0.113.10:3478", "[2001:db8::1]:3478", "203.0.113.10:\u00b2", "[::1%1]:\u0663"
_SPP = spp.encode(spp.Header(("192.0.2.77", 40000), ("203.0.113.10", 3478)))


@dataclass(frozen=True, slots=True)
class Target:
    """`run` takes any bytes; `seeds` are well-formed ones to begin with."""

    run: Callable[[bytes], None]
    seeds: Iterable[bytes] = ()


def relay_stun(data: bytes) -> None:
    """The gate, the packet process and the pre-check read the same request in the same way."""
    is_whole = stun.is_whole(data, packet_class.BINDING_REQUEST)
    found = stun.token_of(data) if is_whole else None
    with contextlib.suppress(stun.StunError):
        ufrag = stun.parse_binding_request(data).local_ufrag
        assert is_whole
        assert found == (ufrag if len(ufrag) == route_token.LENGTH else None)


def token(data: bytes) -> None:
    try:
        route = route_token.open_token({_KEY.id: _KEY}, data)
    except route_token.TokenError:
        return
    assert route_token.mint(_KEY, route).encode() == data
    assert 0 <= route_token.tag_bits(data) < 1 << 16


def key_file(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    with contextlib.suppress(route_token.KeyFileError):
        keys = route_token.parse_keys(text)
        again = "\n".join(map(route_token.render_key, keys.values()))
        assert route_token.parse_keys(again) == keys


def spp_header(data: bytes) -> None:
    with contextlib.suppress(spp.SppError):
        header, payload = spp.split(data)
        assert header + payload == data
        assert payload
    with contextlib.suppress(spp.SppError):
        assert spp.encode(spp.decode(data)) == data


def payload_class(data: bytes) -> None:
    kind = packet_class.classify(data)
    packet_class.stun_type(data)
    packet_class.is_rtcp(data)
    if packet_class.ssrc_of(data) is not None:
        assert kind is packet_class.PacketClass.RTP


def address_text(data: bytes) -> None:
    try:
        found = address.parse(data.decode("utf-8", "replace"))
    except address.AddressError:
        return
    assert address.parse(address.render(found)) == found
    assert address.unpack_host(address.pack_host(found[0])) == found[0]


def cluster(data: bytes) -> None:
    clusters = Clusters(_CLUSTERS)
    number, host, port = data[:2], data[2:6], data[6:8]
    route = route_token.Route(
        int.from_bytes(number, "big"), int.from_bytes(host, "big"), int.from_bytes(port, "big"), b""
    )
    with contextlib.suppress(RouteError):
        assert clusters.owner(clusters.endpoint(route)) == route.cluster


def call_id_text(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    with contextlib.suppress(call_id.CallIdError):
        assert call_id.parse(text).render() == text


def inner_datagram(data: bytes) -> None:
    framing = SppFraming([ipaddress.ip_network("10.0.0.0/8")])
    try:
        path, payload = framing.open(data, ("10.2.0.1", 5100))
    except FramingError:
        return
    framing.client(path), framing.vip(path)
    assert framing.seal(path, payload) == data


def transceiver_stun(data: bytes) -> None:
    with contextlib.suppress(ice_stun.StunError):
        ice_stun.parse(data).verify("password")


def rtp_packet(data: bytes) -> None:
    try:
        packet = rtp.parse(data)
    except rtp.RtpError:
        return
    assert rtp.parse(rtp.build(packet)) == packet
    assert packet.payload in data


def rtcp_compound(data: bytes) -> None:
    reporter = rtcp.Reporter(0x11223344, "c")
    for now in (1.0, 2.0):
        with contextlib.suppress(ValueError):
            reporter.learn(data, now)
    reporter.report({}, 3.0)


def sdp_offer(data: bytes) -> None:
    with contextlib.suppress(sdp.SdpError):
        sdp.parse_offer(data.decode("utf-8", "replace"))


def _rtcp_seeds() -> list[bytes]:
    reporter = rtcp.Reporter(0x55667788, "c")
    report = reporter.report({0x11223344: rtp.Reception()}, 1.0)
    reporter.sent(100, 960, 1.0)
    return [report, reporter.report({0x11223344: rtp.Reception()}, 2.0), reporter.bye()]


TARGETS: dict[str, Target] = {
    "relay_stun": Target(relay_stun, [_CHECK]),
    "token": Target(token, [_TOKEN]),
    "key_file": Target(key_file, [route_token.render_key(_KEY).encode(), b"# no key\n5 ab\n"]),
    "spp_header": Target(spp_header, [_SPP, _SPP + b"x"]),
    "payload_class": Target(payload_class, [_CHECK, b"\x80\x6f" + bytes(20), b"\x16\xfe\xfd"]),
    "address_text": Target(address_text, [t.encode() for t in _ADDRESSES]),
    "cluster": Target(cluster, [b"\0\7\x0a\2\0\2\x13\x88", b"\0\x08\0\0\0\2\x13\x88"]),
    "call_id_text": Target(call_id_text, [b"rtc_" + _TOKEN.replace(b"/", b"_") + b"_" + b"a" * 22]),
    "inner_datagram": Target(inner_datagram, [_SPP + _CHECK]),
    "transceiver_stun": Target(transceiver_stun, [_CHECK]),
    "rtp_packet": Target(rtp_packet, [b"\x80\x6f" + bytes(30), b"\xb1\x6f" + bytes(30) + b"\2"]),
    "rtcp_compound": Target(rtcp_compound, _rtcp_seeds()),
    "sdp_offer": Target(sdp_offer, [p.read_bytes() for p in sorted(VECTORS.glob("sdp/*.sdp"))]),
}
"""By name."""
