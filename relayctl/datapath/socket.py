"""The socket datapath: plain memory, every packet forwarded by the packet process.

It needs no privileges, and it is the oracle of the XDP program: same verdicts, same reasons, same
stamps and counters in the flow. Not here: sockets (`relayctl.packet`), and budgets, which protect
Python from the kernel's speed and have nothing to protect here.
"""

import dataclasses
import struct
from collections import Counter
from collections.abc import Iterator, Mapping

from relayctl.address_policy import AddressPolicy
from relayctl.datapath.base import Nexthop
from relayctl.flow import CONFIRMED, Flow, FlowKey
from relayctl.packet.actions import Action, FromClient, FromEndpoint, SendInner, SendOuter
from relayctl.reason import Reason
from relayctl.wire import spp
from relayctl.wire.address import Address
from relayctl.wire.packet_class import BINDING_REQUEST, PacketClass, classify, ssrc_of
from relayctl.wire.stun import HEADER_SIZE, MAGIC_COOKIE

Verdict = tuple[Reason, Action | None]
"""A reason of the program, and what to send: nothing for drops and punts."""

NOT_STUN_FROM = 20  # first byte: DTLS, TURN channels, RTP (RFC 7983 section 7)


class _Entry:
    """A flow whose counters change in place, as those of a map element do."""

    __slots__ = (
        "bytes_down",
        "bytes_up",
        "endpoint",
        "flags",
        "installed",
        "packets_down",
        "packets_up",
        "seen_down",
        "seen_up",
        "sport",
        "ssrc",
    )

    def __init__(self, flow: Flow) -> None:
        self.installed = flow
        self.endpoint = flow.endpoint
        self.sport = flow.sport
        self.flags = flow.flags
        self.ssrc = flow.ssrc
        self.seen_up, self.seen_down = flow.seen_up, flow.seen_down
        self.packets_up, self.packets_down = flow.packets_up, flow.packets_down
        self.bytes_up, self.bytes_down = flow.bytes_up, flow.bytes_down

    def flow(self) -> Flow:
        return dataclasses.replace(
            self.installed,
            flags=self.flags,
            ssrc=self.ssrc,
            seen_up=self.seen_up,
            seen_down=self.seen_down,
            packets_up=self.packets_up,
            packets_down=self.packets_down,
            bytes_up=self.bytes_up,
            bytes_down=self.bytes_down,
        )


class MemoryFlows:
    """The flow table as a dictionary of the packet process."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._entries: dict[FlowKey, _Entry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def entry(self, key: FlowKey) -> _Entry | None:
        return self._entries.get(key)

    def get(self, key: FlowKey) -> Flow | None:
        entry = self._entries.get(key)
        return entry.flow() if entry else None

    def install(self, key: FlowKey, flow: Flow) -> bool:
        if key not in self._entries and len(self._entries) >= self.capacity:
            return False
        self._entries[key] = _Entry(flow)
        return True

    def delete(self, key: FlowKey) -> bool:
        return self._entries.pop(key, None) is not None

    def items(self) -> Iterator[tuple[FlowKey, Flow]]:
        for key, entry in list(self._entries.items()):
            yield key, entry.flow()


class SocketDatapath:
    """The packet process's handle: flow table, counters, and the verdicts of the program."""

    name = "socket"

    def __init__(
        self,
        capacity: int,
        vips: Mapping[Address, int],
        policy: AddressPolicy,
    ) -> None:
        """`vips`: public address → id."""
        self.flows = MemoryFlows(capacity)
        self._vips = vips
        self._policy = policy
        self._counts: Counter[Reason] = Counter()
        self._slow: Mapping[Reason, int] = {}
        self._alive = 0

    def forward(self, event: FromClient | FromEndpoint, stamp: int) -> Verdict:
        """The program's verdict on one packet at `stamp` (units), counted."""
        if isinstance(event, FromClient):
            verdict = self._to_vip(event, stamp)
        else:
            verdict = self._inner(event, stamp)
        self._counts[verdict[0]] += 1
        return verdict

    def count(self, reason: Reason) -> None:
        """Count a verdict that was reached before `forward`, by the interface a packet took."""
        self._counts[reason] += 1

    def _to_vip(self, event: FromClient, stamp: int) -> Verdict:
        if self._policy.refuses(event.client):
            return Reason.DROP_BAD_SOURCE, None
        payload = event.payload
        entry = self.flows.entry(FlowKey(event.client, event.vip))
        if entry is not None:
            entry.seen_up = stamp
            entry.packets_up += 1
            entry.bytes_up += len(payload)
            if not entry.ssrc:
                entry.ssrc = ssrc_of(payload) or 0
            sent = SendInner(entry.endpoint, entry.sport, event.client, event.vip, payload)
            return Reason.FORWARD, sent
        if _is_binding_request(payload):
            return Reason.PUNT_FIRST, None
        if classify(payload) in (PacketClass.DTLS, PacketClass.RTP):
            return Reason.PUNT_ORPHAN, None
        return Reason.DROP_NO_FLOW, None

    def _inner(self, event: FromEndpoint, stamp: int) -> Verdict:
        try:
            header = spp.decode(event.header)
        except spp.SppError:
            return Reason.DROP_NOT_SPP, None
        payload = event.payload
        if not payload or not header.is_v4:
            return Reason.DROP_NOT_SPP, None
        if not self._policy.is_inside(event.sender[0]):
            return Reason.DROP_NOT_AN_ENDPOINT, None
        vip = self._vips.get(header.proxy)
        if vip is None:
            return Reason.DROP_FOREIGN_VIP, None
        entry = self.flows.entry(FlowKey(header.client, vip))
        if entry is None or entry.endpoint != event.sender:
            return Reason.PUNT_RETURN, None
        entry.seen_down = stamp
        entry.packets_down += 1
        entry.bytes_down += len(payload)
        if payload[0] >= NOT_STUN_FROM:
            entry.flags |= CONFIRMED
        return Reason.RETURN, SendOuter(header.client, vip, payload)

    def nexthops(self) -> Mapping[int, Nexthop]:
        return {}

    def write_nexthop(self, index: int, nexthop: Nexthop | None) -> None:
        """Nothing to write: the kernel's own routes carry what our sockets send."""

    def beat(self, now: int) -> None:
        self._alive = now

    def alive(self) -> int:
        return self._alive

    def reasons(self) -> dict[Reason, int]:
        return {**self._counts, **self._slow}

    def write_slow_reasons(self, counts: Mapping[Reason, int]) -> None:
        self._slow = counts

    def close(self) -> None:
        """Nothing is held."""


def _is_binding_request(payload: bytes) -> bool:
    """What the program can see of it: attributes are the packet process's business."""
    size = len(payload) - HEADER_SIZE
    return (
        size >= 0
        and size % 4 == 0
        and struct.unpack_from("!HHI", payload) == (BINDING_REQUEST, size, MAGIC_COOKIE)
    )
