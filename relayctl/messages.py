"""What the control process and the packet process tell each other: one dataclass for each message.

Pure. The pipe that carries them is `channel`.
"""

import base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, Literal, TypeVar

import pydantic

from relayctl.flow import (
    VALUE,
    Flow,
    FlowKey,
    pack_flow,
    unpack_flow,
)
from relayctl.wire.address import Address, pack_host

PREFIX = 12  # bytes of an address that a flow's value leaves to its cluster
PER_PART = 256  # routes, hints, flows or keys in one message

KeyText = tuple[Address, int]  # a FlowKey as JSON carries it


@dataclass(frozen=True, slots=True)
class RouteEntry:
    """One route: network as text, hops as (egress port, gateway, MTU)."""

    network: str
    hops: tuple[tuple[int, str | None, int], ...]
    metric: int


# control process → packet process


@dataclass(frozen=True, slots=True)
class RoutesPart:
    """Part of a route table; the table counts when all parts of one generation are there."""

    generation: int
    part: int
    parts: int
    routes: tuple[RouteEntry, ...]
    type: Literal["routes"] = "routes"


@dataclass(frozen=True, slots=True)
class HintsChange:
    """SSRC hints to learn, as (ssrc, client, VIP id), and to forget."""

    added: tuple[tuple[int, Address, int], ...] = ()
    removed: tuple[int, ...] = ()
    type: Literal["hints"] = "hints"


@dataclass(frozen=True, slots=True)
class ReloadKeys:
    """The key file changed and was found good."""

    type: Literal["reload_keys"] = "reload_keys"


@dataclass(frozen=True, slots=True)
class DeleteFlow:
    """An operator's delete: the flow goes and its return packets may not bring it back."""

    client: Address
    vip: int
    type: Literal["delete"] = "delete"


@dataclass(frozen=True, slots=True)
class ExpireFlow:
    """Delete this flow if it is still over when read again (socket datapath)."""

    client: Address
    vip: int
    type: Literal["expire"] = "expire"


@dataclass(frozen=True, slots=True)
class RerouteFlows:
    """These flows do not follow the route table: give them the nexthop it names."""

    keys: tuple[KeyText, ...]
    type: Literal["reroute"] = "reroute"


@dataclass(frozen=True, slots=True)
class OwnAddresses:
    """All addresses of this host."""

    hosts: tuple[str, ...]
    type: Literal["own_addresses"] = "own_addresses"


@dataclass(frozen=True, slots=True)
class PeersLive:
    """All peer relays that live, by id."""

    ids: tuple[int, ...]
    type: Literal["peers"] = "peers"


@dataclass(frozen=True, slots=True)
class RetireNexthop:
    """No flow uses this index: release it unless it was taken meanwhile."""

    index: int
    type: Literal["retire"] = "retire"


@dataclass(frozen=True, slots=True)
class Found:
    """Flows that Redis keeps, as joined records (see `cached_flow`) in base64. `hinted`: the key of
    an orphan with the flow that its SSRC had elsewhere, which is not installed."""

    records: str
    hinted: str = ""
    type: Literal["found"] = "found"


@dataclass(frozen=True, slots=True)
class Absent:
    """Orphans that Redis knows nothing about: joined keys (see `cached_flow`) in base64."""

    keys: str
    type: Literal["absent"] = "absent"


@dataclass(frozen=True, slots=True)
class FoundAll:
    """Everything that Redis has was sent: say when it is done."""

    type: Literal["found_all"] = "found_all"


# packet process → control process


@dataclass(frozen=True, slots=True)
class Wanted:
    """Orphans to look up, as joined `cached_flow.WANTED` in base64."""

    orphans: str
    type: Literal["wanted"] = "wanted"


@dataclass(frozen=True, slots=True)
class Started:
    """Sockets are bound and keys are read."""

    pid: int
    type: Literal["started"] = "started"


@dataclass(frozen=True, slots=True)
class Failed:
    """The packet process cannot start; `message` names the thing and the mend."""

    message: str
    type: Literal["failed"] = "failed"


@dataclass(frozen=True, slots=True)
class NexthopReserved:
    """A new nexthop stands in the table without MAC addresses."""

    index: int
    port: int
    gateway: str
    mtu: int
    type: Literal["reserved"] = "reserved"


