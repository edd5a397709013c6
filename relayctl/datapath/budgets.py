"""Budgets: how many packets of a kind may reach Python in one unit of time, and of one token,
client or endpoint.

Pure. Sources are free to invent and tokens are not, so shares are by what is scarce. The XDP
program counts in the same way, with a set of counters on each CPU.
"""

import enum
import struct
from collections.abc import Mapping
from typing import NamedTuple

from relayctl.reason import Reason
from relayctl.wire import route_token
from relayctl.wire.address import Address, pack_host


class Region(enum.Enum):
    """A kind of counter. The first three are arrays, whose index says whose counter it is."""

    TOKEN = "token"  # index: `token_bucket`
    CLIENT = "client"  # `client_bucket`
    ENDPOINT = "endpoint"  # `endpoint_bucket`
    FIRST = "first"
    ORPHAN = "orphan"
    RETURN = "return"
    ODD = "odd"
    NEXTHOP = "nexthop"


SHARES: Mapping[Region, int] = {Region.TOKEN: 16, Region.CLIENT: 64, Region.ENDPOINT: 2000}
"""Packets a unit of one token, client bucket or endpoint bucket."""

KERNEL: Mapping[Region, int] = {
    **SHARES,
    Region.FIRST: 24_000,
    Region.ORPHAN: 2_000,
    Region.RETURN: 10_000,
    Region.ODD: 200,
    Region.NEXTHOP: 2_000,
}
"""What the program has: `SHARES`, and what each CPU may hand up in all."""


class Charge(NamedTuple):
    """What one packet costs: the counter, and the reason when it is spent."""

    region: Region
    refusal: Reason


_REQUEST = (
    Charge(Region.TOKEN, Reason.DROP_TOKEN_BUDGET),
    Charge(Region.FIRST, Reason.DROP_FIRST_BUDGET),
)
CHARGES: Mapping[Reason, tuple[Charge, ...]] = {
    Reason.PUNT_FIRST: _REQUEST,
    Reason.PUNT_CONTENDED: _REQUEST,
    Reason.PUNT_ORPHAN: (
        Charge(Region.CLIENT, Reason.DROP_ORPHAN_CLIENT_BUDGET),
        Charge(Region.ORPHAN, Reason.DROP_ORPHAN_BUDGET),
    ),
    Reason.PUNT_RETURN: (
        Charge(Region.ENDPOINT, Reason.DROP_RETURN_BUDGET),
        Charge(Region.RETURN, Reason.DROP_RETURN_BUDGET),
    ),
    Reason.PUNT_ODD: (Charge(Region.ODD, Reason.DROP_ODD_BUDGET),),
    Reason.PUNT_NEXTHOP: (Charge(Region.NEXTHOP, Reason.DROP_NEXTHOP_BUDGET),),
}
"""What each punt costs, in this order: a refusal leaves what follows it uncharged."""


class Budgets:
    """Counters that begin anew with each unit. A region without a limit is not counted."""

    def __init__(self, limits: Mapping[Region, int] = SHARES) -> None:
        self._limits = limits
        self._spent: dict[tuple[Region, int], tuple[int, int]] = {}  # unit and packets in it

    def take(self, region: Region, stamp: int, bucket: int = 0) -> bool:
        """Spend one packet at `stamp` (units). False when the counter is at its limit."""
        limit = self._limits.get(region)
        if limit is None:
            return True
        unit, spent = self._spent.get((region, bucket), (stamp, 0))
        if unit != stamp:
            spent = 0
        if spent >= limit:
            return False
        self._spent[region, bucket] = stamp, spent + 1
        return True

    def charge(self, punt: Reason, stamp: int, bucket: int = 0) -> Reason:
        """`punt` itself if all of its charges can be paid, else the refusal. `bucket` is the index
        into its array, if it has one."""
        for region, refusal in CHARGES[punt]:
            if not self.take(region, stamp, bucket if region in SHARES else 0):
                return refusal
        return punt


_WORDS = struct.Struct("!4I")


def token_bucket(token: bytes) -> int:
    """Below 65,536."""
    return route_token.tag_bits(token)


def client_bucket(host: bytes) -> int:
    """Below 16,384, of a compact address. Ports do not count: they are as free as they are many."""
    first, second, third, fourth = _WORDS.unpack(host.rjust(16, b"\0"))
    word: int = first ^ second ^ third ^ fourth
    return (word ^ word >> 16) & 0x3FFF


def endpoint_bucket(endpoint: Address) -> int:
    """Below 1,024."""
    host, port = endpoint
    word = int.from_bytes(pack_host(host)[12:], "big") ^ port
    return (word ^ word >> 16) & 0x3FF
