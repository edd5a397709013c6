"""Rewritten packets carry the checksums that a host would compute from nothing, whichever families
client and endpoint are of.

Each case runs in both directions and compares whole frames with the reference in `packets`.
"""

import json
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from ipaddress import IPv6Address
from pathlib import Path
from typing import Any

import pytest

from relayctl.datapath.libbpf import XDP_PASS
from relayctl.reason import Reason
from relayctl.wire import address
from tests.kernel.packets import DTLS, Address, frame, spp_header, udp_checksum
from tests.kernel.rig import (
    CLIENT,
    CLIENT_MACS,
    CLIENT_V6,
    ENDPOINT,
    ENDPOINT_MACS,
    ENDPOINT_V6,
    INNER,
    INNER_SIDE,
    INNER_V6,
    NATTED_LOCAL,
    NATTED_LOCAL_V6,
    NATTED_PUBLIC,
    NATTED_PUBLIC_V6,
    VIP,
    VIP_V6,
    Rig,
)

VECTORS = json.loads(Path("tests/vectors/spp.json").read_text())
PUBLIC = {1: VIP, 2: NATTED_PUBLIC, 3: VIP_V6, 4: NATTED_PUBLIC_V6}
LOCAL = {1: VIP, 2: NATTED_LOCAL, 3: VIP_V6, 4: NATTED_LOCAL_V6}


@dataclass(frozen=True)
class Case:
    client: Address
    vip: int
    endpoint: Address
    sport: int = 5107
    payload: bytes = DTLS
    tos: int = 0
    ttl: int = 64

    @property
    def ours(self) -> Address:
        """Our address on the inner leg."""
        return (INNER_V6 if ":" in self.endpoint[0] else INNER), self.sport

    @property
    def inner(self) -> bytes:
        """What the inner leg carries."""
        return spp_header(self.client, PUBLIC[self.vip]) + self.payload

    @property
    def outer_sum(self) -> int:
        return udp_checksum(self.client, LOCAL[self.vip], self.payload)

    @property
    def inner_sum(self) -> int:
        return udp_checksum(self.ours, self.endpoint, self.inner)


MIXES = {
    "v4_to_v4": Case(CLIENT, 1, ENDPOINT),
    "v4_nat_to_v4": Case(CLIENT, 2, ENDPOINT),
    "v4_to_v6": Case(CLIENT, 1, ENDPOINT_V6),
    "v4_nat_to_v6": Case(CLIENT, 2, ENDPOINT_V6),
    "v6_to_v4": Case(CLIENT_V6, 3, ENDPOINT),
    "v6_nat_to_v4": Case(CLIENT_V6, 4, ENDPOINT),
    "v6_to_v6": Case(CLIENT_V6, 3, ENDPOINT_V6),
    "v6_nat_to_v6": Case(CLIENT_V6, 4, ENDPOINT_V6),
}
every_mix = pytest.mark.parametrize("mix", MIXES.values(), ids=MIXES)


def check(relay: Rig, case: Case, *, sum: int | None = None) -> None:
    """Push the client's packet, then strip the same payload on its way back."""
    relay.install(case.client, case.vip, endpoint=case.endpoint, sport=case.sport)
    local = LOCAL[case.vip]
    marks: dict[str, Any] = {"tos": case.tos, "sum": sum}

    up = relay.send(frame(case.client, local, case.payload, ttl=case.ttl, **marks))
    assert up.reason is Reason.FORWARD
    macs = ENDPOINT_MACS[1], ENDPOINT_MACS[0]
    there = frame(case.ours, case.endpoint, case.inner, macs=macs, ttl=case.ttl - 1, **marks)
    assert up.data == there

    if not case.payload:
        return
    sent = frame(case.endpoint, case.ours, case.inner, ttl=case.ttl, **marks)
    down = relay.send(sent, INNER_SIDE)
    assert down.reason is Reason.RETURN
    macs = CLIENT_MACS[1], CLIENT_MACS[0]
    back = frame(local, case.client, case.payload, macs=macs, ttl=case.ttl - 1, **marks)
    assert down.data == back


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["name"])
def test_vector(relay: Rig, vector: dict[str, Any]) -> None:
    case = Case(
        client=address.parse(vector["client"]),
        vip=1 if vector["public"] == vector["local"] else 2,
        endpoint=address.parse(vector["endpoint"]),
        sport=vector["inner_port"],
        payload=bytes.fromhex(vector["payload"]),
    )
    assert PUBLIC[case.vip] == address.parse(vector["public"])
    assert LOCAL[case.vip] == address.parse(vector["local"])
    header = bytes.fromhex(vector["header"])
    assert spp_header(case.client, PUBLIC[case.vip]) == header
    if vector["outer_checksum"]:
        source = vector["source"], case.sport
        inner = udp_checksum(source, case.endpoint, header + case.payload)
        assert (case.outer_sum, inner) == (vector["outer_checksum"], vector["inner_checksum"])
    check(relay, case, sum=None if vector["outer_checksum"] else 0)


