"""Rewritten packets carry the checksums that a host would compute from nothing.

Each case runs in both directions and compares whole frames with the reference in `packets`.
"""

import json
import random
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from relayctl.datapath.base import Nexthop
from relayctl.reason import Reason
from relayctl.wire import address
from tests.kernel.packets import Address, frame, spp_header, udp_checksum
from tests.kernel.rig import (
    CLIENT_MACS,
    ENDPOINT_MACS,
    INNER,
    INNER_SIDE,
    NATTED_LOCAL,
    NATTED_PUBLIC,
    TO_ENDPOINT,
    VIP,
    Rig,
)

VECTORS = json.loads(Path("tests/vectors/spp.json").read_text())


@dataclass(frozen=True)
class Case:
    client: Address
    vip: int
    source: str  # ours, towards the endpoint
    endpoint: Address
    sport: int
    payload: bytes
    tos: int = 0
    ttl: int = 64

    @property
    def public(self) -> Address:
        return {1: VIP, 2: NATTED_PUBLIC}[self.vip]

    @property
    def local(self) -> Address:
        return {1: VIP, 2: NATTED_LOCAL}[self.vip]


def check(relay: Rig, case: Case, *, sum: int | None = None) -> None:
    """Push the client's packet, then strip the same payload on its way back."""
    relay.install(
        case.client, case.vip, endpoint=case.endpoint, sport=case.sport, nexthop_in=TO_ENDPOINT
    )
    relay.datapath.write_nexthop(
        TO_ENDPOINT, Nexthop(2, "10.2.0.2", case.source, True, 1500, *ENDPOINT_MACS)
    )
    inner = spp_header(case.client, case.public) + case.payload
    marks: dict[str, Any] = {"tos": case.tos, "sum": sum}

    up = relay.send(frame(case.client, case.local, case.payload, ttl=case.ttl, **marks))
    assert up.reason is Reason.FORWARD
    macs = ENDPOINT_MACS[1], ENDPOINT_MACS[0]
    ours = case.source, case.sport
    assert up.data == frame(ours, case.endpoint, inner, macs=macs, ttl=case.ttl - 1, **marks)

    if not case.payload:
        return
    down = relay.send(frame(case.endpoint, (INNER, case.sport), inner, **marks), INNER_SIDE)
    assert down.reason is Reason.RETURN
    macs = CLIENT_MACS[1], CLIENT_MACS[0]
    assert down.data == frame(case.local, case.client, case.payload, macs=macs, ttl=63, **marks)


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["name"])
def test_vector(relay: Rig, vector: dict[str, Any]) -> None:
    case = Case(
        client=address.parse(vector["client"]),
        vip=1 if vector["public"] == vector["local"] else 2,
        source=vector["source"],
        endpoint=address.parse(vector["endpoint"]),
        sport=vector["inner_port"],
        payload=bytes.fromhex(vector["payload"]),
    )
    assert case.public == address.parse(vector["public"])
    assert case.local == address.parse(vector["local"])
    header = bytes.fromhex(vector["header"])
    assert spp_header(case.client, case.public) == header
    if vector["outer_checksum"]:
        outer = udp_checksum(case.client, case.local, case.payload)
        inner = udp_checksum((case.source, case.sport), case.endpoint, header + case.payload)
        assert (outer, inner) == (vector["outer_checksum"], vector["inner_checksum"])
    check(relay, case, sum=None if vector["outer_checksum"] else 0)


def random_case(source: random.Random) -> Case:
    return Case(
        client=(f"{source.randrange(11, 100)}.{_tail(source)}", source.randrange(1, 65536)),
        vip=source.choice([1, 2]),
        source=f"10.{_tail(source)}",
        endpoint=(f"10.77.{source.randrange(256)}.{source.randrange(256)}", _port(source)),
        sport=source.randrange(5100, 5116),
        payload=source.randbytes(source.randrange(1, 1200)),
        tos=source.randrange(256),
        ttl=source.randrange(2, 256),
    )


def _tail(source: random.Random) -> str:
    return ".".join(str(source.randrange(256)) for _ in range(3))


def _port(source: random.Random) -> int:
    return source.randrange(1024, 65536)


@pytest.mark.parametrize("seed", range(20))
def test_random_flows_and_payloads(relay: Rig, seed: int) -> None:
    source = random.Random(seed)
    for _ in range(20):
        check(relay, random_case(source))


def carries_twice(words: list[int]) -> bool:
    """Adding high to low half of the sum, as a little-endian CPU sees it, carries, and again?"""
    total = sum(words)
    for _ in range(2):
        total = (total & 0xFFFF) + (total >> 16)
    return total > 0xFFFF


def excess_words(case: Case) -> list[int]:
    """What the program adds up to get from the outer sum to the inner one, in its byte order."""
    hosts = [struct.unpack("<I", socket.inet_aton(h))[0] for h in (case.source, case.endpoint[0])]
    ports = [socket.htons(p) for p in (case.sport, case.endpoint[1], 0x56EC, 38, 38)]
    return hosts + ports


def header_words(case: Case) -> list[int]:
    """The same for the IP header in front of the inner datagram."""
    hosts = [struct.unpack("<I", socket.inet_aton(h))[0] for h in (case.source, case.endpoint[0])]
    length = 28 + 38 + len(case.payload)
    first = [0x4500 | case.tos, length, 0x4000, (case.ttl - 1) << 8 | 17]
    return hosts + [socket.htons(word) for word in first]


# source, endpoint, port of ours, payload bytes, TOS, TTL; one in some 20,000 flows is like that
EXCESS_CARRIES = [
    ("10.170.102.121", ("10.77.118.137", 41953), 5100, 240, 122, 19),
    ("10.240.236.227", ("10.77.123.137", 6181), 5112, 192, 128, 247),
    ("10.220.28.56", ("10.77.238.245", 30084), 5100, 220, 241, 122),
]
HEADER_CARRIES = [
    ("10.212.236.200", ("10.77.28.250", 62777), 5107, 150, 50, 93),
    ("10.141.22.111", ("10.77.154.169", 49156), 5103, 53, 132, 182),
    ("10.60.122.200", ("10.77.173.199", 57288), 5100, 178, 225, 62),
]


@pytest.mark.parametrize(
    ("words", "made"),
    [(excess_words, made) for made in EXCESS_CARRIES]
    + [(header_words, made) for made in HEADER_CARRIES],
)
def test_sums_that_carry_out_of_two_folds(
    relay: Rig,
    words: Callable[[Case], list[int]],
    made: tuple[str, Address, int, int, int, int],
) -> None:
    source, endpoint, sport, size, tos, ttl = made
    case = Case(("11.22.33.44", 5555), 1, source, endpoint, sport, bytes(size), tos, ttl)
    assert carries_twice(words(case))
    check(relay, case)
