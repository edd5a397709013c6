"""The first packets of clients, for relays that make a flow of each. Pure."""

import struct
from collections.abc import Iterable

from relayctl.wire import route_token
from relayctl.wire.route_token import Key, Route
from tests.bench.wire import ENDPOINT_PORT, HOSTS, PAYLOAD

TOKEN_AT = 24  # offset of the ufrag in the payload: header, attribute header
KEY = Key(1, bytes(range(32)))  # of the bench's own relay; nobody else believes it
CLUSTER = 7
_REMOTE = b":client0"


def binding_request(ufrag: bytes, size: int = PAYLOAD) -> bytes:
    """An ICE check to `ufrag` (24 characters), filled up to a multiple of 4 bytes ≤ `size`."""
    username = ufrag + _REMOTE
    attributes = struct.pack("!HH", 0x0006, len(username)) + username
    filler = (size - 20 - len(attributes) - 4) & ~3
    attributes += struct.pack("!HH", 0x8022, filler) + bytes(filler)  # SOFTWARE
    return struct.pack("!HHI", 0x0001, len(attributes), 0x2112A442) + bytes(12) + attributes


def hex_ufrag() -> bytes:
    """The endpoint in hex, as the Go relay of the bench reads it."""
    packed = bytes(map(int, HOSTS[4]["sink0"].split("."))) + struct.pack("!H", ENDPOINT_PORT)
    return packed.hex().encode().ljust(24, b"0")


def tokens(count: int, first: int = 0) -> list[bytes]:
    """`count` different tokens of the endpoint."""
    host = int.from_bytes(bytes(map(int, HOSTS[4]["sink0"].split("."))), "big")
    return [_mint(host, nonce) for nonce in range(first, first + count)]


def _mint(host: int, nonce: int) -> bytes:
    route = Route(CLUSTER, host, ENDPOINT_PORT, nonce.to_bytes(3, "big"))
    return route_token.mint(KEY, route).encode()


def shared(unique: Iterable[bytes], by: int) -> list[bytes]:
    """Each token `by` times in a row: so many clients show it."""
    return [token for token in unique for _ in range(by)]
