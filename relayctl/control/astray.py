"""Which flows left the route table? Pure.

The way to a million clients is not looked up one by one: the address space falls into spans of one
route each, and few pairs of a span and a nexthop occur.
"""

import functools
from collections.abc import Mapping

import numpy as np

from relayctl.control.flow_slice import Bools, Column, FlowSlice
from relayctl.datapath.base import NEXTHOPS, Nexthop
from relayctl.flow import TO_PEER, Prefixes
from relayctl.routes import Route, Routes
from relayctl.wire.address import MAPPED, pack_host

_SIZES = {4: 4, 6: 16}  # bytes of an address
_INDICES = 1 << 16  # numbers that a flow's nexthop field can hold
_ASTRAY, _FOLLOWS, _IF_ITSELF = range(3)  # the last: where the nexthop is the host itself


class Ways:
    """Routes and nexthops that flows have to agree with.

    A flow follows its route over any of several equal-cost hops, so that a gateway that comes back
    takes new flows and disturbs no old ones. Without a route a flow keeps what it has.
    """

    def __init__(self, routes: Routes, entries: Mapping[int, Nexthop], prefixes: Prefixes) -> None:
        self._entries = entries
        self._prefixes = prefixes
        self._table = routes
        self._spans = {version: _Spans(version, routes, entries) for version in (4, 6)}
        self._endpoints: dict[int, bool] = {}  # cluster, host, nexthop → follows

    def astray(self, flows: FlowSlice) -> Bools:
        """Which of them have another nexthop than the table names, on either leg."""
        spans = self._spans[flows.version]
        hosts = flows.keys["host"]
        out = spans.follow(hosts, flows.values["nexthop_out"])
        values = flows.values  # a leg with a peer relay on it has no nexthop of its own
        out |= values["back"] > 0
        by_peer = (values["flags"] & TO_PEER).astype(bool)
        return ~(out & (by_peer | self._endpoints_follow(values)))

    def _endpoints_follow(self, values: Column) -> Bools:
        """Endpoints are few."""
        ends = values["cluster"].astype(np.uint64) << 48
        ends |= values["host"].astype(np.uint64) << 16
        ends |= values["nexthop_in"].astype(np.uint64)
        some, where = np.unique(ends, return_inverse=True)
        return np.array([self._endpoint_follows(end) for end in some.tolist()], bool)[where]

    def _endpoint_follows(self, end: int) -> bool:
        known = self._endpoints.get(end)
        if known is None:
            prefix = self._prefixes.get(end >> 48, MAPPED)
            host = (end >> 16 & 0xFFFFFFFF).to_bytes(4, "big")
            version = 4 if prefix == MAPPED else 6
            number = int.from_bytes(host if version == 4 else prefix + host, "big")
            entry = self._entries.get(end & 0xFFFF)
            verdict = _verdict(self._table.match(version, number), entry)
            is_itself = entry is not None and pack_host(entry.gateway) == prefix + host
            known = verdict == _FOLLOWS or (verdict == _IF_ITSELF and is_itself)
            self._endpoints[end] = known
        return known


class _Spans:
    """One family's address space, cut where the route changes."""

    def __init__(self, version: int, routes: Routes, entries: Mapping[int, Nexthop]) -> None:
        self._starts, self._routes = _cut(version, routes)
        self._entries = entries
        size = _SIZES[version]
        gateways = [bytes(size)] * NEXTHOPS
        for index, entry in entries.items():
            if (":" in entry.gateway) == (version == 6):
                gateways[index] = pack_host(entry.gateway)[-size:]
        self._gateways = _addresses(version, gateways)
        self._verdicts: dict[int, int] = {}

    def follow(self, hosts: Column, nexthops: Column) -> Bools:
        """Whether each nexthop is what the table names for its host."""
        hosts = hosts.astype(self._starts.dtype)
        spans = np.searchsorted(self._starts, hosts, side="right") - 1
        pairs, where = np.unique(spans * _INDICES + nexthops, return_inverse=True)
        verdicts = np.array([self._verdict_of(pair) for pair in pairs.tolist()])[where]
        is_itself = self._gateways[nexthops % NEXTHOPS] == hosts
        follows: Bools = (verdicts == _FOLLOWS) | ((verdicts == _IF_ITSELF) & is_itself)
        return follows

    def _verdict_of(self, pair: int) -> int:
        verdict = self._verdicts.get(pair)
        if verdict is None:
            span, index = divmod(pair, _INDICES)
            verdict = _verdict(self._routes[span], self._entries.get(index))
            self._verdicts[pair] = verdict
        return verdict


def _verdict(route: Route | None, entry: Nexthop | None) -> int:
    """Does a flow with this nexthop follow this route?"""
    if route is None or not route.hops:
        return _FOLLOWS
    if entry is None:  # right for what leaves by an interface without the program
        return _FOLLOWS if any(not hop.port for hop in route.hops) else _ASTRAY
    if any((hop.port, hop.gateway) == (entry.port, entry.gateway) for hop in route.hops):
        return _FOLLOWS
    if any((hop.port, hop.gateway) == (entry.port, None) for hop in route.hops):
        return _IF_ITSELF
    return _ASTRAY


@functools.lru_cache(maxsize=2)  # a table outlives many passes
def _cut(version: int, routes: Routes) -> tuple[Column, tuple[Route | None, ...]]:
    starts, found = zip(*routes.spans(version), strict=True)
    return _addresses(version, [start.to_bytes(_SIZES[version], "big") for start in starts]), found


def _addresses(version: int, packed: list[bytes]) -> Column:
    if version == 4:
        return np.frombuffer(b"".join(packed), ">u4").astype(np.uint32)
    return np.frombuffer(b"".join(packed), "S16")
