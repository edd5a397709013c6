"""First packets of the plain kind, judged in one go: nearly all of a rush are such.

Pure. `decide` says the same of them in more steps, and judges whatever is not plain; a test holds
the two together.
"""

import functools
import struct
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from relayctl.flow import VALUE, pack_key
from relayctl.packet.actions import View
from relayctl.packet.routing import TOKEN_PREFIX
from relayctl.packet.token_flows import TokenFlows
from relayctl.wire import spp, stun
from relayctl.wire.address import Address, compact, pack
from relayctl.wire.cluster import RouteError
from relayctl.wire.packet_class import BINDING_REQUEST
from relayctl.wire.route_token import TokenError, open_token

# A flow as it is made: token, endpoint and cluster, nexthops in and out, inner port · seen_up,
# packets_up, born, bytes_up
_FLOW = struct.Struct("=8s8sHH2s2xI12xI4xI4xQ8x")
_PLACE = struct.Struct("=4s2sH")  # endpoint and cluster

assert _FLOW.size == VALUE.size


class Opening(NamedTuple):
    """What becomes of a plain first packet."""

    key: bytes  # of the flow, and the flow itself, as the map has them
    flow: bytes
    token: bytes  # its first 8 characters
    datagram: bytes  # what to send from inner port `sport` to `endpoint`
    sport: int
    endpoint: Address

    @property
    def payload(self) -> bytes:
        return self.datagram[spp.HEADER_SIZE :]


class Surroundings(View, Protocol):
    """What a judge of newcomers looks at, and the one thing that it changes: `tokens`."""

    @property
    def tokens(self) -> TokenFlows: ...

    @property
    def stamp(self) -> int:
        """Now, in units."""
        ...

    @property
    def public(self) -> Mapping[int, Address]:
        """Addresses of the VIPs, by id."""
        ...


class Newcomers:
    """Judges clients that have no flow, for endpoints that speak SPP."""

    def __init__(self, view: Surroundings) -> None:
        self._view = view
        self._public = {vip: pack(address) for vip, address in view.public.items()}

    def judge(self, payload: bytes, client: bytes, vip: int) -> Opening | None:
        """What the packet of a packed client does, or None if that is not plain.

        Its token counts as borne by a flow from here on."""
        if not stun.is_whole(payload, BINDING_REQUEST):
            return None
        view, token = self._view, stun.token_of(payload)
        if token is None or view.refuses(client):
            return None
        prefix = token[:TOKEN_PREFIX]
        if prefix in view.tokens:  # whoever else bears it has a say
            return None
        try:
            route = open_token(view.keys, token)
            endpoint = view.clusters.endpoint(route)
        except (TokenError, RouteError):
            return None
        place, host = _place(endpoint, route.cluster)
        into, out = view.nexthop(host), view.nexthop(client[:-2])
        if route.cluster in view.peers.via:
            return None
        if view.owner(endpoint) is None or into is None or out is None:
            return None
        sport, stamp = view.inner_port(client), view.stamp
        inner, size = sport.to_bytes(2, "big"), len(payload)
        flow = _FLOW.pack(prefix, place, into, out, inner, stamp, 1, stamp, size)
        key = pack_key(client, vip)
        view.tokens.add(prefix, key)
        datagram = spp.encode_packed(client, self._public[vip]) + payload
        return Opening(key, flow, prefix, datagram, sport, endpoint)


@functools.lru_cache(maxsize=65536)
def _place(endpoint: Address, cluster: int) -> tuple[bytes, bytes]:
    """The endpoint and its cluster as a flow has them, and its compact host."""
    host, port = compact(endpoint[0]), endpoint[1].to_bytes(2, "big")
    return _PLACE.pack(host[-4:], port, cluster), host
