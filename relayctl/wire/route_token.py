"""The route token: a server ufrag that carries its own route.

24 characters of standard base64 without padding, 18 bytes:

    H  1   version (3 bits, = 1) | key id (5 bits)
    T  6   tag
    C  11  sealed: cluster u16 | host u32 | port u16 | nonce 3 bytes   (network order)

T = SipHash-2-4(tag key, H + plain)[:6]; C = plain xor keystream, where the keystream is
SipHash-2-4(seal key, T + 00) + SipHash-2-4(seal key, T + 01), digests as little-endian bytes: a
synthetic-IV construction (RFC 5297) over a PRF. The characters are ice-chars (RFC 8839
section 5.4), and 24 random bits of nonce satisfy RFC 8445 section 5.3.
"""

import base64
import binascii
import enum
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import NamedTuple

from siphash24 import siphash24

VERSION = 1
LENGTH = 24  # characters
NONCE_SIZE = 3  # bytes
SECRET_SIZE = 32  # bytes: tag key, then seal key
KEY_IDS = range(32)

_SIZE = 18  # bytes

_PLAIN = struct.Struct("!HIH3s")


class Reject(enum.StrEnum):
    """Why a token does not open."""

    MALFORMED = "malformed"
    UNKNOWN_KEY = "unknown_key"
    FORGED = "forged"


class TokenError(ValueError):
    def __init__(self, reason: Reject, detail: str) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason


class KeyFileError(ValueError):
    """The key file cannot be used; the message names the line, never a secret."""


@dataclass(frozen=True, slots=True)
class Key:
    """A route key. Whoever has it can mint tokens that our relays obey."""

    id: int
    secret: bytes = field(repr=False)
    tag: bytes = field(init=False, repr=False)  # its first half
    seal: bytes = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tag", self.secret[:16])
        object.__setattr__(self, "seal", self.secret[16:])


class Route(NamedTuple):
    """What a token carries. `host` is the low 32 bits of the endpoint's address."""

    cluster: int
    host: int
    port: int
    nonce: bytes


def mint(key: Key, route: Route) -> str:
    """Make the token of `route`: the same one for the same nonce."""
    head = bytes([VERSION << 5 | key.id])
    plain = _PLAIN.pack(route.cluster, route.host, route.port, route.nonce)
    tag = siphash24(head + plain, key=key.tag).digest()[:6]
    return base64.b64encode(head + tag + _sealed(key, tag, plain)).decode()


def open_token(keys: Mapping[int, Key], token: bytes) -> Route:
    """Verify and read a token. Raises `TokenError`, and nothing else."""
    try:
        raw = binascii.a2b_base64(token, strict_mode=True)
    except binascii.Error:
        raw = b""
    if len(token) != LENGTH or len(raw) != _SIZE:  # 24 with padding are fewer bytes, 25 as many
        raise TokenError(Reject.MALFORMED, f"want {LENGTH} base64 characters")
    head, tag = raw[0], raw[1:7]
    if head >> 5 != VERSION:
        raise TokenError(Reject.MALFORMED, f"version {head >> 5}, want {VERSION}")
    key = keys.get(head & 31)
    if key is None:
        raise TokenError(Reject.UNKNOWN_KEY, f"key id {head & 31}")
    plain = _sealed(key, tag, raw[7:])
    if not compare_digest(siphash24(raw[:1] + plain, key=key.tag).digest()[:6], tag):
        raise TokenError(Reject.FORGED, f"tag does not verify under key id {key.id}")
    return Route(*_PLAIN.unpack(plain))


def tag_bits(token: bytes) -> int:
    """16 bits of the tag of something that has a token's characters: no two tokens in a row share
    them, and nobody without the key chooses them."""
    raw = binascii.a2b_base64(token[:4])
    return raw[1] | raw[2] << 8


def parse_keys(text: str) -> dict[int, Key]:
    """Read a key file: lines of `<id> <64 hex digits>`, `#` begins a comment.

    Raises `KeyFileError`."""
    keys: dict[int, Key] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        key = _parse_key(words, number)
        if key.id in keys:
            raise KeyFileError(f"line {number}: key id {key.id} stands twice")
        keys[key.id] = key
    if not keys:
        raise KeyFileError("no key in it: make one with `relayctl token keygen`")
    return keys


def _parse_key(words: list[str], number: int) -> Key:
    if len(words) != 2:
        raise KeyFileError(f"line {number}: {len(words)} words, want `<id> <64 hex digits>`")
    if not words[0].isdecimal() or int(words[0]) not in KEY_IDS:
        raise KeyFileError(f"line {number}: key id {words[0]!r}, want 0-31")
    try:
        secret = binascii.unhexlify(words[1])
    except ValueError:
        secret = b""
    if len(secret) != SECRET_SIZE:
        raise KeyFileError(f"line {number}: the secret has to be {SECRET_SIZE * 2} hex digits")
    return Key(int(words[0]), secret)


def render_key(key: Key) -> str:
    """The key file's line for `key`."""
    return f"{key.id} {key.secret.hex()}"


def _sealed(key: Key, tag: bytes, data: bytes) -> bytes:
    """Plain data sealed, or sealed data opened."""
    seal, size = key.seal, _PLAIN.size
    stream = siphash24(tag + b"\0", key=seal).digest() + siphash24(tag + b"\1", key=seal).digest()
    opened = int.from_bytes(data, "big") ^ int.from_bytes(stream[:size], "big")
    return opened.to_bytes(size, "big")