@dataclass(frozen=True, slots=True)
class NexthopReleased:
    """The index is free again."""

    index: int
    type: Literal["released"] = "released"


@dataclass(frozen=True, slots=True)
class NexthopKept:
    """The index was used a moment ago and is not retired."""

    index: int
    type: Literal["kept"] = "kept"


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Every half second. Counters are totals; `reasons` is empty where they are in a map."""

    stamp: int  # units
    received: int  # datagrams read from sockets
    socket_drops: int  # datagrams the kernel dropped at full sockets
    channel_drops: int  # our messages that found the pipe full
    hints: int
    nexthop_full: int  # flows installed without a nexthop since the table was full
    keys: tuple[int, ...]  # ids
    reasons: dict[int, int]
    displaced: int = 0  # flows that went since their token had more than its share
    takeovers: int = 0  # under way
    type: Literal["heartbeat"] = "heartbeat"


@dataclass(frozen=True, slots=True)
class Restored:
    """Every `Found` before the last `FoundAll` is dealt with. Flows since the start; what was there
    already is in neither count."""

    installed: int
    refused: int
    type: Literal["restored"] = "restored"


@dataclass(frozen=True, slots=True)
class FlowsPart:
    """Part of a copy of the packet process's own flow table (socket datapath)."""

    generation: int
    part: int
    parts: int
    flows: tuple[str, ...]  # each an `encode_flow`
    type: Literal["flows"] = "flows"


Message = (
    RoutesPart
    | HintsChange
    | ReloadKeys
    | DeleteFlow
    | ExpireFlow
    | RerouteFlows
    | OwnAddresses
    | PeersLive
    | RetireNexthop
    | Found
    | Absent
    | FoundAll
    | Wanted
    | Started
    | Failed
    | NexthopReserved
    | NexthopReleased
    | NexthopKept
    | Heartbeat
    | Restored
    | FlowsPart
)

_ADAPTER: pydantic.TypeAdapter[Message] = pydantic.TypeAdapter(
    Annotated[Message, pydantic.Field(discriminator="type")]
)


class MessageError(Exception):
    """The other side sent something that is no message: the processes do not fit together."""


def encode(message: Message) -> bytes:
    return _ADAPTER.dump_json(message)


def decode(data: bytes) -> Message:
    """Raises `MessageError`."""
    try:
        return _ADAPTER.validate_json(data)
    except pydantic.ValidationError as error:
        fault = error.errors()[0]
        raise MessageError(f"{fault['loc']}: {fault['msg']}") from None


def encode_flow(key: FlowKey, flow: Flow) -> str:
    """Key and value as they would stand in a map, and the prefix of the endpoint's address."""
    prefix = pack_host(flow.endpoint[0])[:PREFIX]
    return base64.b64encode(key + pack_flow(flow) + prefix).decode()


def decode_flow(text: str) -> tuple[FlowKey, Flow]:
    """The inverse of `encode_flow`."""
    packed = base64.b64decode(text)
    flow = packed[-VALUE.size - PREFIX : -PREFIX]
    cluster = VALUE.unpack(flow)[3]
    key = FlowKey.read(packed[: -VALUE.size - PREFIX])
    return key, unpack_flow(flow, {cluster: packed[-PREFIX:]})


T = TypeVar("T")


def parts(items: Sequence[T]) -> Iterator[tuple[int, int, tuple[T, ...]]]:
    """Cut `items` for messages: (part, parts, items), at least one part."""
    count = max(1, -(-len(items) // PER_PART))
    for part in range(count):
        yield part, count, tuple(items[part * PER_PART : (part + 1) * PER_PART])


class Assembly(Generic[T]):
    """Puts parts of one generation together again. A lost part voids its generation."""

    def __init__(self) -> None:
        self._generation = -1
        self._items: list[T] = []
        self._parts = 0

    def add(self, generation: int, part: int, count: int, items: Iterable[T]) -> list[T] | None:
        """The whole list, once its last part is there."""
        if part == 0:
            self._generation, self._items, self._parts = generation, [], 0
        if generation != self._generation:
            return None
        self._items.extend(items)
        self._parts += 1
        return self._items if self._parts == count else None
