"""What a decision is about (events), what it may look at (the view), what comes of it (actions).

Pure. The rules stand in `decide`; `view` is the view, `process` carries out actions.
"""

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from relayctl.flow import Flow, FlowKey
from relayctl.hints import Hints
from relayctl.packet.lookups import Lookups
from relayctl.packet.takeover import Takeovers
from relayctl.packet.token_flows import Crowd
from relayctl.peers import Peers
from relayctl.reason import Reason
from relayctl.wire.address import Address
from relayctl.wire.cluster import Clusters
from relayctl.wire.route_token import Key


class FromClient(NamedTuple):
    """A datagram that arrived at a VIP. `received_at` is CLOCK_MONOTONIC in ns.

    `back`: the peer relay whose VIP it was, and that delivered it to our inner port `sport`; 0: it
    came to a VIP of ours."""

    payload: bytes
    key: FlowKey
    received_at: int
    back: int = 0
    sport: int = 0


class FromEndpoint(NamedTuple):
    """A datagram that arrived at our inner port `sport`, cut behind its first 38 bytes."""

    header: bytes
    payload: bytes
    sender: Address
    sport: int
    received_at: int


class Displace(NamedTuple):
    """Delete the flow for another one of the same token; its return packets stay out a while."""

    key: FlowKey


class Install(NamedTuple):
    """Write the flow. If the table is full, the rest of the list is void."""

    key: FlowKey
    flow: Flow


class SendInner(NamedTuple):
    """Send `payload` behind an SPP header from inner port `sport` to `endpoint`."""

    endpoint: Address
    sport: int
    key: FlowKey
    payload: bytes


class SendTransparent(NamedTuple):
    """Send `payload` to `endpoint` in the client's own name."""

    endpoint: Address
    key: FlowKey
    payload: bytes


class SendOuter(NamedTuple):
    """Send `payload` from the VIP to the client."""

    key: FlowKey
    payload: bytes


class Count(NamedTuple):
    """Count the outcome; always the last action, exactly one per packet."""

    reason: Reason


class Held(NamedTuple):
    """The packet waits for a look-up, and counts when it is judged again; the last action too."""


Event = FromClient | FromEndpoint
Send = SendInner | SendTransparent | SendOuter
Action = Displace | Install | Send | Count | Held


class View(Protocol):
    """What a decision may look at."""

    @property
    def keys(self) -> Mapping[int, Key]: ...

    @property
    def clusters(self) -> Clusters: ...

    @property
    def hints(self) -> Hints: ...

    @property
    def lookups(self) -> Lookups[FromClient] | None:
        """What waits for Redis, where there is one."""
        ...

    @property
    def tombstones(self) -> Mapping[FlowKey, int]:
        """Flows that an operator deleted, each until this CLOCK_MONOTONIC ns."""
        ...

    @property
    def pending(self) -> Takeovers: ...

    @property
    def peers(self) -> Peers:
        """Other relays, and which clusters and VIPs are theirs."""
        ...

    @property
    def transparent(self) -> bool:
        """Whether endpoints see their clients' own addresses, and no SPP."""
        ...

    def flow(self, key: FlowKey) -> Flow | None: ...

    def crowd(self, token: bytes) -> Crowd:
        """The flows that bear a token, by its first 8 characters."""
        ...

    def vip(self, public: Address) -> int | None:
        """Id of the VIP that is `public` to the world."""
        ...

    def inner_port(self, client: bytes) -> int:
        """Our port towards endpoints for a packed client; 0 if transparent."""
        ...

    def nexthop(self, host: bytes) -> int | None:
        """Index of the nexthop towards a compact address, reserved if need be; 0 = the kernel
        cannot forward there, only we can; None = no route."""
        ...

    def refuses(self, client: bytes) -> bool:
        """Whether no client can have this packed address."""
        ...

    def owner(self, endpoint: Address) -> int | None:
        """Id of the cluster that may have this endpoint."""
        ...
