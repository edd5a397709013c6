"""Hostile datagrams: noise of every length, cut and bent STUN, tokens that lead nowhere.

Pure and seeded: the same seed gives the same datagrams. Each has a label, and `FATES` beside it
tells what a relay has to count for it. None of them may ever be answered.
"""

import base64
import random
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from relayctl.wire import spp
from relayctl.wire.address import Address
from relayctl.wire.route_token import Key, Route, mint
from relayctl.wire.stun import MAGIC_COOKIE, USERNAME
from tests.lab.hostile_label import Label

LONGEST = 1400  # bytes of noise
FOREIGN_CLUSTER = 4711

_ICE_CHARS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_BINDING_REQUEST = 0x0001
_OTHER_STUN = (0x0011, 0x0101, 0x0111, 0x0003, 0x0004, 0x0103, 0x0016, 0x3FFF, 0x0000)
_SOFTWARE, _PRIORITY, _INTEGRITY, _FINGERPRINT = 0x8022, 0x0024, 0x0008, 0x8028
_FINGERPRINT_XOR = 0x5354554E  # RFC 8489 section 14.7
_UNKNOWN_KEY_ID = 29


_NOISE: Mapping[Label, Sequence[int]] = {
    Label.NOISE_STUN: range(4),
    Label.NOISE_DTLS: range(20, 64),
    Label.NOISE_RTP: range(128, 192),
    Label.NOISE_OTHER: (*range(4, 20), *range(64, 128), *range(192, 256)),
}
"""First bytes, RFC 7983 section 7."""


@dataclass(frozen=True, slots=True)
class Hostile:
    label: Label
    payload: bytes


@dataclass(frozen=True)
class Target:
    """What the sender knows of the relay: the worst case is a stolen key."""

    key: Key = field(repr=False)
    cluster: int
    endpoint: Address  # of a transceiver
    forbidden: tuple[Address, ...]  # endpoints that a token must not lead to
    vip: Address


def datagrams(seed: int, count: int, target: Target) -> Iterator[Hostile]:
    """`count` datagrams, every label among each round of 29; noise goes through all lengths."""
    source = random.Random(seed)
    forge = _Forge(source, target)
    kinds = list(Label)
    for number in range(count):
        if number % len(kinds) == 0:
            source.shuffle(kinds)
        yield forge.make(kinds[number % len(kinds)])


def binding_request(
    source: random.Random,
    username: bytes,
    *,
    before: bytes = b"",
    kind: int = _BINDING_REQUEST,
) -> bytes:
    """A well-formed check, but for its MESSAGE-INTEGRITY. `before`: attributes before USERNAME."""
    body = before + attribute(USERNAME, username) + attribute(_PRIORITY, source.randbytes(4))
    body += attribute(_INTEGRITY, source.randbytes(20))
    head = struct.pack("!HHI", kind, len(body) + 8, MAGIC_COOKIE) + source.randbytes(12)
    fingerprint = zlib.crc32(head + body) ^ _FINGERPRINT_XOR
    return head + body + attribute(_FINGERPRINT, fingerprint.to_bytes(4, "big"))


def attribute(kind: int, value: bytes) -> bytes:
    """One STUN attribute, padded (RFC 8489 section 14)."""
    return struct.pack("!HH", kind, len(value)) + value + bytes(-len(value) % 4)


