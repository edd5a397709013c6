"""How often somebody may do something: token buckets by name, in a table of bounded size. Pure.

A bucket holds one minute's worth and fills evenly. It is kept as the time at which it will be full
again, so a full one and one that was never seen are the same, and the least recently used ones can
be forgotten at little loss.
"""

import ipaddress
import math
from collections import OrderedDict

MINUTE_S = 60.0
MAX_BUCKETS = 65_536
IPV6_SITE_BITS = 64  # whoever has one address of it has them all


class Buckets:
    """At most `size` of them."""

    def __init__(self, size: int = MAX_BUCKETS) -> None:
        self._size = size
        self._full_at: OrderedDict[str, float] = OrderedDict()

    def take(self, name: str, per_minute: int, now: float) -> int:
        """Take one token of `name`: 0, or how many seconds to wait for the next one.

        `per_minute` 0 is no limit. `now` in seconds, monotonic.
        """
        wait_s = self.wait(name, per_minute, now)
        if per_minute and not wait_s:
            full_at = max(self._full_at.get(name, now), now)
            self._full_at[name] = full_at + MINUTE_S / per_minute
            self._full_at.move_to_end(name)
            if len(self._full_at) > self._size:
                self._full_at.popitem(last=False)
        return wait_s

    def wait(self, name: str, per_minute: int, now: float) -> int:
        """As `take`, and takes none."""
        if not per_minute:
            return 0
        full_at = max(self._full_at.get(name, now), now)
        missing_s = full_at + MINUTE_S / per_minute - now - MINUTE_S
        return math.ceil(missing_s) if missing_s > 1e-9 else 0

    def __len__(self) -> int:
        return len(self._full_at)


def network_of(host: str) -> str:
    """What counts as one client: an IPv4 address, the /64 of an IPv6 one; other text as it is."""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return host
    if ip.version == 4:
        return host
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ipaddress.ip_network((int(ip), IPV6_SITE_BITS), strict=False).network_address)