@every_mix
@pytest.mark.parametrize("seed", range(4))
def test_random_flows_and_payloads(relay: Rig, mix: Case, seed: int) -> None:
    source = random.Random(seed)
    for _ in range(20):
        check(relay, random_case(source, mix))


def random_case(source: random.Random, mix: Case) -> Case:
    if mix.vip > 2:
        client = str(IPv6Address(source.randrange(0x2000 << 112, 0x4000 << 112)))
    else:
        client = f"{source.randrange(11, 100)}.{_bytes(source, 3)}"
    if mix.endpoint == ENDPOINT_V6:
        endpoint = str(IPv6Address("fd00:2::") + source.randrange(2, 1 << 16))
    else:
        endpoint = f"10.77.{_bytes(source, 2)}"
    return replace(
        mix,
        client=(client, source.randrange(1, 65536)),
        endpoint=(endpoint, source.randrange(1024, 65536)),
        sport=source.randrange(5100, 5116),
        payload=source.randbytes(source.randrange(1, 1200)),
        tos=source.randrange(256),
        ttl=source.randrange(2, 256),
    )


def _bytes(source: random.Random, count: int) -> str:
    return ".".join(str(source.randrange(256)) for _ in range(count))


@every_mix
@pytest.mark.parametrize("payload", [b"", b"\x80", b"\xff" * 1200, bytes(1201)], ids=len)
def test_sizes(relay: Rig, mix: Case, payload: bytes) -> None:
    check(relay, replace(mix, payload=payload))


def with_sum(case: Case, which: Callable[[Case], int], wanted: int) -> Case:
    """The same with two bytes of payload such that one of its checksums is `wanted`."""
    zero = replace(case, payload=b"\x80\x6f\x00\x00" + b"opus")
    rest = (which(zero) - wanted) % 0xFFFF
    made = replace(zero, payload=b"\x80\x6f" + struct.pack("!H", rest) + b"opus")
    assert which(made) == wanted
    return made


@every_mix
@pytest.mark.parametrize("wanted", [0xFFFF, 1, 2, 0xFFFE, 0x00FF, 0xFF00], ids=hex)
@pytest.mark.parametrize(
    "which",
    [
        pytest.param(lambda case: case.outer_sum, id="outer"),
        pytest.param(lambda case: case.inner_sum, id="inner"),
    ],
)
def test_sums_at_the_ends(relay: Rig, mix: Case, which: Callable[[Case], int], wanted: int) -> None:
    """0xffff stands for a computed 0, which would mean "none"."""
    check(relay, with_sum(mix, which, wanted))


@every_mix
@pytest.mark.parametrize("sum", [1, 0xFFFE])
def test_wrong_sum_stays_wrong_by_as_much(relay: Rig, mix: Case, sum: int) -> None:
    relay.install(mix.client, mix.vip, endpoint=mix.endpoint, sport=mix.sport)
    outcome = relay.send(frame(mix.client, LOCAL[mix.vip], mix.payload, sum=sum))
    assert outcome.reason is Reason.FORWARD
    found = int.from_bytes(outcome.data[-len(mix.inner) - 2 :][:2], "big")
    assert (found - mix.inner_sum) % 0xFFFF == (sum - mix.outer_sum) % 0xFFFF != 0


@pytest.mark.parametrize("mix", [MIXES["v4_to_v4"], MIXES["v4_nat_to_v4"]])
def test_absent_sum_stays_absent(relay: Rig, mix: Case) -> None:
    check(relay, mix, sum=0)


def test_absent_sum_is_left_to_the_kernel_towards_an_ipv6_endpoint(relay: Rig) -> None:
    """RFC 8200 section 8.1: there it must not be absent."""
    key = relay.install(CLIENT, endpoint=ENDPOINT_V6)
    sent = frame(CLIENT, VIP, DTLS, sum=0)
    outcome = relay.send(sent)
    assert (outcome.reason, outcome.verdict) == (Reason.PUNT_ODD, XDP_PASS)
    assert outcome.data == sent
    assert relay.flow(key).packets_up == 1


def test_absent_sum_is_left_to_the_kernel_towards_an_ipv6_client(relay: Rig) -> None:
    case = MIXES["v6_to_v4"]
    key = relay.install(case.client, case.vip)
    sent = frame(case.endpoint, case.ours, case.inner, sum=0)
    outcome = relay.send(sent, INNER_SIDE)
    assert (outcome.reason, outcome.verdict) == (Reason.PUNT_ODD, XDP_PASS)
    assert outcome.data == sent
    assert relay.flow(key).packets_down == 1


def test_absent_sum_spends_the_budget_of_odd_packets(relay: Rig, one_cpu: None) -> None:
    relay.install(CLIENT, endpoint=ENDPOINT_V6)
    relay.install(CLIENT_V6, 3)
    up, down = frame(CLIENT, VIP, DTLS, sum=0), MIXES["v6_to_v4"]
    sent = frame(down.endpoint, down.ours, down.inner, sum=0)
    assert relay.repeat(up, 150) == {Reason.PUNT_ODD: 150}
    assert relay.repeat(sent, 60, INNER_SIDE) == {Reason.PUNT_ODD: 50, Reason.DROP_ODD_BUDGET: 10}
