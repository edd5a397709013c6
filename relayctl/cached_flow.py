"""A flow as Redis keeps it: enough to send its packets on, nothing that changes with them.

Pure. What stands in Redis is data and not trust: whoever installs it checks the endpoint as if a
token had named it.
"""

import struct
from collections.abc import Iterator
from typing import NamedTuple

from relayctl.flow import Flow, FlowKey
from relayctl.wire.address import Address, pack_host, render, unpack_host

PREFIX = "flow:"
EXPIRES_S = 120
VERSION = 1
VALUE = struct.Struct("!B8s16sHHI")
"""version · first 8 characters of the token · endpoint's address (IPv4 mapped; zeros: by a peer of
the cluster) · its port · cluster · SSRC of the client (0: none yet). Network order."""

RECORD_KEY = struct.Struct("=B24s")
"""A flow's key and its length, as they stand before the value on the pipe between processes."""

WANTED = struct.Struct("=B24sI")
"""What a look-up asks for: a flow's key, and the SSRC of a packet without a flow (0: none)."""

BY_PEER = bytes(16)


class CachedFlow(NamedTuple):
    """`endpoint` None: by a peer of the cluster."""

    token: bytes
    endpoint: Address | None
    cluster: int
    ssrc: int


def name_of(key: FlowKey) -> str:
    """The flow's key in Redis; the braces keep a client's keys in one slot of a cluster."""
    return f"{PREFIX}{{{key.vip}:{render(key.client)}}}"


def hint_name(vip: int, ssrc: int) -> str:
    """Under which the flow of an SSRC is found when its client has another address."""
    return f"hint:{{{vip}:{ssrc:08x}}}"


def encode(flow: Flow) -> bytes:
    host, port = flow.endpoint
    packed = BY_PEER if flow.slot else pack_host(host)
    return VALUE.pack(VERSION, flow.token, packed, port, flow.cluster, flow.ssrc)


def decode(value: bytes) -> CachedFlow | None:
    """None for what another version wrote, or nobody of us."""
    if len(value) != VALUE.size or value[0] != VERSION:
        return None
    _, token, host, port, cluster, ssrc = VALUE.unpack(value)
    endpoint = None if host == BY_PEER else (unpack_host(host), port)
    return CachedFlow(token, endpoint, cluster, ssrc)


def pack_record(key: FlowKey, value: bytes) -> bytes:
    """A flow as it goes through the pipe."""
    return RECORD_KEY.pack(len(key), key) + value


def read_records(records: bytes) -> Iterator[tuple[FlowKey, bytes]]:
    """The inverse of joined `pack_record`s."""
    step = RECORD_KEY.size + VALUE.size
    for at in range(0, len(records), step):
        size, key = RECORD_KEY.unpack_from(records, at)
        yield FlowKey.read(key[:size]), records[at + RECORD_KEY.size : at + step]


def pack_key(key: FlowKey) -> bytes:
    return RECORD_KEY.pack(len(key), key)


def read_keys(keys: bytes) -> list[FlowKey]:
    """The inverse of joined `pack_key`s."""
    return [FlowKey.read(key[:size]) for size, key in RECORD_KEY.iter_unpack(keys)]


def pack_wanted(key: FlowKey, ssrc: int) -> bytes:
    return WANTED.pack(len(key), key, ssrc)


def read_wanted(wanted: bytes) -> list[tuple[FlowKey, int]]:
    """The inverse of joined `pack_wanted`s."""
    return [(FlowKey.read(key[:size]), ssrc) for size, key, ssrc in WANTED.iter_unpack(wanted)]
