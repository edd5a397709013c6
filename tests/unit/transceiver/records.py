"""DTLS 1.2 records, cut and put together by hand."""

import hmac
import struct
from collections.abc import Iterator
from typing import NamedTuple

from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from OpenSSL import SSL

HANDSHAKE, ALERT, DATA = 22, 21, 23
KEY_SHARE = 51  # TLS extension
SUPPORTED_GROUPS = 10
X25519_MLKEM768 = 0x11EC
X25519_MLKEM768_SHARE = 1216  # bytes that a client sends

_HELLO_FIXED = 34  # version and random


class Record(NamedTuple):
    kind: int
    epoch: int
    body: bytes


def record(
    kind: int, body: bytes, *, epoch: int = 0, number: int = 9, version: int = 0xFEFD
) -> bytes:
    number_at = epoch << 48 | number
    return struct.pack("!BHQH", kind, version, number_at, len(body)) + body


def records(datagram: bytes) -> Iterator[Record]:
    at = 0
    while at < len(datagram):
        kind, _, number, length = struct.unpack_from("!BHQH", datagram, at)
        yield Record(kind, number >> 48, datagram[at + 13 : at + 13 + length])
        at += 13 + length


def messages(datagrams: list[bytes]) -> list[int]:
    """Types of the handshake messages and fragments in plain text."""
    found = [each for datagram in datagrams for each in records(datagram)]
    return [each.body[0] for each in found if each.kind == HANDSHAKE and each.epoch == 0]


def fragments(message: bytes, size: int, number: int = 0) -> list[bytes]:
    """A whole handshake message as datagrams, each with `size` bytes of it. `number` counts the
    records."""
    head, body = message[:6], message[12:]
    cut = range(0, len(body), size)
    return [
        record(
            HANDSHAKE,
            head + at.to_bytes(3, "big") + len(part).to_bytes(3, "big") + part,
            number=number + index,
        )
        for index, at in enumerate(cut)
        for part in (body[at : at + size],)
    ]


def with_extension(hello: bytes, kind: int, value: bytes) -> bytes:
    """A whole ClientHello message with one more extension."""
    body = hello[12:]
    at = _HELLO_FIXED
    at += 1 + body[at]  # session id
    at += 1 + body[at]  # cookie
    at += 2 + int.from_bytes(body[at : at + 2], "big")  # cipher suites
    at += 1 + body[at]  # compression
    extensions = body[at + 2 :] + struct.pack("!HH", kind, len(value)) + value
    body = body[:at] + struct.pack("!H", len(extensions)) + extensions
    length = len(body).to_bytes(3, "big")
    return hello[:1] + length + hello[4:6] + bytes(3) + length + body


def post_quantum(hello: bytes) -> bytes:
    """A ClientHello as browsers send it that offer X25519MLKEM768 (RFC 8446 section 4.2.8)."""
    share = struct.pack("!HH", X25519_MLKEM768, X25519_MLKEM768_SHARE) + bytes(range(256)) * 4
    share += bytes(X25519_MLKEM768_SHARE - 1024)
    return with_extension(hello, KEY_SHARE, struct.pack("!H", len(share)) + share)


def by_client(connection: SSL.Connection, kind: int, body: bytes, *, number: int) -> bytes:
    """An encrypted record as the client of `connection` would send it, with AES-128-GCM
    (RFC 5246 sections 6.2.3.3 and 6.3, RFC 5288 section 3)."""
    seed = (connection.server_random() or b"") + (connection.client_random() or b"")
    keys = _expanded(connection.master_key() or b"", b"key expansion" + seed, 40)
    counter = struct.pack("!Q", 1 << 48 | number)
    described = counter + struct.pack("!BHH", kind, 0xFEFD, len(body))
    sealed = AESGCM(keys[:16]).encrypt(keys[32:36] + counter, body, described)
    return record(kind, counter + sealed, epoch=1, number=number)


def _expanded(secret: bytes, seed: bytes, size: int) -> bytes:
    """P_SHA256 of RFC 5246 section 5."""
    out, link = b"", seed
    while len(out) < size:
        link = hmac.digest(secret, link, "sha256")
        out += hmac.digest(secret, link + seed, "sha256")
    return out[:size]
