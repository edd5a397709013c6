"""What clients and endpoints send, and what strangers send in their place.

Pure; all chance comes from the `Random` that is handed in.
"""

import base64
import random
import struct
from collections.abc import Callable, Sequence

import siphash24

from relayctl.wire.address import Address, pack_host
from relayctl.wire.route_token import Key, Route, mint
from tests.oracle.node import KEYS, cluster_of

COOKIE = 0x2112A442
REQUEST, SUCCESS, ERROR, INDICATION = 0x0001, 0x0101, 0x0111, 0x0011
USERNAME, INTEGRITY, PRIORITY, CONTROLLING, USE_CANDIDATE = 0x0006, 0x0008, 0x0024, 0x802A, 0x0025
INTEGRITY256, FINGERPRINT = 0x001C, 0x8028
ICE_CHARS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

Attribute = tuple[int, bytes]


def route_token(
    source: random.Random,
    endpoint: Address,
    key: Key | None = None,
    cluster: int | None = None,
) -> bytes:
    """An authentic token for `endpoint`, with a new nonce."""
    host = int.from_bytes(pack_host(endpoint[0])[12:], "big")
    id = cluster_of(endpoint) if cluster is None else cluster
    route = Route(id, host, endpoint[1], source.randbytes(3))
    return mint(key or source.choice(list(KEYS.values())), route).encode()


def nearly_authentic(source: random.Random) -> bytes:
    """A token whose tag is wrong in one bit of 48, and right otherwise: whoever makes one has the
    key, so only a gate that compares too little lets it in."""
    key = source.choice(list(KEYS.values()))
    head, plain = bytes([1 << 5 | key.id]), source.randbytes(11)
    tag = int.from_bytes(_siphash(key.tag, head + plain)[:6], "big")
    wrong = (tag ^ 1 << source.randrange(48)).to_bytes(6, "big")
    stream = _siphash(key.seal, wrong + b"\0") + _siphash(key.seal, wrong + b"\1")
    sealed = bytes(a ^ b for a, b in zip(plain, stream[:11], strict=True))
    return base64.b64encode(head + wrong + sealed)


def _siphash(key: bytes, data: bytes) -> bytes:
    digest: bytes = siphash24.siphash24(data, key=key).digest()
    return digest


def stun(
    source: random.Random,
    kind: int,
    attributes: list[Attribute],
    *,
    cookie: int = COOKIE,
    length: int | None = None,
) -> bytes:
    body = b"".join(
        struct.pack("!HH", number, len(value)) + value + bytes(-len(value) % 4)
        for number, value in attributes
    )
    size = len(body) if length is None else length
    return struct.pack("!HHI", kind, size & 0xFFFF, cookie) + source.randbytes(12) + body


def check(source: random.Random, token: bytes, before: list[Attribute] | None = None) -> bytes:
    """A Binding request as a browser makes it, `before` in front of its USERNAME."""
    attributes = [
        *(before or []),
        (USERNAME, token + b":" + bytes(source.choices(ICE_CHARS, k=4))),
        (CONTROLLING, source.randbytes(8)),
        (PRIORITY, source.randbytes(4)),
        (INTEGRITY, source.randbytes(20)),
        (FINGERPRINT, source.randbytes(4)),
    ]
    return stun(source, REQUEST, attributes)


def _attributes(source: random.Random, count: int, size: int) -> list[Attribute]:
    return [(source.choice([PRIORITY, CONTROLLING, 0xC057, 0x7FFF]), bytes(size))] * count


def many_before(source: random.Random, token: bytes) -> bytes:
    """About as many attributes before USERNAME as the gate walks: 8."""
    return check(source, token, _attributes(source, source.randrange(6, 11), source.randrange(9)))


def far_behind(source: random.Random, token: bytes) -> bytes:
    """USERNAME begins about where the gate stops looking: at byte 1,024."""
    filler = 1024 - 20 - 4 + 4 * source.randrange(-2, 3)
    return check(source, token, [(0xC057, bytes(filler - source.randrange(4)))])


def behind_integrity(source: random.Random, token: bytes) -> bytes:
    kind = source.choice([INTEGRITY, INTEGRITY256, FINGERPRINT])
    return check(source, token, [(kind, source.randbytes(source.choice([4, 20])))])


def bad_username(source: random.Random, token: bytes) -> bytes:
    """A USERNAME that is nearly `<token>:<ufrag>`."""
    at = source.randrange(24)
    other = bytes([source.choice(b"-_=:@[`{/:\x00\x7f\x80\xff *,.")])
    name = source.choice(
        [
            token,
            token,
            token + b":",
            token + b"x:abcd",
            token[:-1] + b":abcd",
            token + bytes([source.choice(b";/9\x00\xba")]) + b"abcd",
            token[:at] + other + token[at + 1 :] + b":abcd",
            b"",
            b":",
            source.randbytes(source.randrange(40)),
        ]
    )
    behind = source.choice([INTEGRITY, 0x3A3A])  # the second begins with a ':'
    return stun(source, REQUEST, [(USERNAME, name), (behind, bytes(20))])