class _Forge:
    def __init__(self, source: random.Random, target: Target) -> None:
        self._source = source
        self._target = target
        self._length = 0
        self._make: dict[Label, Callable[[], bytes]] = {
            label: getattr(self, f"_{label}") for label in Label if label not in _NOISE
        }

    def make(self, label: Label) -> Hostile:
        payload = self._noise(_NOISE[label]) if label in _NOISE else self._make[label]()
        return Hostile(label, payload)

    def _noise(self, first: Sequence[int]) -> bytes:
        self._length = self._length % LONGEST + 1
        return bytes([self._source.choice(first)]) + self._source.randbytes(self._length - 1)

    def _empty(self) -> bytes:
        return b""

    def _spp_like(self) -> bytes:
        header = spp.Header(self._target.endpoint, self._target.vip)
        return spp.encode(header) + self._request()

    def _dtls_like(self) -> bytes:
        kind = self._source.choice((20, 21, 22, 22, 22, 23, 25))
        body = self._source.randbytes(self._source.randrange(1, 400))
        version = self._source.choice((b"\xfe\xfd", b"\xfe\xff", b"\x03\x03"))
        return bytes([kind]) + version + bytes(8) + len(body).to_bytes(2, "big") + body

    def _rtp_like(self) -> bytes:
        body = self._source.randbytes(10 + self._source.randrange(160))
        return bytes([0x80, self._source.choice((111, 239, 0))]) + body

    def _rtcp_like(self) -> bytes:
        body = self._source.randbytes(4 * self._source.randrange(1, 20))
        return struct.pack("!BBH", 0x81, self._source.randrange(200, 208), len(body) // 4) + body

    def _stun_other(self) -> bytes:
        kind = self._source.choice(_OTHER_STUN)
        return binding_request(self._source, self._username(self._token()), kind=kind)

    def _stun_cut(self) -> bytes:
        request = self._request()
        return request[: self._source.randrange(1, len(request))]

    def _stun_trailed(self) -> bytes:
        return self._request() + bytes(self._source.randrange(1, 64))

    def _stun_odd(self) -> bytes:
        request = self._request()
        extra = self._source.randrange(1, 4)
        length = (len(request) - 20 + extra).to_bytes(2, "big")
        return request[:2] + length + request[4:] + bytes(extra)

    def _stun_no_cookie(self) -> bytes:
        request = self._request()
        return request[:4] + self._source.randbytes(3) + b"\x00" + request[8:]

    def _stun_bare(self) -> bytes:
        head = struct.pack("!HHI", _BINDING_REQUEST, 0, MAGIC_COOKIE)
        return head + self._source.randbytes(12)

    def _stun_overrun(self) -> bytes:
        """The first attribute, or USERNAME itself, runs past the end."""
        request = bytearray(self._request())
        length = self._source.choice((0xFFFF, 0xFFFD, 0x8000, len(request) - 20 - 3))
        request[22:24] = length.to_bytes(2, "big")
        return bytes(request)

    def _stun_late(self) -> bytes:
        many = b"".join(attribute(_SOFTWARE, b"") for _ in range(self._source.randrange(9, 40)))
        far = attribute(_SOFTWARE, bytes(1021))
        before = self._source.choice((many, far))
        return binding_request(self._source, self._username(self._token()), before=before)

    def _stun_unsigned(self) -> bytes:
        before = attribute(self._source.choice((_INTEGRITY, 0x001C)), bytes(20))
        return binding_request(self._source, self._username(self._token()), before=before)

    def _no_colon(self) -> bytes:
        return binding_request(self._source, self._token())

    def _short_ufrag(self) -> bytes:
        return self._request_to(self._letters(4))

    def _long_ufrag(self) -> bytes:
        return self._request_to(self._letters(256))

    def _bad_characters(self) -> bytes:
        token = bytearray(self._token())
        token[self._source.randrange(24)] = self._source.choice(b"-_=. \x00\xff\n")
        return self._request_to(bytes(token))

    def _bad_version(self) -> bytes:
        version = self._source.choice((0, 2, 3, 4, 5, 6, 7))
        return self._request_to(self._token_with(version << 5 | self._target.key.id))

    def _forged(self) -> bytes:
        return self._request_to(self._token_with(1 << 5 | self._target.key.id))

    def _unknown_key(self) -> bytes:
        return self._request_to(self._token_with(1 << 5 | _UNKNOWN_KEY_ID))

    def _bent_token(self) -> bytes:
        """Another character at one place behind the head: 6 bits of tag or content."""
        token, at = bytearray(self._token()), self._source.randrange(2, 24)
        token[at] = self._source.choice(_ICE_CHARS.replace(token[at : at + 1], b""))
        return self._request_to(bytes(token))

    def _foreign_cluster(self) -> bytes:
        return self._request_to(self._token(cluster=FOREIGN_CLUSTER))

    def _not_allowed(self) -> bytes:
        return self._request_to(self._token(self._source.choice(self._target.forbidden)))

    def _bent(self) -> bytes:
        request = bytearray(self._request_to(self._token_with(1 << 5 | self._target.key.id)))
        for _ in range(self._source.randrange(1, 9)):
            request[self._source.randrange(len(request))] = self._source.randrange(256)
        return bytes(request)

    def _request(self) -> bytes:
        return self._request_to(self._token())

    def _request_to(self, ufrag: bytes) -> bytes:
        return binding_request(self._source, self._username(ufrag))

    def _username(self, ufrag: bytes) -> bytes:
        return ufrag + b":" + self._letters(self._source.choice((4, 8, 32)))

    def _letters(self, count: int) -> bytes:
        return bytes(self._source.choices(_ICE_CHARS, k=count))

    def _token(self, endpoint: Address | None = None, cluster: int | None = None) -> bytes:
        host, port = endpoint or self._target.endpoint
        route = Route(
            self._target.cluster if cluster is None else cluster,
            int(IPv4Address(host)),
            port,
            self._source.randbytes(3),
        )
        return mint(self._target.key, route).encode()

    def _token_with(self, head: int) -> bytes:
        """24 characters whose first byte is `head`; the rest is chance."""
        return base64.b64encode(bytes([head]) + self._source.randbytes(17))


FORGED = binding_request(random.Random(5), b"NoTokenButTwentyFourChar:abcd")
"""A check whose token nobody made."""
