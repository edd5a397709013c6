"""Packets and a configuration, for tests of what handles them."""

import struct
from typing import Any

from relayctl.config import RelayConfig
from relayctl.wire import spp
from relayctl.wire.address import Address, pack_host
from relayctl.wire.route_token import Key, Route, mint
from relayctl.wire.settings import load
from relayctl.wire.spp import Header
from relayctl.wire.stun import MAGIC_COOKIE

KEY = Key(1, bytes(range(32)))
CLIENT = ("198.51.100.7", 40000)
VIP = ("203.0.113.10", 3478)
ENDPOINT = ("10.2.0.2", 5000)
OTHER_ENDPOINT = ("10.2.0.3", 5000)
CLIENT_6 = ("2001:db8:7::7", 40000)
VIP_6 = ("2001:db8:10::10", 3478)
ENDPOINT_6 = ("fd00:2::2", 5000)

TOML = """
instance = "relay-t"
keys_file = "/nonexistent/route.keys"
inner_address = "10.2.0.1"
[[vip]]
id = 1
public = "203.0.113.10:3478"
[[interface]]
name = "outer0"
role = "outer"
[[interface]]
name = "inner0"
role = "inner"
[[cluster]]
id = 7
allow = ["10.2.0.0/24"]
"""


def config(**flags: Any) -> RelayConfig:
    return load(RelayConfig, toml=TOML, flags=flags)


def token(endpoint: Address = ENDPOINT, key: Key = KEY, cluster: int = 7, nonce: int = 1) -> bytes:
    host = int.from_bytes(pack_host(endpoint[0])[12:], "big")
    return mint(key, Route(cluster, host, endpoint[1], nonce.to_bytes(3, "big"))).encode()


def binding_request(local_ufrag: bytes, kind: int = 1, transaction: bytes = bytes(12)) -> bytes:
    username = local_ufrag + b":abcd"
    attribute = struct.pack("!HH", 6, len(username)) + username + bytes(-len(username) % 4)
    return struct.pack("!HHI", kind, len(attribute), MAGIC_COOKIE) + transaction + attribute


def binding_response(transaction: bytes, kind: int = 0x0101) -> bytes:
    return struct.pack("!HHI", kind, 0, MAGIC_COOKIE) + transaction


def rtp(ssrc: int, size: int = 60) -> bytes:
    return struct.pack("!BBHII", 0x80, 111, 1, 0, ssrc) + bytes(size)


def spp_header(client: Address = CLIENT, vip: Address = VIP) -> bytes:
    return spp.encode(Header(client, vip))


DTLS = b"\x16\xfe\xfd" + bytes(40)