def other_version(source: random.Random, token: bytes) -> bytes:
    """The first character holds version and half of the key id."""
    return check(source, bytes([source.choice(ICE_CHARS)]) + token[1:])


def forged(source: random.Random, token: bytes) -> bytes:
    """One character of the token is another; the first two keep version and key."""
    at = source.randrange(2, 24)
    return check(source, token[:at] + bytes([source.choice(ICE_CHARS)]) + token[at + 1 :])


def cut_username(source: random.Random, token: bytes) -> bytes:
    """USERNAME claims more bytes than follow, or the message length lies."""
    whole = check(source, token)
    if source.random() < 0.5:
        at = 22 + source.randrange(2)
        return whole[:at] + source.randbytes(1) + whole[at + 1 :]
    size = len(whole) - 20 + source.choice([-4, -1, 1, 2, 4, 0x10000 - 4])
    return whole[:2] + (size & 0xFFFF).to_bytes(2, "big") + whole[4:]


def response(source: random.Random, kind: int = SUCCESS) -> bytes:
    return stun(source, kind, [(0x0020, source.randbytes(8)), (INTEGRITY, source.randbytes(20))])


def other_stun(source: random.Random) -> bytes:
    """What is nearly a Binding request or an answer to one."""
    kind = source.choice([REQUEST, SUCCESS, ERROR, INDICATION, 0x0003, source.randrange(1 << 14)])
    cookie = source.choice([COOKIE, COOKIE, COOKIE ^ 1 << source.randrange(32)])
    length = source.choice([None, None, source.randrange(64)])
    whole = stun(source, kind, [(PRIORITY, bytes(4))], cookie=cookie, length=length)
    return whole[: source.choice([len(whole), 20, 19, 8, source.randrange(len(whole))])]


def dtls(source: random.Random) -> bytes:
    return bytes([source.randrange(20, 64)]) + source.randbytes(source.randrange(60))


def rtp(source: random.Random) -> bytes:
    kind = source.choice([111, 96, 0x80 | 111, 191, 224, source.randrange(256)])
    ssrc = source.choice([0, 1, source.getrandbits(32)])
    whole = struct.pack("!BBHII", source.randrange(128, 192), kind, 7, 960, ssrc)
    return (whole + source.randbytes(source.randrange(160)))[: source.choice([999, 12, 11, 2, 1])]


def rtcp(source: random.Random) -> bytes:
    kind = source.choice([192, 200, 201, 206, 223])
    return struct.pack("!BBHI", 0x81, kind, 7, source.getrandbits(32)) + source.randbytes(24)


def noise(source: random.Random) -> bytes:
    edges = [0, 1, 3, 4, 19, 20, 63, 64, 127, 128, 191, 192, 255, source.randrange(256)]
    return bytes([source.choice(edges)]) + source.randbytes(source.choice([0, 1, 19, 100, 700]))


def long_one(source: random.Random) -> bytes:
    """As large as frames get on an ordinary link, and a little less; or on one of jumbo frames."""
    size = source.choice([source.randrange(1300, 1440), source.randrange(1300, 3000)])
    return bytes([source.choice([22, 128])]) + source.randbytes(size)


Maker = Callable[[random.Random, bytes], bytes]


def _plain(make: Callable[[random.Random], bytes]) -> Maker:
    return lambda source, token: make(source)


_MAKERS: tuple[tuple[Maker, int], ...] = (
    (check, 8),
    (forged, 2),
    (lambda source, token: check(source, nearly_authentic(source)), 1),
    (bad_username, 3),
    (many_before, 2),
    (far_behind, 2),
    (behind_integrity, 1),
    (other_version, 1),
    (cut_username, 2),
    (_plain(response), 5),
    (_plain(lambda source: response(source, ERROR)), 1),
    (_plain(other_stun), 3),
    (_plain(dtls), 4),
    (_plain(rtp), 6),
    (_plain(rtcp), 2),
    (_plain(noise), 3),
    (_plain(long_one), 2),
    (_plain(lambda source: b""), 1),
)
_CHOICE = [maker for maker, weight in _MAKERS for _ in range(weight)]


def payload(source: random.Random, tokens: Sequence[bytes]) -> bytes:
    """One of all kinds; Binding requests carry one of `tokens`."""
    return source.choice(_CHOICE)(source, source.choice(tokens))
